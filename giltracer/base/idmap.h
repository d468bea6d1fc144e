/* SPDX-License-Identifier: MIT */
/* A hash table from any number to an index, optimised for look-ups. Entries are never removed. */
#ifndef GILTRACER_BASE_IDMAP_H
#define GILTRACER_BASE_IDMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define IDMAP_NONE UINT32_MAX

/* value: the value that was set, plus 1; 0: the slot is free. */
struct idmap_slot {
	uint64_t key;
	uint32_t value;
};

/* { 0 } is an empty table. At most half of the slots are used. */
struct idmap {
	struct idmap_slot *slots;
	struct hash_seed seed;
	uint32_t mask; /* number of slots, a power of two, minus 1 */
	uint32_t n;
};

void idmap_done(struct idmap *map);

/* Add or replace; value is not IDMAP_NONE. */
void idmap_set(struct idmap *map, uint64_t key, uint32_t value);

/* The slot of key, or the free slot where it belongs. The table must not be empty. */
static inline struct idmap_slot *idmap_slot(const struct idmap *map, uint64_t key)
{
	uint32_t at = (uint32_t)hash_number(map->seed, key) & map->mask;

	while (map->slots[at].value && map->slots[at].key != key)
		at = (at + 1) & map->mask;
	return &map->slots[at];
}

/* The value of key, or IDMAP_NONE. */
static inline uint32_t idmap_get(const struct idmap *map, uint64_t key)
{
	if (!map->slots)
		return IDMAP_NONE;
	return idmap_slot(map, key)->value - 1;
}

/* Sets key to value unless it has a value. Returns whether it had none; *ret is its value now. */
static inline bool idmap_add(struct idmap *map, uint64_t key, uint32_t value, uint32_t *ret)
{
	*ret = idmap_get(map, key);
	if (*ret != IDMAP_NONE)
		return false;
	idmap_set(map, key, value);
	*ret = value;
	return true;
}

/* Two ids as one key. */
static inline uint64_t idmap_pair(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

#endif
