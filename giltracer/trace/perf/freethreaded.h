/* SPDX-License-Identifier: MIT */
/* The part of from_perf.c for interpreters that can run without a GIL: threads that park for a
 * lock, stop the world, or turn the GIL on. */
#ifndef GILTRACER_TRACE_PERF_FREETHREADED_H
#define GILTRACER_TRACE_PERF_FREETHREADED_H

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/perf_sample.h"
#include "perfdata/tracefmt.h"
#include "trace/event.h"
#include "trace/perf/frames.h"

struct from_perf;

enum freethreaded_kind {
	FREETHREADED_PARK,   /* parks, unparks, stops and starts the world */
	FREETHREADED_MODULE, /* the import machinery checks a module: no event */
	FREETHREADED_GIL_ON,
};

/**
 * A probe of such an interpreter; fields that it does not fetch are NULL.
 * @type: of its event
 * @lock, @size, @expected, @of, @in: PARK: arguments of _PyParkingLot_Park, and the type of the
 * object at two offsets before the lock
 * @name: MODULE; @on: GIL_ON: the previous value of gil->enabled
 */
struct freethreaded_probe {
	enum freethreaded_kind kind;
	enum event_type type;
	const struct tracefmt_field *lock, *size, *expected, *of, *in, *name, *on;
	struct perf_frames_fields frames;
};

/* Whether a tracepoint is such a probe; if so, describe it. */
bool freethreaded_find(struct freethreaded_probe *ret, const struct tracefmt *fmt);

/* The event of a sample; false: none. */
bool freethreaded_sample(struct from_perf *fp, const struct freethreaded_probe *probe,
                         const struct sample *s, struct event *ev);

/* Flags of an EV_REQUEST or EV_RELEASE; on: the probe's field, NULL: the GIL is never off. */
uint16_t freethreaded_gil_flags(struct from_perf *fp, const struct tracefmt_field *on,
                                const struct cursor *raw, uint32_t frame);

#endif
