/* SPDX-License-Identifier: MIT */
/* The temporary session folder, and the folders left behind by giltracer processes that have
 * died. */
#include "session/temp_session.h"

#include <dirent.h>
#include <errno.h>
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
#define TRIES  100

/* $TMPDIR, or /tmp; borrowed. */
static const char *temp_session_base(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/tmp";
}

/* Others who may write to the folder around it can put another one, or a link, in its place at any time, so all that
 * is done in it goes by its descriptor. */
static int open_folder(int in, const char *name)
{
	return openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_lock(int folder, int flags)
{
	return openat(folder, "lock", flags | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/* A folder of this user only, with the mode that mkdtemp sets, so nobody else can have put a link
 * into it. */
static bool is_scratch(int folder)
{
	struct stat st;

	return fstat(folder, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 07777) == 0700;
}

/* Whether the folder still exists once it is locked: a process that removes dead sessions may have
 * removed it before. */
static bool lock_new(int fd)
{
	struct stat st;

	return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* Takes the lock of a dead session. Returns -1 if the session is alive, or if it has no lock file,
 * so that it may not be ours. */
static int lock_dead(int folder)
{
	CLEANUP(close) int fd = is_scratch(folder) ? open_lock(folder, 0) : -1;

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? take_fd(&fd) : -1;
}

/* @found: to which their paths are added; NULL: they are removed */
static void look_for_dead(const char *base, struct temp_session_dead *found)
{
	CLEANUP(closedir) DIR *dir = opendir(base);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		bool named = str_has_prefix(name, PREFIX) && strlen(name) == strlen(PREFIX RANDOM);
		CLEANUP(close) int folder = named ? open_folder(dirfd(dir), name) : -1;
		CLEANUP(close) int lock = folder < 0 ? -1 : lock_dead(folder);

		if (lock >= 0 && found)
			*vec_push(&found->paths) = xasprintf("%s/%s", base, name);
		else if (lock >= 0)
			file_remove_folder(dirfd(dir), name, folder);
	}
}

void temp_session_find_dead(struct temp_session_dead *ret)
{
	*ret = (struct temp_session_dead){ 0 };
	look_for_dead(temp_session_base(), ret);
}

void temp_session_dead_done(struct temp_session_dead *dead)
{
	for (size_t i = 0; i < dead->paths.n; i++)
		free(dead->paths.v[i]);
	vec_done(&dead->paths);
}

int temp_session_make(struct temp_session *ret, struct error *err)
{
	CLEANUP(free) char *base = realpath(temp_session_base(), NULL);

	return temp_session_make_in(ret, base ? base : temp_session_base(), err);
}

/* As mkdtemp does. */
static int make_folder(int in, char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	for (unsigned i = 0; i < TRIES; i++) {
		for (char *at = name + strlen(PREFIX); *at; at++)
			*at = letters[arc4random_uniform(sizeof(letters) - 1)];
		if (mkdirat(in, name, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return -1;
}

int temp_session_make_in(struct temp_session *ret, const char *base, struct error *err)
{
	CLEANUP(close) int in = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(close) int lock = -1;

	look_for_dead(base, NULL);
	while (lock < 0) {
		char name[] = PREFIX RANDOM;
		CLEANUP(close) int folder = -1;

		if (in < 0 || make_folder(in, name) < 0)
			return error_errno(
				err,
				"no room for the recording in %s (choose another folder with "
				"TMPDIR)",
				base);
		folder = open_folder(in, name);
		lock = folder < 0 ? -1 : open_lock(folder, O_CREAT | O_EXCL);
		if (lock < 0 || !is_scratch(folder)) {
			error_errno(err, "%s/%s", base, name);
			unlinkat(in, name, AT_REMOVEDIR);
			return -1;
		}
		if (lock_new(lock))
			ret->path = xasprintf("%s/%s", base, name);
		else
			close(take_fd(&lock));
	}
	ret->lock = take_fd(&lock);
	return 0;
}

int temp_session_remove(struct temp_session *scratch, struct error *err)
{
	char *name = strrchr(scratch->path, '/');
	CLEANUP(close) int folder = open_folder(AT_FDCWD, scratch->path);
	CLEANUP(close) int in = -1;
	struct stat ours, st;
	int failed = 0;

	*name = '\0';
	in = open(*scratch->path ? scratch->path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*name = '/';
	/* Another one in its place is not ours. */
	if (folder >= 0 && fstat(scratch->lock, &ours) == 0 &&
	    fstatat(folder, "lock", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ours.st_ino &&
	    st.st_dev == ours.st_dev && file_remove_folder(in, name + 1, folder) < 0)
		failed = error_errno(err, "%s: cannot remove", scratch->path);
	close(take_fd(&scratch->lock));
	free(take(scratch->path));
	return failed;
}
