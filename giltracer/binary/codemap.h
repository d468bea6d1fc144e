/* SPDX-License-Identifier: MIT */
/*
 * What a stripped ELF file still says about its code: which stubs call which imported function,
 * what the loader puts where, and where functions begin and end (.eh_frame_hdr).
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

/* Never NULL; what the file lacks is empty. symbols is borrowed until codemap_free. */
struct codemap *codemap_new(const struct symbols *symbols);
void codemap_free(struct codemap *map);

/*
 * What a search in the code of one file may cost is bounded by the file's size, since code can be
 * made to be searched for ever. Costs are in units of about a nanosecond. False: all is spent, and
 * nothing more is found.
 */
bool codemap_spend(const struct codemap *map, uint64_t cost);
bool codemap_is_spent(const struct codemap *map);

/* The imported function that a stub at this address calls, or whose address the loader puts there;
 * NULL if it is neither. Borrowed. */
const char *codemap_import(const struct codemap *map, uint64_t address);

/* Where a call of this address ends up: behind a stub, if it is one that leads to a function of
 * this file. */
uint64_t codemap_resolve(const struct codemap *map, uint64_t address);

/* What the loader puts at an address, where that is an address in this file. */
bool codemap_relocated(const struct codemap *map, uint64_t address, uint64_t *ret);

/* The function, or split-off part of one, around an address: [start, end). */
bool codemap_function(const struct codemap *map, uint64_t address, uint64_t *ret_start,
                      uint64_t *ret_end);

/* Addresses of the instructions that may call or jump to an imported function, in order. Found as
 * bytes: what is no instruction can be among them. ret is to be emptied by vec_done(&ret->v). */
void codemap_find_calls(const struct codemap *map, const char *import, struct addresses *ret);

/* Beginnings of the functions, or split-off parts of them, that jump into [start, end) from outside
 * of it. Found as bytes, too. ret is to be emptied by vec_done(&ret->v). */
void codemap_find_owners(const struct codemap *map, uint64_t start, uint64_t end,
                         struct addresses *ret);

/* Where an address is the target of a direct call, as codemap_find_calls; and how often. */
void codemap_find_callers(const struct codemap *map, uint64_t target, struct addresses *ret);
size_t codemap_count_calls(const struct codemap *map, uint64_t target);

/* The bytes at an address, at most max. */
const uint8_t *codemap_bytes(const struct codemap *map, uint64_t address, size_t max,
                             size_t *ret_len);

DEFINE_CLEANUP(struct codemap *, codemap_free);

#endif
