/* SPDX-License-Identifier: MIT */
/* The two small JSON documents of the page, see share/report/FORMAT.md: meta and overview. */
#ifndef GILTRACER_REPORT_HTML_META_H
#define GILTRACER_REPORT_HTML_META_H

#include <stdio.h>

#include "analysis/analysis.h"
#include "base/jsonw.h"
#include "model/model.h"
#include "report/html/encode.h"

/* CPython's default switch interval, with which waits are compared. */
#define SWITCH_INTERVAL_NS 5000000

/* A wait of at least this length is drawn at least one pixel wide. */
#define WAIT_MARK_NS 1000000

/*
 * The maximum number of rows about holders of the GIL or users of CPUs. If there are more, rows of
 * groups replace them, at most this many, so that a browser can load the page and a person can read
 * it.
 */
#define META_BLAME_ROWS 10000

/* rows are those of the passes, by index; change: NULL: of one recording. */
void meta_write(const struct analysis *analysis, const struct rows *rows,
                const struct change *change, FILE *out);

/* Writes the member "meeting" into the open object. */
void meeting_write(struct jsonw *w, const struct analysis *analysis);

#define MEETING_NODES 50000

/* Writes the member "diff" into the open object: the waiting that stacks caused in two recordings, in a tree
 * of most nodes and the outermost frames; the time of others is that of their callers. */
void caused_diff_write(struct jsonw *w, const struct analysis *a, const struct analysis *b,
                       size_t most);

/* Shares of each GIL state in equal slices of time, of the main pass. */
void overview_write(const struct analysis *analysis, FILE *out);

/* How long a thread was in each state of the GIL, in equal parts of the recording. */

#define GIL_PARTS 512

/* The states that a coarse picture distinguishes; unknown time is in none of them. */
enum gil_part_state {
	PART_HOLD, /* or stopping the world */
	PART_WAIT, /* for the GIL or a lock, or stopped */
	PART_FREE_WAIT,
	PART_NO_GIL,
	PART_STATES,
};

/* @width_ns: duration of a part; the last one may end later than the recording */
struct gil_parts {
	uint64_t start_ns, width_ns;
	uint64_t ns[PART_STATES][GIL_PARTS];
};

/* locks: the GIL is off, and what is shown instead is what blocks threads. */
void gil_parts_init(struct gil_parts *ret, const struct model *model, uint32_t thread, bool locks);

#endif
