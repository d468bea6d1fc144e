/* SPDX-License-Identifier: MIT */
/*
 * Tasks of event loops: functions that the recorders of all kinds of loops share. Objects are read
 * at the offsets that this version of CPython uses; none of the program's code is called.
 */
#ifndef GILTRACER_PRELOAD_CALLS_TASKS_H
#define GILTRACER_PRELOAD_CALLS_TASKS_H

#include "preload/calls_record.h"

/* ---- calls_objects.c */

/* tp_name of the object's type; for a type defined in C, it includes the module. */
const char *calls_type_name(PyObject *object);

/* Whether the last part of its type's name is this name. */
bool calls_is_type(PyObject *object, const char *name);

/* Returns a new reference; NULL, without an exception, if there is no such attribute. */
PyObject *calls_attribute(PyObject *object, const char *name);

/* The frame of the function that has just been called, or that returns; borrowed; NULL: unknown.
 * at: as in calls_record_role */
PyObject *calls_frame(PyObject *at);

/**
 * A variable of a function, a new reference; NULL: it has no value.
 * @index: among the code's co_varnames, which is used up to 3.11; UINT_MAX: unknown
 */
PyObject *calls_variable(PyObject *frame, const char *name, unsigned index);

/* The variable's index; UINT_MAX: the code has no such variable. */
unsigned calls_variable_index(PyObject *code, const char *name);

bool calls_ends_with(const char *text, size_t len, const char *end);

/* ---- calls_tasks.c */

/* State which object the next record is about. */
void calls_say_object(struct calls_self *me, enum preload_say kind, PyObject *object);

/* Record a name of a task, unless is_default says that the program did not give it. The
 * reference to name is released; NULL: there is none. */
void calls_say_name(struct calls_self *me, PyObject *task, PyObject *name,
                    bool (*is_default)(PyObject *task, const char *name, size_t len));

/* Call when a new task has this address: its name has not been recorded. */
void calls_forget_name(PyObject *task);

/* Record the name of a task of asyncio, if the program gave it one. */
void calls_say_name_of(struct calls_self *me, PyObject *task);

/* Kinds of loops that are recognised by the coroutines that they call. */
enum calls_loop { CALLS_NO_LOOP, CALLS_TRIO, CALLS_UVLOOP };

/**
 * State of the event loops of a thread.
 * @recording: number of the recording for which the rest is valid
 * @coroutines: number of open coroutines within the innermost loop; @outer: the same outside trio's
 * loop
 * @handles: number of handles of asyncio's own loop that are running
 * @step: the outermost coroutine is a step of a task of this loop; CALLS_NO_LOOP: it is not
 * @task: this task, for comparison only
 * For trio:
 * @frame: frame of the function that implements the loop, a reference; NULL: the loop is not
 * running
 * @exits: the coroutine of the task has ended, but the loop has not yet informed other tasks
 * @expires: the loop is processing deadlines; @now: the time of its clock; @cancels: number of open
 * calls of cancel meanwhile
 */
struct calls_loops {
	uint64_t recording;
	uint32_t coroutines, outer, handles, cancels;
	enum calls_loop step;
	PyObject *task, *frame;
	bool exits, expires;
	double now;
};

/* The state of this thread. */
struct calls_loops *calls_loops(void);

#endif
