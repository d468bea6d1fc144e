/* SPDX-License-Identifier: MIT */
/*
 * asyncio's own loops, which are written in Python. BaseEventLoop._call_soon returns the Handle
 * that it has put into the queue, call_at returns a TimerHandle, and Handle._run runs a handle.
 * The callback of a task's Handle is written in C.
 */
#include "preload/calls_asyncio.h"

#include <string.h>

#define US_PER_SECOND 1000000

enum calls_role calls_asyncio_role(const char *file, size_t len, const char *name)
{
	if (calls_ends_with(file, len, "/asyncio/base_events.py")) {
		if (!strcmp(name, "_call_soon"))
			return CALLS_THAT_SCHEDULE;
		if (!strcmp(name, "call_at"))
			return CALLS_THAT_DEFER;
	}
	if (calls_ends_with(file, len, "/asyncio/events.py") && !strcmp(name, "_run"))
		return CALLS_THAT_RUN;
	return CALLS_OF_NO_ROLE;
}

static bool is_handle(PyObject *object)
{
	return calls_is_type(object, "Handle") || calls_is_type(object, "TimerHandle");
}

/*
 * The task that a callback continues; NULL: none. It is the first member of a TaskStepMethWrapper
 * (then step is set) and, up to 3.9, of a TaskWakeupMethWrapper, both defined in C. Later it is
 * also the object of the bound method task_wakeup.
 */
static PyObject *task_of(PyObject *callback, bool *step)
{
	const char *method;

	*step = calls_is_type(callback, "TaskStepMethWrapper");
	if (*step || calls_is_type(callback, "TaskWakeupMethWrapper"))
		return pointer_at(callback, 16);
	if (pointer_at(callback, 8) != python.builtin)
		return NULL;
	method = (const char *)pointer_at(pointer_at(callback, 16), 0);
	return strcmp(method, "task_wakeup") ? NULL : pointer_at(callback, 24);
}

/* Record that the loop will run, or runs, the handle. */
static void say_handle(struct calls_self *me, enum preload_say what, PyObject *handle)
{
	PyObject *callback, *task;
	bool step;

	if (!is_handle(handle))
		return;
	callback = calls_attribute(handle, "_callback");
	if (!callback)
		return;
	task = task_of(callback, &step);
	calls_say_object(me, task ? PRELOAD_SAY_TASK : PRELOAD_SAY_HANDLE, task ? task : handle);
	if (task && step && what == PRELOAD_SAY_RUNS)
		calls_say_name_of(me, task);
	calls_put(me, PRELOAD_CALL_SAY, what);
	python.Py_DecRef(callback);
}

/* Record when a timer's handle is due, by the clock of BaseEventLoop.time. A time of more than a
 * second ago or too far ahead is that of another clock, and is not recorded. */
static void say_due(struct calls_self *me, PyObject *handle)
{
	PyObject *when;
	double seconds;

	if (!calls_is_type(handle, "TimerHandle"))
		return;
	when = calls_attribute(handle, "_when");
	seconds = when ? python.PyFloat_AsDouble(when) - (double)clock_ns() / 1e9 : -1;
	python.PyErr_Clear();
	calls_drop(when);
	if (!(seconds > -1 && seconds < 1e6))
		return;
	calls_say_object(me, PRELOAD_SAY_HANDLE, handle);
	calls_say_value(me, PRELOAD_SAY_AFTER,
	                seconds > 0 ? (uint64_t)(seconds * US_PER_SECOND) : 0);
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_DUE);
}

/* Record that the loop runs the handle that is the argument of Handle._run. */
static void say_running(struct calls_self *me, PyObject *at)
{
	PyObject *frame = calls_frame(at);
	PyObject *handle = frame ? calls_variable(frame, "self", 0) : NULL;

	if (!handle)
		return;
	say_handle(me, PRELOAD_SAY_RUNS, handle);
	python.Py_DecRef(handle);
}

void calls_asyncio_begins(struct calls_self *me, enum calls_role role, PyObject *at)
{
	if (role != CALLS_THAT_RUN)
		return;
	calls_loops()->handles++;
	say_running(me, at);
}

void calls_asyncio_returns(struct calls_self *me, enum calls_role role, PyObject *value)
{
	if (role == CALLS_THAT_SCHEDULE)
		say_handle(me, PRELOAD_SAY_READY, value);
	else if (role == CALLS_THAT_DEFER)
		say_due(me, value);
}

void calls_asyncio_ended(struct calls_self *me, enum calls_role role)
{
	struct calls_loops *l = calls_loops();

	if (role != CALLS_THAT_RUN)
		return;
	l->handles -= l->handles > 0;
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
}
