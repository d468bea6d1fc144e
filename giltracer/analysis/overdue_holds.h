/* SPDX-License-Identifier: MIT */
/* Holds that continued after a release request; hogs.h defines them. */
#ifndef GILTRACER_ANALYSIS_OVERDUE_HOLDS_H
#define GILTRACER_ANALYSIS_OVERDUE_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

#define OVERDUE_NEVER UINT64_MAX

/* @thread: the holder; @gil: the index of the GIL */
struct overdue_hold {
	uint32_t thread, gil;
	uint64_t start_ns, end_ns;
};

struct overdue;

/*
 * A search in model, which is borrowed until overdue_free. A waiter requests a release at the end
 * of each interval_ns in which no other thread got the GIL. The request is certain if the source
 * reports it (requests_known), or if the waiter goes to sleep again in the same wait, for the next
 * interval. That the waiter was woken proves nothing: other programs or a hypervisor may have
 * stopped it before it made the request, which no event reports.
 */
struct overdue *overdue_new(const struct model *model, uint64_t interval_ns);
void overdue_free(struct overdue *search);

/* The number of holds for which not all waits were examined. */
uint64_t overdue_bounded(const struct overdue *search);

/**
 * What a holder did from asked_ns, when a release is known to have been requested, to the end of
 * its hold. OVERDUE_NEVER: there was no request.
 * @kept_ns: it ran, or slept by itself: it was not runnable, not stopped by a signal or a debugger,
 *           and its state is known
 * @unsure_ns: the part of kept_ns that is sleep whose end was not recorded: the thread may have
 * been runnable then
 */
struct overdue_proof {
	uint64_t asked_ns, kept_ns, unsure_ns;
};

/* The proof that a hold lasted more than slack_ns after a release request; asked_ns is
 * OVERDUE_NEVER if there is none. */
struct overdue_proof overdue_prove(struct overdue *search, const struct overdue_hold *hold,
                                   uint64_t slack_ns);

/* The longest time for which any thread is known to have been runnable. */
uint64_t overdue_longest_runnable(const struct model *model);

/* Adds the time of span i of a CPU lane, within [from_ns, to_ns), in which the thread was off
 * CPU. */
void overdue_add_off_cpu(const struct lane *lane, size_t i, uint64_t from_ns, uint64_t to_ns,
                         uint64_t *runnable_ns, uint64_t *asleep_ns);

/* How long a thread was runnable, and how long asleep, in [from_ns, to_ns). */
void overdue_off_cpu(const struct model_thread *thread, uint64_t from_ns, uint64_t to_ns,
                     uint64_t *ret_runnable_ns, uint64_t *ret_asleep_ns);

#endif
