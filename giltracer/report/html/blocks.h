/* SPDX-License-Identifier: MIT */
/*
 * The bulk of the page: sections collected into blocks, each block deflated (RFC 1951), in base64
 * (RFC 4648), in a script element of its own; see share/report/FORMAT.md. One thread adds sections,
 * several pack blocks, and one writes packed blocks in order; memory is bounded by a few blocks.
 */
#ifndef GILTRACER_REPORT_HTML_BLOCKS_H
#define GILTRACER_REPORT_HTML_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"

/* Columns of unsigned LEB128 varints, of which the payload's sections are made. */

#define SECTION_MAX 65536u /* entries of a section */
#define VARINT_MAX  10     /* bytes */

/* The size of the next section, with so many entries left. */
static inline uint32_t section_size(size_t left)
{
	return left < SECTION_MAX ? (uint32_t)left : SECTION_MAX;
}

/* A full column: one value per entry. */
struct column {
	uint8_t *v, *end;
};

/* A column for values that are rarely present: their number, the entries that have them, and the
 * values. */
struct sparse {
	struct column gaps, values;
	uint32_t count, last;
};

static inline uint8_t *varint_put(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static inline void column_init(struct column *c)
{
	c->v = c->end = xcalloc(SECTION_MAX, VARINT_MAX);
}

static inline void column_done(struct column *c)
{
	free(c->v);
}

static inline void column_clear(struct column *c)
{
	c->end = c->v;
}

/* At most SECTION_MAX values between two clears. */
static inline void column_put(struct column *c, uint64_t value)
{
	c->end = varint_put(c->end, value);
}

static inline void sparse_init(struct sparse *s)
{
	column_init(&s->gaps);
	column_init(&s->values);
}

static inline void sparse_done(struct sparse *s)
{
	column_done(&s->gaps);
	column_done(&s->values);
}

static inline void sparse_clear(struct sparse *s)
{
	column_clear(&s->gaps);
	column_clear(&s->values);
	s->count = s->last = 0;
}

/* entry is the index within the section, ascending. */
static inline void sparse_put(struct sparse *s, uint32_t entry, uint64_t value)
{
	column_put(&s->gaps, entry - s->last);
	column_put(&s->values, value);
	s->last = entry;
	s->count++;
}

struct blocks;

/* workers is the number of threads that pack, in addition to the one that drains. The only error
 * is ENOMEM. */
int blocks_new(struct blocks **ret, unsigned workers, struct error *err);
void blocks_free(struct blocks *blocks);

/* Add raw bytes, a full column, or a sparse one to the present section. */
void blocks_add(struct blocks *blocks, const void *data, size_t len);
void blocks_add_column(struct blocks *blocks, const struct column *column);
void blocks_add_sparse(struct blocks *blocks, const struct sparse *sparse);

/* End the section, whose data has n entries. head: JSON members that identify the section, only
 * numbers and words of ours. */
void blocks_section(struct blocks *blocks, uint32_t n, const char *head, ...)
	__attribute__((format(printf, 3, 4)));

/* Nothing more will be added after this. */
void blocks_end(struct blocks *blocks);

/* Write the blocks to out until blocks_end. Runs in another thread than the one that adds, which
 * waits if it is too far ahead. The caller checks out for errors. */
void blocks_drain(struct blocks *blocks, FILE *out);

/* Nobody will drain: discard everything from now on. */
void blocks_cancel(struct blocks *blocks);

/* Base64 as in RFC 4648 section 4: padded, no line breaks. */

extern const char base64_alphabet[65];

/* The number of characters that encode len bytes. */
static inline size_t base64_size(size_t len)
{
	return (len + 2) / 3 * 4;
}

/* Raw deflate (RFC 1951) at high speed: by ISA-L's igzip if giltracer was built with it, else by
 * libdeflate. For lanes of GIL events, igzip takes a third of the time, for 3 % more bytes. */

struct deflater;

/* For use by one thread at a time. NULL: out of memory. */
struct deflater *deflater_new(void);
void deflater_free(struct deflater *deflater);

/* The maximum size of len bytes (less than 4 GiB) when deflated. */
size_t deflater_bound(const struct deflater *deflater, size_t len);

/* Deflate len bytes into out, which has room for bound bytes, at least deflater_bound(len). Returns
 * the deflated size. */
size_t deflater_pack(struct deflater *deflater, void *out, size_t bound, const void *data,
                     size_t len);

#endif
