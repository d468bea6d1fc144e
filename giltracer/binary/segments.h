/* SPDX-License-Identifier: MIT */
/* The loadable segments of an ELF file: maps link-time addresses to the file's contents and
 * back. */
#ifndef GILTRACER_BINARY_SEGMENTS_H
#define GILTRACER_BINARY_SEGMENTS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file offset of an address, and the number of bytes of the segment's contents from there on.
 * Returns false if no segment has contents for the address. */
bool segments_offset(Elf *elf, uint64_t address, uint64_t *ret, uint64_t *ret_left);

/* The address at which the contents at a file offset are loaded. Returns false if no segment has
 * them. */
bool segments_address(Elf *elf, uint64_t offset, uint64_t *ret);

/* The bytes at an address, at most max; *ret_len is their number. NULL if there are none. Borrowed
 * until the Elf is closed. */
const uint8_t *segments_bytes(Elf *elf, uint64_t address, uint64_t max, size_t *ret_len);

#endif
