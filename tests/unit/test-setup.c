/* SPDX-License-Identifier: MIT */
/* What setup takes back of earlier versions, what it does not do, and whose a file is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path_owner.h"
#include "binary/image.h"
#include "system/setup.h"
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

static bool exists(const char *name)
{
	CLEANUP(free) char *path = in_top(name);

	return access(path, F_OK) == 0;
}

/* Setup once gave a group a program with capabilities and the scheduler's events. */
static void test_earlier(void)
{
	CLEANUP(setup_state_done) struct setup_state state = { 0 };
	CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };
	CLEANUP(free) char *shared = in_top("shared");
	CLEANUP(free)
	char *text = xasprintf(
		"{\"setup\": 1, \"done\": ["
		"{\"kind\": \"share\", \"target\": \"%s/shared\", \"value\": "
		"\"gid=%u,mode=440\", \"old\": \"gid=%u,mode=400\"},"
		"{\"kind\": \"guard\", \"target\": \"%s/libexec/perf-for-members\", "
		"\"value\": \"gid=0,sum=1\"},"
		"{\"kind\": \"probes\", \"target\": \"giltracer_x_0\", \"value\": \"/x\"},"
		"{\"kind\": \"file\", \"target\": \"%s/giltracer.service\", \"value\": "
		"\"1\\n\"},"
		"{\"kind\": \"link\", \"target\": \"%s/wants/giltracer.service\", \"value\": "
		"\"../giltracer.service\"}]}",
		top, (unsigned)getgid(), (unsigned)getgid(), top, top, top);
	CLEANUP(free) char *path = in_top("setup.json");
	struct error err = { .text = "" };
	FILE *out = fopen(path, "w");
	size_t superseded = 0;
	struct stat st;

	ok(out && fputs(text, out) >= 0 && fclose(out) == 0, "what an earlier setup did");
	make_folder("libexec", 0755);
	make_folder("wants", 0755);
	make_file("libexec/perf-for-members", 0750);
	make_file("giltracer.service", 0644);
	make_file("wants/giltracer.service", 0644);
	make_file("shared", 0440);
	ok(setup_state_load(&state, &err) == 0 && state.done.n == 5, "is understood: %s", err.text);
	setup_plan_init(&plan, &state, false);
	for (size_t i = 0; i < state.done.n; i++)
		superseded += setup_is_superseded(&state.done.v[i], &plan);
	ok(superseded == 5, "none of it is done any more");
	for (size_t i = state.done.n; i-- > 0;)
		ok(setup_undo(&state, i, &err) == 0, "it is undone: %s", err.text);
	ok(!exists("libexec"), "the program with capabilities is gone");
	ok(!exists("giltracer.service") && !exists("wants"), "and what root executed at boot");
	ok(stat(shared, &st) == 0 && (st.st_mode & 07777) == 0400, "the group reads no more");
	ok(!exists("setup.json"), "nothing remains to be undone");
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
	int fd;

	make_folder("folder", 0755);
	ok(symlink("link", first) == 0 && path_owner(first) == 12345,
	   "a link in the middle of links decides");
	ok(path_owner(up) == 12345, "also after a folder and back");
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

	make_file("file", 0755);
	make_folder("open", 0777);
	make_file("open/file", 0755);
	ok(symlink("/bin/sh", link) == 0, "a link");
	ok(path_owner("/bin/sh") == 0, "the system's is root's");
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
	struct error ignored;

	ok(mkdtemp(top) && setenv("GILTRACER_STATEDIR", top, 1) == 0, "a folder of its own");
	test_earlier();
	test_owner();
	test_identity();
	test_not_recorded();
	file_remove_tree(top, &ignored);
	return done_testing();
}
