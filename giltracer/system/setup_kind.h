/* SPDX-License-Identifier: MIT */
/* The sorts of changes that setup makes to a system. */
#ifndef GILTRACER_SYSTEM_SETUP_KIND_H
#define GILTRACER_SYSTEM_SETUP_KIND_H

#include "base/error.h"
#include "system/setup.h"

/**
 * @name: in the state file
 * @current: what is there now, in the form of step->value; NULL: nothing. Caller frees
 * @text: the command that makes step->target be value, for a person; caller frees. value NULL: that
 *        takes it away
 * @apply: make it so; value NULL: take it away
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

/* Made by earlier versions, and only undone by this one: a remount of tracefs for a group, and the
 * group of all events below a folder, both as gid=N[,mode=N]. */
extern const struct setup_kind setup_access;
extern const struct setup_kind setup_events;

/* The value that gives a group these permission bits of path and takes nothing from root or others;
 * NULL if there is no path, or if all users have them. Caller frees. */
char *setup_share_value(const char *path, const char *gid, unsigned bits);

/* The value of giltracer-perf as it is built; NULL if it was not. Caller frees. */
char *setup_guard_value(const char *gid);

/* NULL if there is none of that name. */
const struct setup_kind *setup_kind_find(const char *name);

#endif
