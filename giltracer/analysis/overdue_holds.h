/* SPDX-License-Identifier: MIT */
/* Holds that went on although they were asked to end; hogs.h says what that means. */
#ifndef GILTRACER_ANALYSIS_OVERDUE_HOLDS_H
#define GILTRACER_ANALYSIS_OVERDUE_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

#define OVERDUE_NEVER UINT64_MAX

/* @thread: who held; @gil: which one */
struct overdue_hold {
	uint32_t thread, gil;
	uint64_t start_ns, end_ns;
};

struct overdue;

/*
 * A search in model, which is borrowed until overdue_free. A waiter asks at the end of each
 * interval_ns in which no other thread got the GIL. That it has asked is known if the source says
 * so (requests_known), or if it goes to sleep again in the same wait, for the next interval. That
 * it was woken proves nothing: it may have been stopped before it asked, by other programs, or by a
 * hypervisor, which no event tells.
 */
struct overdue *overdue_new(const struct model *model, uint64_t interval_ns);
void overdue_free(struct overdue *search);

/* Of how many holds not all waits were looked at. */
uint64_t overdue_bounded(const struct overdue *search);

/* Since when a hold is known to have been asked to end, if it lasted slack_ns longer than that
 * without the time that its thread was runnable; else OVERDUE_NEVER. */
uint64_t overdue_since(struct overdue *search, const struct overdue_hold *hold, uint64_t slack_ns);

/* Add what span i of a CPU lane has of [from_ns, to_ns) without a CPU. */
void overdue_add_off_cpu(const struct lane *lane, size_t i, uint64_t from_ns, uint64_t to_ns,
                         uint64_t *runnable_ns, uint64_t *asleep_ns);

/* How long a thread was in [from_ns, to_ns) in line for a CPU, and asleep. */
void overdue_off_cpu(const struct model_thread *thread, uint64_t from_ns, uint64_t to_ns,
                     uint64_t *ret_line_ns, uint64_t *ret_asleep_ns);

#endif
