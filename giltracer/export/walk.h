/* SPDX-License-Identifier: MIT */
/*
 * Everything in a recording that a viewer of traces shows: first which threads and GILs there are,
 * then thread by thread what happens, and each lane of a thread in the order of time. The formats
 * that are lists of events are made of it.
 */
#ifndef GILTRACER_EXPORT_WALK_H
#define GILTRACER_EXPORT_WALK_H

#include "analysis/analysis.h"

enum walk_lane { WALK_GIL, WALK_CPU };

/**
 * A state of a thread.
 * @state: enum gil_state or enum cpu_state
 * @holder: of a wait: the thread that held the GIL when it began; MODEL_NONE: none, or not known
 * @span: the rest of it
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

/* Each of them may be NULL. Of a thread come its calls, then its spans, lane by lane. States
 * without a name are left out. */
struct walk_ops {
	void (*thread)(void *data, uint32_t thread);
	void (*call)(void *data, uint32_t thread, const struct slice *call);
	void (*span)(void *data, const struct walk_span *span);
	void (*gil)(void *data, uint32_t gil);
	void (*owner)(void *data, const struct walk_owner *owner);
	void (*lost)(void *data, const struct model_lost *lost);
};

void walk(const struct analysis *analysis, const struct walk_ops *ops, void *data);

/* The name of a state, NULL of one that nobody looks for: without the GIL, and unknown CPU states.
 */
const char *walk_state_name(enum walk_lane lane, unsigned state);

#endif
