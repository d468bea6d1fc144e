/* SPDX-License-Identifier: MIT */
/* Hashes, and a hash table from any number to an index, optimised for look-ups. Its entries are never
 * removed. */
#ifndef GILTRACER_BASE_IDMAP_H
#define GILTRACER_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* ---- hashes */

/*
 * Hashes of numbers and texts. They depend on a seed that differs from process to process, so that
 * nobody can construct a file whose keys collide. Output must not depend on them, apart from what
 * session/privacy.c makes unrecognisable.
 */

struct hash_seed {
	uint64_t add, multiply;
};

/* The seed of this process: the 16 random bytes that the kernel gives to each process. */
static inline struct hash_seed hash_seed(void)
{
	struct hash_seed seed = { 0, 0 };
	const void *random = (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(&seed, random, sizeof(seed));
	/* The multiplier must be odd; the constant sets bits in all of it. */
	seed.multiply = (seed.multiply ^ UINT64_C(0x9e3779b97f4a7c15)) | 1;
	return seed;
}

/* Each bit of the result depends on many bits of the number, because both halves of the product are
 * combined. */
static inline uint64_t hash_number(struct hash_seed seed, uint64_t number)
{
	unsigned __int128 product = (unsigned __int128)(number ^ seed.add) * seed.multiply;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Adds number to hash, the hash of all earlier numbers. Start with 0. */
static inline uint64_t hash_more(struct hash_seed seed, uint64_t hash, uint64_t number)
{
	/* The next number is xored with the seed, so this is an addition: two numbers must not
	 * cancel out. */
	return hash_number(seed, number) + (hash << 23 | hash >> 41) * seed.multiply;
}

static inline uint64_t hash_text(struct hash_seed seed, const void *text, size_t len)
{
	const uint8_t *at = text;
	uint64_t hash = len, word = 0;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = hash_more(seed, hash, word);
	}
	word = 0;
	if (len)
		memcpy(&word, at, len);
	return hash_more(seed, hash, word);
}

/* ---- the table */

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
