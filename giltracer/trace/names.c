/* SPDX-License-Identifier: MIT */
/* Interned strings: texts in blocks that do not move, found by a hash table with open
 * addressing. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/str.h"
#include "base/vec.h"
#include "session/privacy.h"

#define BLOCK_SIZE 65536

struct name {
	const char *text;
	uint32_t len;
	uint32_t hash;
};

/**
 * @slots: ids + 1, 0 is free; slot_count is a power of two
 * @privacy: NULL: names are as they are
 * @blocks: memory for texts; the last one has block_left bytes left
 */
struct names {
	const struct privacy *privacy;
	VEC(struct name) names;
	VEC(char *) blocks;
	size_t block_left;
	char *block_next;
	struct hash_seed seed;
	uint32_t *slots;
	uint32_t slot_count;
};

static void insert_slot(struct names *names, uint32_t id)
{
	uint32_t i = names->names.v[id].hash & (names->slot_count - 1);

	while (names->slots[i])
		i = (i + 1) & (names->slot_count - 1);
	names->slots[i] = id + 1;
}

static void grow(struct names *names)
{
	free(names->slots);
	names->slot_count *= 2;
	names->slots = xcalloc(names->slot_count, sizeof(*names->slots));
	for (uint32_t id = 0; id < names->names.n; id++)
		insert_slot(names, id);
}

static char *copy_text(struct names *names, const char *text, size_t len)
{
	size_t need = len + 1;
	char *copy;

	if (need > names->block_left) {
		names->block_left = need > BLOCK_SIZE ? need : BLOCK_SIZE;
		names->block_next = xcalloc(names->block_left, 1);
		*vec_push(&names->blocks) = names->block_next;
	}
	copy = names->block_next;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	names->block_next += need;
	names->block_left -= need;
	return copy;
}

struct names *names_new(void)
{
	struct names *names = xcalloc(1, sizeof(*names));

	names->seed = hash_seed();
	names->slot_count = 64;
	names->slots = xcalloc(names->slot_count, sizeof(*names->slots));
	names_id(names, "", 0);
	return names;
}

struct names *names_new_private(const struct privacy *privacy)
{
	struct names *names = names_new();

	names->privacy = privacy;
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->blocks.n; i++)
		free(names->blocks.v[i]);
	vec_done(&names->blocks);
	vec_done(&names->names);
	free(names->slots);
	free(names);
}

uint32_t names_id(struct names *names, const char *text, size_t len)
{
	CLEANUP(str_done) struct str hidden = { 0 };
	uint32_t hash, i, id;

	/* NULL is treated as the empty text. */
	if (!len)
		text = "";
	len = strnlen(text, len);
	if (names->privacy && privacy_of_name(names->privacy, text, len, &hidden)) {
		text = str_get(&hidden);
		len = hidden.len;
	}
	hash = (uint32_t)hash_text(names->seed, text, len);
	for (i = hash & (names->slot_count - 1); names->slots[i];
	     i = (i + 1) & (names->slot_count - 1)) {
		const struct name *name = &names->names.v[names->slots[i] - 1];

		if (name->hash == hash && name->len == len && !memcmp(name->text, text, len))
			return names->slots[i] - 1;
	}
	id = (uint32_t)names->names.n;
	*vec_push(&names->names) = (struct name){ copy_text(names, text, len), (uint32_t)len,
		                                  hash };
	if (names->names.n * 2 > names->slot_count)
		grow(names);
	else
		insert_slot(names, id);
	return id;
}

const char *names_get(const struct names *names, uint32_t id)
{
	return names->names.v[id].text;
}

uint32_t names_count(const struct names *names)
{
	return (uint32_t)names->names.n;
}
