/* SPDX-License-Identifier: MIT */
/* giltracer setup: the one-time setup of the system, and its undoing; prints or executes the
 * steps. */
#include <errno.h>
#include <jansson.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/datadir.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opts.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cmd.h"
#include "system/host.h"
#include "locate/framefetch.h"
#include "base/path_owner.h"
#include "system/perf_guard.h"
#include "system/probe_lease.h"
#include "locate/probes.h"
#include "system/setup.h"
#include "system/setup_kind.h"
#include "system/stored_probes.h"
#include "system/uprobes.h"
#include "record/resolve_owner.h"

#define BOOT_MAX (4u << 20)

struct request {
	bool undo, dry_run, persist, everybody, boot;
	json_t *boot_file; /* owns group */
	const char *group;
	struct opt_list pythons;
	unsigned frames;
};

struct probe_sets {
	VEC(struct probe_set *) v;
};

static void probe_sets_done(struct probe_sets *sets)
{
	for (size_t i = 0; i < sets->v.n; i++)
		probe_set_free(sets->v.v[i]);
	vec_done(&sets->v);
}

static void cleanup_probe_sets_done(struct probe_sets *sets)
{
	probe_sets_done(sets);
}

static int resolve_one(struct probe_sets *sets, const char *wanted, unsigned frames,
                       struct error *err)
{
	struct probe_set *set;

	if (resolve_as_owner(&set, wanted, frames, err) < 0)
		return -1;
	for (size_t i = 0; i < sets->v.n; i++)
		if (!strcmp(sets->v.v[i]->group, set->group)) {
			probe_set_free(set);
			return 0;
		}
	*vec_push(&sets->v) = set;
	return 0;
}

static int resolve_all(struct probe_sets *sets, const struct request *request, struct error *err)
{
	struct error why;

	for (unsigned i = 0; i < request->pythons.n; i++)
		if (resolve_one(sets, request->pythons.v[i], request->frames, err) < 0)
			return -1;
	/* The default interpreter was not requested: a system without Python can be set up, too. */
	if (!request->pythons.n && resolve_one(sets, NULL, request->frames, &why) < 0)
		log_warn("no probes are installed: %s", why.text);
	return 0;
}

static void print_plan(const struct setup_plan *plan)
{
	for (size_t i = 0; i < plan->steps.n; i++) {
		const struct setup_step *step = &plan->steps.v[i];
		CLEANUP(free) char *text = setup_step_text(step);

		utf8_fprintf(stdout, "%s%s\n", setup_step_is_met(step) ? "# already: " : "", text);
	}
}

/* Undoes the steps of this run. */
static void roll_back(struct setup_state *state, size_t before)
{
	for (size_t i = state->done.n; i-- > before;) {
		struct error err;

		if (setup_undo(state, i, &err) < 0)
			log_warn("not rolled back: %s", err.text);
	}
}

static int apply_step(struct setup_state *state, const struct setup_step *step, struct error *err)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(free) char *was = NULL;

	if (setup_step_is_met(step))
		return 0;
	was = step->kind->current(step);
	text = setup_step_text(step);
	if (setup_apply(state, step, err) < 0)
		return error_prefix(err, "%s", text);
	utf8_fprintf(stdout, "%s%s%s%s\n", text, was && !strchr(was, '\n') ? "    # was " : "",
	             was && !strchr(was, '\n') ? was : "",
	             was && strchr(was, '\n') ? "    # replaced" : "");
	return 0;
}

/* Whether both groups are of the same build, "giltracer_BUILD_…". */
static bool is_same_build(const char *a, const char *b)
{
	size_t len = strlen("giltracer_");

	len += strcspn(b + len, "_");
	return !strncmp(a, b, len);
}

/* Whether the step installed probes in an earlier build of a file that has new ones, or before a
 * restart of this container, during which the kernel kept them. */
static bool is_outdated(const struct setup_step *step, const struct probe_sets *sets)
{
	if (step->kind != &setup_probes)
		return false;
	for (size_t i = 0; i < sets->v.n; i++)
		if (!strcmp(step->value, sets->v.v[i]->path) &&
		    (!is_same_build(step->target, sets->v.v[i]->group) ||
		     lease_is_foreign(step->target)))
			return true;
	return false;
}

/* After an upgrade of an interpreter, probes remain in a file that nobody can start any more. */
static void remove_outdated(struct setup_state *state, const struct probe_sets *sets, bool dry_run)
{
	for (size_t i = state->done.n; i-- > 0;) {
		CLEANUP(free) char *text = NULL;
		struct error err;

		if (!is_outdated(&state->done.v[i], sets))
			continue;
		text = setup_undo_text(state, i);
		if (!dry_run && setup_undo(state, i, &err) < 0)
			log_warn("%s: %s", text, err.text);
		else
			utf8_fprintf(stdout, "%s    # of an earlier setup\n", text);
	}
}

static void plan_for(struct setup_plan *ret, const struct setup_options *options,
                     const struct probe_sets *sets)
{
	setup_plan_init(ret, options, (const struct probe_set *const *)sets->v.v, sets->v.n);
}

/* Undoes permissions granted by earlier versions, or by options that are no longer given. */
static int undo_superseded(struct setup_state *state, const struct setup_plan *plan, bool dry_run,
                           struct error *err)
{
	for (size_t i = state->done.n; i-- > 0;) {
		CLEANUP(free) char *text = NULL;

		if (!setup_is_superseded(&state->done.v[i], plan))
			continue;
		text = setup_undo_text(state, i);
		if (!dry_run && setup_undo(state, i, err) < 0)
			return error_prefix(err, "%s", text);
		utf8_fprintf(stdout, "%s    # of an earlier setup\n", text);
	}
	return 0;
}

/* The plan is recomputed for each step, because a new group has a number only when it exists,
 * and tracefs has files only when it is mounted. */
static int apply_plan(struct setup_state *state, const struct setup_options *options,
                      const struct probe_sets *sets, struct error *err)
{
	for (size_t i = 0;; i++) {
		CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };

		plan_for(&plan, options, sets);
		if (i >= plan.steps.n)
			return 0;
		if (apply_step(state, &plan.steps.v[i], err) < 0)
			return -1;
	}
}

/* States what the setup permits, and to whom, before and after it is done. */
static void say_consequences(const struct setup_options *options)
{
	log_info("members of the group %s can record their own programs; of other programs, they "
	         "see the names and numbers of threads that wake theirs or run after them on a "
	         "CPU; of the kernel, the addresses of its code",
	         options->group);
	if (options->everybody)
		log_warn("--everybody: ALL USERS, IN NO GROUP AT ALL, CAN RECORD ALL PROCESSES, "
		         "THOSE OF ROOT, TOO: THEIR MEMORY (STACKS), ALL TRACEPOINTS, AND THE "
		         "ADDRESSES OF THE KERNEL");
}

static int apply(struct setup_state *state, const struct setup_options *options,
                 const struct probe_sets *sets, struct error *err)
{
	CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };
	size_t before;

	plan_for(&plan, options, sets);
	if (undo_superseded(state, &plan, false, err) < 0)
		return -1;
	before = state->done.n;
	if (apply_plan(state, options, sets, err) < 0) {
		roll_back(state, before);
		return -1;
	}
	remove_outdated(state, sets, false);
	say_consequences(options);
	log_info("members of the group %s can now record%s; giltracer setup --undo "
	         "reverts this",
	         options->group, options->user ? " (after they log in again)" : "");
	return 0;
}

static void undo_strays(bool dry_run)
{
	size_t removed = 0;
	struct error err;

	if (dry_run)
		return;
	if (uprobes_remove_strays(&removed, &err) < 0)
		log_warn("stray probes: %s", err.text);
	else if (removed)
		log_info("%zu groups of stray probes were removed", removed);
}

static int undo(bool dry_run, struct error *err)
{
	CLEANUP(setup_state_done) struct setup_state state = { 0 };
	unsigned failed = 0;

	if (setup_state_load(&state, err) < 0)
		return -1;
	undo_strays(dry_run);
	if (!state.done.n)
		log_info("there is nothing to undo");
	for (size_t i = state.done.n; i-- > 0;) {
		CLEANUP(free) char *text = setup_undo_text(&state, i);

		if (!dry_run && setup_undo(&state, i, err) < 0) {
			log_warn("%s: %s", text, err->text);
			failed++;
			continue;
		}
		utf8_fprintf(stdout, "%s\n", text);
	}
	return failed ? error_set(err, EIO, "%u of the steps could not be undone", failed) : 0;
}

/* The file that the unit reads at boot, so that nothing is searched again, and no user's program
 * runs. */
static char *boot_text(const struct request *request, const struct probe_sets *sets)
{
	json_t *stored = json_array();
	json_auto_t *json = NULL;

	for (size_t i = 0; i < sets->v.n; i++)
		json_array_append_new(stored, stored_probes_write(sets->v.v[i]));
	json = json_pack("{si ss sb so}", "boot", 1, "group", request->group, "everybody",
	                 request->everybody, "sets", stored);
	return json_dumps(json, JSON_INDENT(1));
}

/* An interpreter that was upgraded meanwhile does not prevent the setup for the others. */
static int read_sets(struct probe_sets *sets, const json_t *stored, struct error *err)
{
	const json_t *json;
	size_t i;

	json_array_foreach(stored, i, json)
	{
		CLEANUP(probe_set_free) struct probe_set *set = NULL;

		if (stored_probes_read(&set, json, err) < 0)
			return -1;
		if (stored_probes_verify(set, err) < 0)
			log_warn("no probes are installed: %s", err->text);
		else
			*vec_push(&sets->v) = take(set);
	}
	return 0;
}

static int read_boot(struct request *request, struct probe_sets *sets, struct error *err)
{
	CLEANUP(free) char *path = setup_boot_path();
	CLEANUP(free) char *text = NULL;
	const char *group = NULL;
	json_t *stored = NULL;
	int everybody = 0;
	struct stat st;

	if (stat(path, &st) == 0 && (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH)))
		return error_set(err, EPERM, "%s: users other than root can change it", path);
	if (file_read_regular(&text, NULL, path, BOOT_MAX, err) < 0)
		return -1;
	request->boot_file = json_loads(text, 0, NULL);
	if (json_unpack(request->boot_file, "{ss sb so}", "group", &group, "everybody", &everybody,
	                "sets", &stored) < 0)
		return error_set(err, EINVAL, "%s: not valid: run giltracer setup --persist", path);
	request->group = group;
	request->everybody = everybody;
	return read_sets(sets, stored, err);
}

/* Root starts the program at every boot, so nobody else may be able to change it. */
static int check_persist(const char *self, struct error *err)
{
	CLEANUP(free) char *data = NULL;
	CLEANUP(free) char *guard = NULL;

	if (path_check_roots(self, err) < 0 ||
	    datadir_find(&data, "share/python/bootstrap.py", err) < 0 ||
	    perf_guard_find_program(&guard, err) < 0 || path_check_roots(data, err) < 0 ||
	    path_check_roots(guard, err) < 0)
		return error_prefix(err, "--persist needs an installed giltracer (make install)");
	return 0;
}

static int print_all(struct setup_state *state, const struct setup_options *options,
                     const struct probe_sets *sets, struct error *err)
{
	CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };

	plan_for(&plan, options, sets);
	if (undo_superseded(state, &plan, true, err) < 0)
		return -1;
	print_plan(&plan);
	remove_outdated(state, sets, true);
	say_consequences(options);
	return 0;
}

static int check_group(const char *name, struct error *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > 31 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != len ||
	    *name == '-')
		return error_set(err, EINVAL, "option --group: '%s' is not a group's name", name);
	return 0;
}

/* The user who called sudo, doas or pkexec. The caller frees it; NULL: root itself. */
static char *asking_user(void)
{
	const char *name = getenv("SUDO_USER"), *uid = getenv("PKEXEC_UID");
	const struct passwd *pw;

	if (!name || !*name)
		name = getenv("DOAS_USER");
	if ((!name || !*name) && uid && (pw = getpwuid((uid_t)strtoul(uid, NULL, 10))))
		name = pw->pw_name;
	return name && *name && strcmp(name, "root") != 0 ? xstrdup(name) : NULL;
}

static int find_sets(struct request *request, struct probe_sets *sets, struct error *err)
{
	return request->boot ? read_boot(request, sets, err) : resolve_all(sets, request, err);
}

static int set_up(struct request *request, struct error *err)
{
	CLEANUP(setup_state_done) struct setup_state state = { 0 };
	CLEANUP(probe_sets_done) struct probe_sets sets = { 0 };
	CLEANUP(free) char *self = realpath("/proc/self/exe", NULL);
	CLEANUP(free) char *user = asking_user();
	CLEANUP(free) char *boot = NULL;
	struct setup_options options = { .self = self, .user = user };

	if (setup_state_load(&state, err) < 0)
		return -1;
	options.persist = request->persist || setup_is_persistent(&state);
	if (options.persist && check_persist(self ? self : "giltracer", err) < 0)
		return -1;
	if (find_sets(request, &sets, err) < 0 || check_group(request->group, err) < 0)
		return -1;
	boot = boot_text(request, &sets);
	options.boot = boot;
	options.group = request->group;
	options.everybody = request->everybody;
	if (request->dry_run)
		return print_all(&state, &options, &sets, err);
	return apply(&state, &options, &sets, err);
}

static int setup_run(int argc, char **argv, struct error *err)
{
	struct request request = { .group = "giltracer", .frames = FRAMEFETCH_DEFAULT };
	bool help = false;
	const struct opt opts[] = {
		OPT_LIST(0, "python", "PATH", &request.pythons,
		         "install probes for this interpreter; may be repeated"),
		OPT_UINT(0, "frames", "COUNT", &request.frames, 0, FRAMEFETCH_MAX,
		         "the probes fetch COUNT Python frames, as --frames COUNT needs (2)"),
		OPT_STR(0, "group", "NAME", &request.group,
		        "the group whose members may record (giltracer)"),
		OPT_FLAG(0, "everybody", &request.everybody,
		         "let ALL USERS record ALL PROCESSES (perf_event_paranoid -1)"),
		OPT_FLAG(0, "persist", &request.persist, "repeat the set-up at every boot"),
		OPT_FLAG(0, "boot", &request.boot, "for the boot unit of --persist only"),
		OPT_FLAG(0, "undo", &request.undo, "restore what setup changed"),
		OPT_FLAG('n', "dry-run", &request.dry_run, "only print what would be done"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int status = cmd_options(&cmd_setup, opts, &help, argc, argv, err);

	if (status > 0 && !request.dry_run && !host_capable(CAP_SYS_ADMIN))
		status = error_set(err, EPERM, "this needs root: sudo giltracer setup%s",
		                   request.undo ? " --undo" : "");
	else if (status > 0)
		status = request.undo ? undo(request.dry_run, err) : set_up(&request, err);
	json_decref(request.boot_file);
	opt_list_done(&request.pythons);
	return status;
}

const struct cmd cmd_setup = {
	.name = "setup",
	.usage = "[OPTION]...",
	.summary = "let ordinary users record; run once per system",
	.run = setup_run,
};
