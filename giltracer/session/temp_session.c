/* SPDX-License-Identifier: MIT */
/* The temporary session folder, and the folders left behind by giltracer processes that have
 * died. */
#include "session/temp_session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#define PREFIX "giltracer."
#define RANDOM "XXXXXX"

/* $TMPDIR, or /tmp; borrowed. */
static const char *temp_session_base(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/tmp";
}

static int open_lock(const char *dir, int flags)
{
	CLEANUP(free) char *path = xasprintf("%s/lock", dir);

	return open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Whether the folder still exists once it is locked: a process that removes dead sessions may have
 * removed it before. */
static bool lock_new(int fd)
{
	struct stat st;

	return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* A folder of this user only, with the mode that mkdtemp sets, so nobody else can have put a link
 * into it. */
static bool is_scratch(const char *path, const char *name)
{
	struct stat st;

	return str_has_prefix(name, PREFIX) && strlen(name) == strlen(PREFIX RANDOM) &&
	       lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == 0700;
}

/* Takes the lock of a dead session. Returns -1 if the session is alive, or if it has no lock file,
 * so that it may not be ours. */
static int lock_dead(const char *path)
{
	CLEANUP(close) int fd = open_lock(path, O_RDWR);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? take_fd(&fd) : -1;
}

static void find_dead(struct temp_session_dead *ret, const char *base)
{
	CLEANUP(closedir) DIR *dir = opendir(base);
	struct dirent *entry;

	*ret = (struct temp_session_dead){ 0 };
	while (dir && (entry = readdir(dir))) {
		CLEANUP(free) char *path = xasprintf("%s/%s", base, entry->d_name);
		CLEANUP(close) int lock = is_scratch(path, entry->d_name) ? lock_dead(path) : -1;

		if (lock >= 0)
			*vec_push(&ret->paths) = take(path);
	}
}

void temp_session_find_dead(struct temp_session_dead *ret)
{
	find_dead(ret, temp_session_base());
}

void temp_session_dead_done(struct temp_session_dead *dead)
{
	for (size_t i = 0; i < dead->paths.n; i++)
		free(dead->paths.v[i]);
	vec_done(&dead->paths);
}

static void remove_dead(const char *base)
{
	CLEANUP(temp_session_dead_done) struct temp_session_dead dead = { 0 };

	find_dead(&dead, base);
	for (size_t i = 0; i < dead.paths.n; i++) {
		CLEANUP(close) int lock = lock_dead(dead.paths.v[i]);
		struct error ignored;

		if (lock >= 0)
			file_remove_tree(dead.paths.v[i], &ignored);
	}
}

int temp_session_make(struct temp_session *ret, struct error *err)
{
	CLEANUP(free) char *base = realpath(temp_session_base(), NULL);

	return temp_session_make_in(ret, base ? base : temp_session_base(), err);
}

int temp_session_make_in(struct temp_session *ret, const char *base, struct error *err)
{
	CLEANUP(close) int lock = -1;

	remove_dead(base);
	while (lock < 0) {
		CLEANUP(free) char *dir = xasprintf("%s/" PREFIX RANDOM, base);

		if (!mkdtemp(dir))
			return error_errno(
				err,
				"no room for the recording in %s (choose another folder with "
				"TMPDIR)",
				base);
		lock = open_lock(dir, O_RDWR | O_CREAT | O_EXCL);
		if (lock < 0)
			return error_errno(err, "%s", dir);
		if (lock_new(lock))
			ret->path = take(dir);
		else
			close(take_fd(&lock));
	}
	ret->lock = take_fd(&lock);
	return 0;
}

int temp_session_remove(struct temp_session *scratch, struct error *err)
{
	int failed = file_remove_tree(scratch->path, err);

	close(take_fd(&scratch->lock));
	free(take(scratch->path));
	return failed;
}
