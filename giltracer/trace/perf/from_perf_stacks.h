/* SPDX-License-Identifier: MIT */
/* The interface between from_perf.c and the unwinder of stacks; private to these. */
#ifndef GILTRACER_TRACE_PERF_FROM_PERF_STACKS_H
#define GILTRACER_TRACE_PERF_FROM_PERF_STACKS_H

#include <stdint.h>

#include "perfdata/header.h"
#include "perfdata/reader.h"
#include "perfdata/perf_sample.h"

/* What a process has mapped. */
enum mapped {
	MAPPED_OTHER,
	MAPPED_PYTHON,   /* a CPython without probes */
	MAPPED_RECORDER, /* our library, in an interpreter that makes its GIL late */
};

/**
 * Callbacks of from_perf.c, in time order; NULL is skipped.
 * @record: for MMAP, MMAP2, FORK, EXIT and COMM records, which define the mappings; trailer is the
 * decoded trailer. What else the record means
 * @stack: returns the id in source->stacks of a sample's stack, 0 for none
 * @close: frees ctx
 */
struct from_perf_stacks {
	void *ctx;
	enum mapped (*record)(void *ctx, const struct perfdata_record *rec,
	                      const struct sample *trailer);
	uint32_t (*stack)(void *ctx, const struct header_event *event, const struct sample *sample);
	void (*close)(void *ctx);
};

#endif
