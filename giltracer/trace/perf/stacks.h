/* SPDX-License-Identifier: MIT */
/*
 * The stack part of from_perf.c: records that say what is mapped where, and samples, go in; ids in
 * a struct stacks come out. Fed in time order.
 */
#ifndef GILTRACER_TRACE_PERF_STACKS_H
#define GILTRACER_TRACE_PERF_STACKS_H

#include "trace/perf/from_perf_stacks.h"

struct from_perf_options;
struct perf_header;
struct source;

/*
 * Callbacks for from_perf.c that unwind into source->stacks; ->close frees their ctx. All pointers
 * are borrowed until then (in the pipe layout the header grows while records are read); of options,
 * which may be NULL, that is what it points to. source->stats.other_pythons counts the interpreters
 * that are not that of options->functions, each time that a process maps one.
 */
void perf_stacks_open(struct from_perf_stacks *ret, const struct perf_header *header,
                      struct source *source, const struct from_perf_options *options);

#endif
