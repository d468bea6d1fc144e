/* SPDX-License-Identifier: MIT */
/*
 * Totals of a process without a page of its own, made from the events of its GIL as they happen: a
 * page of the same format (preload/totals.h) in memory, which live/totals.c reads.
 *
 * Only what was seen is counted. A hold in progress at the first event is not included, and after
 * lost events nothing is known about a thread until its next event. A hold lasts from the return of
 * take_gil to the release of the GIL. A wait begins with a request for a GIL that another thread
 * holds, or when another thread takes it first; for a GIL in an unknown state, it counts if a
 * thread then releases that GIL. When a holder was asked to release the GIL is unknown: kept is 0.
 */
#ifndef GILTRACER_LIVE_EVENT_TOTALS_H
#define GILTRACER_LIVE_EVENT_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "trace/event.h"

struct event_totals;

/* Writes the name of a thread, terminated, at most TOTALS_NAME bytes. False: the thread may get
 * a name of its own later, so ask again. */
typedef bool event_totals_name(void *data, uint32_t tid, char *ret);

/* For process pid, from now_ns, CLOCK_MONOTONIC, on. Free with event_totals_free. ESRCH: the
 * process has ended. */
int event_totals_new(struct event_totals **ret, pid_t pid, uint64_t now_ns, event_totals_name *name,
                     void *data, struct error *err);
void event_totals_free(struct event_totals *et);

/* The page; borrowed until event_totals_free. */
const void *event_totals_page(const struct event_totals *et, size_t *ret_size);

/* Add an event; events come in the order of time. Used are REQUEST to SAVE, EXIT, COMM of an
 * exec, and LOST; others are ignored. */
void event_totals_feed(struct event_totals *et, const struct event *ev);

/* To be called before the page is read as of at_ns: all earlier events have come, and nothing
 * before at_ns changes any more. */
void event_totals_reach(struct event_totals *et, uint64_t at_ns);

#endif
