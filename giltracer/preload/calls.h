/* SPDX-License-Identifier: MIT */
/*
 * The recorder of Python calls. CPython calls it at each call and return, in the thread that it
 * happens in, with the GIL held: that guards all that threads of one interpreter share here. What all
 * interpreters share is guarded by the lock of calls_lock.h, or read and written atomically.
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

/* What the next record is about: see enum preload_say. */
void calls_say_value(struct calls_self *me, enum preload_say what, uint64_t value);

/* Something about the thread, now. */
void calls_say(struct calls_self *me, enum preload_say what);

void calls_file_in_child(void);

/* A record of now. */
void calls_put(struct calls_self *me, enum preload_call_type type, uint32_t number);

static inline void calls_put_word(struct calls_self *me, uint64_t word)
{
	uint64_t *at = me->at;

	me->at = at + 1;
	__atomic_store_n(at, word, __ATOMIC_RELEASE);
}

/* The same where there is room and nothing is to be said first; else false. */
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

/* false: this interpreter has no room for numbers. */
bool calls_codes_begin(void);
void calls_codes_in_child(void);

/* Of a subinterpreter, where recording begins: the same, but all interpreters have the same numbers. */
bool calls_codes_have_index(void);

/**
 * @index: of our number among those that others keep with a code object
 * @offset: of the list of these in it; 0: unknown
 * @generation: a forked child has a log of its own, which is to have all again
 * @next: the next number; @own: giltracer's own functions have this one and later ones, where calls of
 * functions in C are recorded
 */
struct calls_codes {
	Py_ssize_t index;
	uint32_t offset, generation, next, own;
};

extern struct calls_codes codes;

/* One that nothing has; 0: there is none. */
uint32_t calls_code_new(void);

/* Its number, and above PRELOAD_CALL_CODE_BITS its enum calls_role. */
uint32_t calls_code_search(PyObject *code, PyObject *globals);

/* As UTF-8, at most CALLS_TEXT_MAX bytes: the length. 0: it has none, or is no str. */
#define CALLS_TEXT_MAX 4096
size_t calls_put_text(char *ret, PyObject *text);
size_t calls_put_attribute(char *ret, PyObject *object, const char *attribute);

/* ---- calls_tasks.c */

/* What is to be known of a function's calls besides. */
enum calls_role {
	CALLS_OF_NO_ROLE,
	CALLS_OF_COROUTINE,
	CALLS_THAT_SCHEDULE, /* asyncio's, by their names */
	CALLS_THAT_DEFER,
	CALLS_THAT_RUN,
	CALLS_THAT_CREATE,
	CALLS_OF_TRIO_LOOP, /* from here on trio: see calls_trio.c */
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

/* Whether objects look as they do in CPython with a GIL: before any call is recorded. */
void calls_tasks_begin(void);

enum calls_role calls_role_of(PyObject *code);

/**
 * Of a function that has a role, or is not wanted.
 * @code: up to 3.11 it may be NULL
 * @at: up to 3.11 the frame; later the instruction
 * @value: what is returned or yielded; else NULL
 */
void calls_record_role(PyObject *code, enum preload_call_type type, uint32_t number, PyObject *at,
                       PyObject *value);

void calls_tasks_in_child(void);

/* ---- calls.c */

/* Where only calls are recorded, the folder to write to; else NULL. */
const char *calls_folder(void);

void calls_in_child(void);

#endif
