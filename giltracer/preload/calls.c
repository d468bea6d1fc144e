/* SPDX-License-Identifier: MIT */
/*
 * Switches the recording of Python calls on and off. share/python/program.py gets start and stop as
 * the arguments of the ImportError by which the library, imported as a module, fails: so no module
 * of ours is left in the program.
 */
#include "preload/calls_record.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct calls calls;

bool calls_drop(PyObject *result)
{
	if (result)
		python.Py_DecRef(result);
	else
		python.PyErr_Clear();
	return result;
}

/* ---- the environment */

static char folder[PRELOAD_DIR_MAX + 1];

const char *calls_folder(void)
{
	return *folder ? folder : NULL;
}

/* Before CPython looks at it: the program and those that it executes have the environment that they
 * would have without us. A script that starts CPython, as pyenv's, passes it on. */
__attribute__((constructor)) static void clean_environment(void)
{
	const char *dir = secure_getenv(PRELOAD_CALLS_ENV), *others;

	if (!dir || *dir != '/' || strlen(dir) > PRELOAD_DIR_MAX ||
	    !dlsym(RTLD_DEFAULT, "Py_IsInitialized"))
		return;
	memcpy(folder, dir, strlen(dir) + 1);
	unsetenv(PRELOAD_CALLS_ENV);
	others = getenv("LD_PRELOAD");
	others = others ? strchr(others, ':') : NULL;
	if (others)
		setenv("LD_PRELOAD", others + 1, 1);
	else
		unsetenv("LD_PRELOAD");
}

/* ---- on and off */

void calls_stop(void)
{
	static const uint32_t over = 1;
	bool was_on = calls.on;
	PyObject *type, *value, *trace;

	calls.on = false;
	calls.over = &over;
	python.PyErr_Fetch(&type, &value, &trace);
	if (python.minor < PYTHON_MONITORING)
		calls_profile_stop();
	else if (was_on)
		calls_monitor_stop();
	python.PyErr_Restore(type, value, trace);
}

/* None, or a str that says why not. */
static PyObject *start(PyObject *module, PyObject *nothing)
{
	static const uint32_t not_over = 0;
	const char *why = NULL;

	(void)module;
	(void)nothing;
	process_begin();
	if (!process.on || !calls_file_begin() || !calls_codes_begin())
		why = "its folder could not be found";
	else if (!calls.on) {
		calls.on = true;
		calls.over = process.control ? &process.control->stopped : &not_over;
		why = python.minor < PYTHON_MONITORING ? calls_profile_start()
		                                       : calls_monitor_start();
		calls.on = !why;
	}
	if (why)
		return python.PyUnicode_FromString(why);
	python.Py_IncRef(python.none);
	return python.none;
}

static PyObject *stop(PyObject *module, PyObject *nothing)
{
	(void)module;
	(void)nothing;
	if (calls.on)
		calls_stop();
	python.Py_IncRef(python.none);
	return python.none;
}

void calls_in_child(void)
{
	calls_file_in_child();
	calls_codes_in_child();
}

/* What CPython calls when it imports the library. */
__attribute__((visibility("default"))) PyObject *PyInit_giltracer_calls(void);

PyObject *PyInit_giltracer_calls(void)
{
	static struct method methods[] = { { "start", start, METH_NOARGS, NULL },
		                           { "stop", stop, METH_NOARGS, NULL } };
	PyObject *both;

	if (!python_find())
		return NULL;
	both = python.PyTuple_Pack((Py_ssize_t)2, python.PyCFunction_NewEx(&methods[0], NULL, NULL),
	                           python.PyCFunction_NewEx(&methods[1], NULL, NULL));
	if (!both)
		return NULL;
	python.PyErr_SetObject(*python.import_error, both);
	python.Py_DecRef(both);
	return NULL;
}
