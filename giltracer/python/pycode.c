/* SPDX-License-Identifier: MIT */
/* Code objects of a traced Python process: finds them, and the lines of instructions. */
#include "python/pycode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/filemap.h"
#include "base/cursor.h"

#define MAGIC      "GTCODES1"
#define ENTRY_SIZE (8 + 4 + 4 + 4 + 4) /* without its texts */

struct pycode {
	struct filemap map; /* of the file; empty if the data is in memory */
	const uint8_t *data;
	size_t size;
	unsigned minor;
	uint32_t base;
	struct pycode_entry *entries; /* by address */
	size_t count;
};

static int compare_entries(const void *a, const void *b)
{
	const struct pycode_entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address > y->address ? 1 : -1;
	return (x->first_line > y->first_line) - (x->first_line < y->first_line);
}

static const void *read_text(struct cursor *c, uint32_t *ret_len)
{
	*ret_len = cursor_u32(c);
	return cursor_bytes(c, *ret_len);
}

static int read_entries(struct pycode *pycode, struct cursor *c, uint64_t count, struct error *err)
{
	if (count > cursor_left(c) / ENTRY_SIZE)
		return error_set(err, EINVAL, "%" PRIu64 " code objects do not fit in the file",
		                 count);
	pycode->entries = xcalloc(count, sizeof(*pycode->entries));
	for (; pycode->count < count; pycode->count++) {
		struct pycode_entry *e = &pycode->entries[pycode->count];
		size_t at = (size_t)(c->p - pycode->data);

		e->address = cursor_u64(c);
		e->first_line = cursor_u32(c);
		e->name = read_text(c, &e->name_len);
		e->file = read_text(c, &e->file_len);
		e->table = read_text(c, &e->table_len);
		if (c->bad)
			return error_set(err, EINVAL, "code object at %#zx: cut", at);
	}
	qsort(pycode->entries, pycode->count, sizeof(*pycode->entries), compare_entries);
	return 0;
}

static int read_file(struct pycode *pycode, struct error *err)
{
	struct cursor c = cursor_make(pycode->data, pycode->size);
	const uint8_t *magic = cursor_bytes(&c, strlen(MAGIC));
	unsigned major = cursor_u8(&c);
	uint64_t count;

	pycode->minor = cursor_u8(&c);
	cursor_skip(&c, 2);
	pycode->base = cursor_u32(&c);
	count = cursor_u64(&c);
	if (c.bad || memcmp(magic, MAGIC, strlen(MAGIC)) || major != 3)
		return error_set(err, EINVAL, "not a list of code objects");
	return read_entries(pycode, &c, count, err);
}

int pycode_open(struct pycode **ret, const char *path, struct error *err)
{
	CLEANUP(pycode_close) struct pycode *pycode = xcalloc(1, sizeof(*pycode));

	if (filemap_open(&pycode->map, path, err) < 0)
		return -1;
	pycode->data = pycode->map.data;
	pycode->size = pycode->map.size;
	if (read_file(pycode, err) < 0)
		return filemap_check(&pycode->map, err) < 0 ? -1 : error_prefix(err, "%s", path);
	*ret = take(pycode);
	return 0;
}

int pycode_open_memory(struct pycode **ret, const void *data, size_t size, struct error *err)
{
	CLEANUP(pycode_close) struct pycode *pycode = xcalloc(1, sizeof(*pycode));

	pycode->data = data;
	pycode->size = size;
	if (read_file(pycode, err) < 0)
		return -1;
	*ret = take(pycode);
	return 0;
}

void pycode_close(struct pycode *pycode)
{
	if (!pycode)
		return;
	filemap_done(&pycode->map);
	free(pycode->entries);
	free(pycode);
}

size_t pycode_count(const struct pycode *pycode)
{
	return pycode->count;
}

const struct pycode_entry *pycode_get(const struct pycode *pycode, size_t index)
{
	return &pycode->entries[index];
}

const struct pycode_entry *pycode_find(const struct pycode *pycode, uint64_t address,
                                       uint32_t first_line)
{
	const struct pycode_entry key = { .address = address, .first_line = first_line };
	const struct pycode_entry *e = bsearch(&key, pycode->entries, pycode->count,
	                                       sizeof(*pycode->entries), compare_entries);

	return e;
}

uint32_t pycode_line(const struct pycode *pycode, const struct pycode_entry *entry,
                     uint64_t instruction)
{
	int64_t offset;

	if (pycode->base)
		offset = (int64_t)(instruction - entry->address - pycode->base);
	else
		offset = (int32_t)(uint32_t)instruction;
	if (offset > INT32_MAX)
		return 0;
	if (pycode->minor == 10 && offset > 0)
		offset *= 2; /* counted in code units */
	return pycode_table_line(pycode->minor, entry->first_line, entry->table, entry->table_len,
	                         offset);
}

/* Up to 3.9: pairs of (bytes to the next line, lines; signed). */
static uint32_t lnotab_line(int64_t line, struct cursor c, int64_t offset)
{
	int64_t at = 0;

	while (cursor_left(&c) >= 2) {
		at += cursor_u8(&c);
		if (at > offset)
			break;
		line += (int8_t)cursor_u8(&c);
	}
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

/* 3.10: pairs of (bytes of this range, difference of lines; signed, -128: no line). */
static uint32_t linetable_line(int64_t line, struct cursor c, int64_t offset)
{
	int64_t end = 0;

	while (cursor_left(&c) >= 2) {
		int8_t delta;

		end += cursor_u8(&c);
		delta = (int8_t)cursor_u8(&c);
		if (delta != -128)
			line += delta;
		if (offset < end)
			return delta != -128 && line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
	}
	return 0;
}

static uint64_t read_varint(struct cursor *c)
{
	uint64_t value = 0;

	/* Six bits per byte; the seventh is set if more follow. */
	for (unsigned shift = 0; shift < 64; shift += 6) {
		uint8_t byte = cursor_u8(c);

		value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t read_svarint(struct cursor *c)
{
	uint64_t value = read_varint(c);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum location_code {
	LOCATION_SHORT_LAST = 9, /* one byte of columns, same line */
	LOCATION_ONE_LINE = 10,
	LOCATION_ONE_LAST = 12, /* two bytes of columns, 0 to 2 lines later */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Reads one entry of the 3.11 table and adds to *line; false if its code has no line. */
static bool read_location(struct cursor *c, unsigned code, int64_t *line)
{
	if (code == LOCATION_NONE)
		return false;
	if (code <= LOCATION_SHORT_LAST) {
		cursor_skip(c, 1);
	} else if (code <= LOCATION_ONE_LAST) {
		*line += code - LOCATION_ONE_LINE;
		cursor_skip(c, 2);
	} else {
		if (__builtin_add_overflow(*line, read_svarint(c), line))
			c->bad = true;
		if (code == LOCATION_LONG)
			for (int i = 0; i < 3; i++) /* end line, column, end column */
				read_varint(c);
	}
	return true;
}

/* 3.11 and later: entries of (number of code units, difference of lines). */
static uint32_t location_line(int64_t line, struct cursor c, int64_t offset)
{
	int64_t end = 0;

	while (cursor_left(&c)) {
		uint8_t first = cursor_u8(&c);
		bool known;

		end += 2 * ((first & 7) + 1);
		known = read_location(&c, (first >> 3) & 15, &line);
		if (c.bad || line < INT32_MIN || line > INT32_MAX)
			return 0;
		if (offset < end)
			return known && line > 0 ? (uint32_t)line : 0;
	}
	return 0;
}

uint32_t pycode_table_line(unsigned minor, uint32_t first_line, const uint8_t *table, size_t len,
                           int64_t offset)
{
	const struct cursor c = cursor_make(table, len);

	if (offset < 0)
		return first_line;
	if (minor < 10)
		return lnotab_line(first_line, c, offset);
	if (minor == 10)
		return linetable_line(first_line, c, offset);
	return location_line(first_line, c, offset);
}
