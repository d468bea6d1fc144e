/* SPDX-License-Identifier: MIT */
/* Records one call or return, whichever way CPython reports it. */
#ifndef GILTRACER_PRELOAD_CALLS_RECORD_H
#define GILTRACER_PRELOAD_CALLS_RECORD_H

#include <stdbool.h>

#include "preload/calls_python.h"

#define FILE_INPUT 257 /* Py_file_input */

/**
 * @on: calls are being recorded; @ended: the recording is over
 * @native: calls of functions in C are recorded, too
 * @over: points to a number that is not 0 before recording begins and after it has ended
 */
struct calls {
	atomic_bool on, ended;
	bool native;
	const volatile uint32_t *over;
};

extern struct calls calls;

static inline bool calls_are_over(void)
{
	return *__atomic_load_n(&calls.over, __ATOMIC_RELAXED);
}

/* Install the recorder in the current interpreter. If recording has not begun yet, calls are
 * recorded as soon as it begins. Returns NULL, or the reason why this is not possible. */
const char *calls_start_here(void);

/* While CPython makes its first GIL: call calls_start_afresh when the program begins, from 3.8 on. The hook for
 * that cannot be added before CPython has chosen its allocators, which free it. */
void calls_watch_start(void *(*symbol)(const char *));

/* Begin in a process that the program started afresh, if calls are recorded. With the GIL. */
void calls_start_afresh(void);

/* The module gc, a new reference; NULL: there is none. It is not left in sys.modules if it was not
 * there. */
PyObject *calls_import_gc(void);

/* End the recording, if it has begun. This removes the recorder from the current interpreter only,
 * and where it uses profile functions, from the current thread only: each interpreter or thread
 * that notices that the recording is over calls this. */
void calls_stop(void);

/* sys.monitoring, from 3.12 on. Like the functions below, these act on the current interpreter.
 * Returns NULL, or the reason why recording could not start. */
const char *calls_monitor_start(void);
void calls_monitor_stop(void);

/* The evaluator of frames (PEP 523), from 3.6 to 3.11. calls_eval_begin checks the layout of the
 * running frame. calls_eval_start returns false if this interpreter cannot be recorded this way. */
void calls_eval_begin(void);
bool calls_eval_start(void);
bool calls_eval_is_on(void);
void calls_eval_stop(void);

/* Profile functions, up to 3.11, if the evaluator cannot be used. Those that the program has set are kept. */
void calls_profile_begin(void);
const char *calls_profile_start(void);
void calls_profile_stop(void);

/* ---- calls_native.c */

/* Call before the functions below. Returns false if functions in C do not have CPython's layout.
 * missing: what sys.monitoring passes if there is no first argument; NULL: it is not used */
bool calls_native_begin(PyObject *missing);

/* code: of the caller; first: the first argument, the object for which an unbound method is called;
 * NULL: the function is bound */
void calls_record_native(PyObject *code, enum preload_call_type type, PyObject *function,
                         PyObject *first);

void calls_native_in_child(void);

/* Release a result, or clear the exception if it is NULL. Returns whether there was a result. */
bool calls_drop(PyObject *result);

static inline PyObject *pointer_at(const void *p, size_t offset)
{
	return *(PyObject *const *)(const void *)((const char *)p + offset);
}

static inline PyObject *python_type(const PyObject *object)
{
	return pointer_at(object, python.at.object_type);
}

/* tp_basicsize of its type. */
static inline size_t python_size(const PyObject *object)
{
	return (size_t)pointer_at(python_type(object), python.at.type.size);
}

/* The name of a type; for one that is defined in C, it includes the module. */
static inline const char *python_type_name(const PyObject *type)
{
	return (const char *)pointer_at(type, python.at.type.name);
}

/* From 3.11 on, frames are no objects, and a frame object refers to one. */
static inline bool python_is_frame_object(const PyObject *frame)
{
	return python.at.frame_inside == PYTHON_NO_OFFSET || python_type(frame) == python.frame;
}

/* The frame that the interpreter links, of a frame object, or that itself. */
static inline PyObject *python_frame(const PyObject *frame)
{
	return python.at.frame_inside == PYTHON_NO_OFFSET || !python_is_frame_object(frame)
	               ? (PyObject *)(uintptr_t)frame
	               : pointer_at(frame, python.at.frame_inside);
}

/*
 * Whether the frame, one that the interpreter links, is suspended: PyFrameObject.f_stacktop is set, or in
 * 3.10 f_state tells. In 3.11 it is PyGenObject.gi_frame_state, which precedes the frame if its owner is a
 * generator.
 */
static inline bool python_is_suspended(const PyObject *frame)
{
	const uint32_t *at = python.at.call;
	const signed char *f = (const signed char *)frame;

	if (at[CALL_STACK_TOP] != PYTHON_NO_OFFSET)
		return pointer_at(frame, at[CALL_STACK_TOP]);
	if (at[CALL_STATE] != PYTHON_NO_OFFSET)
		return f[at[CALL_STATE]] == -1;
	if (at[CALL_OWNER] == PYTHON_NO_OFFSET || at[CALL_GENERATOR] == PYTHON_NO_OFFSET)
		return false;
	return f[at[CALL_OWNER]] == 1 && *(f - at[CALL_GENERATOR]) == -1;
}

/* Get a code object's number, and its role as in calls_with_role. The number PRELOAD_CALL_CODES_MAX
 * means that it is not recorded. Returns false if it has no number. */
static inline bool calls_has_number(PyObject *code, uint32_t *ret)
{
	const PyObject *list;
	uintptr_t extra;

	if (UNLIKELY(!codes.offset))
		return false;
	list = pointer_at(code, codes.offset);
	if (UNLIKELY(!list || (Py_ssize_t)pointer_at(list, 0) <= codes.index))
		return false;
	extra = (uintptr_t)pointer_at(list, sizeof(void *) * (1 + (size_t)codes.index));
	*ret = (uint32_t)extra;
	return LIKELY(extra >> 32 == codes.generation);
}

/* Record a call for which something must be done first: the recording ends, the code is new or has
 * a role, or a window is full. at, value: as in calls_record_role */
void calls_record_slowly(PyObject *code, enum preload_call_type type, PyObject *at,
                         PyObject *value);

/* This calls no function, because that would cost as much as the rest. If the call that began last
 * returns next, its code has not been freed, so its number is still valid. */
static inline __attribute__((always_inline)) bool calls_record_at_once(PyObject *code,
                                                                       enum preload_call_type type)
{
	struct calls_self *me = &calls_self;
	bool begins = type < PRELOAD_CALL_RETURN;
	uint32_t number;

	if (UNLIKELY(calls_are_over()))
		return false;
	if (!begins && me->code == code) {
		me->code = NULL;
		number = me->number;
	} else {
		if (!calls_has_number(code, &number))
			return false;
		me->code = begins ? code : NULL;
		me->number = number;
	}
	if (UNLIKELY(number >= PRELOAD_CALL_CODES_MAX))
		return number == PRELOAD_CALL_CODES_MAX;
	return calls_put_at_once(me, type, number);
}

static inline void calls_record(PyObject *code, enum preload_call_type type, PyObject *at,
                                PyObject *value)
{
	if (UNLIKELY(!calls_record_at_once(code, type)))
		calls_record_slowly(code, type, at, value);
}

/* Whether calls of this function are neither recorded nor examined (--trace-only). */
static inline bool calls_are_left_out(PyObject *code)
{
	uint32_t number;

	return calls_has_number(code, &number) && number == PRELOAD_CALL_CODES_MAX;
}

/* ---- greenlets, of which a thread can have several stacks: gevent, eventlet */

/* Call when recording begins: check whether greenlet is imported. */
void calls_greenlet_begin(void);

/* The role of a function, by its file, of length len. A function of greenlet shows that greenlet is
 * being imported. */
enum calls_role calls_greenlet_role(const char *file, size_t len, const char *name);

/* Watch the switches of the calling thread, once. Cheap if greenlet is not imported. */
void calls_greenlet_watch(void);
void calls_greenlet_in_child(void);

/*
 * ---- Subinterpreters. Recording begins in each one separately, in the thread that runs there first:
 * an audit hook in C is called in all interpreters, and CPython's own initialization of an
 * interpreter raises audit events. The hook is added when the program imports the module that
 * makes interpreters, so other programs have no overhead from it.
 */

/* Whether the calling thread had this thread state at the last event in a subinterpreter.
 * PyGILState only knows a thread's first state. */
bool calls_interpreters_runs(const void *thread);

/* Set the state for which calls_interpreters_runs returns true in the calling thread. */
void calls_interpreters_note(const void *thread);

#endif
