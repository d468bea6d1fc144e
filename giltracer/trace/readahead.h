/* SPDX-License-Identifier: MIT */
/* A source that reads another one ahead in a thread of its own, so that decoding and processing
 * the events use two CPUs. */
#ifndef GILTRACER_TRACE_READAHEAD_H
#define GILTRACER_TRACE_READAHEAD_H

#include "trace/source.h"

/*
 * Yields the same events in the same order. The result owns inner; close with source_close. Its
 * names may be read from the return of an EV_COMM to the next call of source_next, and at the end;
 * stats, counters and stacks at the end. Never fails: if no thread can be created, it reads inner
 * directly. Not for sources whose events refer to stacks.
 */
struct source *source_ahead(struct source *inner);

#endif
