/* SPDX-License-Identifier: MIT */
/* What the formats have in common: the events of a recording, its stacks, and the names in them. */
#ifndef GILTRACER_EXPORT_WALK_H
#define GILTRACER_EXPORT_WALK_H

#include <stdint.h>

#include "analysis/analysis.h"
#include "analysis/pystack.h"
#include "analysis/sampled.h"
#include "base/idmap.h"
#include "base/vec.h"

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

/**
 * A wait for a lock or a signal that ended.
 * @signal: for a signal, as a part of the time without the GIL; otherwise it is a span of its own
 * @by: the thread that released the lock last, or sent the signal, at @sent_ns; MODEL_NONE: none did, or
 * unknown
 */
struct walk_wake {
	uint32_t thread, by;
	bool signal;
	uint64_t start_ns, sent_ns, end_ns;
};

/* Any of them may be NULL. For each thread, its calls come first, then its spans, lane by lane, then
 * the ends of its waits. States without a name are omitted. */
struct walk_ops {
	void (*thread)(void *data, uint32_t thread);
	void (*call)(void *data, uint32_t thread, const struct slice *call);
	void (*span)(void *data, const struct walk_span *span);
	void (*wake)(void *data, const struct walk_wake *wake);
	void (*gil)(void *data, uint32_t gil);
	void (*owner)(void *data, const struct walk_owner *owner);
	void (*lost)(void *data, const struct model_lost *lost);
};

void walk(const struct analysis *analysis, const struct walk_ops *ops, void *data);

/* The name of a state; NULL for states of no interest: without the GIL, and unknown CPU states. */
const char *walk_state_name(enum walk_lane lane, unsigned state);

/* A common form for functions of both kinds of Python stacks: frames read by the probes, and
 * calls. */

/* Valid UTF-8, malloced; free with place_done. @line: 0 if unknown */
struct place {
	char *name, *file;
	uint32_t line;
};

/* From the name of a call in VizTracer's form, "name (file:line)"; any other text becomes the
 * name. */
void place_of_call(struct place *ret, const char *text);

/* From separate parts; NULL becomes "". */
void place_of(struct place *ret, const char *name, const char *file, uint32_t line);
void place_done(struct place *place);

/* A copy of text with U+FFFD for invalid UTF-8; the caller frees it. */
char *place_text(const char *text);

/*
 * A thread as a stack of functions over time, for formats made of stacks: its Python calls or, if
 * they were not traced, the function that the probes read for each span, and innermost the state of
 * the GIL. Calls that outlast their caller are cut.
 */

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

/* The stacks of samples, for formats made of stacks: Python frames, and innermost the thread's
 * activity. Frames of the same function and line are merged. */

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
