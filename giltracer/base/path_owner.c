/* SPDX-License-Identifier: MIT */
/* Checks a path from the root on, both as written and as resolved. */
#include "base/path_owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define NOBODY 65534

/* The first prefix of path for which bad() is true, or NULL. ret is its state. Caller frees. */
static char *find_part(const char *path, bool (*bad)(const struct stat *), struct stat *ret)
{
	CLEANUP(free) char *part = xstrdup(path);
	size_t len = 1; /* "/" */

	if (*path != '/')
		return NULL;
	for (;;) {
		part[len] = '\0';
		if (lstat(part, ret) == 0 && bad(ret))
			return take(part);
		part[len] = path[len];
		if (!path[len])
			return NULL;
		len += path[len] == '/';
		len += strcspn(path + len, "/");
	}
}

static bool is_others(const struct stat *st)
{
	return st->st_uid != 0;
}

/* The mode of a link means nothing. In a sticky folder nobody can replace another user's file. */
static bool is_replaceable(const struct stat *st)
{
	return !S_ISLNK(st->st_mode) && st->st_mode & (S_IWGRP | S_IWOTH) &&
	       !(S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX);
}

static bool is_not_roots(const struct stat *st)
{
	return is_others(st) || (!S_ISLNK(st->st_mode) && st->st_mode & (S_IWGRP | S_IWOTH));
}

static uid_t nobody(void)
{
	const struct passwd *pw = getpwnam("nobody");

	return pw ? pw->pw_uid : NOBODY;
}

uid_t path_owner(const char *path)
{
	CLEANUP(free) char *resolved = realpath(path, NULL);
	const char *const ways[] = { path, resolved ? resolved : path };
	struct stat st;

	for (int i = 0; i < 2; i++) {
		CLEANUP(free) char *part = find_part(ways[i], is_others, &st);

		if (part)
			return st.st_uid;
	}
	for (int i = 0; i < 2; i++) {
		CLEANUP(free) char *part = find_part(ways[i], is_replaceable, &st);

		if (part)
			return nobody();
	}
	return 0;
}

int path_check_roots(const char *path, struct error *err)
{
	CLEANUP(free) char *resolved = realpath(path, NULL);
	CLEANUP(free) char *part = NULL;
	struct stat st;

	if (!resolved)
		return error_errno(err, "%s", path);
	part = find_part(resolved, is_not_roots, &st);
	if (part)
		return error_set(err, EPERM, "users other than root can change %s, through %s",
		                 resolved, part);
	return 0;
}

gid_t path_owner_group(uid_t uid)
{
	const struct passwd *pw = geteuid() == 0 && uid != 0 ? getpwuid(uid) : NULL;

	return pw ? pw->pw_gid : (gid_t)uid;
}

bool path_owner_become(uid_t uid, gid_t gid)
{
	if (geteuid() != 0 || uid == 0)
		return true;
	return setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 &&
	       setresuid(uid, uid, uid) == 0;
}
