/* SPDX-License-Identifier: MIT */
/*
 * A recording in a few numbers, for conditions and comparisons. It is made from an analysis, or
 * from the analysis' JSON document (report/json.h), with the same result.
 *
 * Shares are in percent, so they can be compared between recordings of different length.
 */
#ifndef GILTRACER_ANALYSIS_DIFF_H
#define GILTRACER_ANALYSIS_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/analysis.h"
#include "base/idmap.h"
#include "base/vec.h"

enum fact {
	FACT_GIL_WAIT,    /* all waiting; % of all threads' time */
	FACT_GIL_HOLD,    /* all holding; % of the recording, 100 for each GIL that is never free */
	FACT_THREAD_WAIT, /* wait of the thread that waited most; % of its time */
	FACT_HOG_WAIT,    /* waiting for holds that did not end on request; % of all threads'
	                   * time */
	FACT_LOCK_WAIT,   /* waiting for locks; % as for FACT_GIL_WAIT */
	FACT_STOPPED,     /* stopped while another thread has stopped the world; % likewise */
	FACT_LONGEST_WAIT, /* the longest single wait */
	FACT_LONGEST_HOLD,
	FACT_HOGS,    /* number of holds that did not end on request */
	FACT_LOST,    /* records lost, all passes */
	FACT_UNKNOWN, /* part of all threads' lives */
	FACTS,
};

#define SUMMARY_UNKNOWN "(unknown)" /* a function without a name */

enum fact_units {
	UNIT_PERCENT = 1 << 0,
	UNIT_TIME = 1 << 1, /* ns */
	UNIT_COUNT = 1 << 2,
};

/**
 * @name: name in conditions and tables, for instance "gil_wait"
 * @units: units in which it is available, enum fact_units
 */
struct fact_kind {
	const char *name;
	unsigned units;
};

extern const struct fact_kind fact_kinds[FACTS];

/**
 * Threads of one name, or one function in all threads.
 * @name, @file: owned; file is "" for threads or if not known; @line: 0 likewise
 * @count: number of threads
 * @wait_ns: threads: time waited; functions: waiting of others that they caused
 * @overdue_wait_ns: functions: the part of it during holds that did not end on request
 * @recordings, @low, @high: of several recordings: in how many it occurs, and the range of the wait in
 * percent of the time of each
 */
struct summary_row {
	char *name, *file;
	uint32_t line, recordings;
	uint64_t count, wait_ns, hold_ns, overdue_wait_ns;
	double low, high;
};

/* @index: index in v by name and file, see summary_find_row() */
struct summary_rows {
	VEC(struct summary_row) v;
	struct idmap index;
};

/**
 * @program: file name of its script or module, owned; NULL: not known, for instance from a JSON
 * document
 * @recording_ns: the longest life of a thread
 * @known_ns: all threads' time: the known part of their lives
 * @percent, @value: per fact; value is in ns or a count
 * @recordings: their number; of several, all numbers are means, and @low and @high are the range of the
 * percentages
 * @locks_unknown: FACT_LOCK_WAIT is unknown, because waits for locks were not recorded
 */
struct summary {
	unsigned recordings;
	uint64_t recording_ns, known_ns;
	double percent[FACTS], low[FACTS], high[FACTS];
	uint64_t value[FACTS];
	struct summary_rows threads, functions;
	char *program;
	bool locks_unknown;
};

/* Free with summary_done. */
void summary_init(struct summary *ret, const struct analysis *analysis);
void summary_done(struct summary *summary);

/**
 * Parts of a summary: add all threads and functions, then call summary_finish.
 * @name: valid UTF-8; @file: folders are removed, because the same program may be installed
 *        elsewhere
 */
struct summary_thread {
	const char *name;
	uint64_t total_ns, hold_ns, wait_ns, unknown_ns, lock_wait_ns, stopped_ns;
	uint64_t longest_hold_ns, longest_wait_ns;
};

struct summary_function {
	const char *name, *file;
	uint32_t line;
	uint64_t wait_ns, hold_ns;         /* of all holds */
	uint64_t overdue, overdue_wait_ns; /* number of holds that did not end on request, and the
	                                    * waiting for them */
};

void summary_add_thread(struct summary *s, const struct summary_thread *thread);
void summary_add_function(struct summary *s, const struct summary_function *function);

/* @command: arguments of the program, with or without the interpreter and its options, terminated
 * by NULL; any bytes */
void summary_set_program(struct summary *s, const char *const *command);
void summary_add_lost(struct summary *s, uint64_t records);
void summary_finish(struct summary *s);

/* The means of n recordings of the same program, at least one. */
void summary_join(struct summary *ret, const struct summary *of, size_t n);

/*
 * What changed between two recordings, A and B.
 *
 * Shares are compared, so that the recordings may differ in length: the totals as
 * in struct summary; threads (by name) and functions (by name and file, without folders) as shares
 * of the recording's time, where 100 % is one thread that waits throughout.
 *
 * Recordings of the same program differ, too. A change counts only if it is at least DIFF_POINTS
 * percentage points and DIFF_PERCENT % of the larger share, and if the ranges of the two sides have
 * nothing in common where a side has several recordings; any other change is noise.
 */

#define DIFF_POINTS  1.0
#define DIFF_PERCENT 10.0

/* One side of a row. @wait, @hold: percent of its recording; for functions: waiting caused, time
 * held; @low, @high: the range of wait over its recordings */
struct diff_side {
	uint64_t count, wait_ns, hold_ns, overdue_wait_ns;
	double wait, hold, low, high;
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

/* Whether a side of the comparison has several recordings. */
static inline bool diff_has_ranges(const struct diff *diff)
{
	return diff->a->recordings > 1 || diff->b->recordings > 1;
}

#endif
