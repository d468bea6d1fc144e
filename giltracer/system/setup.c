/* SPDX-License-Identifier: MIT */
/* Decides on the steps and their order, and remembers what is needed to undo them. */
#include "system/setup.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "system/host.h"
#include "system/perf_guard.h"
#include "system/probe_lease.h"
#include "locate/probes.h"
#include "system/setup_kind.h"
#include "system/tracefs.h"

#define STATE_MAX (16u << 20)

/* With -1, all users may record raw tracepoints of all processes, as needed for uprobes. */
#define PARANOID "-1"

/* Per CPU and user: two rings of 4 MiB each for both kinds of recording, and their headers. */
#define MLOCK_KB 16896

static char *dir_from(const char *variable, const char *usual, const char *name)
{
	const char *dir = secure_getenv(variable);

	return xasprintf("%s/%s", dir && *dir ? dir : usual, name);
}

static void add(struct setup_plan *plan, const struct setup_kind *kind, char *target, char *value)
{
	*vec_push(&plan->steps) =
		(struct setup_step){ .kind = kind, .target = target, .value = value };
}

static void plan_sysctls(struct setup_plan *plan)
{
	CLEANUP(free) char *mlock = host_sysctl("kernel.perf_event_mlock_kb");
	unsigned long kb = mlock ? strtoul(mlock, NULL, 10) : 0;

	add(plan, &setup_sysctl, xstrdup("kernel.perf_event_paranoid"), xstrdup(PARANOID));
	add(plan, &setup_sysctl, xstrdup("kernel.perf_event_mlock_kb"),
	    xasprintf("%lu", kb > MLOCK_KB ? kb : MLOCK_KB));
}

/* The number of a group; a group that does not exist yet has none, and is filled in later. */
static char *group_number(const char *name)
{
	const struct group *group = getgrnam(name);

	return group ? xasprintf("%u", (unsigned)group->gr_gid) : xasprintf("<%s>", name);
}

static void share(struct setup_plan *plan, const char *gid, unsigned bits, char *path)
{
	char *value = setup_share_value(path, gid, bits);

	if (value)
		add(plan, &setup_share, path, value);
	else
		free(path);
}

/*
 * Shares only the folder of events, bind-mounted where the group can reach it, and in it the files
 * that perf reads to record the scheduler's events. All else in tracefs, and the path to it,
 * remains accessible to root only: on newer kernels all files of tracefs have the group of its root
 * folder, so that tracefs itself cannot be opened for one group only.
 */
static void share_tracefs(struct setup_plan *plan, const char *gid, const char *root)
{
	static const char *const folders[] = { "events", "events/sched",
		                               "events/sched/sched_switch",
		                               "events/sched/sched_waking",
		                               "events/sched/sched_migrate_task" };
	static const char *const files[] = { "header_page", "header_event" };

	add(plan, &setup_bind, lease_path("tracing/events"), xasprintf("%s/events", root));
	share(plan, gid, 0050, lease_path("tracing"));
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		share(plan, gid, 0050, xasprintf("%s/%s", root, folders[i]));
		if (i < 2)
			continue;
		share(plan, gid, 0040, xasprintf("%s/%s/id", root, folders[i]));
		share(plan, gid, 0040, xasprintf("%s/%s/format", root, folders[i]));
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		share(plan, gid, 0040, xasprintf("%s/events/%s", root, files[i]));
}

static void plan_guard(struct setup_plan *plan, const char *gid)
{
	char *value = setup_guard_value(gid);

	/* If the program is missing, the step itself reports that. */
	add(plan, &setup_guard, perf_guard_path(), value ? value : xasprintf("gid=%s,sum=?", gid));
}

static void plan_tracefs(struct setup_plan *plan, const struct setup_options *options,
                         const struct probe_set *const *sets, size_t set_count)
{
	CLEANUP(free) char *gid = group_number(options->group);
	CLEANUP(free) char *root = NULL;
	struct error ignored;

	if (tracefs_find(&root, &ignored) < 0) {
		root = xstrdup("/sys/kernel/tracing");
		add(plan, &setup_mount, xstrdup(root), xstrdup("tracefs"));
	}
	share_tracefs(plan, gid, root);
	plan_guard(plan, gid);
	for (size_t i = 0; i < set_count; i++) {
		add(plan, &setup_probes, xstrdup(sets[i]->group), xstrdup(sets[i]->path));
		plan->steps.v[plan->steps.n - 1].set = sets[i];
	}
}

/* Quotes a word for systemd, which splits at blanks and expands % and $. */
static void add_quoted(struct str *text, const char *word)
{
	str_adds(text, " \"");
	for (; *word; word++) {
		if (*word == '"' || *word == '\\')
			str_addc(text, '\\');
		if (*word == '%' || *word == '$')
			str_addc(text, *word);
		str_addc(text, *word);
	}
	str_addc(text, '"');
}

static char *unit_text(const char *self)
{
	CLEANUP(str_done) struct str text = { 0 };

	str_adds(&text, "[Unit]\nDescription=Probes and permissions for giltracer\n"
	                "After=local-fs.target sys-kernel-tracing.mount\n\n"
	                "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=");
	add_quoted(&text, self);
	str_adds(&text, " setup --boot\n\n[Install]\nWantedBy=multi-user.target\n");
	return str_take(&text);
}

char *setup_boot_path(void)
{
	return dir_from("GILTRACER_STATEDIR", "/var/lib/giltracer", "boot.json");
}

static void plan_persistence(struct setup_plan *plan, const struct setup_options *options)
{
	const char *variable = "GILTRACER_ETCDIR", *etc = "/etc";
	CLEANUP(str_done) struct str sysctls = { 0 };

	str_adds(&sysctls, "# Written by giltracer setup --persist\n");
	for (size_t i = 0; i < plan->steps.n; i++)
		if (plan->steps.v[i].kind == &setup_sysctl)
			str_addf(&sysctls, "%s = %s\n", plan->steps.v[i].target,
			         plan->steps.v[i].value);
	add(plan, &setup_file, setup_boot_path(), xstrdup(options->boot));
	if (options->everybody)
		add(plan, &setup_file, dir_from(variable, etc, "sysctl.d/60-giltracer.conf"),
		    str_take(&sysctls));
	add(plan, &setup_file, dir_from(variable, etc, "systemd/system/giltracer.service"),
	    unit_text(options->self));
	add(plan, &setup_link,
	    dir_from(variable, etc, "systemd/system/multi-user.target.wants/giltracer.service"),
	    xstrdup("../giltracer.service"));
}

void setup_plan_init(struct setup_plan *ret, const struct setup_options *options,
                     const struct probe_set *const *sets, size_t set_count)
{
	*ret = (struct setup_plan){ 0 };
	add(ret, &setup_group, xstrdup(options->group), xstrdup("present"));
	if (options->user)
		add(ret, &setup_member, xasprintf("%s %s", options->user, options->group),
		    xstrdup("member"));
	if (options->everybody)
		plan_sysctls(ret);
	plan_tracefs(ret, options, sets, set_count);
	if (options->persist)
		plan_persistence(ret, options);
}

static void step_done(struct setup_step *step)
{
	free(step->target);
	free(step->value);
	free(step->old);
}

void setup_plan_done(struct setup_plan *plan)
{
	for (size_t i = 0; i < plan->steps.n; i++)
		step_done(&plan->steps.v[i]);
	vec_done(&plan->steps);
}

bool setup_step_is_met(const struct setup_step *step)
{
	CLEANUP(free) char *now = step->kind->current(step);

	return now && !strcmp(now, step->value);
}

char *setup_step_text(const struct setup_step *step)
{
	return step->kind->text(step, step->value);
}

static int parse_step(struct setup_step *ret, const json_t *json)
{
	const char *kind = json_string_value(json_object_get(json, "kind"));
	const char *target = json_string_value(json_object_get(json, "target"));
	const char *value = json_string_value(json_object_get(json, "value"));
	const char *old = json_string_value(json_object_get(json, "old"));

	if (!kind || !target || !value || !setup_kind_find(kind))
		return -1;
	*ret = (struct setup_step){ .kind = setup_kind_find(kind),
		                    .target = xstrdup(target),
		                    .value = xstrdup(value),
		                    .old = old ? xstrdup(old) : NULL };
	return 0;
}

static int state_parse(struct setup_state *state, const char *text, struct error *err)
{
	json_error_t why;
	json_auto_t *root = json_loads(text, 0, &why);
	json_t *step;
	size_t i;

	if (!root)
		return error_set(err, EINVAL, "%s:%d: %s", state->path, why.line, why.text);
	json_array_foreach(json_object_get(root, "done"), i, step)
	{
		struct setup_step parsed;

		if (parse_step(&parsed, step) < 0)
			return error_set(err, EINVAL, "%s: step %zu cannot be parsed", state->path,
			                 i + 1);
		*vec_push(&state->done) = parsed;
	}
	return 0;
}

int setup_state_load(struct setup_state *ret, struct error *err)
{
	CLEANUP(setup_state_done) struct setup_state state = { 0 };
	CLEANUP(free) char *text = NULL;

	state.path = dir_from("GILTRACER_STATEDIR", "/var/lib/giltracer", "setup.json");
	if (file_read(&text, NULL, state.path, STATE_MAX, err) < 0) {
		if (err->code != ENOENT)
			return -1;
	} else if (state_parse(&state, text, err) < 0) {
		return -1;
	}
	*ret = state;
	state = (struct setup_state){ 0 };
	return 0;
}

void setup_state_done(struct setup_state *state)
{
	for (size_t i = 0; i < state->done.n; i++)
		step_done(&state->done.v[i]);
	vec_done(&state->done);
	free(state->path);
}

/* NULL: a name in it is not UTF-8, or memory is exhausted. */
static json_t *state_json(const struct setup_state *state)
{
	json_t *done = json_array();

	for (size_t i = 0; i < state->done.n; i++) {
		const struct setup_step *step = &state->done.v[i];
		json_t *json = json_pack("{s:s, s:s, s:s, s:s?}", "kind", step->kind->name,
		                         "target", step->target, "value", step->value, "old",
		                         step->old);

		if (json_array_append_new(done, json) < 0) {
			json_decref(done);
			return NULL;
		}
	}
	return json_pack("{s:i, s:o}", "setup", 1, "done", done);
}

static int make_parent(const char *path, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(path);
	const char *dir = dirname(copy);

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_errno(err, "%s", dir);
	return 0;
}

static int state_remove(const struct setup_state *state, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(state->path);

	if (unlink(state->path) < 0 && errno != ENOENT)
		return error_errno(err, "%s", state->path);
	rmdir(dirname(copy)); /* stays if it is not empty */
	return 0;
}

static int state_save(const struct setup_state *state, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	json_auto_t *json = NULL;

	if (!state->done.n)
		return state_remove(state, err);
	json = state_json(state);
	if (!json)
		return error_set(err, EILSEQ, "%s: a name that is not UTF-8 cannot be recorded",
		                 state->path);
	if (make_parent(state->path, err) < 0 || filewriter_open(&w, state->path, err) < 0)
		return -1;
	if (json_dumpf(json, w.out, JSON_INDENT(2)) < 0)
		return error_set(err, EIO, "%s: cannot be written", state->path);
	fputc('\n', w.out);
	return filewriter_commit(&w, err);
}

static struct setup_step *state_find(struct setup_state *state, const struct setup_step *step)
{
	for (size_t i = 0; i < state->done.n; i++)
		if (state->done.v[i].kind == step->kind &&
		    !strcmp(state->done.v[i].target, step->target))
			return &state->done.v[i];
	return NULL;
}

/*
 * Setup may run several times with different options; the oldest value is kept. But if the target
 * is no longer as setup left it, for example after a reboot, its present value is the one to
 * restore.
 */
static int state_remember(struct setup_state *state, const struct setup_step *step,
                          struct error *err)
{
	struct setup_step *known = state_find(state, step);

	if (!known) {
		known = vec_push(&state->done);
		*known = (struct setup_step){ .kind = step->kind, .target = xstrdup(step->target) };
	}
	if (!known->value || !setup_step_is_met(known)) {
		free(known->old);
		known->old = step->kind->current(step);
	}
	free(known->value);
	known->value = xstrdup(step->value);
	return state_save(state, err);
}

int setup_apply(struct setup_state *state, const struct setup_step *step, struct error *err)
{
	if (state_remember(state, step, err) < 0)
		return -1;
	return step->kind->apply(step, step->value, err);
}

bool setup_is_superseded(const struct setup_step *done, const struct setup_plan *plan)
{
	const struct setup_kind *const kinds[] = { &setup_sysctl, &setup_share, &setup_bind,
		                                   &setup_guard,  &setup_file,  &setup_access,
		                                   &setup_events };
	bool supersedable = false;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		supersedable |= done->kind == kinds[i];
	for (size_t i = 0; i < plan->steps.n; i++)
		supersedable &= done->kind != plan->steps.v[i].kind ||
		                strcmp(done->target, plan->steps.v[i].target) != 0;
	return supersedable;
}

bool setup_is_persistent(const struct setup_state *state)
{
	bool found = false;

	for (size_t i = 0; i < state->done.n; i++)
		found |= state->done.v[i].kind == &setup_link;
	return found;
}

char *setup_undo_text(const struct setup_state *state, size_t i)
{
	const struct setup_step *step = &state->done.v[i];

	if (!setup_step_is_met(step))
		return xasprintf("# %s was changed after setup: not restored", step->target);
	return step->kind->text(step, step->old);
}

int setup_undo(struct setup_state *state, size_t i, struct error *err)
{
	struct setup_step *step = &state->done.v[i];

	if (setup_step_is_met(step) && step->kind->apply(step, step->old, err) < 0)
		return -1;
	step_done(step);
	state->done.n--;
	memmove(step, step + 1, (state->done.n - i) * sizeof(*step));
	return state_save(state, err);
}
