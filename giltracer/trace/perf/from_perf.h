/* SPDX-License-Identifier: MIT */
/*
 * Turns a perf.data into events. Uprobe events are recognized by their names, group "giltracer_*":
 *
 *	take_gil[_N]      entry of take_gil or a clone        EV_REQUEST
 *	take_gil_ret[_N]  its return                          EV_ACQUIRE
 *	drop_gil[_N]      entry of drop_gil, or the place in
 *	                  an inlined copy that releases       EV_RELEASE
 *	drop_gil_ret[_N]  its return                          EV_RELEASED
 *	save_thread[_N]   entry of PyEval_SaveThread          EV_SAVE
 *
 * Their fields, by name in the event's format, all optional: gil (u64, the GIL's address or
 * link-time address), and the Python frames of trace/perf/frames.h.
 */
#ifndef GILTRACER_TRACE_PERF_FROM_PERF_H
#define GILTRACER_TRACE_PERF_FROM_PERF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "trace/source.h"

struct gil_function;
struct privacy;
struct pycode;

/**
 * @unwind: unwind stack dumps into source->stacks; else only on request, by source_stack_at
 * @functions: of the GIL, function_count of them, which may have no symbol; in the file with
 * @build_id, in hexadecimal, or NULL. Borrowed until source_close
 * @code: the program's code objects, borrowed until source_close; NULL: none, so that Python frames
 * only have names
 * @library: our library records the GIL, in the processes that have it
 * @late_gil: the interpreter makes its GIL with its second thread
 * @with: another source, whose names, stacks and frames it uses, borrowed until source_close; NULL: it
 * has its own
 * @privacy: for its names, borrowed until source_close; NULL: nothing is hidden
 * @machine: the recording is of all CPUs, with any programs: a sched_switch is an EV_PICK
 */
struct from_perf_options {
	bool unwind;
	const struct gil_function *functions;
	size_t function_count;
	const char *build_id;
	const struct pycode *code;
	bool library, late_gil;
	const struct source *with;
	bool machine;
	const struct privacy *privacy;
};

/* Open path; close with source_close. A file that is not a perf.data is an error; a truncated or
 * corrupt one yields the events before the damage, whose offset is in source->stats. */
int from_perf_open(struct source **ret, const char *path, const struct from_perf_options *options,
                   struct error *err);

/* The same from memory, which is borrowed until source_close. */
int from_perf_open_memory(struct source **ret, const void *data, size_t size,
                          const struct from_perf_options *options, struct error *err);

#endif
