/* SPDX-License-Identifier: MIT */
/* A source of events: one recording, read event by event in time order. from_perf.c makes one
 * from a perf.data; for another recorder, add a file that implements struct source_ops. */
#ifndef GILTRACER_TRACE_SOURCE_H
#define GILTRACER_TRACE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/event.h"

struct names;
struct stacks;

/* Imperfections of a recording, counted by the source and shown in the report. */
struct source_stats {
	uint64_t records; /* read, of any type */
	uint64_t samples; /* PERF_RECORD_SAMPLE among them */
	uint64_t events;  /* yielded */
	uint64_t lost;    /* missing records, as reported by the kernel (LOST, LOST_SAMPLES) or the
	                   * preloaded library */
	uint64_t unknown_records; /* of unknown types, skipped */
	uint64_t unordered;       /* came after an event of a later time had been yielded */
	uint64_t leftover_bytes;  /* after the known fields of known records */
	uint64_t truncated_at;    /* offset at which a file is truncated or corrupt, or 0 */
	char truncated_text[256]; /* the reason */
	uint64_t unfinished;      /* files of the preloaded library that are incomplete */
	uint64_t bytes;           /* size of the file */
};

struct source;

struct source_ops {
	/* Returns 1 with *ret set, 0 at the end, or a negative value with err set and *ret
	 * undefined. */
	int (*next)(struct source *source, struct event *ret, struct error *err);
	void (*close)(struct source *source);
	/* See source_stack_at; NULL: no such stacks. */
	uint32_t (*stack_at)(struct source *source, uint64_t record);
};

/**
 * The first member of each kind of source.
 * @names: names of threads, counters and frames; owned by the source
 * @stacks: NULL if the source never has stacks; owned by the source
 * @frames: Python frames of GIL events (struct event.gil.frame); owned by the source
 * @counters: names of perf counters by EV_COUNT index; owned, counter_count of them. Complete at the end
 * @by_perf: perf watched the program, which delays the starts of its threads
 * @cpu_names: names in EV_PICK, complete at the end; NULL: none. Owned
 * @stats: complete at the end
 * @at, @end: events that source_next yields before it asks ops for more; borrowed from the source
 */
struct source {
	const struct source_ops *ops;
	struct names *names;
	struct stacks *stacks;
	struct stacks *frames;
	const struct names *cpu_names;
	const char **counters;
	uint32_t counter_count;
	bool by_perf;
	struct source_stats stats;
	const struct event *at, *end;
};

/* The next event, not copied, if it is available without a call of source_next; else NULL. Valid
 * until the next call. */
static inline const struct event *source_ready(struct source *source)
{
	return source->at < source->end ? source->at++ : NULL;
}

static inline int source_next(struct source *source, struct event *ret, struct error *err)
{
	const struct event *ready = source_ready(source);

	if (ready) {
		*ret = *ready;
		return 1;
	}
	return source->ops->next(source, ret, err);
}

/* The stack of an EV_STACK that was not unwound, by its record: id in source->stacks, 0 if there
 * is none. Only after the last event, because it uses the mappings as they were at the end. */
static inline uint32_t source_stack_at(struct source *source, uint64_t record)
{
	return source->ops->stack_at ? source->ops->stack_at(source, record) : 0;
}

static inline void source_close(struct source *source)
{
	if (source)
		source->ops->close(source);
}

#endif
