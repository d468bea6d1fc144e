/* SPDX-License-Identifier: MIT */
/* The kernel's side of uprobes: the text file uprobe_events and the folders of events. */
#ifndef GILTRACER_SYSTEM_TRACEFS_H
#define GILTRACER_SYSTEM_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

/* Where records of probes are, see probe_lease.h, and the events that giltracer setup shares. */
#define TRACEFS_RUNDIR "/run/giltracer"

/* One line of uprobe_events that is ours, split where we need it; strings are owned. */
struct tracefs_probe {
	char *line; /* whole, without newline */
	char *group, *event;
	char *path; /* of the file, as it was given */
};

struct tracefs_probes {
	VEC(struct tracefs_probe) v;
};

/* Where tracefs is mounted, or the part of it that this user may use; caller frees. ENOENT if it is
 * nowhere. */
int tracefs_find(char **ret, struct error *err);

/* Whether group is one that giltracer names: giltracer_<build>_<hash>[_c<hash>]. */
bool tracefs_is_our_group(const char *group);

/* Our probes in the kernel. EACCES if this user may not read the file. */
int tracefs_read_probes(struct tracefs_probes *ret, const char *root, struct error *err);
void tracefs_probes_done(struct tracefs_probes *probes);

/* Append a command to uprobe_events; the error says what the kernel objects to. */
int tracefs_command(const char *root, const char *command, struct error *err);

/* Remove one event. wait: up to a second, for a recorder that is just closing it. */
int tracefs_remove(const char *root, const char *group, const char *event, bool wait,
                   struct error *err);

/* Whether this process may install probes, whether only the mount is in its way, and whether it may
 * open events/GROUP/EVENT. */
bool tracefs_can_install(const char *root);
bool tracefs_is_read_only(const char *root);
/* The group that giltracer setup lets read the scheduler's events, 0 if none. */
gid_t tracefs_readers(const char *root);

/* Let a group list and record the events of one of our groups, and whether it may. */
int tracefs_share_group(const char *root, const char *group, gid_t readers, struct error *err);
bool tracefs_is_shared(const char *root, const char *group, const char *event, gid_t readers);

bool tracefs_has_event(const char *root, const char *group, const char *event);

static inline void cleanup_tracefs_probes_done(struct tracefs_probes *probes)
{
	tracefs_probes_done(probes);
}

#endif
