/* SPDX-License-Identifier: MIT */
/* One call or return, however CPython tells of it. */
#ifndef GILTRACER_PRELOAD_CALLS_RECORD_H
#define GILTRACER_PRELOAD_CALLS_RECORD_H

#include "preload/calls_python.h"

/**
 * @on: calls are recorded; @over: not 0: nothing more is to be
 */
struct calls {
	bool on;
	const volatile uint32_t *over;
};

extern struct calls calls;

/* Ends the recording: by the thread that notices first; by each one, where each has a function. */
void calls_stop(void);

/* From 3.12 on; NULL, or why it could not start. */
const char *calls_monitor_start(void);
void calls_monitor_stop(void);

/* Up to 3.11. The program's own profile functions stay. */
const char *calls_profile_start(void);
void calls_profile_stop(void);

/* Whether there is a result, of which nothing is wanted. */
bool calls_drop(PyObject *result);

static inline PyObject *pointer_at(const void *p, size_t offset)
{
	return *(PyObject *const *)(const void *)((const char *)p + offset);
}

/* The number of a code object; PRELOAD_CALL_CODES_MAX: it is not to be recorded. */
static inline uint32_t calls_code_number(PyObject *code)
{
	const PyObject *list;
	uintptr_t extra;

	if (UNLIKELY(!codes.offset))
		return calls_code_search(code);
	list = pointer_at(code, codes.offset);
	if (UNLIKELY(!list || (Py_ssize_t)pointer_at(list, 0) <= codes.index))
		return calls_code_search(code);
	extra = (uintptr_t)pointer_at(list, sizeof(void *) * (1 + (size_t)codes.index));
	if (UNLIKELY(extra >> 32 != codes.generation))
		return calls_code_search(code);
	return (uint32_t)extra;
}

/* A call that returns next is the one that began last: nobody has freed its code. */
static inline uint32_t calls_number_of(struct calls_self *me, PyObject *code, bool begins)
{
	uint32_t number;

	if (!begins && me->code == code) {
		me->code = NULL;
		return me->number;
	}
	number = calls_code_number(code);
	me->code = begins ? code : NULL;
	me->number = number;
	return number;
}

static inline void calls_record(PyObject *code, enum preload_call_type type)
{
	struct calls_self *me = &calls_self;
	uint32_t number;

	if (UNLIKELY(*calls.over)) {
		calls_stop();
		return;
	}
	number = calls_number_of(me, code, type < PRELOAD_CALL_RETURN);
	if (LIKELY(number != PRELOAD_CALL_CODES_MAX))
		calls_put(me, type, number);
}

#endif
