/* SPDX-License-Identifier: MIT */
/*
 * A pull scanner for JSON (RFC 8259) that is too large for a tree: bytes in, one value at a time
 * out, nothing allocated. As cursor.h does, it keeps the first error and yields nothing from then
 * on, so that a reader asks once. More than the standard is taken: any bytes in strings (control
 * characters, invalid UTF-8), and a comma before a closing bracket.
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
 * @bad: what is wrong, NULL: nothing. bad_at is the byte offset
 */
struct jsonscan {
	const uint8_t *data, *p, *end;
	const char *bad;
	size_t bad_at;
};

/* Text between quotes, as it is in the file. */
struct jsontext {
	const uint8_t *s;
	size_t len;
};

void jsonscan_init(struct jsonscan *j, const void *data, size_t size);

/* Note the error, unless there is one. Returns false. */
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
 * The body takes a key and a value each time, or a value. Ends at an error too.
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

/* The rest of a string, from p on, that began at start. */
bool jsonscan_long_string(struct jsonscan *j, const uint8_t *start, struct jsontext *ret);

/* The lowest byte of w that is c has its top bit set; other bits only above it. */
static inline uint64_t jsonscan_find(uint64_t w, uint8_t c)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	w ^= ones * c;
	return (w - ones) & ~w & ones << 7;
}

/* A string; keys and other short ones are found here, eight bytes at once. */
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

/* A string and the colon behind it. */
static inline bool jsonscan_key(struct jsonscan *j, struct jsontext *ret)
{
	return jsonscan_string(j, ret) && jsonscan_expect(j, ':');
}

/* Any value, however deep. */
bool jsonscan_skip(struct jsonscan *j);

/* A whole number in 0 … UINT32_MAX; anything else is skipped and 0. */
uint32_t jsonscan_u32(struct jsonscan *j);

/*
 * A number times 1000, rounded to the nearest whole (half away from zero): µs become ns. Exact,
 * without floating point. *ok false: not a number, or it does not fit.
 */
int64_t jsonscan_milli(struct jsonscan *j, bool *ok);

static inline bool jsontext_is(const struct jsontext *t, const char *s, size_t len)
{
	return t->len == len && !__builtin_memcmp(t->s, s, len);
}

/* Append the text as valid UTF-8 without NULs: what cannot be encoded becomes U+FFFD. */
void jsontext_decode(const struct jsontext *t, struct str *ret);

#endif
