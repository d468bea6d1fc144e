/* SPDX-License-Identifier: MIT */
/* From 64-bit keys, addresses mostly, to positions in an array of the caller's. Nothing is ever
 * taken out. */
#ifndef GILTRACER_LAUNCH_ADDRTABLE_H
#define GILTRACER_LAUNCH_ADDRTABLE_H

#include <stddef.h>
#include <stdint.h>

/* { 0 } is an empty one. 0 is a free position, else it is the caller's + 1. */
struct addrtable {
	uint64_t *keys;
	uint32_t *positions;
	size_t size, used;
};

/* Where the position of a key is to be found or put; 0 there means it is new, and who puts one
 * there adds 1 to used. Valid until the next call. */
uint32_t *addrtable_slot(struct addrtable *t, uint64_t key);
void addrtable_done(struct addrtable *t);

/* Scatters the bits of a key. */
static inline uint64_t addrtable_mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
	return x ^ x >> 29;
}

#endif
