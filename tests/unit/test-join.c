/* SPDX-License-Identifier: MIT */
/* The library, in a program that was already running, notices when its launcher has ended, and only
 * then. */
#include "preload/calls.h"
#include "preload/calls_python.h"
#include "preload/count.h"
#include "preload/internal.h"
#include "preload/locks.h"
#include "preload/nogil.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "tap.h"

/* ---- what the rest of the library has for join.c and process.c */

struct counting counting;
struct python_api python;
__thread struct self self;
const struct interposed interposed[1];

bool python_find(void)
{
	return false;
}

const char *calls_folder(void)
{
	return NULL;
}

void calls_end(void)
{
}

void calls_in_child(void)
{
}

void count_in_child(void)
{
}

bool count_begin_in(const char *dir)
{
	(void)dir;
	return false;
}

void count_stop(void)
{
}

void count_end(void)
{
}

void count_forget(struct self *me)
{
	(void)me;
}

void count_learn_name(struct self *me, const struct gil *g)
{
	(void)me;
	(void)g;
}

void locks_end_spin(struct self *me)
{
	(void)me;
}

void nogil_again(void)
{
}

void frames_again(void)
{
}

void gils_in_child(void)
{
}

void gils_forget(void)
{
}

void locks_in_child(void)
{
}

bool nogil_on;

void gils_found(pthread_mutex_t *mutex, pthread_cond_t *cond, pthread_cond_t *switch_cond,
                bool held)
{
	(void)mutex;
	(void)cond;
	(void)switch_cond;
	(void)held;
}

void *gils_symbol(const char *name)
{
	(void)name;
	return NULL;
}

void locks_begin(void *(*symbol)(const char *name))
{
	(void)symbol;
}

void stream_again(void)
{
}

void stream_forget(struct self *me)
{
	(void)me;
}

void stream_in_child(void)
{
}

void stream_thread_ended(void *me)
{
	(void)me;
}

/* ---- the launcher */

/* Makes folders below dir until the path has len bytes; caller frees. */
static char *folder_of(const char *dir, size_t len)
{
	char *path = xcalloc(len + 1, 1);
	size_t at = strlen(dir);

	memcpy(path, dir, at);
	while (at < len) {
		size_t part = len - at > 400 ? 200 : len - at > 201 ? (len - at) / 2 : len - at;

		path[at++] = '/';
		memset(path + at, 'x', part - 1);
		at += part - 1;
		mkdir(path, 0700);
	}
	return path;
}

/* A file of control that is locked as a launcher does; closing it ends the recording. */
static int make_control(const char *dir)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", dir, PRELOAD_CONTROL);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && (ftruncate(fd, sizeof(struct preload_control)) < 0 ||
	                fcntl(fd, F_OFD_SETLK, &lock) < 0))
		return -1;
	return fd;
}

/* Leaves slashes where the next function has its variables. */
static __attribute__((noinline)) void dirty_stack(void)
{
	char stale[2 * sizeof(process.path)];

	memset(stale, '/', sizeof(stale));
	__asm__ volatile("" : : "r"(stale) : "memory");
}

static void look(void)
{
	dirty_stack();
	join_look(UINT64_MAX);
}

/* Looks again only after LOOK_EVERY, so each recording has one look. */
static void check(const char *dir, bool lives, const char *what)
{
	int fd = make_control(dir);

	if (!ok(fd >= 0 && process_begin_in(dir) && process.control, "%s: a recording begins",
	        what))
		return;
	process.joined = true;
	if (!lives)
		close(fd);
	look();
	ok(process.on == lives, "%s: it %s", what,
	   lives ? "goes on while the launcher lives" : "ends with the launcher");
	if (lives)
		close(fd);
	process.on = false;
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	CLEANUP(free) char *dir = xasprintf("%s/test-join.XXXXXX", tmp ? tmp : "/tmp");
	CLEANUP(free) char *longest = NULL;
	struct error err;

	if (!ok(mkdtemp(dir), "a folder"))
		return done_testing();
	longest = folder_of(dir, PRELOAD_DIR_MAX);
	check(dir, true, "a short path");
	check(dir, false, "a short path");
	check(longest, true, "the longest path");
	check(longest, false, "the longest path");
	ok(file_remove_tree(dir, &err) == 0, "nothing remains");
	return done_testing();
}
