/* SPDX-License-Identifier: MIT */
/*
 * Results of sampling: in how many samples a thread had the GIL, waited for it, or did something
 * else, and where. These are counts of samples, never times; shares of them are estimates.
 */
#ifndef GILTRACER_ANALYSIS_SAMPLED_H
#define GILTRACER_ANALYSIS_SAMPLED_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/facts.h"
#include "base/vec.h"

/* What a thread was doing. */
enum sampled_what {
	SAMPLED_HOLDS,   /* has the GIL */
	SAMPLED_WAITS,   /* waits for it */
	SAMPLED_RUNNING, /* runs or is runnable without the GIL, or it is not known whether it has
	                  * it */
	SAMPLED_LOCK,    /* this and the following as in enum sample_activity */
	SAMPLED_NETWORK,
	SAMPLED_POLL,
	SAMPLED_FILE,
	SAMPLED_SLEEP,
	SAMPLED_CHILD,
	SAMPLED_OTHER,
	SAMPLED_UNKNOWN,
	SAMPLED_WHATS,
};

enum sampled_what sampled_what_of(const struct sample_run *run);

/* Stable names for JSON: "holds", "waits", "running", … */
const char *sampled_what_name(enum sampled_what what);

/* @thread: index in the model, or MODEL_NONE; @of: index in the samples' threads */
struct sampled_thread {
	uint32_t thread, of;
	uint64_t samples, what[SAMPLED_WHATS];
};

/**
 * A place in the program where threads were doing something.
 * @name, @file: of the function that ran, ids in the samples' names; @line: its most frequent line
 * @caller, @caller_file, @caller_line: likewise, the innermost function outside Python's own
 * library; caller 0: that is the function itself, or there is none
 * @thread, @last_thread: the first and the last thread, indices in the samples' threads; @threads:
 * their number
 * @votes: counter for finding line
 * @waiters: SAMPLED_HOLDS: number of threads that waited meanwhile, summed over the samples
 */
struct sampled_place {
	uint32_t name, file, line, caller, caller_file, caller_line;
	enum sampled_what what;
	uint32_t thread, last_thread, threads;
	uint64_t samples, waiters, votes;
};

/* @gil_of: number of the interpreter that it belongs to; @held: samples in which a thread had it */
struct sampled_gil {
	uint32_t pid, gil_of;
	uint64_t held;
};

/**
 * @samples: number of samples; @thread_samples: number of threads in them, summed
 * @what: sum over all threads
 * @held: samples in which a thread had a GIL; @busiest: index in threads of the thread that had it
 * most often, or MODEL_NONE
 * @gils: the GILs that a thread had or waited for
 * @threads: most waiting first, then most holding; @places: most samples first
 */
struct sampled {
	uint64_t samples, thread_samples, what[SAMPLED_WHATS], held;
	uint32_t busiest;
	VEC(struct sampled_gil) gils;
	VEC(struct sampled_thread) threads;
	VEC(struct sampled_place) places;
};

/* The samples of a pass; all zero if it has none. Free with sampled_done. */
struct sampled sampled_find(const struct recording_pass *pass);
void sampled_done(struct sampled *sampled);

/* A stack of Python frames (0: none) and what the thread was doing meanwhile, in a number of
 * samples. @torn: there is no stack because it could not be read */
struct sampled_stack {
	uint32_t stack;
	enum sampled_what what;
	bool torn;
	uint64_t samples;
};

struct sampled_stacks {
	VEC(struct sampled_stack) v;
};

/* The stacks of one thread, in the order in which they were first seen. Free with
 * vec_done(&ret.v). */
struct sampled_stacks sampled_stacks_of(const struct samples *samples,
                                        const struct sample_thread *thread);

/* The model's thread that the samples are of, found by its pid, its tid and the time of its first
 * sample. */
uint32_t sampled_model_thread(const struct recording_pass *pass,
                              const struct sample_thread *thread);

#endif
