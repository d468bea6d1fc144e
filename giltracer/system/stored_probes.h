/* SPDX-License-Identifier: MIT */
/*
 * Probe sets as text: passed from a process with a user's rights, which found the addresses, to
 * root, which installs the probes; and kept for the next boot. The reader trusts nothing, because a
 * user may have written the text.
 */
#ifndef GILTRACER_SYSTEM_STORED_PROBES_H
#define GILTRACER_SYSTEM_STORED_PROBES_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "locate/probes.h"

/* Contains only what uprobes_install() needs. */
json_t *stored_probes_write(const struct probe_set *set);
int stored_probes_read(struct probe_set **ret, const json_t *json, struct error *err);

/*
 * Whether the file is the one that was examined, by its inode, size, time and build id. The file is
 * opened with the rights of the user who can change it. set->identity becomes the present one.
 */
int stored_probes_verify(struct probe_set *set, struct error *err);

#endif
