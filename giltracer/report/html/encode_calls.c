/* SPDX-License-Identifier: MIT */
/* Encodes names, calls and stacks into sections. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "report/html/encoder.h"
#include "base/utf8.h"
#include "trace/stacks.h"

#define NAMES_BYTES (1 << 20) /* of text after which a section of names is closed */

/* Adds length and bytes, with invalid UTF-8 replaced. Returns the number of bytes added. */
static size_t add_text(struct encoder *e, const char *text)
{
	CLEANUP(str_done) struct str clean = { 0 };
	uint8_t len[VARINT_MAX];
	uint32_t cp;

	while ((cp = utf8_next(&text)))
		utf8_add(&clean, cp);
	blocks_add(e->blocks, len, (size_t)(varint_put(len, clean.len) - len));
	blocks_add(e->blocks, str_get(&clean), clean.len);
	return clean.len;
}

/* Names by id, or those that ids lists. */
void encode_names(struct encoder *e, const char *table, const struct names *names,
                  const uint32_t *ids, uint32_t count)
{
	uint32_t start = 0;
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		bytes += add_text(e, names_get(names, ids ? ids[i] : i));
		if (i + 1 < count && i + 1 - start < SECTION_MAX && bytes < NAMES_BYTES)
			continue;
		blocks_section(
			e->blocks, i + 1 - start,
			"\"kind\":\"names\",\"pass\":%zu,\"table\":\"%s\",\"start\":%" PRIu32,
			e->index, table, start);
		start = i + 1;
		bytes = 0;
	}
}

static void flush_row(struct encoder *e, uint32_t thread, unsigned depth, uint32_t n)
{
	encoder_full(e, 3);
	encoder_sparse(e, 1);
	blocks_section(e->blocks, n,
	               "\"kind\":\"slices\",\"pass\":%zu,\"thread\":%" PRIu32 ",\"depth\":%u",
	               e->index, thread, depth);
	encoder_clear(e);
}

/* Writes the calls of one depth, whose indices are in members. */
static void put_row(struct encoder *e, const struct slice_thread *st, uint32_t thread,
                    unsigned depth, const uint32_t *members, size_t count)
{
	uint64_t end = 0, before = e->model->start_ns, start;
	uint32_t n = 0;

	encoder_clear(e);
	for (size_t i = 0; i < count; i++) {
		const struct slice *slice = &st->v[members[i]];

		if (!rows_fits(e->rows, slice, &end, &start))
			continue;
		column_put(&e->full[0], start - before);
		column_put(&e->full[1], end - start);
		column_put(&e->full[2], e->rows->rank[slice->name]);
		if (slice->flags)
			sparse_put(&e->sparse[0], n, slice->flags);
		before = end;
		if (++n == SECTION_MAX) {
			flush_row(e, thread, depth, n);
			n = 0;
			before = e->model->start_ns;
		}
	}
	if (n)
		flush_row(e, thread, depth, n);
}

/* Sorts by depth, keeping the order of time, and writes one row after the other. */
static void put_thread_slices(struct encoder *e, const struct slice_thread *st, uint32_t thread)
{
	size_t depths = (size_t)st->max_depth + 1;
	CLEANUP(free) size_t *starts = xcalloc(depths + 1, sizeof(*starts));
	CLEANUP(free) size_t *fill = xcalloc(depths, sizeof(*fill));
	CLEANUP(free) uint32_t *members = xcalloc(st->n + 1, sizeof(*members));

	for (size_t i = 0; i < st->n; i++)
		starts[st->v[i].depth + 1]++;
	for (size_t d = 0; d < depths; d++) {
		starts[d + 1] += starts[d];
		fill[d] = starts[d];
	}
	for (size_t i = 0; i < st->n; i++)
		members[fill[st->v[i].depth]++] = (uint32_t)i;
	for (size_t d = 0; d < depths; d++)
		put_row(e, st, thread, (unsigned)d, members + starts[d], starts[d + 1] - starts[d]);
}

void encode_slices(struct encoder *e)
{
	const struct slices *slices = e->rows->slices;

	if (!slices)
		return;
	encode_names(e, "slices", slices->names, e->rows->names, e->rows->name_count);
	for (size_t i = 0; i < slices->thread_count; i++)
		if (e->rows->threads[i] != MODEL_NONE)
			put_thread_slices(e, &slices->threads[i], e->rows->threads[i]);
}

/* n frames from id from on; on the page, their ids are larger by shift. */
static void stack_section(struct encoder *e, const struct stacks *stacks, uint32_t from, uint32_t n,
                          uint32_t shift)
{
	encoder_clear(e);
	for (uint32_t id = from; id < from + n; id++) {
		const struct stack_frame *frame = stacks_get(stacks, id);

		column_put(&e->full[0], frame->parent ? id - frame->parent : 0);
		column_put(&e->full[1], frame->name);
		column_put(&e->full[2], frame->module);
		column_put(&e->full[3], frame->line);
		column_put(&e->full[4], frame->flags);
	}
	encoder_full(e, 5);
	blocks_section(e->blocks, n, "\"kind\":\"stacks\",\"pass\":%zu,\"start\":%" PRIu32,
	               e->index, from + shift);
}

static void put_tree(struct encoder *e, const struct stacks *stacks, uint32_t shift)
{
	uint32_t count = stacks ? stacks_count(stacks) : 1;

	for (uint32_t from = 1; from < count; from += SECTION_MAX)
		stack_section(e, stacks, from, section_size(count - from), shift);
}

void encode_stacks(struct encoder *e)
{
	const struct source *source = e->pass->source;
	uint32_t shift = encoder_frames_shift(source);

	if (!shift && (!source || !source->frames || stacks_count(source->frames) <= 1))
		return;
	encode_names(e, "stacks", source->names, NULL, names_count(source->names));
	put_tree(e, source->stacks, 0);
	put_tree(e, source->frames, shift);
}
