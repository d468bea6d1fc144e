/* SPDX-License-Identifier: MIT */
/*
 * What setup plans, on a tracefs that is an ordinary folder; whose files it trusts; and what it
 * takes from processes that have a user's rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path_owner.h"
#include "system/setup.h"
#include "system/setup_kind.h"
#include "system/stored_probes.h"
#include "tap.h"

static char top[] = "/tmp/test-setup.XXXXXX";

static char *in_top(const char *name)
{
	return xasprintf("%s/%s", top, name);
}

static void make_file(const char *name, mode_t mode)
{
	CLEANUP(free) char *path = in_top(name);
	FILE *out = fopen(path, "w");

	fputs("1\n", out);
	fclose(out);
	chmod(path, mode);
}

static void make_folder(const char *name, mode_t mode)
{
	CLEANUP(free) char *path = in_top(name);

	mkdir(path, 0755);
	chmod(path, mode);
}

/* As Linux has it: all can go through the folders, root alone through the first. */
static void make_tracefs(void)
{
	static const char *const events[] = { "sched_switch", "sched_waking",
		                              "sched_migrate_task" };

	make_folder("tracing", 0700);
	make_folder("tracing/events", 0755);
	make_folder("tracing/events/sched", 0755);
	make_file("tracing/uprobe_events", 0640);
	make_file("tracing/events/header_page", 0440);
	make_file("tracing/events/header_event", 0440);
	for (size_t i = 0; i < 3; i++) {
		CLEANUP(free) char *dir = xasprintf("tracing/events/sched/%s", events[i]);
		CLEANUP(free) char *id = xasprintf("%s/id", dir);
		CLEANUP(free) char *format = xasprintf("%s/format", dir);

		make_folder(dir, i == 2 ? 0750 : 0755);
		make_file(id, 0440);
		make_file(format, 0440);
	}
}

static const struct setup_step *find(const struct setup_plan *plan, const struct setup_kind *kind,
                                     const char *name)
{
	CLEANUP(free) char *path = in_top(name);

	for (size_t i = 0; i < plan->steps.n; i++)
		if (plan->steps.v[i].kind == kind && !strcmp(plan->steps.v[i].target, path))
			return &plan->steps.v[i];
	return NULL;
}

static size_t count(const struct setup_plan *plan, const struct setup_kind *kind)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->steps.n; i++)
		n += plan->steps.v[i].kind == kind;
	return n;
}

static void test_plan(void)
{
	struct setup_options options = { .group = "root", .self = "/x/gil tracer", .boot = "{}" };
	CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };
	CLEANUP(setup_plan_done) struct setup_plan open = { 0 };
	const struct setup_step *step;

	setup_plan_init(&plan, &options, NULL, 0);
	ok(!count(&plan, &setup_sysctl), "no setting of the kernel is changed");
	ok(!find(&plan, &setup_share, "tracing"), "nor the way to all of tracefs");
	ok(!find(&plan, &setup_share, "tracing/uprobe_events"), "nor where probes are installed");
	step = find(&plan, &setup_share, "tracing/events/sched/sched_switch/id");
	ok(step, "an event of the scheduler's is shared");
	is_str(step ? step->value : NULL, "gid=0,mode=440", "to be read");
	step = find(&plan, &setup_share, "tracing/events/sched/sched_migrate_task");
	is_str(step ? step->value : NULL, "gid=0,mode=750", "and a folder that is not for all");
	ok(!find(&plan, &setup_share, "tracing/events/sched"), "others are as they were");
	ok(count(&plan, &setup_bind) == 1 && count(&plan, &setup_guard) == 1,
	   "by a way of its own");
	ok(!count(&plan, &setup_file) && !count(&plan, &setup_link), "until the next boot");
	options.everybody = options.persist = true;
	setup_plan_init(&open, &options, NULL, 0);
	ok(count(&open, &setup_sysctl) == 2, "--everybody changes settings");
	ok(count(&open, &setup_file) == 3 && count(&open, &setup_link) == 1,
	   "--persist has a unit");
	ok(setup_is_superseded(&open.steps.v[1], &plan), "which a set-up without takes back");
	ok(!setup_is_superseded(&plan.steps.v[0], &plan), "and nothing that it does itself");
}

static void test_share(void)
{
	CLEANUP(free) char *path = in_top("shared");
	CLEANUP(free) char *want = xasprintf("gid=%u,mode=440", (unsigned)getgid());
	struct setup_step step = { .kind = &setup_share, .target = path, .value = want };
	CLEANUP(free) char *before = NULL;
	CLEANUP(free) char *after = NULL;
	struct error err = { 0 };

	make_file("shared", 0400);
	before = setup_share.current(&step);
	ok(!setup_step_is_met(&step), "a file that is root's alone");
	ok(setup_share.apply(&step, want, &err) == 0 && setup_step_is_met(&step), "is shared");
	ok(setup_share.apply(&step, before, &err) == 0, "and not any more");
	after = setup_share.current(&step);
	is_str(after, before, "exactly as it was");
	ok(setup_share.apply(&step, NULL, &err) < 0, "which has to be known");
	unlink(path);
	ok(!setup_step_is_met(&step), "a file that has gone is not shared");
}

/* link is one of user 12345 to a file that only root can change. */
static void test_owner_of_links(void)
{
	CLEANUP(free) char *first = in_top("first");
	CLEANUP(free) char *folder = in_top("folder");
	CLEANUP(free) char *there = in_top("there");
	CLEANUP(free) char *through = in_top("there/file");
	CLEANUP(free) char *shared = in_top("shared-folder");
	CLEANUP(free) char *foreign = in_top("shared-folder/file");
	CLEANUP(free) char *up = in_top("folder/../first");
	CLEANUP(free) char *removed = in_top("removed");
	CLEANUP(free) char *opened = NULL;
	struct error err;
	int fd;

	make_folder("folder", 0755);
	ok(symlink("link", first) == 0 && path_owner(first) == 12345,
	   "a link in the middle of links decides");
	ok(path_owner(up) == 12345, "also after a folder and back");
	ok(path_check_roots(first, &err) < 0, "and it is not root's alone");
	make_file("folder/file", 0755);
	ok(symlink("folder", there) == 0 && lchown(there, 12345, 12345) == 0 &&
	           path_owner(through) == 12345,
	   "so does a link to a folder");
	make_folder("shared-folder", 0755);
	make_file("shared-folder/file", 0755);
	ok(chown(shared, 12345, 12345) == 0 && path_owner(foreign) == 12345,
	   "a file of root's in a user's folder is the user's");
	ok(chown(foreign, 12346, 12346) == 0 && path_owner(foreign) == 65534,
	   "a file of another user's there is nobody's");
	unlink(first);
	ok(symlink(foreign, first) == 0 && lchown(first, 12345, 12345) == 0 &&
	           path_owner(first) == 12345,
	   "but a user who links to another's file has chosen it");
	ok(chown(foreign, 12345, 12345) == 0 && chmod(foreign, 0757) == 0 &&
	           path_owner(foreign) == 65534,
	   "a user's file that all can write is nobody's");
	ok(path_owner("bin/sh") == 65534, "and so is what is not known, as a relative path");
	fd = open(removed, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	opened = xasprintf("/proc/self/fd/%d", fd);
	ok(fd >= 0 && path_owner(opened) == 0, "a link of /proc to a file of root's");
	unlink(removed);
	ok(path_owner(opened) == 65534, "but not to one that is no longer at its path");
	make_file("removed", 0755);
	ok(path_owner(opened) == 65534, "also if another file is there now");
	close(fd);
	unlink(removed);
	unlink(first);
	unlink(there);
}

static void test_owner(void)
{
	CLEANUP(free) char *path = in_top("file");
	CLEANUP(free) char *inside = in_top("open/file");
	CLEANUP(free) char *link = in_top("link");
	struct error err = { 0 };

	make_file("file", 0755);
	make_folder("open", 0777);
	make_file("open/file", 0755);
	ok(symlink("/bin/sh", link) == 0, "a link");
	ok(path_check_roots("/bin/sh", &err) == 0 && path_owner("/bin/sh") == 0, "the system's");
	ok(path_check_roots(path, &err) < 0 && strstr(err.text, "through /tmp"),
	   "what is below /tmp is not root's alone");
	ok(path_check_roots("/nosuch/file", &err) < 0 && err.code == ENOENT, "nor what is nowhere");
	ok(path_owner(path) == getuid(), "a file is its owner's");
	if (getuid() == 0) {
		ok(path_owner(inside) == 65534, "one that others can replace is nobody's");
		ok(chown(path, 12345, 12345) == 0 && path_owner(path) == 12345, "a user's");
		ok(lchown(link, 12345, 12345) == 0 && path_owner(link) == 12345,
		   "a link decides, too");
		test_owner_of_links();
	} else {
		ok(path_owner(inside) == getuid(), "also where others can replace it");
		ok(path_owner(link) == getuid(), "a link decides, too");
	}
	unlink(link);
}

static const char good[] =
	"{'path': '/a b/lib', 'python': '/a b/python', 'build_id': 'abc', 'group': "
	"'giltracer_abc_012345', 'dev': 1, 'ino': 2, 'size': 3, 'changed_ns': 4, 'frames': 2, "
	"'probes': [{'event': 'take_gil', 'offset': 66, 'return': false, 'fetch': "
	"'gil=+0x10(%di):u64'}, {'event': 'take_gil_ret', 'offset': 66, 'return': true}]}";

/* good, with one text in it replaced. */
static struct probe_set *read_set(const char *old, const char *new, struct error *err)
{
	const char *at = old ? strstr(good, old) : NULL;
	CLEANUP(free)
	char *text = at ? xasprintf("%.*s%s%s", (int)(at - good), good, new, at + strlen(old))
	                : xstrdup(good);
	struct probe_set *set = NULL;
	json_auto_t *json = NULL;

	for (char *s = text; *s; s++)
		if (*s == '\'')
			*s = '"';
	json = json_loads(text, 0, NULL);
	return json && stored_probes_read(&set, json, err) == 0 ? set : NULL;
}

static void test_stored(void)
{
	static const char *const bad[][2] = {
		{ "/a b/lib", "lib" },
		{ "/a b/lib", "/a\\nb" },
		{ "take_gil'", "take gil'" },
		{ "take_gil'", "a/b'" },
		{ "take_gil'", "'" },
		{ "%di):u64", "%di):u64\\n-:x" },
		{ "66", "-1" },
		{ "giltracer_abc_012345", "sched" },
		{ "[{", "[7, {" },
		{ "'ino': 2", "'ino': 'x'" },
		{ "'probes'", "'x'" },
		{ "%di", "%di;" },
	};
	struct error err = { 0 };
	struct probe_set *set = read_set(NULL, NULL, &err), *again = NULL;
	json_auto_t *json = set ? stored_probes_write(set) : NULL;

	ok(set && set->probes.n == 2 && set->probes.v[1].ret && !set->probes.v[1].fetch,
	   "a set of probes is read");
	ok(json && stored_probes_read(&again, json, &err) == 0 && again->identity.size == 3 &&
	           again->probes.v[0].offset == 66 && !strcmp(again->path, set->path) &&
	           !strcmp(again->probes.v[0].fetch, set->probes.v[0].fetch),
	   "and written, and read again");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CLEANUP(probe_set_free)
		struct probe_set *wrong = read_set(bad[i][0], bad[i][1], &err);

		ok(!wrong, "refused: %s instead of %s", bad[i][1], bad[i][0]);
	}
	ok(stored_probes_verify(set, &err) < 0 && err.code == ENOENT, "its file is not there");
	free(set->path);
	set->path = xstrdup("/bin/sh");
	ok(stored_probes_verify(set, &err) < 0 && strstr(err.text, "was replaced"), "or another");
	ok(image_identify(&set->identity, "/bin/sh") && stored_probes_verify(set, &err) < 0 &&
	           strstr(err.text, "another build"),
	   "or of another build");
	probe_set_free(set);
	probe_set_free(again);
}

/* Whoever changes a file can set back when its contents were changed. */
static void test_identity(void)
{
	CLEANUP(free) char *path = in_top("changed");
	struct image_identity before, after;
	CLEANUP(close) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	bool same = true;

	if (!ok(fd >= 0 && write(fd, "one", 3) == 3 && futimens(fd, times) == 0 &&
	                image_identify(&before, path),
	        "a file"))
		return;
	/* The kernel's clock of files has ticks of some milliseconds. */
	for (unsigned i = 0; same && i < 10000000; i++)
		same = pwrite(fd, "two", 3, 0) == 3 && futimens(fd, times) == 0 &&
		       image_identify(&after, path) && image_identity_equal(&before, &after);
	ok(!same, "is another one once it was changed, although its time is the same");
}

static unsigned applied;

static char *no_current(const struct setup_step *step)
{
	(void)step;
	return NULL;
}

static int count_applied(const struct setup_step *step, const char *value, struct error *err)
{
	(void)step;
	(void)value;
	(void)err;
	applied++;
	return 0;
}

/* What setup cannot record, it could not undo. */
static void test_not_recorded(void)
{
	const struct setup_kind kind = { "test", no_current, NULL, count_applied };
	struct setup_state state = { .path = in_top("state.json") };
	struct setup_step plain = { .kind = &kind,
		                    .target = (char[]){ "/x" },
		                    .value = (char[]){ "1" } };
	struct setup_step bytes = { .kind = &kind,
		                    .target = (char[]){ "/caf\xe9" },
		                    .value = (char[]){ "1" } };
	struct error err = { 0 };

	ok(setup_apply(&state, &plain, &err) == 0 && applied == 1, "a step is recorded, and made");
	ok(setup_apply(&state, &bytes, &err) < 0 && err.code == EILSEQ && applied == 1,
	   "one that cannot be recorded is not made");
	setup_state_done(&state);
}

int main(void)
{
	CLEANUP(free) char *tracefs = mkdtemp(top) ? in_top("tracing") : NULL;
	CLEANUP(free) char *run = in_top("run");
	struct error ignored;

	ok(tracefs && setenv("GILTRACER_TRACEFS", tracefs, 1) == 0 &&
	           setenv("GILTRACER_RUNDIR", run, 1) == 0,
	   "a tracefs of its own");
	make_tracefs();
	test_plan();
	test_share();
	test_owner();
	test_stored();
	test_identity();
	test_not_recorded();
	file_remove_tree(top, &ignored);
	return done_testing();
}
