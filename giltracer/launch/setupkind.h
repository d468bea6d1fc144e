/* SPDX-License-Identifier: MIT */
/* The sorts of changes that setup makes to a system. */
#ifndef GILTRACER_LAUNCH_SETUPKIND_H
#define GILTRACER_LAUNCH_SETUPKIND_H

#include "base/error.h"
#include "launch/setup.h"

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
extern const struct setup_kind setup_access; /* target: mount point; value: gid=N,mode=N */
extern const struct setup_kind setup_events; /* target: a folder; value: gid=N of what is below */
extern const struct setup_kind setup_probes; /* target: probe group; value: file */
extern const struct setup_kind setup_file;   /* target: a file; value: its text */
extern const struct setup_kind setup_link;   /* target: a link; value: where to */

/* NULL if there is none of that name. */
const struct setup_kind *setup_kind_find(const char *name);

#endif
