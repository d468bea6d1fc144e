/* SPDX-License-Identifier: MIT */
/*
 * The stacks of samples, for formats that are made of stacks: Python frames, and innermost what the
 * thread was doing. Frames of the same function and line are one.
 */
#ifndef GILTRACER_EXPORT_SAMPLED_FRAMES_H
#define GILTRACER_EXPORT_SAMPLED_FRAMES_H

#include "analysis/pystack.h"
#include "analysis/sampled.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "export/place.h"

/* One more than the deepest stack. */
#define SAMPLED_CHAIN_MAX (PYSTACK_DEPTH_MAX + 1)

/* @name, @file: ids in the samples' names; @function: the first frame of the same function */
struct sampled_frame {
	uint32_t name, file, line, function;
};

/**
 * @v: the frames: first enum sampled_what, then two that stand for a missing stack, then functions
 * @samples: NULL: there are none, and no frames. The rest is private.
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

/* What a frame is called; free with place_done. */
void sampled_frames_place(struct place *ret, const struct sampled_frames *frames, uint32_t frame);

/* The frames of a run, the outermost first; returns how many. Those too deep are left out. */
uint32_t sampled_frames_chain(uint32_t ret[SAMPLED_CHAIN_MAX], const struct sampled_frames *frames,
                              const struct sample_run *run);

/* The name of a thread in the samples: the model's, if it is there. Caller frees. */
char *sampled_frames_thread(const struct recording_pass *pass, const struct sample_thread *thread);

#endif
