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
 *	park, park_ret    entry of _PyParkingLot_Park, return EV_PARK, EV_PARKED
 *	unpark[_N]        entry of _PyParkingLot_Unpark,
 *	                  _PyParkingLot_UnparkAll             EV_UNPARK
 *	stop_world[_N]    entry of stop_the_world             EV_STOP_WORLD
 *	start_world[_N]   entry of start_the_world            EV_START_WORLD
 *	start_world_ret[_N]  its return                       EV_STARTED_WORLD
 *	gil_module        entry of the import machinery's
 *	                  check of a module that was loaded   (its name is kept)
 *	enable_gil        entry of _PyEval_EnableGILPermanent EV_NEEDS_GIL
 *
 * Their fields, by name in the event's format, all optional: gil (u64, the GIL's address or
 * link-time address), and the Python frames of trace/perf/frames.h. For free-threaded builds also:
 *
 * - on (u32): how often the GIL was enabled: 0 is off, INT_MAX for good
 * - lock (u64): the address at which a thread parks
 * - size (u32): of the object there: 1 a PyMutex or an event, 4 a thread's state, 8 another lock
 * - expected (u8): its value: 3 a PyMutex that is locked and waited for (Include/cpython/lock.h)
 * - of, in (ustring): tp_name of the object whose ob_mutex it is; of the one whose first member
 * - name (ustring): of a module
 */
#ifndef GILTRACER_TRACE_PERF_FROM_PERF_H
#define GILTRACER_TRACE_PERF_FROM_PERF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "trace/source.h"

struct gil_function;
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
};

/* Open path; close with source_close. A file that is not a perf.data is an error; a truncated or
 * corrupt one yields the events before the damage, whose offset is in source->stats. */
int from_perf_open(struct source **ret, const char *path, const struct from_perf_options *options,
                   struct error *err);

/* The same from memory, which is borrowed until source_close. */
int from_perf_open_memory(struct source **ret, const void *data, size_t size,
                          const struct from_perf_options *options, struct error *err);

#endif
