/* SPDX-License-Identifier: MIT */
/*
 * Tasks of event loops: finds the functions whose calls show them, and the line at which a
 * coroutine was suspended.
 *
 * asyncio's own loops are recorded in calls_asyncio.c. trio and uvloop run a task by calling its
 * coroutine: a coroutine that no other coroutine has called is a step of a task.
 */
#include "preload/calls_asyncio.h"
#include "preload/calls_greenlet.h"
#include "preload/calls_trio.h"
#include "preload/calls_uvloop.h"

#include <string.h>

/* Bits of a code object's co_flags: coroutine, iterable coroutine. Asynchronous generators are not
 * included, because they also yield to produce a value. */
#define CODE_SUSPENDS 0x180

/* Number of tasks whose names were recorded last. */
#define NAMED 256

/* @on: objects have the expected layout; @recording: number of recordings that have begun in this
 * process and its parents */
static struct {
	bool on;
	uint64_t recording;
	struct {
		PyObject *task, *name;
	} named[NAMED];
	_Atomic uint32_t names;
} tasks;

struct calls_loops *calls_loops(void)
{
	static __thread struct calls_loops loops __attribute__((tls_model("initial-exec")));

	if (UNLIKELY(loops.recording != tasks.recording))
		loops = (struct calls_loops){ .recording = tasks.recording };
	return &loops;
}

static PyObject *none(PyObject *module, PyObject *nothing)
{
	(void)module;
	(void)nothing;
	python.Py_IncRef(python.none);
	return python.none;
}

/* Check the type, m_ml and m_self of a PyCFunctionObject. */
void calls_tasks_begin(void)
{
	static struct method method = { "none", none, METH_NOARGS, NULL };
	PyObject *function;

	tasks.recording++;
	calls_uvloop_begin();
	calls_greenlet_begin();
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
	tasks.recording++;
	calls_greenlet_in_child();
}

/* ---- functions */

enum calls_role calls_role_of(PyObject *code)
{
	PyObject *flags = python.PyObject_GetAttrString(code, "co_flags");
	long value = flags ? python.PyLong_AsLong(flags) : 0;
	char file[CALLS_TEXT_MAX], name[CALLS_TEXT_MAX + 1];
	enum calls_role role;
	size_t file_len;

	calls_drop(flags);
	if (!tasks.on)
		return CALLS_OF_NO_ROLE;
	if (value & CODE_SUSPENDS)
		return CALLS_OF_COROUTINE;
	file_len = calls_put_attribute(file, code, "co_filename");
	name[calls_put_attribute(name, code, "co_name")] = '\0';
	role = calls_asyncio_role(file, file_len, name);
	if (!role)
		role = calls_trio_role(code, file, file_len, name);
	if (!role)
		role = calls_uvloop_role(file, file_len, name);
	if (!role)
		role = calls_greenlet_role(file, file_len, name);
	return role;
}

/* ---- objects */

void calls_say_object(struct calls_self *me, enum preload_say kind, PyObject *object)
{
	calls_say_value(me, kind, (uintptr_t)object >> 4);
}

static bool is_numbered(PyObject *task, const char *name, size_t len)
{
	static const char start[] = "Task-";

	(void)task;
	return len >= sizeof(start) && !memcmp(name, start, sizeof(start) - 1) &&
	       strspn(name + sizeof(start) - 1, "0123456789") == len - (sizeof(start) - 1);
}

/* Record a name that has not been recorded for this task. */
static void say_new_name(struct calls_self *me, PyObject *task, PyObject *name,
                         bool (*is_default)(PyObject *task, const char *name, size_t len))
{
	char text[CALLS_TEXT_MAX + 1];
	size_t len = calls_put_text(text, name);
	uint32_t number;

	text[len] = '\0';
	if (!len || is_default(task, text, len) || tasks.names >= PRELOAD_TASK_NAMES_MAX)
		return;
	number = ++tasks.names;
	process_log(&(struct preload_entry){ .type = PRELOAD_TASK_NAME, .number = number }, text,
	            len + 1);
	calls_say_value(me, PRELOAD_SAY_NAME, number);
}

static size_t slot_of(PyObject *task)
{
	return (uintptr_t)task / 64 % NAMED;
}

void calls_say_name(struct calls_self *me, PyObject *task, PyObject *name,
                    bool (*is_default)(PyObject *task, const char *name, size_t len))
{
	size_t slot = slot_of(task);

	if (!name)
		return;
	if (tasks.named[slot].task != task || tasks.named[slot].name != name) {
		tasks.named[slot].task = task;
		tasks.named[slot].name = name;
		say_new_name(me, task, name, is_default);
	}
	python.Py_DecRef(name);
}

void calls_forget_name(PyObject *task)
{
	tasks.named[slot_of(task)].task = NULL;
}

/* Only for asyncio's own class, because get_name() of a subclass may be code of the program. */
void calls_say_name_of(struct calls_self *me, PyObject *task)
{
	PyObject *name;

	if (python.minor < 8 || strcmp(calls_type_name(task), "_asyncio.Task"))
		return;
	name = python.PyObject_CallMethod(task, "get_name", NULL);
	if (!name)
		python.PyErr_Clear();
	calls_say_name(me, task, name, is_numbered);
}

/* ---- coroutines */

/*
 * Up to 3.11, a profile function is not told whether a frame returns or is suspended. If it is
 * suspended, PyFrameObject.f_stacktop is set, or in 3.10 f_state tells. In 3.11 it is
 * PyGenObject.gi_frame_state, which precedes the frame if the frame's owner is a generator.
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

/* If the coroutine is resumed to raise an exception, that exception is kept. */
static void begin_coroutine(struct calls_self *me, enum preload_call_type how)
{
	struct calls_loops *l = calls_loops();
	PyObject *type, *value, *trace;

	if (l->coroutines++)
		return;
	l->step = CALLS_NO_LOOP;
	if (!l->frame && (l->handles || !calls_uvloop_is_imported()))
		return;
	python.PyErr_Fetch(&type, &value, &trace);
	if (l->frame)
		l->step = calls_trio_step(me, l, how) ? CALLS_TRIO : CALLS_NO_LOOP;
	else
		l->step = calls_uvloop_step(me, l) ? CALLS_UVLOOP : CALLS_NO_LOOP;
	python.PyErr_Restore(type, value, trace);
}

static void end_coroutine(struct calls_self *me, enum preload_call_type how, PyObject *value)
{
	struct calls_loops *l = calls_loops();

	if (!l->coroutines || --l->coroutines)
		return;
	if (l->step == CALLS_TRIO)
		calls_trio_step_ends(me, l, how, value);
	else if (l->step == CALLS_UVLOOP)
		calls_uvloop_step_ends(me, l, how, value);
	l->step = CALLS_NO_LOOP;
}

/* ---- calls */

/* Called before the call is recorded. */
static void begin(struct calls_self *me, enum calls_role role, enum preload_call_type type,
                  PyObject *at)
{
	if (role == CALLS_OF_COROUTINE)
		begin_coroutine(me, type);
	else if (role >= CALLS_OF_TRIO_LOOP)
		calls_trio_begins(me, role, at);
	else
		calls_asyncio_begins(me, role, at);
}

/* Called after the end of the call is recorded. */
static void ended(struct calls_self *me, enum calls_role role, enum preload_call_type type,
                  PyObject *value)
{
	if (role == CALLS_OF_COROUTINE)
		end_coroutine(me, type, value);
	else if (role == CALLS_THAT_IMPORT_GREENLET)
		calls_greenlet_begin();
	else if (role >= CALLS_OF_TRIO_LOOP)
		calls_trio_ended(me, role);
	else
		calls_asyncio_ended(me, role);
}

static void record_wanted(struct calls_self *me, PyObject *code, enum preload_call_type type,
                          uint32_t number, PyObject *at)
{
	bool suspends = number >> PRELOAD_CALL_CODE_BITS == CALLS_OF_COROUTINE;

	number &= PRELOAD_CALL_CODES_MAX;
	if (number == PRELOAD_CALL_CODES_MAX)
		return;
	if (suspends && type == PRELOAD_CALL_YIELD)
		say_line(me, code, at);
	calls_put(me, type, number);
}

void calls_record_role(PyObject *code, enum preload_call_type type, uint32_t number, PyObject *at,
                       PyObject *value)
{
	struct calls_self *me = &calls_self;
	enum calls_role role = number >> PRELOAD_CALL_CODE_BITS;

	if (role == CALLS_OF_COROUTINE && type == PRELOAD_CALL_RETURN &&
	    python.minor < PYTHON_MONITORING && is_suspended(at))
		type = PRELOAD_CALL_YIELD;
	if (type < PRELOAD_CALL_RETURN)
		begin(me, role, type, at);
	else if (role == CALLS_THAT_CREATE && value)
		calls_uvloop_created(me, at, value);
	else if (value)
		calls_asyncio_returns(me, role, value);
	record_wanted(me, code, type, number, at);
	if (type >= PRELOAD_CALL_RETURN)
		ended(me, role, type, value);
}
