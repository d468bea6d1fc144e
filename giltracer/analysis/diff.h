/* SPDX-License-Identifier: MIT */
/*
 * What changed between two recordings, A and B.
 *
 * Compared are shares, so that the recordings may differ in length: the totals as
 * analysis/summary.h says, threads (by name) and functions (by name and file, without folders) as
 * shares of the recording's time, 100 % being one thread that waits all the while.
 *
 * Recordings of the same program differ, too. A change counts only if it is at least DIFF_POINTS
 * percentage points and DIFF_PERCENT % of the larger of the two shares; less is noise.
 */
#ifndef GILTRACER_ANALYSIS_DIFF_H
#define GILTRACER_ANALYSIS_DIFF_H

#include <stdbool.h>

#include "analysis/summary.h"

#define DIFF_POINTS  1.0
#define DIFF_PERCENT 10.0

/* Of one side. @wait, @hold: percent of its recording; functions: wait caused, held. */
struct diff_side {
	uint64_t count, wait_ns, hold_ns, overdue_wait_ns;
	double wait, hold;
};

/**
 * Threads of one name or one function.
 * @name, @file, @line: borrowed from B's summary, or A's if it is not there
 * @change: of the wait, in points
 */
struct diff_row {
	const char *name, *file;
	uint32_t line;
	struct diff_side a, b;
	double change;
	bool noise;
};

struct diff_rows {
	VEC(struct diff_row) v;
};

enum diff_verdict { DIFF_SAME, DIFF_FELL, DIFF_ROSE };

/**
 * @verdict: on the wait for @fact: FACT_GIL_WAIT, or FACT_LOCK_WAIT where there is no GIL
 * @other_program: the two are recordings of programs with different names
 * @threads, @functions: largest change of the wait first
 * @most_changed: the function whose waiting changed most, if it changed as all did; or NULL
 */
struct diff {
	const struct summary *a, *b;
	enum fact fact;
	enum diff_verdict verdict;
	bool other_program;
	struct diff_rows threads, functions;
	const struct diff_row *most_changed;
};

/* a and b are borrowed until diff_done. */
void diff_init(struct diff *diff, const struct summary *a, const struct summary *b);
void diff_done(struct diff *diff);

/* Whether the difference of shares a and b, in percent, is noise. */
bool diff_is_noise(double a, double b);

#endif
