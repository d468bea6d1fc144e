/* SPDX-License-Identifier: MIT */
/* Which user controls the file at a path: the owner of the file, of a folder above it, or of a link
 * on the way. */
#ifndef GILTRACER_BASE_PATH_OWNER_H
#define GILTRACER_BASE_PATH_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whoever can change what is found at the path: the owner on the way, links of links included, who
 * is not root; root if there is none. A user who made a link has chosen what is behind it. "nobody"
 * if there are several such owners before that, or if others can replace a part. The file may be
 * read and executed with that user's rights.
 */
uid_t path_owner(const char *path);

/* The folder or file on the way that others than its owner can write to; NULL: none. The caller frees
 * it. */
char *path_replaceable(const char *path);

/* Whether root owns the file and all folders and links on the way, and nobody else can write there. */
bool path_is_roots(const char *path);

/* That user's group. This asks the system's databases, which use locks, so it must be called before
 * a fork. */
gid_t path_owner_group(uid_t uid);

/* In a child: become that user for good, with this group only, in a session without a terminal, in
 * the root folder, with PATH and LANG of our environment and, after exec, with the standard streams
 * only. The child is killed when its parent ends. Does nothing unless we are root and uid is not. */
bool path_owner_become(uid_t uid, gid_t gid);

#endif
