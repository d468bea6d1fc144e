/* SPDX-License-Identifier: MIT */
/* CPU lanes. */
#ifndef GILTRACER_MODEL_CPU_H
#define GILTRACER_MODEL_CPU_H

#include "model/model.h"

void cpu_in(struct model *m, uint32_t thread, uint64_t t);
void cpu_out(struct model *m, uint32_t thread, uint64_t t, bool preempt);
void cpu_sched_out(struct model *m, uint32_t thread, uint64_t t, uint32_t prev_state,
                   uint32_t stack);
void cpu_waking(struct model *m, uint32_t waker, uint32_t woken, uint64_t t);
void cpu_seen(struct model *m, uint32_t thread, uint64_t t);
void cpu_lost(struct model *m, uint32_t thread, uint64_t since_ns, uint64_t t);
void cpu_finish(struct model *m);

/* The CPU goes from this thread to another one. The thread's own switch event, which may follow,
 * repeats this. */
void cpu_preempted(struct model *m, uint32_t thread, uint64_t t);
/* The thread gets the CPU. The time of the switch is charged to it, as in the kernel's
 * accounting. */
void cpu_picked(struct model *m, uint32_t thread, uint64_t t, int32_t cpu);

#endif
