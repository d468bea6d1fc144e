/* SPDX-License-Identifier: MIT */
/* Events as text, one line each, for `giltracer dump --events` and tests. */
#ifndef GILTRACER_TRACE_PRINT_H
#define GILTRACER_TRACE_PRINT_H

#include <stdio.h>

#include "trace/slices.h"
#include "trace/source.h"

/* "request" for EV_REQUEST, and so on; "?" if unknown. */
const char *event_type_name(unsigned type);

/* TIME PID/TID CPU TYPE KEY=VALUE...; names are quoted, control characters are escaped. */
void print_event(FILE *out, const struct source *source, const struct event *ev);

/*
 * The event's stack, one line per frame, indented by a tab, innermost first: "NAME" "MODULE" WORD…,
 * with the frame's flags as words; with a line, "NAME":LINE. Nothing if the event has no stack.
 */
void print_event_stack(FILE *out, const struct source *source, const struct event *ev);

/* The calls of a thread: PID/TID START NANOSECONDS DEPTH "NAME", with "open" after the depth if
 * the end of the call is unknown. */
void print_calls(FILE *out, const struct slices *slices, const struct slice_thread *t);

/* "# KEY VALUE" for each of the source's stats. */
void print_source_stats(FILE *out, const struct source *source);

#endif
