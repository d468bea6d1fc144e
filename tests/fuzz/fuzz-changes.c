/* SPDX-License-Identifier: MIT */
/*
 * A recording that its owner changes while it is read. The first byte chooses the reader, the second
 * one the number of changes, which follow: where (16 bits, a fraction of the size) and what (a byte
 * that is XORed). The rest is the recording. First, each event that is read is followed by a
 * change, so that the same input does the same; then another thread makes all changes over and
 * over.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "perfdata/print.h"
#include "perfdata/reader.h"
#include "trace/calls/from_calls.h"
#include "trace/perf/from_perf.h"
#include "trace/preload/from_preload.h"
#include "trace/print.h"
#include "python/pycode.h"
#include "trace/samples.h"

#define CHANGE    3 /* bytes */
#define LOG_BYTES 2 /* of the length of the log, before it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/**
 * @data: of exactly size bytes, so that the address sanitizer finds what is read beyond it
 * @changes: count of them
 * @next: the change to make next
 */
struct recording {
	uint8_t *data;
	size_t size, count, next;
	const uint8_t *changes;
	atomic_bool stop;
};

static void change(struct recording *r)
{
	const uint8_t *c;
	volatile uint8_t *at;

	if (!r->count || !r->size)
		return;
	c = r->changes + r->next++ % r->count * CHANGE;
	at = r->data + (c[0] | (size_t)c[1] << 8) * r->size / 65536;
	*at = *at ^ c[2];
}

static void *change_on(void *data)
{
	struct recording *r = data;

	while (!atomic_load_explicit(&r->stop, memory_order_relaxed))
		change(r);
	return NULL;
}

/* A recording has at most one event for each byte: more are a loop without end. */
static void read_events(struct recording *r, struct source *source, bool changes)
{
	struct error err;
	struct event ev;
	size_t n = 0;

	while (source_next(source, &ev, &err) > 0) {
		if (n++ > 64 * r->size)
			abort();
		if (changes)
			change(r);
	}
	source_close(source);
}

static void read_perf(struct recording *r, bool changes)
{
	const struct from_perf_options options = { .unwind = true };
	struct source *source;
	struct error err;

	if (from_perf_open_memory(&source, r->data, r->size, &options, &err) == 0)
		read_events(r, source, changes);
}

static void print_perf(struct recording *r, bool changes)
{
	static FILE *out;
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	struct perfdata_record rec;
	struct error err;

	if (!out)
		out = fopen("/dev/null", "we");
	if (!out || perfdata_open_memory(&pd, r->data, r->size, &err) < 0)
		return;
	while (perfdata_next(pd, &rec)) {
		if (changes)
			change(r);
		print_record(out, perfdata_header(pd), &rec);
	}
	print_header(out, perfdata_header(pd));
}

/* The log ends where the first two bytes say. */
static const uint8_t *split(const struct recording *r, size_t *ret_log)
{
	uint16_t len = 0;

	if (r->size < LOG_BYTES)
		return NULL;
	memcpy(&len, r->data, sizeof(len));
	*ret_log = len < r->size - LOG_BYTES ? len : r->size - LOG_BYTES;
	return r->data + LOG_BYTES;
}

static void read_preload(struct recording *r, bool changes)
{
	size_t log = 0;
	const uint8_t *at = split(r, &log);
	struct source *source;
	struct error err;

	if (at && from_preload_open_memory(&source, at, log, at + log, r->size - LOG_BYTES - log,
	                                   &err) == 0)
		read_events(r, source, changes);
}

static void read_calls(struct recording *r, bool changes)
{
	const struct from_calls_options options = { 0 };
	size_t log = 0;
	const uint8_t *at = split(r, &log);
	struct slices *slices;
	struct error err;

	(void)changes;
	if (at && from_calls_read_memory(&slices, at, log, at + log, r->size - LOG_BYTES - log,
	                                 &options, &err) == 0)
		slices_free(slices);
}

static void read_samples(struct recording *r, bool changes)
{
	struct samples *samples;
	struct error err;

	(void)changes;
	if (samples_parse(&samples, r->data, r->size, NULL, &err) == 0)
		samples_close(samples);
}

static void read_codes(struct recording *r, bool changes)
{
	struct pycode *codes;
	struct error err;

	if (pycode_open_memory(&codes, r->data, r->size, &err) < 0)
		return;
	for (size_t i = 0; i < pycode_count(codes); i++) {
		if (changes)
			change(r);
		for (uint64_t at = 0; at < 64; at += 8)
			pycode_line(codes, pycode_get(codes, i),
			            pycode_get(codes, i)->address + at);
	}
	pycode_close(codes);
}

static void read_recording(const uint8_t *data, size_t size, bool at_once)
{
	static void (*const readers[])(struct recording * r, bool changes) = {
		read_perf, print_perf, read_preload, read_calls, read_samples, read_codes,
	};
	struct recording r = { .count = data[1], .changes = data + 2 };
	size_t head = 2 + r.count * CHANGE;
	pthread_t writer;

	if (size < head)
		return;
	r.size = size - head;
	r.data = xcalloc(1, r.size ? r.size : 1);
	memcpy(r.data, data + head, r.size);
	if (!at_once) {
		readers[data[0] % (sizeof(readers) / sizeof(*readers))](&r, true);
	} else if (pthread_create(&writer, NULL, change_on, &r) == 0) {
		readers[data[0] % (sizeof(readers) / sizeof(*readers))](&r, false);
		atomic_store(&r.stop, true);
		pthread_join(writer, NULL);
	}
	free(r.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	read_recording(data, size, false);
	read_recording(data, size, true);
	return 0;
}
