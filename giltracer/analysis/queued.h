/* SPDX-License-Identifier: MIT */
/* For the page: which threads and programs had the CPUs while a thread was runnable, span by
 * span. */
#ifndef GILTRACER_ANALYSIS_QUEUED_H
#define GILTRACER_ANALYSIS_QUEUED_H

#include "base/vec.h"
#include "model/model.h"

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
