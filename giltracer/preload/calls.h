/* SPDX-License-Identifier: MIT */
/*
 * The recorder of Python calls. CPython calls it at each call and return, in the thread in which
 * that happens, with the GIL held. The GIL guards the data that the threads of one interpreter
 * share. The data that all interpreters share is guarded by calls_lock, or read and
 * written atomically.
 *
 * CPython's functions are found by their names, so no header of any version is needed.
 */
#ifndef GILTRACER_PRELOAD_CALLS_H
#define GILTRACER_PRELOAD_CALLS_H

#include "preload/internal.h"

/* The types of Python.h that are used. Members of objects are read at the offsets that the running
 * version uses. */
typedef struct python_object PyObject;
typedef intptr_t Py_ssize_t;

struct calls_stream;

/**
 * The recorder's state of a thread.
 * @at, @end: where its next record goes, and the end of the space for records
 * @code: of the call that began last, if nothing happened since; @number: its number
 * @high: upper bits of the last record's stamp, which records do not contain
 * @deep: the address in C's stack, and @shallow: the number of bytes above it, in which functions of 3.11
 * can be recorded by an evaluator; 0: not known yet
 */
struct calls_self {
	uint64_t *at, *end;
	struct calls_stream *stream;
	PyObject *code;
	uint32_t number;
	uint64_t high;
	uintptr_t deep;
	size_t shallow;
};

extern __thread struct calls_self calls_self __attribute__((tls_model("initial-exec")));

/* ---- calls_file.c */

bool calls_file_begin(void);

/* Make room for a record; a thread without a file gets one. Returns false if there is no room; the
 * record is then counted as lost. */
bool calls_extend(struct calls_self *me, uint64_t stamp);

/* Record the upper bits of the stamp, for the records that follow. */
void calls_put_time(struct calls_self *me, uint64_t stamp);

/* Record something about the next record: see enum preload_say. */
void calls_say_value(struct calls_self *me, enum preload_say what, uint64_t value);

/* Record something about the thread, with the current time. */
void calls_say(struct calls_self *me, enum preload_say what);

void calls_file_in_child(void);

/* Add a record with the current time. */
void calls_put(struct calls_self *me, enum preload_call_type type, uint32_t number);

static inline void calls_put_word(struct calls_self *me, uint64_t word)
{
	uint64_t *at = me->at;

	me->at = at + 1;
	__atomic_store_n(at, word, __ATOMIC_RELEASE);
}

/* Like calls_put, but returns false if there is no room, if PRELOAD_SAY_TIME has to come first, or
 * if the clock is not the TSC. */
static inline bool calls_put_at_once(struct calls_self *me, enum preload_call_type type,
                                     uint32_t number)
{
	uint64_t stamp;

	if (UNLIKELY(me->at >= me->end || !clock_is_tsc))
		return false;
	stamp = clock_stamp();
	if (UNLIKELY(stamp >> PRELOAD_CALL_STAMP_BITS != me->high))
		return false;
	calls_put_word(me, PRELOAD_CALL_WORD(type, number, stamp));
	return true;
}

/* ---- calls_codes.c */

/* Reserve an index for numbers in code objects. Returns false if CPython has none left. */
bool calls_codes_begin(void);
void calls_codes_in_child(void);

/* Reserve the same index in a subinterpreter in which recording begins. Returns false if that is
 * not possible. */
bool calls_codes_have_index(void);

/**
 * @index: of our number in the list of data that others keep with a code object
 * @offset: of this list in the code object; 0: unknown
 * @generation: incremented in a forked child, whose own log must describe all functions again
 * @next: the next number; @own: lowest number of giltracer's own functions, which get the highest
 * numbers; calls of functions in C by them are not recorded
 */
struct calls_codes {
	Py_ssize_t index;
	uint32_t offset, generation, next, own;
};

extern struct calls_codes codes;

/* Returns a new number; 0: all numbers are used. */
uint32_t calls_code_new(void);

/* Returns the code object's number, and above PRELOAD_CALL_CODE_BITS its enum calls_role. A new
 * code object gets a number; 0: all numbers are used. globals: of the function; NULL: the current
 * ones */
uint32_t calls_code_search(PyObject *code, PyObject *globals);

/* Copy a text as UTF-8, at most CALLS_TEXT_MAX bytes, not terminated. Returns the length; 0: there
 * is none, or it is not a str. */
#define CALLS_TEXT_MAX 4096
size_t calls_put_text(char *ret, PyObject *text);
size_t calls_put_attribute(char *ret, PyObject *object, const char *attribute);

/* ---- calls_tasks.c */

/* Why calls of a function are examined in addition to being recorded. */
enum calls_role {
	CALLS_OF_NO_ROLE,
	CALLS_OF_COROUTINE,
	CALLS_THAT_SCHEDULE, /* from here on asyncio */
	CALLS_THAT_DEFER,
	CALLS_THAT_RUN,
	CALLS_THAT_CREATE,
	CALLS_THAT_IMPORT_GREENLET,
	CALLS_OF_TRIO_LOOP, /* from here on trio */
	CALLS_OF_TRIO_RESCHEDULE,
	CALLS_OF_TRIO_EXITED,
	CALLS_OF_TRIO_EXPIRE,
	CALLS_OF_TRIO_CANCEL,
	CALLS_OF_TRIO_SOON,
	CALLS_OF_TRIO_CALLBACK,
	CALLS_ROLES,
};

static inline uint32_t calls_with_role(uint32_t number, enum calls_role role)
{
	return (uint32_t)role << PRELOAD_CALL_CODE_BITS | number;
}

/* Call before any call is recorded. Tasks are only recorded if objects have the layout that they
 * have in CPython with a GIL. */
void calls_tasks_begin(void);

enum calls_role calls_role_of(PyObject *code);

/**
 * Record a call of a function that has a role or is not recorded itself.
 * @code: up to 3.11 it may be NULL
 * @at: up to 3.11 the frame; later the offset of the instruction
 * @value: what is returned or yielded; else NULL
 */
void calls_record_role(PyObject *code, enum preload_call_type type, uint32_t number, PyObject *at,
                       PyObject *value);

void calls_tasks_in_child(void);

/* ---- calls.c */

/* The folder to write to if only calls are recorded; else NULL. */
const char *calls_folder(void);

void calls_in_child(void);

/* Ends the recording of calls, from any thread, whether it holds the GIL or not. */
void calls_end(void);

/*
 * ---- The lock of the data that all interpreters of the process share: from CPython 3.12 on, each may
 * have a GIL of its own, which then does not guard this data. Nothing that may run Python code is
 * called while the lock is held. It is not recursive.
 */

void calls_lock(void);
void calls_unlock(void);

/* Call in a forked child, in which the thread that held the lock may not exist. */
void calls_lock_in_child(void);

#endif
