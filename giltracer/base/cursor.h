/* SPDX-License-Identifier: MIT */
/*
 * Bounded reads from memory: the only code that turns the bytes of a recording into numbers. A read
 * past the end sets bad, returns zero and does not move the cursor, so a decoder can read all its
 * fields and check once. Numbers are in the host's byte order and need no alignment.
 */
#ifndef GILTRACER_BASE_CURSOR_H
#define GILTRACER_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * @p: next byte; borrowed, like everything that a cursor points to
 * @end: end of the last byte
 * @bad: a read went past the end; remains set
 */
struct cursor {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

static inline struct cursor cursor_make(const void *data, size_t size)
{
	const uint8_t *p = data;

	/* data may be NULL if size is 0. */
	return (struct cursor){ .p = p, .end = size ? p + size : p };
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

/* Returns the next size bytes and moves past them; NULL (and bad) if there are fewer. */
static inline const uint8_t *cursor_bytes(struct cursor *c, uint64_t size)
{
	const uint8_t *p = c->p;

	if (size > cursor_left(c)) {
		c->bad = true;
		return NULL;
	}
	if (size)
		c->p += size;
	return p;
}

static inline void cursor_skip(struct cursor *c, uint64_t size)
{
	cursor_bytes(c, size);
}

#define CURSOR_READ(name, type)                                   \
	static inline type name(struct cursor *c)                 \
	{                                                         \
		const uint8_t *p = cursor_bytes(c, sizeof(type)); \
		type v = 0;                                       \
                                                                  \
		if (p)                                            \
			memcpy(&v, p, sizeof(v));                 \
		return v;                                         \
	}
CURSOR_READ(cursor_u8, uint8_t)
CURSOR_READ(cursor_u16, uint16_t)
CURSOR_READ(cursor_u32, uint32_t)
CURSOR_READ(cursor_u64, uint64_t)
#undef CURSOR_READ

/* Returns the next size bytes as a cursor of their own and moves past them; empty (and c bad) if
 * there are fewer. */
struct cursor cursor_sub(struct cursor *c, uint64_t size);

/* The number of size bytes (1, 2, 4 or 8) at offset at from the cursor, sign-extended if sign.
 * Returns false if it is not complete or size is another one. Does not change the cursor. */
bool cursor_number_at(const struct cursor *c, uint64_t at, uint32_t size, bool sign, uint64_t *ret);

/* The 4 or 8 bytes at offset at from the cursor; 0 if they are not complete. */
static inline uint32_t cursor_u32_at(const struct cursor *c, size_t at)
{
	uint32_t v = 0;

	if (cursor_left(c) >= 4 && at <= cursor_left(c) - 4)
		memcpy(&v, c->p + at, 4);
	return v;
}

static inline uint64_t cursor_u64_at(const struct cursor *c, size_t at)
{
	uint64_t v = 0;

	if (cursor_left(c) >= 8 && at <= cursor_left(c) - 8)
		memcpy(&v, c->p + at, 8);
	return v;
}

/* The same for bytes that the caller knows to be within the cursor. */
static inline uint16_t cursor_u16_in(const struct cursor *c, size_t at)
{
	uint16_t v;

	memcpy(&v, c->p + at, 2);
	return v;
}

static inline uint32_t cursor_u32_in(const struct cursor *c, size_t at)
{
	uint32_t v;

	memcpy(&v, c->p + at, 4);
	return v;
}

static inline uint64_t cursor_u64_in(const struct cursor *c, size_t at)
{
	uint64_t v;

	memcpy(&v, c->p + at, 8);
	return v;
}

/* The 8 bytes that start back bytes (at least 8) before the end; 0 if they are not complete. */
static inline uint64_t cursor_u64_back(const struct cursor *c, size_t back)
{
	uint64_t v = 0;

	if (back >= 8 && back <= cursor_left(c))
		memcpy(&v, c->end - back, 8);
	return v;
}

/*
 * Returns a NUL-terminated text that lies within the cursor, and moves past its NUL. Without a NUL:
 * bad, "". ret_len may be NULL. Borrowed.
 */
const char *cursor_text(struct cursor *c, size_t *ret_len);

/* Returns a fixed field of size bytes that holds text, which ends at the first NUL or at the
 * field's end; *ret_len is its length. NULL (and bad) if the field is not complete. Not
 * terminated. */
const char *cursor_text_field(struct cursor *c, uint64_t size, size_t *ret_len);

#endif
