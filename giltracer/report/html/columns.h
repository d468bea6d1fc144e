/* SPDX-License-Identifier: MIT */
/* Columns of unsigned LEB128 varints, of which the payload's sections are made. */
#ifndef GILTRACER_REPORT_HTML_COLUMNS_H
#define GILTRACER_REPORT_HTML_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

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

#endif
