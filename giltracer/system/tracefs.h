/* SPDX-License-Identifier: MIT */
/* The kernel's interface to uprobes: the text file uprobe_events and the folders of events. */
#ifndef GILTRACER_SYSTEM_TRACEFS_H
#define GILTRACER_SYSTEM_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

/* A line of uprobe_events about one of our probes, split; strings are owned. */
struct tracefs_probe {
	char *line; /* whole, without newline */
	char *group, *event;
	char *path; /* of the file, as it was given */
};

struct tracefs_probes {
	VEC(struct tracefs_probe) v;
};

/* Where tracefs is mounted; the caller frees it. ENOENT: nowhere. */
int tracefs_find(char **ret, struct error *err);

/* Our probes in the kernel. EACCES if this user may not read the file. */
int tracefs_read_probes(struct tracefs_probes *ret, const char *root, struct error *err);
void tracefs_probes_done(struct tracefs_probes *probes);

/* Append a command to uprobe_events; the error contains the kernel's explanation. */
int tracefs_command(const char *root, const char *command, struct error *err);

/* Remove one event. wait: for up to a second, if a recorder is still closing it. */
int tracefs_remove(const char *root, const char *group, const char *event, bool wait,
                   struct error *err);

/* Whether this process may install probes; whether only a read-only mount prevents it. */
bool tracefs_can_install(const char *root);
bool tracefs_is_read_only(const char *root);
bool tracefs_has_event(const char *root, const char *group, const char *event);

DEFINE_CLEANUP_IN(struct tracefs_probes, tracefs_probes_done);

#endif
