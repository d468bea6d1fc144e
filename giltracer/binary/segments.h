/* SPDX-License-Identifier: MIT */
/* The loadable segments of an ELF file, between link-time addresses and the file's contents. */
#ifndef GILTRACER_BINARY_SEGMENTS_H
#define GILTRACER_BINARY_SEGMENTS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* File offset of an address, and how many bytes of the segment's contents start there. False if no
 * segment has contents for it. */
bool segments_offset(Elf *elf, uint64_t address, uint64_t *ret, uint64_t *ret_left);

/* Address that the contents at a file offset are loaded at. False if no segment has them. */
bool segments_address(Elf *elf, uint64_t offset, uint64_t *ret);

/* The bytes at an address, at most max; *ret_len is how many there are. NULL if there are none.
 * Borrowed until the Elf is closed. */
const uint8_t *segments_bytes(Elf *elf, uint64_t address, uint64_t max, size_t *ret_len);

#endif
