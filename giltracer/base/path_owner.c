/* SPDX-License-Identifier: MIT */
/* Goes along a path from the root on, link by link. */
#include "base/path_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#define NOBODY    65534
#define LINKS_MAX 40 /* as the kernel */

/* A part of a path, at: a folder, a link, or the file. Whether to continue behind it. */
typedef bool see_part(void *data, const char *at, const struct stat *st);

/* Removes the last component. */
static void go_up(struct str *at)
{
	const char *slash = at->len ? strrchr(at->s, '/') : NULL;

	if (slash)
		at->s[at->len = (size_t)(slash - at->s)] = '\0';
}

/* Reads the link at, and continues with its text and then with the rest. */
static int follow(struct str *at, char **rest)
{
	char text[PATH_MAX];
	ssize_t len = readlink(str_get(at), text, sizeof(text) - 1);
	char *behind = *rest;

	if (len < 0)
		return -1;
	text[len] = '\0';
	go_up(at);
	if (*text == '/')
		at->len = 0;
	*rest = xasprintf("%s/%s", text, behind);
	free(behind);
	return 0;
}

/* Checks the end of the way; NULL: there is none. A link of /proc/PID leads to a file that need not be
 * at the path in its text. */
static int check_end(const char *path, const struct stat *end)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -1;
	if (end && st.st_dev == end->st_dev && st.st_ino == end->st_ino)
		return 0;
	errno = ESTALE;
	return -1;
}

/* Calls see() for all parts that the kernel passes on the way to the file, links of links included,
 * until one returns false. Returns -1, with errno set, if the way does not lead to a file. */
static int each_part(const char *path, see_part *see, void *data)
{
	CLEANUP(str_done) struct str at = { 0 };
	CLEANUP(free) char *rest = xstrdup(path);
	struct stat st;

	if (lstat("/", &st) < 0 || !see(data, "/", &st))
		return 0;
	for (unsigned links = 0;;) {
		size_t blank = strspn(rest, "/"), len = strcspn(rest + blank, "/");
		CLEANUP(free) char *name = xasprintf("%.*s", (int)len, rest + blank);

		if (!len)
			return check_end(path, &st);
		memmove(rest, rest + blank + len, strlen(rest + blank + len) + 1);
		if (!strcmp(name, ".."))
			go_up(&at);
		else if (strcmp(name, ".") != 0)
			str_addf(&at, "/%s", name);
		if (lstat(at.len ? at.s : "/", &st) < 0)
			return check_end(path, NULL);
		if (!see(data, at.len ? at.s : "/", &st))
			return 0;
		if (S_ISLNK(st.st_mode) && ++links > LINKS_MAX) {
			errno = ELOOP;
			return -1;
		}
		if (S_ISLNK(st.st_mode) && follow(&at, &rest) < 0)
			return -1;
	}
}

static uid_t nobody(void)
{
	const struct passwd *pw = getpwnam("nobody");

	return pw ? pw->pw_uid : NOBODY;
}

/* A group of one user, which has the name of the user. */
static bool is_private_group(uid_t uid, gid_t gid)
{
	const struct passwd *pw = uid ? getpwuid(uid) : NULL;
	const struct group *group = pw && pw->pw_gid == gid ? getgrgid(gid) : NULL;

	return group && !strcmp(group->gr_name, pw->pw_name);
}

/* The mode of a link means nothing. In a sticky folder nobody can replace another user's file. */
static bool is_replaceable(const struct stat *st)
{
	if (S_ISLNK(st->st_mode) || (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
		return false;
	return st->st_mode & S_IWOTH ||
	       (st->st_mode & S_IWGRP && !is_private_group(st->st_uid, st->st_gid));
}

/* A user who made a link has chosen all that is behind it. */
static bool see_owner(void *data, const char *at, const struct stat *st)
{
	uid_t *owner = data;

	(void)at;
	if (is_replaceable(st) || (st->st_uid && *owner && st->st_uid != *owner)) {
		*owner = nobody();
		return false;
	}
	if (st->st_uid)
		*owner = st->st_uid;
	return !(S_ISLNK(st->st_mode) && st->st_uid);
}

uid_t path_owner(const char *path)
{
	uid_t owner = 0;

	if (*path != '/' || (each_part(path, see_owner, &owner) < 0 && errno != ENOENT && !owner))
		return nobody();
	return owner;
}

static bool see_replaceable(void *data, const char *at, const struct stat *st)
{
	char **part = data;

	if (is_replaceable(st))
		*part = xstrdup(at);
	return !*part && !(S_ISLNK(st->st_mode) && st->st_uid);
}

char *path_replaceable(const char *path)
{
	char *part = NULL;

	if (*path == '/')
		each_part(path, see_replaceable, &part);
	return part;
}

static bool see_roots(void *data, const char *at, const struct stat *st)
{
	bool *roots = data;

	(void)at;
	*roots = st->st_uid == 0 && (S_ISLNK(st->st_mode) || !(st->st_mode & (S_IWGRP | S_IWOTH)));
	return *roots;
}

bool path_is_roots(const char *path)
{
	bool roots = false;

	return *path == '/' && each_part(path, see_roots, &roots) == 0 && roots;
}

gid_t path_owner_group(uid_t uid)
{
	const struct passwd *pw = geteuid() == 0 && uid != 0 ? getpwuid(uid) : NULL;

	return pw ? pw->pw_gid : (gid_t)uid;
}

/* Removes all but two variables from our environment, without a lock. */
static void clean_environment(void)
{
	char **kept = environ;

	for (char **each = environ; each && *each; each++)
		if (str_has_prefix(*each, "PATH=") || str_has_prefix(*each, "LANG="))
			*kept++ = *each;
	if (kept)
		*kept = NULL;
}

/* Marks all descriptors but the standard streams to be closed by exec. */
static bool keep_descriptors(void)
{
	CLEANUP(closedir) DIR *dir = NULL;
	struct dirent *entry;

	/* Since Linux 5.11. */
	if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		return true;
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	return dir;
}

bool path_owner_become(uid_t uid, gid_t gid)
{
	if (geteuid() != 0 || uid == 0)
		return true;
	clean_environment();
	/* Kernels without keys, and containers that deny them, have no keyring to leave. */
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return setsid() >= 0 && chdir("/") == 0 && keep_descriptors() && setgroups(0, NULL) == 0 &&
	       setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0 &&
	       /* Without a terminal, no Ctrl-C ends it. */
	       prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}
