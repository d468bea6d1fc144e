/* SPDX-License-Identifier: MIT */
/* Numbers and names that several parts of the analysis, and writers, have in common. */
#ifndef GILTRACER_ANALYSIS_FACTS_H
#define GILTRACER_ANALYSIS_FACTS_H

#include "analysis/recording.h"

/**
 * Percentages of a thread's life. The unknown is a share of the whole life; the other four are
 * shares of the known part, and so add up to 100 whatever was lost. The estimated costs of the
 * probes and of recording calls are shares of the known part, too, and are included in the others.
 * 0 for an empty life.
 */
struct facts_shares {
	double no_gil, hold, wait, free_wait;
	double unknown, probes, calls;
};

struct facts_shares facts_shares(const struct model_thread *thread);

/* Percentages of a thread's life by CPU state; the unknown is a share of the whole life, the others
 * are shares of the known part. */
struct facts_states {
	double percent[CPU_STATES];
};

struct facts_states facts_states(const struct model_thread *thread);

/* Whether recording calls cost a thread so much that probes would get a caveat for it. */
bool facts_calls_matter(const struct model *model);

/* part as a percentage of whole; 0 if whole is 0. */
double facts_percent(uint64_t part, uint64_t whole);

/* ns as milliseconds. */
static inline double facts_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* The name that Python gave to the thread, if its trace has one, else the kernel's; any bytes,
 * never NULL; borrowed from the pass. */
const char *facts_thread_name(const struct recording_pass *pass, uint32_t thread);

/* For qsort: threads that were blocked for longest first, then those that blocked others for
 * longest. A thread is blocked while it waits for the GIL or, without a GIL, sleeps for a lock or
 * is stopped. */
int facts_compare_threads(const struct model_thread *a, const struct model_thread *b);

/* Indices of the pass's threads, those that waited most first; caller frees. NULL if none. */
uint32_t *facts_thread_order(const struct model *model);

/* Indices of the pass's blame rows, the largest first; caller frees. NULL if none. */
uint32_t *facts_blame_order(const struct model *model);

/* The same of its lock_blame. */
uint32_t *facts_lock_blame_order(const struct model *model);

/* Whether threads of more than one process were recorded. */
bool facts_many_processes(const struct model *model);

/**
 * The totals of a recording over its threads. @known_ns: the known part of the lives of all threads
 */
struct facts_totals {
	uint64_t life_ns, known_ns, hold_ns, wait_ns, switch_wait_ns, free_wait_ns, no_gil_ns,
		unknown_ns;
	uint64_t cpu_ns[CPU_STATES];
	uint64_t releases_probed, releases_inferred;
};

struct facts_totals facts_totals(const struct model *model);

#define FACTS_LEAST_NS 50000 /* less would be printed as 0.0 ms */

/**
 * Something the reader must know about the numbers.
 * @pass: name of the pass it concerns, NULL: the whole
 * @code: a short stable name
 * @note: what the recorder or a reader had to say; if it is NULL,
 * @slices: the Python trace that is not whole; if that is NULL, it is the model's, @of_model
 * @minor: for machines only: what it says is missing was not asked for, or is next to nothing
 */
struct facts_caveat {
	const char *pass, *code, *note;
	const struct slices *slices;
	enum caveat_code of_model;
	uint64_t count;
	bool minor;
};

struct facts_caveats {
	struct facts_caveat *v;
	size_t n;
	size_t alloc;
};

/* Everything that limits the recording: caveats of the models, why a pass has no Python trace,
 * notes of the recorder. Borrows from the recording; free with vec_done. */
struct facts_caveats facts_caveats(const struct recording *recording);

#endif
