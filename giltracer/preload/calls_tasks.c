/* SPDX-License-Identifier: MIT */
/*
 * asyncio: when a task, or another callback, was put into its event loop's queue, when the loop ran
 * it, and the line at which a coroutine was suspended.
 *
 * asyncio's loops are Python code: BaseEventLoop._call_soon returns the Handle that it put into the
 * queue, call_at a TimerHandle, and Handle._run runs one. A task's Handle calls a method of the task
 * that is C code. Objects are read where CPython of that version has them; none of the program's
 * code is called.
 */
#include "preload/calls_record.h"

#include <string.h>

/* What a code object's co_flags say: coroutine, iterable coroutine. An asynchronous generator also
 * yields when it gives a value. */
#define CODE_SUSPENDS 0x180

#define US_PER_SECOND 1000000

/* Tasks whose name was looked at last. */
#define NAMED 256

static struct {
	bool on;
	struct {
		PyObject *task, *name;
	} named[NAMED];
	uint32_t names;
} tasks;

/* ---- objects */

static const char *type_name(PyObject *object)
{
	return (const char *)pointer_at(pointer_at(object, 8), 24);
}

static bool is_type(PyObject *object, const char *name)
{
	const char *full = type_name(object), *dot = strrchr(full, '.');

	return !strcmp(dot ? dot + 1 : full, name);
}

static bool is_handle(PyObject *object)
{
	return is_type(object, "Handle") || is_type(object, "TimerHandle");
}

static PyObject *none(PyObject *module, PyObject *nothing)
{
	(void)module;
	(void)nothing;
	python.Py_IncRef(python.none);
	return python.none;
}

/* PyCFunctionObject.m_ml and m_self. */
void calls_tasks_begin(void)
{
	static struct method method = { "none", none, METH_NOARGS, NULL };
	PyObject *function;

	if (tasks.on || !python.builtin)
		return;
	function = python.PyCFunction_NewEx(&method, python.none, NULL);
	if (!function)
		return;
	tasks.on = pointer_at(function, 8) == python.builtin &&
	           pointer_at(function, 16) == (PyObject *)&method &&
	           pointer_at(function, 24) == python.none;
	python.Py_DecRef(function);
}

void calls_tasks_in_child(void)
{
	memset(tasks.named, 0, sizeof(tasks.named));
	tasks.names = 0;
}

/* ---- functions */

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

enum calls_role calls_role_of(PyObject *code)
{
	PyObject *flags = python.PyObject_GetAttrString(code, "co_flags");
	long value = flags ? python.PyLong_AsLong(flags) : 0;
	char file[CALLS_TEXT_MAX], name[CALLS_TEXT_MAX];
	size_t file_len, name_len;

	calls_drop(flags);
	if (!tasks.on)
		return CALLS_OF_NO_ROLE;
	if (value & CODE_SUSPENDS)
		return CALLS_OF_COROUTINE;
	file_len = calls_put_attribute(file, code, "co_filename");
	name_len = calls_put_attribute(name, code, "co_name");
	if (ends_with(file, file_len, "/asyncio/base_events.py")) {
		if (name_len == 10 && !memcmp(name, "_call_soon", 10))
			return CALLS_THAT_SCHEDULE;
		if (name_len == 7 && !memcmp(name, "call_at", 7))
			return CALLS_THAT_DEFER;
	}
	if (ends_with(file, file_len, "/asyncio/events.py") && name_len == 4 &&
	    !memcmp(name, "_run", 4))
		return CALLS_THAT_RUN;
	return CALLS_OF_NO_ROLE;
}

/* ---- handles */

/*
 * The task that a callback goes on with: of C's TaskStepMethWrapper, and up to 3.9
 * TaskWakeupMethWrapper, the first member; later also the object of the method task_wakeup.
 */
static PyObject *task_of(PyObject *callback, bool *step)
{
	const char *method;

	*step = is_type(callback, "TaskStepMethWrapper");
	if (*step || is_type(callback, "TaskWakeupMethWrapper"))
		return pointer_at(callback, 16);
	if (pointer_at(callback, 8) != python.builtin)
		return NULL;
	method = (const char *)pointer_at(pointer_at(callback, 16), 0);
	return strcmp(method, "task_wakeup") ? NULL : pointer_at(callback, 24);
}

static bool is_default(const char *name, size_t len)
{
	static const char start[] = "Task-";

	return len >= sizeof(start) && !memcmp(name, start, sizeof(start) - 1) &&
	       strspn(name + sizeof(start) - 1, "0123456789") == len - (sizeof(start) - 1);
}

/* A name that somebody gave it. */
static void say_name(struct calls_self *me, PyObject *name)
{
	char text[CALLS_TEXT_MAX + 1];
	size_t len = calls_put_text(text, name);

	text[len] = '\0';
	if (!len || is_default(text, len) || tasks.names == PRELOAD_TASK_NAMES_MAX)
		return;
	process_log(&(struct preload_entry){ .type = PRELOAD_TASK_NAME, .number = ++tasks.names },
	            text, len + 1);
	calls_say_value(me, PRELOAD_SAY_NAME, tasks.names);
}

/* A subclass may have any get_name(). */
static void say_name_of(struct calls_self *me, PyObject *task)
{
	size_t slot = (uintptr_t)task / 64 % NAMED;
	PyObject *name;

	if (python.minor < 8 || strcmp(type_name(task), "_asyncio.Task"))
		return;
	name = python.PyObject_CallMethod(task, "get_name", NULL);
	if (!name) {
		python.PyErr_Clear();
		return;
	}
	if (tasks.named[slot].task != task || tasks.named[slot].name != name) {
		tasks.named[slot].task = task;
		tasks.named[slot].name = name;
		say_name(me, name);
	}
	python.Py_DecRef(name);
}

static void say_object(struct calls_self *me, enum preload_say kind, PyObject *object)
{
	calls_say_value(me, kind, (uintptr_t)object >> 4);
}

/* The handle is to be run, or runs. */
static void say_handle(struct calls_self *me, enum preload_say what, PyObject *handle)
{
	PyObject *callback, *task;
	bool step;

	if (!is_handle(handle))
		return;
	callback = python.PyObject_GetAttrString(handle, "_callback");
	if (!callback) {
		python.PyErr_Clear();
		return;
	}
	task = task_of(callback, &step);
	say_object(me, task ? PRELOAD_SAY_TASK : PRELOAD_SAY_HANDLE, task ? task : handle);
	if (task && step && what == PRELOAD_SAY_RUNS)
		say_name_of(me, task);
	calls_put(me, PRELOAD_CALL_SAY, what);
	python.Py_DecRef(callback);
}

/* When it is due: by the clock of BaseEventLoop.time. That of another loop is not ours. */
static void say_due(struct calls_self *me, PyObject *handle)
{
	PyObject *when;
	double seconds;

	if (!is_type(handle, "TimerHandle"))
		return;
	when = python.PyObject_GetAttrString(handle, "_when");
	seconds = when ? python.PyFloat_AsDouble(when) - (double)clock_ns() / 1e9 : -1;
	python.PyErr_Clear();
	calls_drop(when);
	if (!(seconds > -1 && seconds < 1e6))
		return;
	say_object(me, PRELOAD_SAY_HANDLE, handle);
	calls_say_value(me, PRELOAD_SAY_AFTER,
	                seconds > 0 ? (uint64_t)(seconds * US_PER_SECOND) : 0);
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_DUE);
}

/* The argument of the function that has just been called. */
static void say_running(struct calls_self *me, PyObject *frame)
{
	PyObject *handle;
	size_t size;

	if (python.minor >= PYTHON_MONITORING) {
		frame = python.PyEval_GetFrame ? python.PyEval_GetFrame() : NULL;
		handle = frame && python.PyFrame_GetVarString
		                 ? python.PyFrame_GetVarString(frame, "self")
		                 : NULL;
		if (handle)
			say_handle(me, PRELOAD_SAY_RUNS, handle);
		else
			python.PyErr_Clear();
		if (handle)
			python.Py_DecRef(handle);
		return;
	}
	/* PyFrameObject ends with f_localsplus[1]; 3.11: f_frame->localsplus. */
	size = (size_t)pointer_at(pointer_at(frame, 8), 32);
	handle = python.minor < 11 ? pointer_at(frame, size - sizeof(void *))
	                           : pointer_at(pointer_at(frame, 24), 72);
	if (handle)
		say_handle(me, PRELOAD_SAY_RUNS, handle);
}

/* ---- coroutines */

/*
 * Up to 3.11 a profile function is not told whether a frame returns or is suspended.
 * PyFrameObject.f_stacktop is set then, 3.10: f_state; 3.11: PyGenObject.gi_frame_state, which stands
 * before its frame, where that frame's owner is a generator.
 */
static bool is_suspended(PyObject *frame)
{
	const char *f = (const char *)frame, *interpreter;

	if (python.minor < 10)
		return pointer_at(f, 72);
	if (python.minor == 10)
		return (signed char)f[108] == -1;
	interpreter = (const char *)pointer_at(f, 24);
	return interpreter[69] == 1 && (signed char)interpreter[-5] == -1;
}

static void say_line(struct calls_self *me, PyObject *code, PyObject *at)
{
	int line = 0;

	if (python.minor < PYTHON_MONITORING)
		line = python.PyFrame_GetLineNumber ? python.PyFrame_GetLineNumber(at) : 0;
	else if (python.PyCode_Addr2Line)
		line = python.PyCode_Addr2Line(code, (int)python.PyLong_AsLong(at));
	calls_say_value(me, PRELOAD_SAY_LINE, line > 0 ? (uint64_t)line : 0);
}

static void record_wanted(struct calls_self *me, PyObject *code, enum preload_call_type type,
                          uint32_t number, PyObject *at)
{
	bool suspends = number >> PRELOAD_CALL_CODE_BITS == CALLS_OF_COROUTINE;

	number &= PRELOAD_CALL_CODES_MAX;
	if (number == PRELOAD_CALL_CODES_MAX)
		return;
	if (suspends && type == PRELOAD_CALL_RETURN && python.minor < PYTHON_MONITORING &&
	    is_suspended(at))
		type = PRELOAD_CALL_YIELD;
	if (suspends && type == PRELOAD_CALL_YIELD)
		say_line(me, code, at);
	calls_put(me, type, number);
}

void calls_record_role(PyObject *code, enum preload_call_type type, uint32_t number, PyObject *at,
                       PyObject *value)
{
	struct calls_self *me = &calls_self;
	enum calls_role role = number >> PRELOAD_CALL_CODE_BITS;

	if (role == CALLS_THAT_RUN && type == PRELOAD_CALL_START)
		say_running(me, at);
	else if (role == CALLS_THAT_SCHEDULE && type == PRELOAD_CALL_RETURN && value)
		say_handle(me, PRELOAD_SAY_READY, value);
	else if (role == CALLS_THAT_DEFER && type == PRELOAD_CALL_RETURN && value)
		say_due(me, value);
	record_wanted(me, code, type, number, at);
	if (role == CALLS_THAT_RUN && type >= PRELOAD_CALL_RETURN)
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
}
