/* SPDX-License-Identifier: MIT */
#include "base/idmap.h"

#include <stdlib.h>

#include "base/alloc.h"

void idmap_done(struct idmap *map)
{
	free(map->slots);
	*map = (struct idmap){ 0 };
}

static void put(struct idmap *map, uint32_t key, uint32_t value)
{
	uint32_t i = key * 2654435761u & map->mask;

	while (map->slots[i].value != IDMAP_NONE && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	map->n += map->slots[i].value == IDMAP_NONE;
	map->slots[i] = (struct idmap_slot){ key, value };
}

static void grow(struct idmap *map)
{
	struct idmap old = *map;
	uint32_t size = old.slots ? (old.mask + 1) * 2 : 64;

	map->slots = xcalloc(size, sizeof(*map->slots));
	map->mask = size - 1;
	map->n = 0;
	for (uint32_t i = 0; i < size; i++)
		map->slots[i].value = IDMAP_NONE;
	for (uint32_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].value != IDMAP_NONE)
			put(map, old.slots[i].key, old.slots[i].value);
	free(old.slots);
}

void idmap_set(struct idmap *map, uint32_t key, uint32_t value)
{
	if (!map->slots || map->n * 2 > map->mask)
		grow(map);
	put(map, key, value);
}
