/* SPDX-License-Identifier: MIT */
/*
 * Totals of a process without a page of its own, from the events of its GIL as they happen: the same page
 * (preload/totals.h), in memory, which live/totals.c reads.
 *
 * Only what was seen is counted. A hold that went on when the first event came is not in it, and after lost
 * events nothing is known of a thread until its next one. A hold begins where take_gil returns and ends where
 * the GIL is released. A wait begins with a request for a GIL that another thread has, or when another thread
 * gets it first; for a GIL of which nothing is known yet it counts if a thread then releases it. When a holder
 * was asked to release is not known: kept is 0.
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

/* What a thread is called, terminated: at most TOTALS_NAME bytes. False: it may have another name later, and is
 * asked for it again. */
typedef bool event_totals_name(void *data, uint32_t tid, char *ret);

/* Of process pid, from now_ns, CLOCK_MONOTONIC, on. Free with event_totals_free. ESRCH: it has ended. */
int event_totals_new(struct event_totals **ret, pid_t pid, uint64_t now_ns, event_totals_name *name,
                     void *data, struct error *err);
void event_totals_free(struct event_totals *et);

/* The page; borrowed until event_totals_free. */
const void *event_totals_page(const struct event_totals *et, size_t *ret_size);

/* Events that come in the order of time: REQUEST to SAVE, EXIT, COMM of an exec, and LOST. Others are ignored. */
void event_totals_feed(struct event_totals *et, const struct event *ev);

/* All events before at_ns have come, and the page is read as it is then: nothing changes before it any more. */
void event_totals_reach(struct event_totals *et, uint64_t at_ns);

#endif
