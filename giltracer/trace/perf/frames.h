/* SPDX-License-Identifier: MIT */
/*
 * Turns the Python frames that a probe on take_gil fetched (with the fields of python/probes.h)
 * into stacks. Uncertain frames are dropped: an object is code only if its type is PyCode_Type, and
 * a listed code object is the same only if address, first line and name agree. Frames of the
 * interpreter's own, which belong to no function, are omitted; so are giltracer's own functions,
 * which run the program.
 */
#ifndef GILTRACER_TRACE_PERF_FRAMES_H
#define GILTRACER_TRACE_PERF_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "perfdata/tracefmt.h"

struct names;
struct perf_frames;
struct pycode;
struct stacks;

#define PERF_FRAMES_MAX 8

/**
 * The fields of one event, looked up once.
 * @none: NULL: the event does not have it
 * @from: offset of the first of them except probe_ip, which precedes all
 * @count: number of frames; 0: none
 */
struct perf_frames_fields {
	const struct tracefmt_field *probe_ip, *code_type, *none;
	struct {
		const struct tracefmt_field *type, *code, *instruction, *line, *state, *name;
	} frame[PERF_FRAMES_MAX];
	uint32_t from;
	unsigned count;
};

/* All are borrowed until perf_frames_free; code may be NULL: then files and lines are unknown. */
struct perf_frames *perf_frames_new(struct names *names, struct stacks *stacks,
                                    const struct pycode *code);
void perf_frames_free(struct perf_frames *frames);

struct perf_frames_fields perf_frames_find(const struct tracefmt *format);

/* The id in stacks of the innermost frame, whose parents are its callers; 0: none. A frame whose
 * callers were not fetched has no parent. */
uint32_t perf_frames_get(struct perf_frames *frames, const struct perf_frames_fields *fields,
                         const struct cursor *raw);

#endif
