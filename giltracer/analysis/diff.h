/* SPDX-License-Identifier: MIT */
/*
 * What changed between two recordings, A and B.
 *
 * Shares are compared, so that the recordings may differ in length: the totals as in
 * analysis/summary.h; threads (by name) and functions (by name and file, without folders) as shares
 * of the recording's time, where 100 % is one thread that waits throughout.
 *
 * Recordings of the same program differ, too. A change counts only if it is at least DIFF_POINTS
 * percentage points and DIFF_PERCENT % of the larger share; a smaller change is noise.
 */
#ifndef GILTRACER_ANALYSIS_DIFF_H
#define GILTRACER_ANALYSIS_DIFF_H

#include <stdbool.h>

#include "analysis/summary.h"

#define DIFF_POINTS  1.0
#define DIFF_PERCENT 10.0

/* One side of a row. @wait, @hold: percent of its recording; for functions: waiting caused, time
 * held */
struct diff_side {
	uint64_t count, wait_ns, hold_ns, overdue_wait_ns;
	double wait, hold;
};

/**
 * One function, or all threads of one name.
 * @name, @file, @line: borrowed from B's summary, or from A's if B has no such row
 * @change: change of the wait in percentage points
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
 * @verdict: about the wait @fact: FACT_GIL_WAIT, or FACT_LOCK_WAIT if there is no GIL
 * @other_program: the two are recordings of programs with different names
 * @threads, @functions: largest change of the wait first
 * @most_changed: the function whose waiting changed most in the direction of the verdict; or NULL
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
