/* SPDX-License-Identifier: MIT */
/* Any bytes are read as a perf.data by the real reader, sorted, turned into events, and printed. */
#include <stdio.h>
#include <stdlib.h>

#include "perfdata/print.h"
#include "perfdata/reader.h"
#include "trace/perf/from_perf.h"
#include "trace/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_all(FILE *out, const uint8_t *data, size_t size)
{
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	struct perfdata_record rec;
	struct error err;
	uint64_t last = 0;

	if (perfdata_open_memory(&pd, data, size, &err) < 0)
		return;
	while (perfdata_next(pd, &rec)) {
		if (rec.offset < last || rec.offset + rec.size > size)
			abort();
		last = rec.offset + rec.size;
		print_record(out, perfdata_header(pd), &rec);
	}
	print_header(out, perfdata_header(pd));
}

static void read_events(FILE *out, const uint8_t *data, size_t size)
{
	const struct from_perf_options options = { .unwind = true };
	struct source *source;
	struct event ev;
	struct error err;
	uint64_t last_ns = 0;

	if (from_perf_open_memory(&source, data, size, &options, &err) < 0)
		return;
	while (source_next(source, &ev, &err) > 0) {
		if (ev.time_ns < last_ns)
			abort();
		if (ev.type == EV_COUNT && ev.count.counter >= source->counter_count)
			abort();
		if (ev.type == EV_LOST && ev.lost.since_ns > ev.time_ns)
			abort();
		last_ns = ev.time_ns;
		print_event(out, source, &ev);
	}
	print_source_stats(out, source);
	source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *out;

	if (!out)
		out = fopen("/dev/null", "we");
	if (!out)
		abort();
	print_all(out, data, size);
	read_events(out, data, size);
	return 0;
}
