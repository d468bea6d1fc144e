/* SPDX-License-Identifier: MIT */
/* Open addressing, at most half full, so that a search ends soon. */
#include "addrtable.h"

#include <stdlib.h>

#include "base/alloc.h"

/* The place of a key or, if it is not there, a free one. */
static uint32_t *find(struct addrtable *t, uint64_t key)
{
	size_t i = addrtable_mix(key) & (t->size - 1);

	while (t->positions[i] && t->keys[i] != key)
		i = (i + 1) & (t->size - 1);
	t->keys[i] = key;
	return &t->positions[i];
}

static void grow(struct addrtable *t)
{
	struct addrtable bigger = { .size = t->size ? 2 * t->size : 256, .used = t->used };

	bigger.keys = xcalloc(bigger.size, sizeof(*bigger.keys));
	bigger.positions = xcalloc(bigger.size, sizeof(*bigger.positions));
	for (size_t i = 0; i < t->size; i++)
		if (t->positions[i])
			*find(&bigger, t->keys[i]) = t->positions[i];
	free(t->keys);
	free(t->positions);
	*t = bigger;
}

uint32_t *addrtable_slot(struct addrtable *t, uint64_t key)
{
	if (2 * (t->used + 1) > t->size)
		grow(t);
	return find(t, key);
}

void addrtable_done(struct addrtable *t)
{
	free(t->keys);
	free(t->positions);
}
