/* SPDX-License-Identifier: MIT */
/* Timers of threads in a binary heap: the earliest first; with equal times, the lower number
 * first. */
#ifndef GILTRACER_ANALYSIS_TIMERS_H
#define GILTRACER_ANALYSIS_TIMERS_H

#include <stdint.h>

#include "base/vec.h"

/* @turn: the owner's count when the timer was set; if the owner has another count, the timer is
 * obsolete */
struct timer {
	double at;
	uint32_t who, turn;
};

/* v.v[0] is the earliest timer. */
struct timers {
	VEC(struct timer) v;
};

void timers_push(struct timers *timers, double at, uint32_t who, uint32_t turn);
void timers_pop(struct timers *timers); /* removes the earliest; there must be one */
void timers_done(struct timers *timers);

#endif
