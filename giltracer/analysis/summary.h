/* SPDX-License-Identifier: MIT */
/*
 * A recording in a few numbers, for conditions and comparisons: of its analysis, or of the JSON
 * document that was made of it (report/json/summary_read.h), which is the same.
 *
 * Shares are in percent, and so can be compared between recordings of different length.
 */
#ifndef GILTRACER_ANALYSIS_SUMMARY_H
#define GILTRACER_ANALYSIS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/analysis.h"
#include "base/vec.h"

enum fact {
	FACT_GIL_WAIT,    /* all waiting; % of all threads' time */
	FACT_GIL_HOLD,    /* all holding; % of the recording, 100 for each GIL that is never free */
	FACT_THREAD_WAIT, /* of the thread that waited most; % of its time */
	FACT_HOG_WAIT,    /* caused by holds that did not end when asked; % of all threads' time */
	FACT_LOCK_WAIT, /* asleep for locks of a free-threaded interpreter; % as of FACT_GIL_WAIT */
	FACT_STOPPED,   /* standing while another thread has stopped the world; % likewise */
	FACT_LONGEST_WAIT, /* the longest single one */
	FACT_LONGEST_HOLD,
	FACT_HOGS,    /* how many holds did not end when asked */
	FACT_LOST,    /* records lost, all passes */
	FACT_UNKNOWN, /* of all threads' lives */
	FACTS,
};

#define SUMMARY_UNKNOWN "(unknown)" /* a function without a name */

enum fact_units {
	UNIT_PERCENT = 1 << 0,
	UNIT_TIME = 1 << 1, /* ns */
	UNIT_COUNT = 1 << 2,
};

/**
 * @name: "gil_wait", as conditions and tables have it
 * @units: in which it is known
 */
struct fact_kind {
	const char *name;
	unsigned units;
};

extern const struct fact_kind fact_kinds[FACTS];

/**
 * Threads of one name, or one function in all threads.
 * @name, @file: owned; file is "" for threads and where it is not known; @line: 0 likewise
 * @count: how many threads
 * @wait_ns: threads: waited; functions: caused others to wait
 * @overdue_wait_ns: functions: of that, in holds that did not end when asked
 */
struct summary_row {
	char *name, *file;
	uint32_t line;
	uint64_t count, wait_ns, hold_ns, overdue_wait_ns;
};

struct summary_rows {
	VEC(struct summary_row) v;
};

/**
 * @program: the file name of its script or module, owned; NULL: not known, as of a JSON document
 * @recording_ns: how long the thread lived that lived longest
 * @known_ns: all threads' time: their lives, less what is unknown of them
 * @percent, @value: of each fact; value in ns or a count
 */
struct summary {
	uint64_t recording_ns, known_ns;
	double percent[FACTS];
	uint64_t value[FACTS];
	struct summary_rows threads, functions;
	char *program;
};

/* Free with summary_done. */
void summary_init(struct summary *ret, const struct analysis *analysis);
void summary_done(struct summary *summary);

/**
 * How a summary is made, whatever it is made of: add all that there is, then finish it.
 * @name: valid UTF-8; @file: may have folders, which are left out: the same program may stand
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
	uint64_t overdue, overdue_wait_ns; /* how many did not end when asked, and their waits */
};

void summary_add_thread(struct summary *s, const struct summary_thread *thread);
void summary_add_function(struct summary *s, const struct summary_function *function);
/* @command: arguments of the program, with or without the interpreter and its options, terminated
 * by NULL; any bytes */
void summary_set_program(struct summary *s, const char *const *command);
void summary_add_lost(struct summary *s, uint64_t records);
void summary_finish(struct summary *s);

#endif
