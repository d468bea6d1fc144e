/* SPDX-License-Identifier: MIT */
/* Starts of all functions of a file, with or without symbols: the table of .eh_frame_hdr. */
#ifndef GILTRACER_BINARY_FDETAB_H
#define GILTRACER_BINARY_FDETAB_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

struct fdetab;

/* Never NULL; empty if the file has no table that we can read. elf is borrowed until
 * fdetab_free. */
struct fdetab *fdetab_new(Elf *elf);
void fdetab_free(struct fdetab *fdetab);

/* The function around a link-time address, or the split-off part of one: [start, end). end is the
 * start of the next one, UINT64_MAX for the last. */
bool fdetab_find(const struct fdetab *fdetab, uint64_t address, uint64_t *ret_start,
                 uint64_t *ret_end);

#endif
