/* SPDX-License-Identifier: MIT */
/*
 * The recorder of Python calls. CPython calls it at each call and return, in the thread that it
 * happens in, with the GIL held: that guards all that threads share here.
 *
 * The interpreter is reached by names alone: no header of any version is needed.
 */
#ifndef GILTRACER_PRELOAD_CALLS_H
#define GILTRACER_PRELOAD_CALLS_H

#include "preload/internal.h"

/* What we need of Python.h. Objects are never looked into, except at what calls_python.c verifies.
 */
typedef struct python_object PyObject;
typedef intptr_t Py_ssize_t;

struct calls_stream;

/**
 * What a thread knows of itself.
 * @at, @end: where its next record goes, and where what is mapped for it ends
 * @code: of the call that began last, if nothing happened since; @number: its number
 * @high: of the stamp of the last record, the bits that records do not have
 */
struct calls_self {
	uint64_t *at, *end;
	struct calls_stream *stream;
	PyObject *code;
	uint32_t number;
	uint64_t high;
};

extern __thread struct calls_self calls_self __attribute__((tls_model("initial-exec")));

/* ---- calls_file.c */

bool calls_file_begin(void);

/* Room for a record more, or a stream to begin with; false: there is none, which is counted. */
bool calls_extend(struct calls_self *me, uint64_t stamp);

/* The records that follow are of another time than the stamp's lower bits tell. */
void calls_put_time(struct calls_self *me, uint64_t stamp);

/* Something about the thread, now. */
void calls_say(struct calls_self *me, enum preload_say what);

void calls_file_in_child(void);

static inline void calls_put(struct calls_self *me, enum preload_call_type type, uint32_t number)
{
	uint64_t stamp = clock_stamp(), *at;

	if (UNLIKELY(me->at >= me->end) && !calls_extend(me, stamp))
		return;
	if (UNLIKELY(stamp >> PRELOAD_CALL_STAMP_BITS != me->high))
		calls_put_time(me, stamp);
	at = me->at;
	me->at = at + 1;
	__atomic_store_n(at, PRELOAD_CALL_WORD(type, number, stamp), __ATOMIC_RELEASE);
}

/* ---- calls_codes.c */

/* false: this interpreter has no room for numbers. */
bool calls_codes_begin(void);
void calls_codes_in_child(void);

/**
 * @index: of our number among those that others keep with a code object
 * @offset: of the list of these in it; 0: unknown
 * @generation: a forked child has a log of its own, which is to have all again
 */
struct calls_codes {
	Py_ssize_t index;
	uint32_t offset, generation, next;
};

extern struct calls_codes codes;

uint32_t calls_code_search(PyObject *code);

/* ---- calls.c */

/* Where only calls are recorded, the folder to write to; else NULL. */
const char *calls_folder(void);

void calls_in_child(void);

#endif
