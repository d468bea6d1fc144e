/* SPDX-License-Identifier: MIT */
/*
 * Collects small pieces of output and writes them in large blocks, because a call of stdio for each
 * piece costs more than producing the piece. Errors remain in the stream's error flag.
 */
#ifndef GILTRACER_BASE_OUTBUF_H
#define GILTRACER_BASE_OUTBUF_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

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

#endif
