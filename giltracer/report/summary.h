/* SPDX-License-Identifier: MIT */
/*
 * A report in a few numbers, for conditions and comparisons: read from the JSON document, so that a
 * session and a document that was made of it are the same.
 *
 * Shares are in percent, and so can be compared between recordings of different length.
 */
#ifndef GILTRACER_REPORT_SUMMARY_H
#define GILTRACER_REPORT_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
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
 * @late_wait_ns: functions: of that, in holds that did not end when asked
 */
struct summary_row {
	char *name, *file;
	uint32_t line;
	uint64_t count, wait_ns, hold_ns, late_wait_ns;
};

struct summary_rows {
	VEC(struct summary_row) v;
};

/**
 * @recording_ns: how long the thread lived that lived longest
 * @known_ns: all threads' time: their lives, less what is unknown of them
 * @percent, @value: of each fact; value in ns or a count
 */
struct summary {
	uint64_t recording_ns, known_ns;
	double percent[FACTS];
	uint64_t value[FACTS];
	struct summary_rows threads, functions;
};

/* Of a JSON document of schema 1; free with summary_done, also behind an error. */
int summary_read(struct summary *ret, const char *text, size_t len, struct error *err);
void summary_done(struct summary *summary);

#endif
