/* SPDX-License-Identifier: MIT */
/*
 * Streaming JSON (RFC 8259), safe inside <script type="application/json">: '<', '>', '&', controls
 * and U+2028/2029 are escaped, invalid UTF-8 becomes U+FFFD. The writer maintains commas and
 * nesting; a mistake of the caller (a value without a key, an unclosed object) fails an assertion.
 *
 *	jsonw_object(&w, NULL);
 *	jsonw_u64(&w, "pid", 7);
 *	jsonw_array(&w, "names");
 *	jsonw_string(&w, NULL, "x");
 *	jsonw_end(&w);
 *	jsonw_end(&w);
 *
 * key is the member's name in an object and NULL in an array and at the top level.
 */
#ifndef GILTRACER_BASE_JSONW_H
#define GILTRACER_BASE_JSONW_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- decimals */

/* Decimal output, two digits at a time: several times faster than printf. */

#define DECIMAL_MAX 24 /* bytes of the longest number, including its decimal point */

/* Writes the digits of value before end, zero-padded to at least least digits. Returns their
 * start. */
static inline char *decimal_before(char *end, uint64_t value, unsigned least)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char *at = end;

	while (value >= 100) {
		at -= 2;
		memcpy(at, pairs + 2 * (value % 100), 2);
		value /= 100;
	}
	if (value >= 10) {
		at -= 2;
		memcpy(at, pairs + 2 * value, 2);
	} else if (value || at == end) {
		*--at = (char)('0' + value);
	}
	while (end - at < (ptrdiff_t)least)
		*--at = '0';
	return at;
}

/* Writes value to at, which has room for DECIMAL_MAX bytes. Returns the end. */
static inline char *decimal_add(char *at, uint64_t value)
{
	char digits[DECIMAL_MAX], *end = digits + sizeof(digits);
	char *from = decimal_before(end, value, 1);
	size_t len = (size_t)(end - from);

	memcpy(at, from, len);
	return at + len;
}

/* Writes value / unit with the given number of decimals; unit is 10 to that power. */
static inline char *decimal_add_fixed(char *at, uint64_t value, uint64_t unit, unsigned decimals)
{
	char digits[DECIMAL_MAX], *end = digits + sizeof(digits);
	char *from = decimal_before(end, value % unit, decimals);

	at = decimal_add(at, value / unit);
	*at++ = '.';
	memcpy(at, from, decimals);
	return at + decimals;
}

/* ---- a buffer before a file */

/*
 * Collects small pieces of output and writes them in large blocks, because a call of stdio for each
 * piece costs more than producing the piece. Errors remain in the stream's error flag.
 */

#define OUTBUF_BYTES 16384

/**
 * @out: borrowed; nothing else may write to it before outbuf_flush()
 */
struct outbuf {
	FILE *out;
	size_t used;
	char bytes[OUTBUF_BYTES];
};

static inline void outbuf_init(struct outbuf *b, FILE *out)
{
	b->out = out;
	b->used = 0;
}

static inline void outbuf_flush(struct outbuf *b)
{
	if (b->used)
		fwrite_unlocked(b->bytes, 1, b->used, b->out);
	b->used = 0;
}

/* A place for len bytes, at most OUTBUF_BYTES. The caller adds the number of bytes that it wrote to
 * b->used. */
static inline char *outbuf_room(struct outbuf *b, size_t len)
{
	assert(len <= OUTBUF_BYTES);
	if (len > OUTBUF_BYTES - b->used)
		outbuf_flush(b);
	return b->bytes + b->used;
}

static inline void outbuf_add(struct outbuf *b, const char *text, size_t len)
{
	if (len > OUTBUF_BYTES) {
		outbuf_flush(b);
		fwrite_unlocked(text, 1, len, b->out);
		return;
	}
	memcpy(outbuf_room(b, len), text, len);
	b->used += len;
}

static inline void outbuf_adds(struct outbuf *b, const char *text)
{
	outbuf_add(b, text, strlen(text));
}

static inline void outbuf_addc(struct outbuf *b, char c)
{
	*outbuf_room(b, 1) = c;
	b->used++;
}

static inline void outbuf_add_u64(struct outbuf *b, uint64_t value)
{
	char *at = outbuf_room(b, DECIMAL_MAX);

	b->used += (size_t)(decimal_add(at, value) - at);
}

/* A time as µs or as ms, with all its ns as decimals. */
static inline void outbuf_add_us(struct outbuf *b, uint64_t ns)
{
	char *at = outbuf_room(b, DECIMAL_MAX);

	b->used += (size_t)(decimal_add_fixed(at, ns, 1000, 3) - at);
}

static inline void outbuf_add_ms(struct outbuf *b, uint64_t ns)
{
	char *at = outbuf_room(b, DECIMAL_MAX);

	b->used += (size_t)(decimal_add_fixed(at, ns, 1000000, 6) - at);
}

#define JSONW_DEPTH 32

/**
 * @out: for a file that is borrowed, and whose errors its owner checks
 * @lines: objects and arrays down to this depth have each value on a line of its own, indented; 0:
 * all on one line
 */
struct jsonw {
	struct outbuf out;
	unsigned lines;
	unsigned depth;
	bool any[JSONW_DEPTH];
	bool object[JSONW_DEPTH];
};

static inline void jsonw_init(struct jsonw *w, FILE *out, unsigned lines)
{
	outbuf_init(&w->out, out);
	w->lines = lines;
	w->depth = 0;
}

void jsonw_object(struct jsonw *w, const char *key);
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_end(struct jsonw *w); /* of the innermost object or array */

/* A text of NULL becomes null. */
void jsonw_string(struct jsonw *w, const char *key, const char *text);
void jsonw_u64(struct jsonw *w, const char *key, uint64_t value);
void jsonw_i64(struct jsonw *w, const char *key, int64_t value);
void jsonw_real(struct jsonw *w, const char *key, double value, int decimals); /* finite */
/* In µs or ms, exact to the ns. */
void jsonw_us(struct jsonw *w, const char *key, uint64_t ns);
void jsonw_ms(struct jsonw *w, const char *key, uint64_t ns);
void jsonw_hex(struct jsonw *w, const char *key, uint64_t value); /* a string, "0x1f" */
void jsonw_bool(struct jsonw *w, const char *key, bool value);
void jsonw_null(struct jsonw *w, const char *key);

/* In an array: the caller writes one value, as JSON, to the returned buffer. */
struct outbuf *jsonw_value(struct jsonw *w);
/* The text that jsonw_string() would write. The caller frees it. */
char *jsonw_quoted(const char *text);

/* Write all buffered text to the file. */
void jsonw_flush(struct jsonw *w);
/* Finish: everything must be closed; writes a newline and flushes. */
void jsonw_finish(struct jsonw *w);

#endif
