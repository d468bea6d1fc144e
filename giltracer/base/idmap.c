/* SPDX-License-Identifier: MIT */
/* A hash table with open addressing. */
#include "base/idmap.h"

#include <stdlib.h>

#include "base/alloc.h"

#define FIRST_SLOTS 64

void idmap_done(struct idmap *map)
{
	free(map->slots);
	*map = (struct idmap){ 0 };
}

static void grow(struct idmap *map)
{
	struct idmap old = *map;

	map->seed = hash_seed();
	map->mask = old.slots ? old.mask * 2 + 1 : FIRST_SLOTS - 1;
	map->slots = xcalloc((size_t)map->mask + 1, sizeof(*map->slots));
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].value)
			*idmap_slot(map, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

void idmap_set(struct idmap *map, uint64_t key, uint32_t value)
{
	struct idmap_slot *slot;

	if (!map->slots || map->n > map->mask / 2)
		grow(map);
	slot = idmap_slot(map, key);
	map->n += !slot->value;
	*slot = (struct idmap_slot){ key, value + 1 };
}
