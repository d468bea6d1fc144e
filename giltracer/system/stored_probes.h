/* SPDX-License-Identifier: MIT */
/*
 * Probe sets as text: between a process with a user's rights, which looked for the places, and
 * root, which installs them; and from one boot to the next. What is read is checked as what a user
 * may have written.
 */
#ifndef GILTRACER_SYSTEM_STORED_PROBES_H
#define GILTRACER_SYSTEM_STORED_PROBES_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "locate/probes.h"

/* What uprobes_install() needs, and no more. */
json_t *stored_probes_write(const struct probe_set *set);
int stored_probes_read(struct probe_set **ret, const json_t *json, struct error *err);

/* Whether the file is the one that was looked at, as its inode, size, time and build id say. The
 * file is opened with the rights of whoever decides what it is. set->identity is that of now. */
int stored_probes_verify(struct probe_set *set, struct error *err);

#endif
