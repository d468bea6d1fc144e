/* SPDX-License-Identifier: MIT */
/*
 * Hashes of numbers and texts. They depend on a seed that differs from process to process, so that
 * nobody can construct a file whose keys collide. Output must not depend on them.
 */
#ifndef GILTRACER_BASE_HASH_H
#define GILTRACER_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

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

#endif
