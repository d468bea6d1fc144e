/* SPDX-License-Identifier: MIT */
/*
 * The Python frames that a probe on take_gil fetched (fields as locate/framefetch.h has them),
 * turned into stacks. What is not certain is no frame: an object is code only if its type is
 * PyCode_Type, and a code object of the list is the same only if address, first line and name
 * agree. Frames of the interpreter's own, which are no function's, are left out, and so are
 * giltracer's own functions, which run the program.
 */
#ifndef GILTRACER_TRACE_PERF_FRAMES_H
#define GILTRACER_TRACE_PERF_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "perfdata/cursor.h"
#include "perfdata/tracefmt.h"

struct names;
struct perf_frames;
struct pycode;
struct stacks;

#define PERF_FRAMES_MAX 8

/**
 * Where the fields of one event are, looked up once.
 * @none: NULL: it has none
 * @from: offset of the first of them but probe_ip, which stands before all
 * @count: 0: it has none
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

/* The id in stacks of the innermost frame, whose parents are its callers; 0: there is none. A frame
 * whose callers were not fetched has no parent. */
uint32_t perf_frames_get(struct perf_frames *frames, const struct perf_frames_fields *fields,
                         const struct cursor *raw);

#endif
