/* SPDX-License-Identifier: MIT */
/* The bulk data of the page: every span, call, stack and sample, see share/report/FORMAT.md. */
#ifndef GILTRACER_REPORT_HTML_ENCODE_H
#define GILTRACER_REPORT_HTML_ENCODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"
#include "model/model.h"
#include "report/report.h"

/* Python calls in the form that the page needs: by thread and depth, cut to the recording,
 * without overlaps in a row, with names sorted by frequency. */

/**
 * @names: ids in slices->names, the most frequently used first
 * @rank: position in names by id; undefined for unused names
 * @threads: index of the model's thread by index of the slices' thread; MODEL_NONE: not recorded
 * @kept, @dropped: numbers of calls that are in rows, and of those that are not: outside the
 * recording, of threads not in it, or overlapping another one at their depth
 */
struct rows {
	const struct slices *slices;
	uint64_t start_ns, end_ns;
	uint32_t *names, *rank, *threads;
	uint32_t name_count;
	uint64_t kept, dropped;
};

/* For a pass without slices, it is empty. Borrows from the pass. Free with rows_done. */
void rows_init(struct rows *rows, const struct recording_pass *pass);
void rows_done(struct rows *rows);

struct payload;

/* Begin to encode all passes, in threads; rows are those of the passes, by index. Both are
 * borrowed until payload_free, which may be called at any time. */
int payload_start(struct payload **ret, const struct recording *recording, const struct rows *rows,
                  struct error *err);
void payload_free(struct payload *payload);

/* Write the blocks as they become ready. */
void payload_write(struct payload *payload, FILE *out);

/* The threads that ended each part of a thread's waits for locks and stops. */

/* The maximum number of stretches of a wait: the longest. Each release of the lock ends one, and
 * there may be as many in each wait as in the recording. */
#define RELEASED_ROWS 64

/* The stretches of the thread's waits, see model_blocked(), in order of time. Neighbours that are
 * charged to the same thread are one. work: as for model_blocked(), for all threads. Free v with
 * vec_done. */
void released_find(struct model_blocked_list *ret, const struct model *model, uint32_t thread,
                   uint64_t *work);

/* Which threads and programs had the CPUs while a thread was runnable, span by span. */

/* Shorter spans have no rows: there may be as many such spans as switches. */
#define QUEUED_MIN_NS 100000

/* The maximum number of rows of a span: those with the most time. */
#define QUEUED_ROWS 6

/**
 * The part of a runnable span in which one thread or program had the CPU.
 * @start_ns: of the span
 * @ns: how long it had the CPU
 * @cpu: -1: unknown
 * @by, @name: as in struct model_cpu_blame
 */
struct queued_row {
	uint64_t start_ns, ns;
	int32_t cpu;
	uint32_t by, name;
};

struct queued {
	VEC(struct queued_row) rows;
};

/* The rows of one thread by start_ns, then most time first. There are none unless the users of the
 * CPUs were recorded. Free rows with vec_done. */
void queued_find(struct queued *ret, const struct model *model, uint32_t thread);

#endif
