/* SPDX-License-Identifier: MIT */
/* Who decides what is at a path: whoever owns the file, a folder above it, or a link on the way. */
#ifndef GILTRACER_BASE_PATH_OWNER_H
#define GILTRACER_BASE_PATH_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* The first on the way who is not root; nobody, where it is root's but others can replace it; else
 * root. What is there may be executed, and read, with that user's rights. */
uid_t path_owner(const char *path);

/* Whether it, and all folders above it, are root's and nobody else can write there. */
int path_check_roots(const char *path, struct error *err);

/* That user's group. It asks the system's databases, with locks: to be called before a fork. */
gid_t path_owner_group(uid_t uid);

/* In a child: become that user for good, with no group but this. Not root: nothing to do. */
bool path_owner_become(uid_t uid, gid_t gid);

#endif
