/* SPDX-License-Identifier: MIT */
/*
 * Who has the GIL and who waits for it, interval by interval, while a program runs. From the page of
 * totals where the program was started with the library that keeps one: those times are exact, also
 * for which group of threads a thread waits. What runs, and without such a page everything, is
 * estimated from samples.
 */
#ifndef GILTRACER_LIVE_USAGE_H
#define GILTRACER_LIVE_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "live/keep.h"
#include "locate/python.h"

enum usage_holder_kind {
	USAGE_GROUP,  /* of threads */
	USAGE_NOBODY, /* the GIL was free */
	USAGE_OTHERS, /* threads that have no group of their own in the page */
};

/**
 * For whom a thread waited.
 * @name: of a group: its threads' with "*" for the digits, any bytes
 * @percent: of the interval, exact
 */
struct usage_holder {
	enum usage_holder_kind kind;
	char name[64];
	double percent;
};

/**
 * A thread in an interval.
 * @name: any bytes
 * @has, @waits: percent of the interval; exact or estimated, as struct usage says
 * @runs, @sleeps: percent of the samples in which it was runnable, or asleep, without the GIL
 * @for_tid: whom it was seen to wait for most often; 0: nobody
 * @holders: only if exact: they add up to waits, the greatest first
 * @gil_of: the number of the interpreter whose GIL it is, as it was last seen; 0: the main one
 * @function, @file, @line: what it was seen to run most often, with the GIL if it had it; function
 * NULL: not known
 */
struct usage_thread {
	uint32_t tid;
	char name[64];
	double has, waits, runs, sleeps;
	uint32_t for_tid, gil_of;
	VEC(struct usage_holder) holders;
	char *function, *file;
	uint32_t line;
};

/**
 * @time_ns: its end, CLOCK_MONOTONIC; @interval_ns: how long it was
 * @exact: has, waits and holders are
 * @samples: how many there were of the stacks
 * @free: percent of the interval in which no thread had the GIL; of several, the one that was held
 * longest
 * @gils: how many there were, as was last seen
 * @threads: those that had the GIL or waited most first
 */
struct usage {
	uint64_t time_ns, interval_ns;
	bool exact;
	unsigned samples;
	uint32_t gils;
	double free;
	VEC(struct usage_thread) threads;
};

/* { 0 } is an empty one. */
void usage_done(struct usage *usage);

struct usage_source;

/* Errors: those of target_open. Close with usage_close. */
int usage_open(struct usage_source **ret, pid_t pid, struct error *err);
void usage_close(struct usage_source *source);

/* From now on samples are kept, see live/keep.h. To be called once at most. */
void usage_keep(struct usage_source *source, const struct keep_plan *plan);

/* The samples that are kept, NULL if none are; and the interpreter. Borrowed until the next
 * usage_end. */
struct keep *usage_kept(const struct usage_source *source);
const struct python *usage_python(const struct usage_source *source);

/* Take a sample for the current interval. ESRCH: the process has ended. */
int usage_sample(struct usage_source *source, struct error *err);

/* End the interval and begin another one. ret is overwritten and keeps its memory. */
void usage_end(struct usage_source *source, struct usage *ret);

DEFINE_CLEANUP(struct usage_source *, usage_close);

#endif
