/* SPDX-License-Identifier: MIT */
/* The stack part of from_perf.c: takes records of mappings, and samples, in time order, and
 * returns ids in a struct stacks. */
#ifndef GILTRACER_TRACE_PERF_STACKS_H
#define GILTRACER_TRACE_PERF_STACKS_H

#include "trace/perf/from_perf_stacks.h"

struct from_perf_options;
struct perf_header;
struct source;

/*
 * Callbacks for from_perf.c that unwind into source->stacks; ->close frees their ctx. All pointers
 * are borrowed until then (in the pipe layout the header grows while records are read), including
 * those in options, which may be NULL.
 */
void perf_stacks_open(struct from_perf_stacks *ret, const struct perf_header *header,
                      struct source *source, const struct from_perf_options *options);

#endif
