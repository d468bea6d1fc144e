/* SPDX-License-Identifier: MIT */
/*
 * Everything in a recording that a trace viewer shows: first the threads and GILs, then the events
 * of one thread after the other, each lane in the order of time. The formats made of events use it.
 */
#ifndef GILTRACER_EXPORT_WALK_H
#define GILTRACER_EXPORT_WALK_H

#include "analysis/analysis.h"

enum walk_lane { WALK_GIL, WALK_CPU };

/**
 * A state of a thread.
 * @state: enum gil_state or enum cpu_state
 * @holder: for a wait: the thread that held the GIL when it began; MODEL_NONE: none, or unknown
 * @span: its other data
 */
struct walk_span {
	uint32_t thread;
	enum walk_lane lane;
	unsigned state;
	uint64_t start_ns, end_ns;
	uint32_t holder;
	const struct span *span;
};

/* A stretch of a GIL: see struct gil_owner. */
struct walk_owner {
	uint32_t gil;
	uint64_t start_ns, end_ns;
	uint32_t thread, waiters;
};

/* Any of them may be NULL. For each thread, its calls come first, then its spans, lane by lane.
 * States without a name are omitted. */
struct walk_ops {
	void (*thread)(void *data, uint32_t thread);
	void (*call)(void *data, uint32_t thread, const struct slice *call);
	void (*span)(void *data, const struct walk_span *span);
	void (*gil)(void *data, uint32_t gil);
	void (*owner)(void *data, const struct walk_owner *owner);
	void (*lost)(void *data, const struct model_lost *lost);
};

void walk(const struct analysis *analysis, const struct walk_ops *ops, void *data);

/* The name of a state; NULL for states of no interest: without the GIL, and unknown CPU states. */
const char *walk_state_name(enum walk_lane lane, unsigned state);

#endif
