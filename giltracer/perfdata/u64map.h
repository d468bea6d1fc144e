/* SPDX-License-Identifier: MIT */
/* A hash table from any 64-bit key to a 32-bit value, made for look-ups. { 0 } is an empty one. */
#ifndef GILTRACER_PERFDATA_U64MAP_H
#define GILTRACER_PERFDATA_U64MAP_H

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

/* value: what was set, plus 1; 0: the slot is free. */
struct u64map_slot {
	uint64_t key;
	uint32_t value;
};

struct u64map {
	struct u64map_slot *slots;
	uint32_t mask, n;
};

static inline uint32_t u64map_hash(uint64_t key)
{
	key *= 0x9e3779b97f4a7c15;
	return (uint32_t)(key >> 32);
}

/* The slot of key, or the free one where it belongs. The table has slots. */
static inline struct u64map_slot *u64map_slot(const struct u64map *map, uint64_t key)
{
	uint32_t at = u64map_hash(key) & map->mask;

	while (map->slots[at].value && map->slots[at].key != key)
		at = (at + 1) & map->mask;
	return &map->slots[at];
}

/* The value of key, UINT32_MAX if it has none. */
static inline uint32_t u64map_get(const struct u64map *map, uint64_t key)
{
	if (!map->slots)
		return UINT32_MAX;
	return u64map_slot(map, key)->value - 1;
}

static inline void u64map_done(struct u64map *map)
{
	free(map->slots);
	*map = (struct u64map){ 0 };
}

static inline void u64map_grow(struct u64map *map)
{
	struct u64map old = *map;

	map->mask = old.slots ? old.mask * 2 + 1 : 63;
	map->slots = xcalloc((size_t)map->mask + 1, sizeof(*map->slots));
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].value)
			*u64map_slot(map, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

/* Set the value of key, below UINT32_MAX. */
static inline void u64map_set(struct u64map *map, uint64_t key, uint32_t value)
{
	struct u64map_slot *slot;

	if (!map->slots || map->n > map->mask / 2)
		u64map_grow(map);
	slot = u64map_slot(map, key);
	map->n += !slot->value;
	*slot = (struct u64map_slot){ key, value + 1 };
}

#endif
