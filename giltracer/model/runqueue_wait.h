/* SPDX-License-Identifier: MIT */
/* Which thread or program had the CPU that a runnable thread waited for. */
#ifndef GILTRACER_MODEL_RUNQUEUE_WAIT_H
#define GILTRACER_MODEL_RUNQUEUE_WAIT_H

#include "model/model.h"

/* next: the thread of next_tid, or MODEL_NONE if it does not belong to this model. */
void runqueue_wait_pick(struct model *m, const struct event *ev, uint32_t next, uint64_t t);
/* The thread runs on that CPU, whether or not the scheduler's choice was recorded. */
void runqueue_wait_in(struct model *m, uint32_t thread, uint64_t t, int32_t cpu);
void runqueue_wait_move(struct model *m, uint32_t thread, uint64_t t, const struct event *ev);
void runqueue_wait_lost(struct model *m, int32_t cpu, uint64_t since_ns);
void runqueue_wait_finish(struct model *m);
void runqueue_wait_done(struct model *m);

#endif
