/* SPDX-License-Identifier: MIT */
/* The one-time system set-up, and its undoing: print or walk the table of steps. */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opts.h"
#include "base/str.h"
#include "cmd.h"
#include "launch/host.h"
#include "launch/framefetch.h"
#include "launch/owner.h"
#include "launch/probes.h"
#include "launch/python.h"
#include "launch/setup.h"
#include "launch/setupkind.h"
#include "launch/uprobes.h"
#include "resolve.h"

struct request {
	bool undo, dry_run, persist;
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
	CLEANUP(python_free) struct python *py = NULL;
	struct probe_set *set;

	if (python_find(&py, wanted, err) < 0 || resolve_probes(&set, py, frames, err) < 0)
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
	/* Nobody asked for the default: a system without Python can still be set up. */
	if (!request->pythons.n && resolve_one(sets, NULL, request->frames, &why) < 0)
		log_warn("no probes are installed: %s", why.text);
	return 0;
}

static void print_plan(const struct setup_plan *plan)
{
	for (size_t i = 0; i < plan->steps.n; i++) {
		const struct setup_step *step = &plan->steps.v[i];
		CLEANUP(free) char *text = setup_step_text(step);

		printf("%s%s\n", setup_step_is_met(step) ? "# already: " : "", text);
	}
}

/* Back to where this run began. */
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
	printf("%s%s%s%s\n", text, was && !strchr(was, '\n') ? "    # was " : "",
	       was && !strchr(was, '\n') ? was : "",
	       was && strchr(was, '\n') ? "    # replaced" : "");
	return 0;
}

/* "giltracer_BUILD_…" of both: whether they are of one build. */
static bool is_same_build(const char *a, const char *b)
{
	size_t len = strlen("giltracer_");

	len += strcspn(b + len, "_");
	return !strncmp(a, b, len);
}

/* Whether the step installed probes in another build of a file that has new ones, or before this
 * container was started again: the kernel was not. */
static bool is_outdated(const struct setup_step *step, const struct probe_sets *sets)
{
	if (step->kind != &setup_probes)
		return false;
	for (size_t i = 0; i < sets->v.n; i++)
		if (!strcmp(step->value, sets->v.v[i]->path) &&
		    (!is_same_build(step->target, sets->v.v[i]->group) ||
		     owner_is_foreign(step->target)))
			return true;
	return false;
}

/* An interpreter that was upgraded leaves probes in a file that nobody can start any more. */
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
			printf("%s    # of an earlier set-up\n", text);
	}
}

static int apply_plan(struct setup_state *state, const struct setup_options *options,
                      const struct probe_sets *sets, struct error *err)
{
	CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };
	const struct probe_set *const *v = (const struct probe_set *const *)sets->v.v;

	setup_plan_init(&plan, options, v, sets->v.n);
	if (apply_step(state, &plan.steps.v[0], err) < 0)
		return -1;
	/* Now that the group exists, its number is known to the steps that need it. */
	setup_plan_done(&plan);
	setup_plan_init(&plan, options, v, sets->v.n);
	for (size_t i = 0; i < plan.steps.n; i++)
		if (apply_step(state, &plan.steps.v[i], err) < 0)
			return -1;
	return 0;
}

static int apply(const struct setup_options *options, const struct probe_sets *sets,
                 struct error *err)
{
	CLEANUP(setup_state_done) struct setup_state state = { 0 };
	size_t before;

	if (setup_state_load(&state, err) < 0)
		return -1;
	before = state.done.n;
	if (apply_plan(&state, options, sets, err) < 0) {
		roll_back(&state, before);
		return -1;
	}
	remove_outdated(&state, sets, false);
	log_info("members of the group %s can record now%s; giltracer setup --undo reverts this",
	         options->group,
	         options->user ? " (log in again for the new membership to count)" : "");
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
		printf("%s\n", text);
	}
	return failed ? error_set(err, EIO, "%u of the steps could not be undone", failed) : 0;
}

/* The words that repeat this set-up. Owned by the caller, as is each string that is not argv's. */
static const char **repeat_argv(const struct request *request, const struct probe_sets *sets,
                                const char *self, char frames[12])
{
	VEC(const char *) words = { 0 };

	*vec_push(&words) = self;
	*vec_push(&words) = "setup";
	*vec_push(&words) = "--persist";
	*vec_push(&words) = "--group";
	*vec_push(&words) = request->group;
	snprintf(frames, 12, "%u", request->frames);
	*vec_push(&words) = "--frames";
	*vec_push(&words) = frames;
	for (size_t i = 0; i < sets->v.n; i++) {
		*vec_push(&words) = "--python";
		*vec_push(&words) = sets->v.v[i]->python;
	}
	*vec_push(&words) = NULL;
	return words.v;
}

static int set_up(const struct request *request, struct error *err)
{
	CLEANUP(probe_sets_done) struct probe_sets sets = { 0 };
	CLEANUP(free) const char **argv = NULL;
	CLEANUP(free) char *self = realpath("/proc/self/exe", NULL);
	char frames[12];
	const char *sudo_user = getenv("SUDO_USER");
	struct setup_options options = { .group = request->group, .persist = request->persist };

	if (resolve_all(&sets, request, err) < 0)
		return -1;
	if (sudo_user && *sudo_user && strcmp(sudo_user, "root") != 0)
		options.user = sudo_user;
	argv = repeat_argv(request, &sets, self ? self : "giltracer", frames);
	options.argv = argv;
	if (request->dry_run) {
		CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };
		CLEANUP(setup_state_done) struct setup_state state = { 0 };

		setup_plan_init(&plan, &options, (const struct probe_set *const *)sets.v.v,
		                sets.v.n);
		print_plan(&plan);
		if (setup_state_load(&state, err) < 0)
			return -1;
		remove_outdated(&state, &sets, true);
		return 0;
	}
	return apply(&options, &sets, err);
}

static int check_group(const char *name, struct error *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > 31 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != len ||
	    *name == '-')
		return error_set(err, EINVAL, "option --group: '%s' is not a group's name", name);
	return 0;
}

static int setup_run(int argc, char **argv, struct error *err)
{
	struct request request = { .group = "giltracer", .frames = FRAMEFETCH_DEFAULT };
	bool help = false;
	const struct opt opts[] = {
		OPT_LIST(0, "python", "PATH", &request.pythons,
		         "install probes for this interpreter; may be repeated"),
		OPT_UINT(0, "frames", "COUNT", &request.frames, 0, FRAMEFETCH_MAX,
		         "the probes fetch COUNT Python frames, for --frames COUNT (2)"),
		OPT_STR(0, "group", "NAME", &request.group, "whose members may record (giltracer)"),
		OPT_FLAG(0, "persist", &request.persist, "do it again at every boot"),
		OPT_FLAG(0, "undo", &request.undo, "put back what was found before"),
		OPT_FLAG('n', "dry-run", &request.dry_run, "only print what would be done"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int next = opts_parse(opts, argc, argv, err), status = -1;

	if (next < 0)
		status = -1;
	else if (help)
		status = cmd_help(&cmd_setup, opts);
	else if (next < argc)
		error_set(err, EINVAL, "unexpected argument '%s'", argv[next]);
	else if (!request.dry_run && !host_capable(CAP_SYS_ADMIN))
		error_set(err, EPERM, "this needs root: sudo giltracer setup%s",
		          request.undo ? " --undo" : "");
	else if (check_group(request.group, err) == 0)
		status = request.undo ? undo(request.dry_run, err) : set_up(&request, err);
	opt_list_done(&request.pythons);
	return status;
}

const struct cmd cmd_setup = {
	.name = "setup",
	.usage = "[OPTION]...",
	.summary = "let ordinary users record, once per system",
	.run = setup_run,
};
