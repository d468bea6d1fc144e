/* SPDX-License-Identifier: MIT */
/*
 * Switches the recording of Python calls on and off. share/python/program.py gets start and stop as
 * the arguments of the ImportError by which the library, imported as a module, fails: so no module
 * of ours is left in the program.
 *
 * From CPython 3.12 on, sys.monitoring calls us, as a tool of its own: what the program does with
 * sys.setprofile, sys.monitoring, cProfile or coverage goes on beside it. Before, it is the
 * profile function of each thread, of which there is one.
 */
#include "preload/calls_python.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* PyTrace_* of pystate.h. */
#define PROFILE_CALL   0
#define PROFILE_RETURN 3

/* The first version that has sys.monitoring. */
#define MONITORING 12

/* Of ids 0 to 5, those that have no purpose by name. */
static const int tool_ids[] = { 4, 3 };

/* over: not 0: nothing is to be recorded */
static struct {
	bool on;
	int tool;
	const volatile uint32_t *over;
	PyObject *profile_owner;
} calls;

/* ---- what happens */

static void stop_here(void);

/* A call that returns next is the one that began last: nobody has freed its code. */
static inline uint32_t number_of(struct calls_self *me, PyObject *code, bool begins)
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

static inline void record(PyObject *code, enum preload_call_type type)
{
	struct calls_self *me = &calls_self;
	uint32_t number;

	if (UNLIKELY(*calls.over)) {
		stop_here();
		return;
	}
	number = number_of(me, code, type < PRELOAD_CALL_RETURN);
	if (LIKELY(number != PRELOAD_CALL_CODES_MAX))
		calls_put(me, type, number);
}

/* ---- sys.monitoring */

static PyObject *pointer_at(const void *p, size_t offset)
{
	return *(PyObject *const *)(const void *)((const char *)p + offset);
}

/* As CPython calls a function with METH_FASTCALL, and as it calls any callable by PEP 590. */
#define CALLBACK(name, type)                                                                    \
	static PyObject *name(PyObject *module, PyObject *const *args, size_t count)            \
	{                                                                                       \
		(void)module;                                                                   \
		(void)count;                                                                    \
		record(args[0], type);                                                          \
		return python.none;                                                             \
	}                                                                                       \
	static PyObject *name##_vector(PyObject *callable, PyObject *const *args, size_t count, \
	                               PyObject *names)                                         \
	{                                                                                       \
		(void)names;                                                                    \
		return name(callable, args, count);                                             \
	}

CALLBACK(on_start, PRELOAD_CALL_START)
CALLBACK(on_resume, PRELOAD_CALL_RESUME)
CALLBACK(on_throw, PRELOAD_CALL_THROW)
CALLBACK(on_return, PRELOAD_CALL_RETURN)
CALLBACK(on_yield, PRELOAD_CALL_YIELD)
CALLBACK(on_unwind, PRELOAD_CALL_UNWIND)

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
};

#define MONITORED (sizeof(monitored) / sizeof(*monitored))

/* Whether there is a result, of which nothing is wanted. */
static bool drop(PyObject *result)
{
	if (result)
		python.Py_DecRef(result);
	else
		python.PyErr_Clear();
	return result;
}

static bool take_tool(PyObject *monitoring)
{
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(*tool_ids); i++) {
		calls.tool = tool_ids[i];
		if (drop(python.PyObject_CallMethod(monitoring, "use_tool_id", "is", calls.tool,
		                                    "giltracer")))
			return true;
	}
	return false;
}

/* The event's bit, 0: there is no such event. */
static long event_of(PyObject *monitoring, const char *name)
{
	PyObject *events = python.PyObject_GetAttrString(monitoring, "events");
	PyObject *event = events ? python.PyObject_GetAttrString(events, name) : NULL;
	long bit = event ? python.PyLong_AsLong(event) : 0;

	drop(event);
	drop(events);
	return bit;
}

/*
 * A function of C keeps the address by which it is called (PyCFunctionObject.vectorcall): ours is
 * called at once, not by CPython's own, which checks and converts. Where the object looks otherwise
 * than it does up to 3.15, it stays as it is.
 */
static PyObject *make_callback(struct monitored *m)
{
	PyObject *function = python.PyCFunction_NewEx(&m->method, NULL, NULL);
	const size_t at_method = 16, at_vector = 48, type_vector = 56;
	const char *type;

	if (!function)
		return NULL;
	type = (const char *)pointer_at(function, 8);
	if (pointer_at(function, at_method) == (PyObject *)&m->method &&
	    (size_t)pointer_at(type, type_vector) == at_vector)
		*(void **)(void *)((char *)function + at_vector) = m->vector;
	return function;
}

/* With NULL for them, they are called no more. */
static long register_all(PyObject *monitoring, bool on)
{
	long all = 0;

	for (size_t i = 0; i < MONITORED; i++) {
		long event = event_of(monitoring, monitored[i].event);
		PyObject *function = python.none;

		if (!event)
			return 0;
		if (on && !(function = make_callback(&monitored[i])))
			return 0;
		if (!drop(python.PyObject_CallMethod(monitoring, "register_callback", "ilO",
		                                     calls.tool, event, function)))
			return 0;
		if (on)
			python.Py_DecRef(function);
		all |= event;
	}
	return all;
}

static const char *start_monitoring(void)
{
	PyObject *monitoring = python.PySys_GetObject("monitoring");
	long all;

	if (!monitoring || !take_tool(monitoring))
		return "the program uses the ids 3 and 4 of sys.monitoring itself";
	all = register_all(monitoring, true);
	if (!all ||
	    !drop(python.PyObject_CallMethod(monitoring, "set_events", "il", calls.tool, all)))
		return "sys.monitoring did not accept it";
	return NULL;
}

static void stop_monitoring(void)
{
	PyObject *monitoring = python.PySys_GetObject("monitoring");

	if (!monitoring)
		return;
	drop(python.PyObject_CallMethod(monitoring, "set_events", "il", calls.tool, 0l));
	register_all(monitoring, false);
	drop(python.PyObject_CallMethod(monitoring, "free_tool_id", "i", calls.tool));
}

/* ---- the profile function, up to 3.11 */

/* PyFrameObject.f_code; 3.11: PyFrameObject.f_frame->f_code. */
static PyObject *code_of(const PyObject *frame)
{
	return python.minor < 11 ? pointer_at(frame, 32) : pointer_at(pointer_at(frame, 24), 32);
}

static bool is_code_known(void)
{
	PyObject *frame = python.PyEval_GetFrame(), *code;
	bool same;

	code = frame ? python.PyObject_GetAttrString(frame, "f_code") : NULL;
	same = code && code == code_of(frame);
	drop(code);
	return same;
}

static int on_profile(PyObject *owner, PyObject *frame, int what, PyObject *arg)
{
	(void)owner;
	if (what == PROFILE_CALL)
		record(code_of(frame), PRELOAD_CALL_START);
	else if (what == PROFILE_RETURN)
		record(code_of(frame), arg ? PRELOAD_CALL_RETURN : PRELOAD_CALL_UNWIND);
	return 0;
}

/* The interpreter's threads; before 3.9 that of the main one, which is the last of the list. */
static void *first_thread(void)
{
	void *interpreter, *next;

	if (python.PyInterpreterState_Get)
		return python.PyInterpreterState_ThreadHead(python.PyInterpreterState_Get());
	interpreter = python.PyInterpreterState_Head();
	while ((next = python.PyInterpreterState_Next(interpreter)))
		interpreter = next;
	return python.PyInterpreterState_ThreadHead(interpreter);
}

static void profile_thread(void *tstate)
{
	void *own = python.PyThreadState_Swap(tstate);

	python.PyEval_SetProfile(on_profile, calls.profile_owner);
	python.PyThreadState_Swap(own);
}

static const char *start_profiling(void)
{
	if (!is_code_known())
		return "this interpreter is not built as CPython is";
	for (void *thread = first_thread(); thread; thread = python.PyThreadState_Next(thread))
		profile_thread(thread);
	return NULL;
}

/* Each thread ends it by itself, when it is called next. */
static void stop_profiling(void)
{
	python.PyEval_SetProfile(NULL, NULL);
}

/* CPython has just made the new thread's state, which is the first one of all, and has the GIL. */
static void profile_new_thread(const char *caller)
{
	void *own = python.PyGILState_GetThisThreadState(), *thread;
	Dl_info ours, theirs;

	if (!own || own != python._PyThreadState_UncheckedGet() || !dladdr(caller, &ours) ||
	    !dladdr((const void *)python.PyThreadState_Swap, &theirs) ||
	    ours.dli_fbase != theirs.dli_fbase)
		return;
	thread = first_thread();
	if (thread && thread != own)
		profile_thread(thread);
}

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	if (UNLIKELY(calls.on) && python.minor < MONITORING)
		profile_new_thread(__builtin_return_address(0));
	return real(thread, attr, start, arg);
}

/* ---- the environment */

static char folder[PRELOAD_DIR_MAX + 1];

const char *calls_folder(void)
{
	return *folder ? folder : NULL;
}

/* Before CPython looks at it: the program and those that it executes have the environment that they
 * would have without us. */
__attribute__((constructor)) static void clean_environment(void)
{
	const char *dir = secure_getenv(PRELOAD_CALLS_ENV), *others;

	if (!dir || *dir != '/' || strlen(dir) > PRELOAD_DIR_MAX)
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

static void stop_here(void)
{
	static const uint32_t over = 1;
	bool was_on = calls.on;
	PyObject *type, *value, *trace;

	calls.on = false;
	calls.over = &over;
	python.PyErr_Fetch(&type, &value, &trace);
	if (python.minor < MONITORING)
		stop_profiling();
	else if (was_on)
		stop_monitoring();
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
		why = python.minor < MONITORING ? start_profiling() : start_monitoring();
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
		stop_here();
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
