/* SPDX-License-Identifier: MIT */
/*
 * A pull scanner for JSON (RFC 8259) that is too large for a tree: reads bytes and yields one value
 * at a time, without allocating. Like cursor.h, it keeps the first error and yields nothing from
 * then on, so that a reader checks only once. It accepts more than the standard: any bytes in
 * strings (control characters, invalid UTF-8), and a comma before a closing bracket.
 */
#ifndef GILTRACER_TRACE_VIZTRACER_JSONSCAN_H
#define GILTRACER_TRACE_VIZTRACER_JSONSCAN_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/**
 * @p: the next byte
 * @bad: the error, NULL: none; @bad_at: its byte offset
 */
struct jsonscan {
	const uint8_t *data, *p, *end;
	const char *bad;
	size_t bad_at;
};

/* The text between quotes, in the file's encoding. */
struct jsontext {
	const uint8_t *s;
	size_t len;
};

void jsonscan_init(struct jsonscan *j, const void *data, size_t size);

/* Note the error, unless there was one before. Returns false. */
bool jsonscan_fail(struct jsonscan *j, const char *what);

/* The next byte that is not white space, 0 at the end; it is not consumed. */
static inline uint8_t jsonscan_peek(struct jsonscan *j)
{
	while (j->p < j->end && *j->p <= ' ')
		j->p++;
	return j->p < j->end ? *j->p : 0;
}

/* Consume c, or fail. */
static inline bool jsonscan_expect(struct jsonscan *j, char c)
{
	if (jsonscan_peek(j) != (uint8_t)c)
		return jsonscan_fail(j, j->p == j->end ? "it ends too early" : "bad syntax");
	j->p++;
	return true;
}

/*
 * Loops over the members of an object and the elements of an array:
 *
 *	for (bool more = jsonscan_open(&j, '{'); more; more = jsonscan_more(&j, '}'))
 *
 * The body reads a key and a value each time, or a value. The loop also ends at an error.
 */
static inline bool jsonscan_open(struct jsonscan *j, char open)
{
	if (!jsonscan_expect(j, open))
		return false;
	/* In ASCII, the code of either closing bracket is that of the opening one plus two. */
	if (jsonscan_peek(j) != (uint8_t)(open + 2))
		return true;
	j->p++;
	return false;
}

static inline bool jsonscan_more(struct jsonscan *j, char close)
{
	if (jsonscan_peek(j) == ',') {
		j->p++;
		if (jsonscan_peek(j) != (uint8_t)close)
			return true;
	}
	jsonscan_expect(j, close);
	return false;
}

/* The rest of a string that began at start, from p on. */
bool jsonscan_long_string(struct jsonscan *j, const uint8_t *start, struct jsontext *ret);

/* Sets the top bit of the lowest byte of w that is c; other bits are set only above it. */
static inline uint64_t jsonscan_find(uint64_t w, uint8_t c)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	w ^= ones * c;
	return (w - ones) & ~w & ones << 7;
}

/* A string; short ones such as keys are found here, eight bytes at a time. */
static inline bool jsonscan_string(struct jsonscan *j, struct jsontext *ret)
{
	uint64_t w, quote, escape;

	if (!jsonscan_expect(j, '"'))
		return false;
	if (j->end - j->p < 8)
		return jsonscan_long_string(j, j->p, ret);
	__builtin_memcpy(&w, j->p, 8);
	w = le64toh(w);
	quote = jsonscan_find(w, '"');
	escape = jsonscan_find(w, '\\');
	if (!quote || (escape && (escape & -escape) < (quote & -quote)))
		return jsonscan_long_string(j, j->p, ret);
	*ret = (struct jsontext){ j->p, (size_t)__builtin_ctzll(quote) / 8 };
	j->p += ret->len + 1;
	return true;
}

/* A string and the colon after it. */
static inline bool jsonscan_key(struct jsonscan *j, struct jsontext *ret)
{
	return jsonscan_string(j, ret) && jsonscan_expect(j, ':');
}

/* Skip any value, at any depth. */
bool jsonscan_skip(struct jsonscan *j);

/* An integer in 0 … UINT32_MAX; anything else is skipped and yields 0. */
uint32_t jsonscan_u32(struct jsonscan *j);

/* A number times 1000, rounded to the nearest integer (half away from zero): µs become ns.
 * Exact, without floating point. *ok false: not a number, or too large. */
int64_t jsonscan_milli(struct jsonscan *j, bool *ok);

static inline bool jsontext_is(const struct jsontext *t, const char *s, size_t len)
{
	return t->len == len && !__builtin_memcmp(t->s, s, len);
}

/* Append the text as valid UTF-8 without NULs: what cannot be encoded becomes U+FFFD. */
void jsontext_decode(const struct jsontext *t, struct str *ret);

#endif
