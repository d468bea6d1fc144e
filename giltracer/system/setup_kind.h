/* SPDX-License-Identifier: MIT */
/* The kinds of changes that setup makes to a system. */
#ifndef GILTRACER_SYSTEM_SETUP_KIND_H
#define GILTRACER_SYSTEM_SETUP_KIND_H

#include "base/error.h"
#include "system/setup.h"

/**
 * @name: in the state file
 * @current: the present value, in the form of step->value; NULL: it does not exist. The caller
 * frees it
 * @text: the command that sets step->target to value, for a person; value NULL: that removes it.
 * The caller frees it
 * @apply: set it to value; value NULL: remove it
 */
struct setup_kind {
	const char *name;
	char *(*current)(const struct setup_step *step);
	char *(*text)(const struct setup_step *step, const char *value);
	int (*apply)(const struct setup_step *step, const char *value, struct error *err);
};

extern const struct setup_kind setup_group;  /* target: a group; value: "present" */
extern const struct setup_kind setup_member; /* target: "USER GROUP"; value: "member" */
extern const struct setup_kind setup_sysctl; /* target: its name */
extern const struct setup_kind setup_mount;  /* target: a folder; value: type of file system */
extern const struct setup_kind setup_share;  /* target: a path; value: gid=N,mode=N */
extern const struct setup_kind setup_bind;   /* target: a folder; value: another one, seen there */
extern const struct setup_kind setup_guard;  /* target: giltracer-perf; value: gid=N,sum=N */
extern const struct setup_kind setup_probes; /* target: probe group; value: file */
extern const struct setup_kind setup_file;   /* target: a file; value: its text */
extern const struct setup_kind setup_link;   /* target: a link; value: where to */

/* Changes of earlier versions, which this version only undoes: a remount of tracefs for a group,
 * and the group of all events below a folder, both as gid=N[,mode=N]. */
extern const struct setup_kind setup_access;
extern const struct setup_kind setup_events;

/* The value that gives a group these permission bits of path and takes none from root or others;
 * NULL if path does not exist, or if all users have these permissions. The caller frees it. */
char *setup_share_value(const char *path, const char *gid, unsigned bits);

/* The value for giltracer-perf as built; NULL if it was not built. The caller frees it. */
char *setup_guard_value(const char *gid);

/* NULL if there is no kind of that name. */
const struct setup_kind *setup_kind_find(const char *name);

#endif
