/* SPDX-License-Identifier: MIT */
/* The Python calls of a trace, for each thread: which function ran when. */
#ifndef GILTRACER_TRACE_SLICES_H
#define GILTRACER_TRACE_SLICES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/idmap.h"

struct names;
struct privacy;
struct aio;

/* One call; ends at start_ns + dur_ns. CLOCK_MONOTONIC, ns. */
struct slice {
	uint64_t start_ns;
	uint64_t dur_ns;
	uint32_t name;  /* id in struct slices.names */
	uint16_t depth; /* 0: outermost */
	uint16_t flags;
};

enum slice_flags {
	SLICE_OPEN = 1 << 0, /* the trace ended before the call did */
};

/* Calls of one thread, by start time, an outer call before the inner one that starts with it. */
struct slice_thread {
	uint32_t pid, tid;
	uint32_t name; /* the trace's name for the thread; 0: unnamed */
	uint16_t max_depth;
	uint64_t recorded; /* number of calls, including omitted ones; 0: unknown */
	struct slice *v;
	size_t n;
};

/* A garbage collection of a millisecond or more. */
struct slice_collection {
	uint32_t pid, tid;
	uint64_t start_ns, end_ns;
};

enum slices_flaw {
	SLICES_WHOLE,
	SLICES_OVERFLOW,    /* the tracer's buffer overflowed: its oldest calls are missing */
	SLICES_DROPPED,     /* calls without a usable time are missing */
	SLICES_CUT,         /* there was no more room, and the last calls are missing */
	SLICES_UNRECORDED,  /* recording could not start in interpreters: calls are missing */
	SLICES_ASIDE,       /* calls are missing of threads that the program profiled itself */
	SLICES_OVERLAPPING, /* calls outlast their caller */
	SLICES_AFRESH,      /* calls are missing of processes that the program started afresh */
};

/**
 * @tasks: of event loops; NULL: none
 * @by_id: pid and tid -> thread, see slices_find; empty if it was not made
 * @collections: collection_count of them, in no order; NULL: none
 * @dropped: calls without a usable time, and ends of calls that never began
 * @total: all calls, including dropped ones
 * @call_cost_ps: estimated time to record a call; 0: unknown
 * @flaw: the worst one; @flawed: its count; 0 if unknown, as for an overflow
 */
struct slices {
	struct names *names;
	struct slice_thread *threads;
	size_t thread_count;
	struct aio *tasks;
	struct slice_collection *collections;
	size_t collection_count;
	struct idmap by_id;
	uint64_t total;
	uint64_t dropped;
	uint64_t call_cost_ps;
	enum slices_flaw flaw;
	uint64_t flawed;
};

/*
 * Read VizTracer's JSON (Chrome trace events, "ts" and "dur" in µs with decimals) in one streaming
 * pass. base_ns is added to each time (0 if the file's clock is CLOCK_MONOTONIC). privacy: for the names,
 * borrowed until slices_free; NULL: nothing is hidden. A corrupt file is an error that names the byte
 * offset. The caller frees it with slices_free.
 */
int from_viztracer_read(struct slices **ret, const char *path, int64_t base_ns,
                        const struct privacy *privacy, struct error *err);

void slices_free(struct slices *slices);
DEFINE_CLEANUP(struct slices *, slices_free);

/* The calls of a thread; NULL if it has none, or slices is NULL. */
struct slice_thread *slices_find(const struct slices *slices, uint32_t pid, uint32_t tid);

/*
 * For readers: sort a thread's calls and set their depths. Calls that overlap without one
 * containing the other are kept, the later one a row below. Returns the number of the later ones. v
 * is malloced and may move.
 */
uint64_t slice_thread_finish(struct slice_thread *thread);

#endif
