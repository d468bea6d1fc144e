/* SPDX-License-Identifier: MIT */
/*
 * A thread as a stack of functions over time, for formats made of stacks: its Python calls or, if
 * they were not traced, the function that the probes read for each span, and innermost the state of
 * the GIL. Calls that outlast their caller are cut.
 */
#ifndef GILTRACER_EXPORT_STACKED_H
#define GILTRACER_EXPORT_STACKED_H

#include "analysis/analysis.h"
#include "export/place.h"

/* Frames are numbered: states (enum gil_state), then names of calls, then frames of the probes. */
uint32_t stacked_frames(const struct analysis *analysis);

/* The name and place of a frame; free with place_done. A state has neither file nor line. */
void stacked_place(struct place *ret, const struct analysis *analysis, uint32_t frame);

/* Whether threads have any stacks; false if only samples were recorded. */
bool stacked_any(const struct analysis *analysis);

/* Whether the frame is a state of the GIL. */
bool stacked_is_state(uint32_t frame);

/* Frames begin and end innermost in the thread, at times that never decrease and are within the
 * recording. Each begin has an end. */
struct stacked_ops {
	void (*begin)(void *data, uint64_t at_ns, uint32_t frame);
	void (*end)(void *data, uint64_t at_ns, uint32_t frame);
};

void stacked_thread(const struct analysis *analysis, uint32_t thread, const struct stacked_ops *ops,
                    void *data);

#endif
