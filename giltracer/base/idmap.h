/* SPDX-License-Identifier: MIT */
/* A small open-addressing map from an id (pid, tid) to an index. Entries are never removed. */
#ifndef GILTRACER_BASE_IDMAP_H
#define GILTRACER_BASE_IDMAP_H

#include <stdint.h>

#define IDMAP_NONE UINT32_MAX

struct idmap_slot {
	uint32_t key, value; /* value IDMAP_NONE: empty */
};

/* { 0 } is an empty one. */
struct idmap {
	struct idmap_slot *slots;
	uint32_t mask; /* slots less one; a power of two */
	uint32_t n;
};

void idmap_done(struct idmap *map);

/* Add or replace; value is not IDMAP_NONE. */
void idmap_set(struct idmap *map, uint32_t key, uint32_t value);

static inline uint32_t idmap_get(const struct idmap *map, uint32_t key)
{
	if (!map->slots)
		return IDMAP_NONE;
	/* Ids are dense: the low bits of the product scatter them well enough. */
	for (uint32_t i = key * 2654435761u;; i++) {
		const struct idmap_slot *slot = &map->slots[i & map->mask];

		if (slot->value == IDMAP_NONE || slot->key == key)
			return slot->value;
	}
}

#endif
