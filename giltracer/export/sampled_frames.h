/* SPDX-License-Identifier: MIT */
/* The stacks of samples, for formats made of stacks: Python frames, and innermost the thread's
 * activity. Frames of the same function and line are merged. */
#ifndef GILTRACER_EXPORT_SAMPLED_FRAMES_H
#define GILTRACER_EXPORT_SAMPLED_FRAMES_H

#include "analysis/pystack.h"
#include "analysis/sampled.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "export/place.h"

/* One more than the depth of the deepest stack. */
#define SAMPLED_CHAIN_MAX (PYSTACK_DEPTH_MAX + 1)

/* @name, @file: ids in the samples' names; @function: the first frame of the same function */
struct sampled_frame {
	uint32_t name, file, line, function;
};

/**
 * @v: the frames: first enum sampled_what, then two placeholders for missing stacks, then functions
 * @samples: NULL: there are neither samples nor frames. The rest is private.
 */
struct sampled_frames {
	VEC(struct sampled_frame) v;
	const struct samples *samples;
	uint32_t *of_stack;
	struct idmap functions, lines;
};

/* Borrows samples, which may be NULL. Free with sampled_frames_done. */
void sampled_frames_init(struct sampled_frames *frames, const struct samples *samples);
void sampled_frames_done(struct sampled_frames *frames);

/* The name and place of a frame; free with place_done. */
void sampled_frames_place(struct place *ret, const struct sampled_frames *frames, uint32_t frame);

/* Writes the frames of a run, outermost first, without those that are too deep; returns their
 * number. */
uint32_t sampled_frames_chain(uint32_t ret[SAMPLED_CHAIN_MAX], const struct sampled_frames *frames,
                              const struct sample_run *run);

/* The name of a thread in the samples, preferably the model's. The caller frees it. */
char *sampled_frames_thread(const struct recording_pass *pass, const struct sample_thread *thread);

#endif
