/* SPDX-License-Identifier: MIT */
/*
 * A switch of greenlets replaces the stack of the thread, without a call or a return. greenlet
 * itself reports switches to a trace function that each thread has (greenlet.settrace). If the
 * program sets one of its own, ours is gone, and calls of different greenlets are mixed.
 */
#include "preload/calls_greenlet.h"
#include "preload/calls_tasks.h"

#include <string.h>

/* @imported: number of recordings in which greenlet was imported; 0: it is not */
static atomic_uint imported;
static __thread unsigned watched __attribute__((tls_model("initial-exec")));

static PyObject *module(void)
{
	PyObject *modules = python.PySys_GetObject("modules");

	return modules ? python.PyDict_GetItemString(modules, "greenlet") : NULL;
}

void calls_greenlet_begin(void)
{
	if (imported || module())
		imported++;
}

enum calls_role calls_greenlet_role(const char *file, size_t len, const char *name)
{
	return calls_ends_with(file, len, "/greenlet/__init__.py") && !strcmp(name, "<module>")
	               ? CALLS_THAT_IMPORT_GREENLET
	               : CALLS_OF_NO_ROLE;
}

void calls_greenlet_in_child(void)
{
	watched = 0;
}

/* greenlet calls this after a switch, in the greenlet that runs now: (event, (origin, target)). */
static PyObject *switched(PyObject *nothing, PyObject *arguments)
{
	struct calls_self *me = &calls_self;
	PyObject *pair = python.PyTuple_GetItem(arguments, (Py_ssize_t)1);
	PyObject *origin = pair ? python.PyTuple_GetItem(pair, (Py_ssize_t)0) : NULL;
	PyObject *target = origin ? python.PyTuple_GetItem(pair, (Py_ssize_t)1) : NULL;

	(void)nothing;
	if (!target) {
		python.PyErr_Clear();
	} else if (!calls_are_over()) {
		me->code = NULL;
		calls_say_object(me, PRELOAD_SAY_GREENLET, origin);
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
		calls_say_object(me, PRELOAD_SAY_GREENLET, target);
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RUNS);
	}
	python.Py_IncRef(python.none);
	return python.none;
}

/* A trace function that the program has set is kept. */
static void watch(void)
{
	static struct method method = { "switched", switched, METH_VARARGS, NULL };
	PyObject *greenlet = module(), *function;
	PyObject *old = greenlet ? python.PyObject_CallMethod(greenlet, "gettrace", NULL) : NULL;

	if (old == python.none && (function = python.PyCFunction_NewEx(&method, NULL, NULL))) {
		calls_drop(python.PyObject_CallMethod(greenlet, "settrace", "O", function));
		python.Py_DecRef(function);
	}
	calls_drop(old);
}

void calls_greenlet_watch(void)
{
	PyObject *type, *value, *trace;

	if (LIKELY(!imported) || watched == imported)
		return;
	watched = imported;
	python.PyErr_Fetch(&type, &value, &trace);
	watch();
	python.PyErr_Restore(type, value, trace);
}
