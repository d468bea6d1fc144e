/* SPDX-License-Identifier: MIT */
/*
 * A thread as a stack of functions that changes in the course of time, for formats that are made of
 * stacks: its Python calls or, where they were not traced, the function that the probes read of
 * each span, and innermost the state of the GIL. Calls that outlast their caller are cut.
 */
#ifndef GILTRACER_EXPORT_STACKED_H
#define GILTRACER_EXPORT_STACKED_H

#include "analysis/analysis.h"
#include "export/place.h"

/* Frames are numbered: states (enum gil_state), then names of calls, then frames of the probes. */
uint32_t stacked_frames(const struct analysis *analysis);

/* What a frame is called; free with place_done. A state has neither file nor line. */
void stacked_place(struct place *ret, const struct analysis *analysis, uint32_t frame);

/* Whether threads have any stacks: not if samples are all that was recorded. */
bool stacked_any(const struct analysis *analysis);

/* Whether the frame is a state of the GIL. */
bool stacked_is_state(uint32_t frame);

/* Frames begin and end at the thread's innermost, at times that never go back and are within the
 * recording. Whatever begins ends. */
struct stacked_ops {
	void (*begin)(void *data, uint64_t at_ns, uint32_t frame);
	void (*end)(void *data, uint64_t at_ns, uint32_t frame);
};

void stacked_thread(const struct analysis *analysis, uint32_t thread, const struct stacked_ops *ops,
                    void *data);

#endif
