/* SPDX-License-Identifier: MIT */
/* One call or return, however CPython tells of it. */
#ifndef GILTRACER_PRELOAD_CALLS_RECORD_H
#define GILTRACER_PRELOAD_CALLS_RECORD_H

#include "preload/calls_python.h"

/**
 * @on: calls are recorded; @ended: they were
 * @native: those of functions in C, too
 * @over: not 0: nothing is to be recorded, not yet or no more
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

/* Begins in the current interpreter, if calls are recorded, and as soon as they are. NULL, or why that
 * is not possible. */
const char *calls_start_here(void);

/* Ends the recording, if it has begun: in each interpreter by the thread that notices first; by each
 * one, where each has a function. */
void calls_stop(void);

/* In the current interpreter, as all that follow; from 3.12 on; NULL, or why it could not start. */
const char *calls_monitor_start(void);
void calls_monitor_stop(void);

/* From 3.6 to 3.10; false: not in this interpreter. _begin: a frame runs, of which it learns. */
void calls_eval_begin(void);
bool calls_eval_start(void);
bool calls_eval_is_on(void);
void calls_eval_stop(void);

/* Up to 3.11. The program's own profile functions stay. */
void calls_profile_begin(void);
const char *calls_profile_start(void);
void calls_profile_stop(void);

/* ---- calls_native.c */

/* Functions in C look as they do in CPython. missing: what sys.monitoring gives where there is no first
 * argument. */
bool calls_native_begin(PyObject *missing);

/* code: of the caller; first: what a method may be called for, NULL: it is bound */
void calls_record_native(PyObject *code, enum preload_call_type type, PyObject *function,
                         PyObject *first);

void calls_native_in_child(void);

/* Whether there is a result, of which nothing is wanted. */
bool calls_drop(PyObject *result);

static inline PyObject *pointer_at(const void *p, size_t offset)
{
	return *(PyObject *const *)(const void *)((const char *)p + offset);
}

/* A code object's number with its role, if it has one; PRELOAD_CALL_CODES_MAX: it is not to be recorded. */
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

/* Where something is to be done first: the recording ends, the code is new or has a role, a window is
 * full. at, value: as calls_record_role has them. */
void calls_record_slowly(PyObject *code, enum preload_call_type type, PyObject *at,
                         PyObject *value);

/* Without any call of a function, which would cost as much as the rest. A call that returns next is
 * the one that began last: nobody has freed its code. */
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

#endif
