/* SPDX-License-Identifier: MIT */
/* Events as text, one line each, for `giltracer dump --events` and tests. */
#ifndef GILTRACER_TRACE_PRINT_H
#define GILTRACER_TRACE_PRINT_H

#include <stdio.h>

#include "trace/source.h"

/* "request" for EV_REQUEST, and so on; "?" if unknown. */
const char *event_type_name(unsigned type);

/* TIME PID/TID CPU TYPE KEY=VALUE...; names are quoted, control characters are escaped. */
void print_event(FILE *out, const struct source *source, const struct event *ev);

/* The event's stack, one frame a line behind a tab, innermost first: "NAME" "MODULE" WORD…,
 * where words are flags of the frame; with a line, "NAME":LINE. Nothing if the event has none. */
void print_event_stack(FILE *out, const struct source *source, const struct event *ev);

/* "# KEY VALUE" for each of the source's stats. */
void print_source_stats(FILE *out, const struct source *source);

#endif
