/* SPDX-License-Identifier: MIT */
/*
 * uvloop: its loop is machine code, whose calls CPython does not report. It runs tasks of asyncio:
 * a coroutine that no other coroutine has called is a step of the loop's current task. It cannot be
 * seen when a task is put into the loop's queue, except when it is created, and when its coroutine
 * yields None, since that puts it there again at once.
 */
#include "preload/calls_uvloop.h"

#include <string.h>

static bool is_imported;

void calls_uvloop_begin(void)
{
	PyObject *modules = python.PySys_GetObject("modules");

	if (modules && python.PyDict_GetItemString(modules, "uvloop"))
		is_imported = true;
}

bool calls_uvloop_is_imported(void)
{
	return is_imported;
}

enum calls_role calls_uvloop_role(const char *file, size_t len, const char *name)
{
	bool makes = false;

	if (calls_ends_with(file, len, "/uvloop/__init__.py"))
		is_imported = true;
	else if (calls_ends_with(file, len, "/asyncio/tasks.py"))
		/* Several functions return the same task; this is the innermost one. */
		makes = !strcmp(name, "create_task") ||
		        !strcmp(name, python.minor == 10 || python.minor == 11 ? "_ensure_future"
		                                                               : "ensure_future");
	else if (calls_ends_with(file, len, "/asyncio/taskgroups.py"))
		makes = !strcmp(name, "create_task");
	return makes ? CALLS_THAT_CREATE : CALLS_OF_NO_ROLE;
}

/* ---- the loop and its task */

/* Call a function of the module _asyncio that is written in C: its result, a new reference;
 * NULL: there is no such function. */
static PyObject *call(const char *name, PyObject *argument)
{
	PyObject *modules = python.PySys_GetObject("modules");
	PyObject *module = modules ? python.PyDict_GetItemString(modules, "_asyncio") : NULL;
	PyObject *function = module ? calls_attribute(module, name) : NULL;
	PyObject *arguments = NULL, *result = NULL;

	if (!function)
		return NULL;
	if (argument)
		arguments = python.PyTuple_Pack((Py_ssize_t)1, argument);
	if (pointer_at(function, 8) == python.builtin)
		result = python.PyObject_CallObject(function, arguments);
	python.PyErr_Clear();
	if (arguments)
		python.Py_DecRef(arguments);
	python.Py_DecRef(function);
	return result;
}

/* Reads PyTypeObject.tp_base and tp_hash. A loop with a hash of its own is not used as a key,
 * because the hash may be a function of the program. */
static bool is_uvloop(PyObject *loop)
{
	const size_t at_base = 256, at_hash = 120;
	PyObject *type = pointer_at(loop, 8);

	if (!python.object || pointer_at(type, at_hash) != pointer_at(python.object, at_hash))
		return false;
	for (; type; type = pointer_at(type, at_base))
		if (!strcmp((const char *)pointer_at(type, 24), "uvloop.loop.Loop"))
			return true;
	return false;
}

/* The loop that this thread runs, a new reference; NULL: none, or not uvloop. */
static PyObject *running_loop(void)
{
	PyObject *loop = call("_get_running_loop", NULL);

	if (!loop || is_uvloop(loop))
		return loop;
	python.Py_DecRef(loop);
	return NULL;
}

/* A new reference; NULL: none. Up to 3.11, a dict of the module contains it. */
static PyObject *current_task(PyObject *loop)
{
	PyObject *modules = python.PySys_GetObject("modules"), *module, *all, *task;

	if (python.minor >= 12)
		return call("current_task", loop);
	module = modules ? python.PyDict_GetItemString(modules, "_asyncio") : NULL;
	all = module ? calls_attribute(module, "_current_tasks") : NULL;
	task = all ? python.PyDict_GetItem(all, loop) : NULL;
	if (task)
		python.Py_IncRef(task);
	if (all)
		python.Py_DecRef(all);
	return task;
}

static bool is_task(PyObject *object)
{
	return !strcmp(calls_type_name(object), "_asyncio.Task");
}

/* ---- steps */

bool calls_uvloop_step(struct calls_self *me, struct calls_loops *l)
{
	PyObject *loop = running_loop(), *task = loop ? current_task(loop) : NULL;
	bool known = task && task != python.none;

	if (known) {
		l->task = task;
		calls_say_object(me, PRELOAD_SAY_UVLOOP_TASK, task);
		calls_say_name_of(me, task);
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RUNS);
	}
	if (task)
		python.Py_DecRef(task);
	if (loop)
		python.Py_DecRef(loop);
	return known;
}

static void say_ready(struct calls_self *me, PyObject *task)
{
	calls_say_object(me, PRELOAD_SAY_UVLOOP_TASK, task);
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_READY);
}

void calls_uvloop_step_ends(struct calls_self *me, struct calls_loops *l,
                            enum preload_call_type type, PyObject *value)
{
	if (type == PRELOAD_CALL_YIELD && value == python.none)
		say_ready(me, l->task);
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
}

static bool is_true(PyObject *value)
{
	long is = value ? python.PyLong_AsLong(value) : 0;

	python.PyErr_Clear();
	if (value)
		python.Py_DecRef(value);
	return is > 0;
}

/* Whether the task has run already, as eager tasks have (3.12 and later). */
static bool has_begun(PyObject *task)
{
	PyObject *coroutine;
	bool begun;

	if (python.minor < 12)
		return false;
	if (is_true(python.PyObject_CallMethod(task, "done", NULL)))
		return true;
	coroutine = calls_attribute(task, "_coro");
	begun = coroutine && is_true(calls_attribute(coroutine, "cr_suspended"));
	if (coroutine)
		python.Py_DecRef(coroutine);
	return begun;
}

/* Whether ensure_future returns the task that is its argument. */
static bool is_argument(PyObject *at, PyObject *value)
{
	PyObject *frame = calls_frame(at);
	PyObject *argument = frame ? calls_variable(frame, "coro_or_future", 0) : NULL;

	if (argument)
		python.Py_DecRef(argument);
	return argument == value;
}

void calls_uvloop_created(struct calls_self *me, PyObject *at, PyObject *value)
{
	PyObject *loop;

	if (!is_imported || !is_task(value))
		return;
	loop = running_loop();
	if (loop && !is_argument(at, value) && !has_begun(value))
		say_ready(me, value);
	if (loop)
		python.Py_DecRef(loop);
}
