/* SPDX-License-Identifier: MIT */
/* What several writers say about a report, computed once, so that all say the same. */
#ifndef GILTRACER_REPORT_FACTS_H
#define GILTRACER_REPORT_FACTS_H

#include "base/str.h"
#include "report/report.h"

/**
 * Percentages of a thread's life. What is unknown is a share of the whole life; the other three
 * are shares of what is known of it, and so add up to 100 whatever was lost. 0 for an empty life.
 */
struct facts_shares {
	double no_gil, hold, wait;
	double unknown;
};

struct facts_shares facts_shares(const struct model_thread *thread);

/* Percentages of a thread's life by CPU state; the unknown is a share of the whole life, the others
 * of what is known of it. */
struct facts_states {
	double percent[CPU_STATES];
};

struct facts_states facts_states(const struct model_thread *thread);

/* part of whole in percent, 0 of nothing. */
double facts_percent(uint64_t part, uint64_t whole);

/* ns as milliseconds. */
static inline double facts_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* "2.3 s", "14 ms": for sentences; tables have the digits. */
void facts_add_time(struct str *out, uint64_t ns);

/* The name that Python gave to the thread, where its trace knows it, else the kernel's; any
 * bytes, never NULL; borrowed from the pass. */
const char *facts_thread_name(const struct report_pass *pass, uint32_t thread);

/* For qsort: those who were blocked for longest first, then those who blocked others for longest.
 * Blocked is who waits for the GIL or, without one, is asleep for a lock or stands. */
int facts_compare_threads(const struct model_thread *a, const struct model_thread *b);

/* "1235*": the star marks a main thread; "1234/1235*" where there are several processes. */
void facts_add_id(struct str *out, const struct report_pass *pass, uint32_t thread);

/* Indices of the pass's threads, those that waited most first; caller frees. NULL if none. */
uint32_t *facts_thread_order(const struct model *model);

/* Indices of the pass's blame rows, the largest first; caller frees. NULL if none. */
uint32_t *facts_blame_order(const struct model *model);

/* The same of its lock_blame. */
uint32_t *facts_lock_blame_order(const struct model *model);

/* Whether threads of more than one process were recorded. */
bool facts_many_processes(const struct model *model);

/**
 * A recording in sums over its threads.
 * @known_ns: the lives of all threads, less what is unknown of them
 */
struct facts_totals {
	uint64_t life_ns, known_ns, hold_ns, wait_ns, switch_wait_ns, free_wait_ns, no_gil_ns,
		unknown_ns;
	uint64_t cpu_ns[CPU_STATES];
	uint64_t releases_probed, releases_inferred;
};

struct facts_totals facts_totals(const struct model *model);

#define FACTS_LEAST_NS 50000 /* less would be printed as 0.0 ms */

/* What a table of the model's blame leaves out, and what of it no verdict is made of: a sentence
 * each, if it is worth one. */
void facts_add_blame_notes(struct str *switched, struct str *unheld,
                           const struct facts_totals *totals);

/**
 * Something the reader must know about the numbers.
 * @pass: name of the pass it concerns, NULL: the whole
 * @minor: for machines only: what it says is missing was not asked for, or is next to nothing
 */
struct facts_caveat {
	const char *pass, *code, *text;
	uint64_t count;
	bool minor;
};

struct facts_caveats {
	struct facts_caveat *v;
	size_t n;
	size_t alloc;
};

/* Everything that is not as it should be: caveats of the models, why a pass has no Python trace,
 * notes of the recorder. Texts are borrowed from the report; free with vec_done. */
struct facts_caveats facts_caveats(const struct report *report);

#endif
