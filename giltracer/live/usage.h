/* SPDX-License-Identifier: MIT */
/*
 * Who holds the GIL and who waits for it, interval by interval, while a program runs. If the
 * program was started with a library that keeps a page of totals, these times are exact, including
 * the group of threads that each thread waits for. The functions, and everything if there is no
 * such page, are estimated from samples.
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
#include "python/python.h"

enum usage_holder_kind {
	USAGE_GROUP,  /* of threads */
	USAGE_NOBODY, /* the GIL was free */
	USAGE_OTHERS, /* threads without a group of their own in the page */
};

/**
 * A group of threads that a thread waited for.
 * @name: of its threads, with "*" for the digits, any bytes
 * @percent: of the interval, exact
 */
struct usage_holder {
	enum usage_holder_kind kind;
	char name[64];
	double percent;
};

/**
 * A thread in an interval.
 * @own_tid: in the program's own namespace; @name: any bytes
 * @has, @waits: percent of the interval; exact or estimated, see struct usage
 * @runs, @sleeps: percent of the samples in which it was runnable, or asleep, without the GIL
 * @for_tid: the thread that it waited for in most samples; 0: none
 * @holders: only if exact: the sum is waits, the greatest first
 * @gil_of: the number of the interpreter with the GIL last seen; 0: the main one
 * @function, @file, @line: seen most often, with the GIL if it ever held that; function NULL:
 * unknown
 * @lock: for which it waited in the last sample, as in its source; NULL: for none, as far as known
 * @lock_tid: the thread that had it; 0: unknown; @lock_inferred: from the source
 */
struct usage_thread {
	uint32_t tid, own_tid;
	char name[64];
	double has, waits, runs, sleeps;
	uint32_t for_tid, gil_of;
	VEC(struct usage_holder) holders;
	char *function, *file;
	uint32_t line;
	char *lock;
	uint32_t lock_tid;
	bool lock_inferred;
};

/**
 * @time_ns: end of the interval, CLOCK_MONOTONIC; @interval_ns: its length
 * @exact: has, waits and holders are exact
 * @samples: how often the stacks were sampled
 * @free: percent of the interval in which no thread had the GIL; of several GILs, the one that was
 * held longest
 * @gils: number of GILs last seen
 * @threads: those with the most holding and waiting first, then those that run most
 */
struct usage {
	uint64_t time_ns, interval_ns;
	bool exact;
	unsigned samples;
	uint32_t gils;
	double free;
	VEC(struct usage_thread) threads;
};

/* { 0 } is empty. */
void usage_done(struct usage *usage);

struct usage_source;

/* Errors: those of target_open. Close with usage_close. */
int usage_open(struct usage_source **ret, pid_t pid, struct error *err);
void usage_close(struct usage_source *source);

/* Keep samples from now on, see live/keep.h. To be called at most once. */
void usage_keep(struct usage_source *source, const struct keep_plan *plan);

/* The kept samples, NULL if none are kept; and the interpreter. Borrowed until the next
 * usage_end. */
struct keep *usage_kept(const struct usage_source *source);
const struct python *usage_python(const struct usage_source *source);

/* Take a sample for the current interval. ESRCH: the process has ended. */
int usage_sample(struct usage_source *source, struct error *err);

/* End the interval and begin another one. ret is overwritten and its memory reused. */
void usage_end(struct usage_source *source, struct usage *ret);

DEFINE_CLEANUP(struct usage_source *, usage_close);

#endif
