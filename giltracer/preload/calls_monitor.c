/* SPDX-License-Identifier: MIT */
/*
 * Records calls by sys.monitoring, from CPython 3.12 on. The recorder is a separate tool there, so
 * the program can use sys.setprofile, sys.monitoring, cProfile or coverage at the same time.
 */
#include "preload/calls_record.h"

#include <string.h>

/* Of the ids 0 to 5, these are the ones that CPython does not name a purpose for. */
static const int tool_ids[] = { 4, 3 };

#define TOOL_NAME "giltracer"

/* Two functions for each event: one with the signature of METH_FASTCALL, and one with that by which
 * CPython calls any callable (PEP 590). */
#define CALLBACK(name, record)                                                                  \
	static PyObject *name(PyObject *module, PyObject *const *args, size_t count)            \
	{                                                                                       \
		(void)module;                                                                   \
		(void)count;                                                                    \
		record;                                                                         \
		return python.none;                                                             \
	}                                                                                       \
	static PyObject *name##_vector(PyObject *callable, PyObject *const *args, size_t count, \
	                               PyObject *names)                                         \
	{                                                                                       \
		(void)names;                                                                    \
		return name(callable, args, count);                                             \
	}

/* Events of a function that is left out are turned off, one after the other. CPython does not permit that for
 * those of exceptions. */
#define LEAVE_OUT                                                                       \
	if (UNLIKELY(calls_self.number == PRELOAD_CALL_CODES_MAX && disable != NULL) && \
	    calls_are_left_out(args[0])) {                                              \
		python.Py_IncRef(disable);                                              \
		return disable;                                                         \
	}

static PyObject *disable;

CALLBACK(on_start, calls_record(args[0], PRELOAD_CALL_START, args[1], NULL); LEAVE_OUT)
CALLBACK(on_resume, calls_record(args[0], PRELOAD_CALL_RESUME, args[1], NULL); LEAVE_OUT)
CALLBACK(on_return, calls_record(args[0], PRELOAD_CALL_RETURN, args[1], args[2]); LEAVE_OUT)
CALLBACK(on_yield, calls_record(args[0], PRELOAD_CALL_YIELD, args[1], args[2]); LEAVE_OUT)
CALLBACK(on_throw, calls_record(args[0], PRELOAD_CALL_THROW, args[1], NULL))
CALLBACK(on_unwind, calls_record(args[0], PRELOAD_CALL_UNWIND, args[1], NULL))

CALLBACK(on_c_call, calls_record_native(args[0], PRELOAD_CALL_START, args[2], args[3]))
CALLBACK(on_c_return, calls_record_native(args[0], PRELOAD_CALL_RETURN, args[2], args[3]))
CALLBACK(on_c_raise, calls_record_native(args[0], PRELOAD_CALL_UNWIND, args[2], args[3]))

static struct monitored {
	const char *event;
	void *vector;
	struct method method;
} monitored[] = {
	{ "PY_START", on_start_vector, { "start", on_start, METH_FASTCALL, NULL } },
	{ "PY_RESUME", on_resume_vector, { "resume", on_resume, METH_FASTCALL, NULL } },
	{ "PY_THROW", on_throw_vector, { "throw", on_throw, METH_FASTCALL, NULL } },
	{ "PY_RETURN", on_return_vector, { "return", on_return, METH_FASTCALL, NULL } },
	{ "PY_YIELD", on_yield_vector, { "yield", on_yield, METH_FASTCALL, NULL } },
	{ "PY_UNWIND", on_unwind_vector, { "unwind", on_unwind, METH_FASTCALL, NULL } },
	/* only if calls of functions in C are recorded */
	{ "CALL", on_c_call_vector, { "c_call", on_c_call, METH_FASTCALL, NULL } },
	{ "C_RETURN", on_c_return_vector, { "c_return", on_c_return, METH_FASTCALL, NULL } },
	{ "C_RAISE", on_c_raise_vector, { "c_raise", on_c_raise, METH_FASTCALL, NULL } },
};

#define MONITORED        (sizeof(monitored) / sizeof(*monitored))
#define MONITORED_PYTHON (MONITORED - 3)

#define NO_TOOL (-1)

static int take_tool(PyObject *monitoring)
{
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(*tool_ids); i++)
		if (calls_drop(python.PyObject_CallMethod(monitoring, "use_tool_id", "is",
		                                          tool_ids[i], TOOL_NAME)))
			return tool_ids[i];
	return NO_TOOL;
}

/* The id of our tool in the current interpreter: each interpreter has tools of its own. */
static int find_tool(PyObject *monitoring)
{
	int found = NO_TOOL;

	for (size_t i = 0; found == NO_TOOL && i < sizeof(tool_ids) / sizeof(*tool_ids); i++) {
		PyObject *name = python.PyObject_CallMethod(monitoring, "get_tool", "i",
		                                            tool_ids[i]);
		char text[CALLS_TEXT_MAX];

		if (name && name != python.none &&
		    calls_put_text(text, name) == sizeof(TOOL_NAME) - 1 &&
		    !memcmp(text, TOOL_NAME, sizeof(TOOL_NAME) - 1))
			found = tool_ids[i];
		calls_drop(name);
	}
	return found;
}

/* The event's bit; 0: there is no such event. */
static long event_of(PyObject *monitoring, const char *name)
{
	PyObject *events = python.PyObject_GetAttrString(monitoring, "events");
	PyObject *event = events ? python.PyObject_GetAttrString(events, name) : NULL;
	long bit = event ? python.PyLong_AsLong(event) : 0;

	calls_drop(event);
	calls_drop(events);
	return bit;
}

/*
 * A function in C contains the address by which it is called (PyCFunctionObject.vectorcall). It is
 * replaced by the address of ours, because CPython's own function checks and converts the arguments
 * first. If the object's layout is not that of CPython up to 3.15, nothing is replaced.
 */
static PyObject *make_callback(struct monitored *m)
{
	PyObject *function = python.PyCFunction_NewEx(&m->method, NULL, NULL);
	const size_t at_vector = python.at.function.vectorcall;

	if (!function)
		return NULL;
	if (pointer_at(function, python.at.function.definition) == (PyObject *)&m->method &&
	    (size_t)pointer_at(python_type(function), python.at.type.vectorcall) == at_vector)
		*(void **)(void *)((char *)function + at_vector) = m->vector;
	return function;
}

/* Register our callbacks, or if on is false, None in place of them. Returns the bits of all events;
 * 0: an error. */
static long register_all(PyObject *monitoring, int tool, bool on)
{
	long all = 0;

	for (size_t i = 0; i < (calls.native ? MONITORED : MONITORED_PYTHON); i++) {
		long event = event_of(monitoring, monitored[i].event);
		PyObject *function = python.none;

		if (!event)
			return 0;
		if (on && !(function = make_callback(&monitored[i])))
			return 0;
		if (!calls_drop(python.PyObject_CallMethod(monitoring, "register_callback", "ilO",
		                                           tool, event, function)))
			return 0;
		if (on)
			python.Py_DecRef(function);
		all |= event;
	}
	return all;
}

/* The reference is released at once: MISSING exists as long as the module does. */
static bool native_begin(PyObject *monitoring)
{
	PyObject *missing = python.PyObject_GetAttrString(monitoring, "MISSING");

	return calls_drop(missing) && calls_native_begin(missing);
}

const char *calls_monitor_start(void)
{
	PyObject *monitoring = python.PySys_GetObject("monitoring");
	int tool = monitoring ? take_tool(monitoring) : NO_TOOL;
	long all;

	if (tool == NO_TOOL)
		return "the program uses the ids 3 and 4 of sys.monitoring itself";
	/* It exists as long as the program does. */
	disable = python.PyObject_GetAttrString(monitoring, "DISABLE");
	if (calls.native && !native_begin(monitoring))
		return "this interpreter is not built as CPython is";
	all = register_all(monitoring, tool, true);
	if (!all ||
	    !calls_drop(python.PyObject_CallMethod(monitoring, "set_events", "il", tool, all)))
		return "sys.monitoring did not accept it";
	return NULL;
}

void calls_monitor_stop(void)
{
	PyObject *monitoring = python.PySys_GetObject("monitoring");
	int tool;

	tool = monitoring ? find_tool(monitoring) : NO_TOOL;
	if (tool == NO_TOOL)
		return;
	calls_drop(python.PyObject_CallMethod(monitoring, "set_events", "il", tool, 0l));
	register_all(monitoring, tool, false);
	calls_drop(python.PyObject_CallMethod(monitoring, "free_tool_id", "i", tool));
}
