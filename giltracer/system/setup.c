/* SPDX-License-Identifier: MIT */
/* Decides on the steps, makes and undoes them, and remembers what is needed to undo them. */
#include "system/setup.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "system/host.h"
#include "system/tracefs.h"

#define STATE_MAX (16u << 20)
#define FILE_MAX  (4u << 20)

#define TRACEFS     "/sys/kernel/tracing"
#define PARANOID    "kernel.perf_event_paranoid"
#define MLOCK       "kernel.perf_event_mlock_kb"
#define SYSCTL_FILE "sysctl.d/60-giltracer.conf"

/* At 2, users may record the context switches and user code of their own processes, no more.
 * Distributions add levels above 2, which forbid users all events. */
#define PARANOID_WANTED 2

static char *sysctl_current(const struct setup_step *step)
{
	return host_sysctl(step->target);
}

static char *sysctl_text(const struct setup_step *step, const char *value)
{
	return xasprintf("sysctl -w %s=%s", step->target, value ? value : "?");
}

static int sysctl_apply(const struct setup_step *step, const char *value, struct error *err)
{
	if (!value)
		return error_set(err, EINVAL, "%s: its previous value is unknown", step->target);
	return host_sysctl_write(step->target, value, err);
}

static char *mount_current(const struct setup_step *step)
{
	struct statfs fs;

	return statfs(step->target, &fs) == 0 && fs.f_type == TRACEFS_MAGIC ? xstrdup("tracefs")
	                                                                    : NULL;
}

static char *mount_text(const struct setup_step *step, const char *value)
{
	return value ? xasprintf("mount -t %s %s %s", value, value, step->target)
	             : xasprintf("umount %s", step->target);
}

static int mount_apply(const struct setup_step *step, const char *value, struct error *err)
{
	if (value ? mount(value, step->target, value, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0
	          : umount2(step->target, UMOUNT_NOFOLLOW) < 0)
		return error_errno(err, "%s", step->target);
	return 0;
}

static char *file_current(const struct setup_step *step)
{
	struct error ignored;
	char *text;

	return file_read(&text, NULL, step->target, FILE_MAX, &ignored) < 0 ? NULL : text;
}

static char *file_text(const struct setup_step *step, const char *value)
{
	return xasprintf("%s %s", value ? "write" : "rm", step->target);
}

static int file_apply(const struct setup_step *step, const char *value, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };

	if (!value)
		return unlink(step->target) < 0 && errno != ENOENT
		               ? error_errno(err, "%s", step->target)
		               : 0;
	if (filewriter_open(&w, step->target, err) < 0)
		return -1;
	fputs(value, w.out);
	if (fchmod(fileno(w.out), 0644) < 0)
		return error_errno(err, "%s", step->target);
	return filewriter_commit(&w, err);
}

/* ---- what only earlier versions did: it is undone, and never made */

static char *earlier_current(const struct setup_step *step)
{
	return xstrdup(step->value);
}

/* Whether an administrator has added members since: setup's own member has been removed before. */
static bool has_members(const char *name)
{
	const struct group *group = getgrnam(name);

	return group && *group->gr_mem;
}

static char *group_text(const struct setup_step *step, const char *value)
{
	(void)value;
	if (has_members(step->target))
		return xasprintf("# group %s has members: not removed", step->target);
	return xasprintf("groupdel %s", step->target);
}

static int group_apply(const struct setup_step *step, const char *value, struct error *err)
{
	const char *const argv[] = { "groupdel", step->target, NULL };

	(void)value;
	return has_members(step->target) || !getgrnam(step->target) ? 0 : host_run(argv, err);
}

/* The target is "USER GROUP"; names of users and groups have no blanks. */
static char *member_text(const struct setup_step *step, const char *value)
{
	(void)value;
	return xasprintf("gpasswd --delete %s", step->target);
}

static int member_apply(const struct setup_step *step, const char *value, struct error *err)
{
	CLEANUP(free) char *user = xstrdup(step->target);
	char *group = strchr(user, ' ');
	const char *const argv[] = { "gpasswd", "--delete", user, group ? group + 1 : "", NULL };

	(void)value;
	if (group)
		*group = '\0';
	return host_run(argv, err);
}

/* A program with capabilities, and a link to a unit. */
static int removed_apply(const struct setup_step *step, const char *value, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(step->target);

	(void)value;
	if (unlink(step->target) < 0 && errno != ENOENT && errno != ENOTDIR)
		return error_errno(err, "%s", step->target);
	rmdir(dirname(copy)); /* stays if it is not empty */
	return 0;
}

static char *bind_text(const struct setup_step *step, const char *value)
{
	(void)value;
	return xasprintf("umount %s", step->target);
}

static int bind_apply(const struct setup_step *step, const char *value, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(step->target);

	(void)value;
	if (umount2(step->target, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 && errno != EINVAL &&
	    errno != ENOENT)
		return error_errno(err, "%s", step->target);
	rmdir(step->target);
	rmdir(dirname(copy));
	return 0;
}

static char *share_text(const struct setup_step *step, const char *value)
{
	return xasprintf("restore %s of %s", value ? value : "the owner", step->target);
}

static int share_apply(const struct setup_step *step, const char *value, struct error *err)
{
	unsigned gid, mode;

	if (!value || sscanf(value, "gid=%u,mode=%o", &gid, &mode) != 2)
		return 0;
	if ((chown(step->target, (uid_t)-1, gid) < 0 || chmod(step->target, mode) < 0) &&
	    errno != ENOENT)
		return error_errno(err, "%s", step->target);
	return 0;
}

/* The next run of root removes them, because no giltracer uses them. */
static char *probes_text(const struct setup_step *step, const char *value)
{
	(void)value;
	return xasprintf("remove the probes %s", step->target);
}

static int nothing_apply(const struct setup_step *step, const char *value, struct error *err)
{
	(void)step;
	(void)value;
	(void)err;
	return 0;
}

static const struct setup_kind setup_sysctl = { "sysctl", sysctl_current, sysctl_text,
	                                        sysctl_apply };
static const struct setup_kind setup_mount = { "mount", mount_current, mount_text, mount_apply };
static const struct setup_kind setup_file = { "file", file_current, file_text, file_apply };

/* NULL if there is no kind of that name. */
static const struct setup_kind *find_kind(const char *name)
{
	static const struct setup_kind earlier[] = {
		{ "group", earlier_current, group_text, group_apply },
		{ "member", earlier_current, member_text, member_apply },
		{ "guard", earlier_current, file_text, removed_apply },
		{ "link", earlier_current, file_text, removed_apply },
		{ "bind", earlier_current, bind_text, bind_apply },
		{ "share", earlier_current, share_text, share_apply },
		{ "probes", earlier_current, probes_text, nothing_apply },
	};
	static const struct setup_kind *const kinds[] = { &setup_sysctl, &setup_mount,
		                                          &setup_file };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	for (size_t i = 0; i < sizeof(earlier) / sizeof(*earlier); i++)
		if (!strcmp(earlier[i].name, name))
			return &earlier[i];
	return NULL;
}

/* ---- the plan */

static char *dir_from(const char *variable, const char *usual, const char *name)
{
	const char *dir = secure_getenv(variable);

	return xasprintf("%s/%s", dir && *dir ? dir : usual, name);
}

static struct setup_step *find_step(const struct setup_state *state, const struct setup_kind *kind,
                                    const char *target)
{
	for (size_t i = 0; i < state->done.n; i++)
		if (state->done.v[i].kind == kind && !strcmp(state->done.v[i].target, target))
			return &state->done.v[i];
	return NULL;
}

/* Adds the step if it is needed, or if an earlier setup made it, so that it can be kept. Takes
 * value. */
static void add(struct setup_plan *plan, const struct setup_state *state,
                const struct setup_kind *kind, const char *target, char *value, bool needed)
{
	const struct setup_step *done = find_step(state, kind, target);

	if (needed || (done && !strcmp(done->value, value)))
		*vec_push(&plan->steps) = (struct setup_step){ .kind = kind,
			                                       .target = xstrdup(target),
			                                       .value = value };
	else
		free(value);
}

static void add_sysctl(struct setup_plan *plan, const struct setup_state *state, const char *name,
                       long wanted, bool at_most)
{
	CLEANUP(free) char *text = host_sysctl(name);
	long now = text ? strtol(text, NULL, 10) : wanted;

	add(plan, state, &setup_sysctl, name, xasprintf("%ld", wanted),
	    at_most ? now > wanted : now < wanted);
}

static bool is_persistent(const struct setup_state *state)
{
	bool found = false;

	for (size_t i = 0; i < state->done.n; i++)
		found |= state->done.v[i].kind == &setup_file;
	return found;
}

/* Contains settings only, so that root executes nothing of ours at boot. Tracefs is mounted by
 * systemd itself. */
static void add_persistence(struct setup_plan *plan, const struct setup_state *state)
{
	CLEANUP(free) char *path = dir_from("GILTRACER_ETCDIR", "/etc", SYSCTL_FILE);
	CLEANUP(str_done) struct str text = { 0 };

	for (size_t i = 0; i < plan->steps.n; i++)
		if (plan->steps.v[i].kind == &setup_sysctl)
			str_addf(&text, "%s = %s\n", plan->steps.v[i].target,
			         plan->steps.v[i].value);
	if (text.len)
		add(plan, state, &setup_file, path,
		    xasprintf("# Written by giltracer setup --persist\n%s", str_get(&text)), true);
}

void setup_plan_init(struct setup_plan *ret, const struct setup_state *state, bool persist)
{
	CLEANUP(free) char *root = NULL;
	struct error ignored;

	*ret = (struct setup_plan){ 0 };
	add(ret, state, &setup_mount, TRACEFS, xstrdup("tracefs"),
	    tracefs_find(&root, &ignored) < 0);
	add_sysctl(ret, state, PARANOID, PARANOID_WANTED, true);
	add_sysctl(ret, state, MLOCK, SETUP_MLOCK_KB, false);
	if (persist || is_persistent(state))
		add_persistence(ret, state);
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

	if (!kind || !target || !value || !find_kind(kind))
		return -1;
	*ret = (struct setup_step){ .kind = find_kind(kind),
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

/*
 * Setup may run several times with different options; the oldest value is kept. But if the target
 * is no longer as setup left it, for example after a reboot, its present value is the one to
 * restore.
 */
static int state_remember(struct setup_state *state, const struct setup_step *step,
                          struct error *err)
{
	struct setup_step *known = find_step(state, step->kind, step->target);

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
	for (size_t i = 0; i < plan->steps.n; i++)
		if (done->kind == plan->steps.v[i].kind &&
		    !strcmp(done->target, plan->steps.v[i].target))
			return false;
	return true;
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
