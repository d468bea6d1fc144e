/* SPDX-License-Identifier: MIT */
/*
 * Information about the code of an ELF file, also of a stripped one: which stubs call which
 * imported function, what the loader writes where, and where functions start and end
 * (.eh_frame_hdr).
 */
#ifndef GILTRACER_BINARY_CODEMAP_H
#define GILTRACER_BINARY_CODEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"

struct symbols;
struct codemap;

struct addresses {
	VEC(uint64_t) v;
};

/* Never NULL; information that the file lacks is empty. symbols is borrowed until codemap_free. */
struct codemap *codemap_new(const struct symbols *symbols);
void codemap_free(struct codemap *map);

/*
 * The cost of all searches in the code of a file is bounded by the file's size, because code can be
 * constructed to make a search endless. Costs are in units of about a nanosecond. Returns false if
 * the budget is spent; searches then find nothing more.
 */
bool codemap_spend(const struct codemap *map, uint64_t cost);
bool codemap_is_spent(const struct codemap *map);

/* The imported function that a stub at this address calls, or whose address the loader writes
 * there; NULL if there is none. Borrowed. */
const char *codemap_import(const struct codemap *map, uint64_t address);

/* The target of a call of this address: behind the stub, if there is a stub that leads to a
 * function of this file. */
uint64_t codemap_resolve(const struct codemap *map, uint64_t address);

/* The value that the loader writes to an address, if that is an address in this file. */
bool codemap_relocated(const struct codemap *map, uint64_t address, uint64_t *ret);

/* The function around an address, or the split-off part of one: [start, end). */
bool codemap_function(const struct codemap *map, uint64_t address, uint64_t *ret_start,
                      uint64_t *ret_end);

/* Addresses of the instructions that may call or jump to an imported function, in order. They are
 * found as bytes, so some may not be instructions. Free ret with vec_done(&ret->v). */
void codemap_find_calls(const struct codemap *map, const char *import, struct addresses *ret);

/* Starts of the functions, or of their split-off parts, that jump into [start, end) from outside of
 * it. Also found as bytes. Free ret with vec_done(&ret->v). */
void codemap_find_owners(const struct codemap *map, uint64_t start, uint64_t end,
                         struct addresses *ret);

/* The direct calls of an address, as for codemap_find_calls; and their number. */
void codemap_find_callers(const struct codemap *map, uint64_t target, struct addresses *ret);
size_t codemap_count_calls(const struct codemap *map, uint64_t target);

/* The bytes at an address, at most max. */
const uint8_t *codemap_bytes(const struct codemap *map, uint64_t address, size_t max,
                             size_t *ret_len);

DEFINE_CLEANUP(struct codemap *, codemap_free);

#endif
