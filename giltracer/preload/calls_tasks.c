/* SPDX-License-Identifier: MIT */
/*
 * Tasks of event loops: finds the functions whose calls show them, and the line at which a
 * coroutine was suspended.
 *
 * asyncio's own loops are written in Python. trio and uvloop run a task by calling its
 * coroutine: a coroutine that no other coroutine has called is a step of a task.
 */
#include <limits.h>
#include <string.h>

#include "preload/calls_record.h"

/*
 * ---- Tasks of event loops: functions that the recorders of all kinds of loops share. Objects are read
 * at the offsets that this version of CPython uses; none of the program's code is called.
 */

/* tp_name of the object's type; for a type defined in C, it includes the module. */
static const char *calls_type_name(PyObject *object);

/* Whether the last part of its type's name is this name. */
static bool calls_is_type(PyObject *object, const char *name);

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
static unsigned calls_variable_index(PyObject *code, const char *name);

static bool calls_ends_with(const char *text, size_t len, const char *end);

/* State which object the next record is about. */
static void calls_say_object(struct calls_self *me, enum preload_say kind, PyObject *object);

/* Record a name of a task, unless is_default says that the program did not give it. The
 * reference to name is released; NULL: there is none. */
static void calls_say_name(struct calls_self *me, PyObject *task, PyObject *name,
                           bool (*is_default)(PyObject *task, const char *name, size_t len));

/* Call when a new task has this address: its name has not been recorded. */
static void calls_forget_name(PyObject *task);

/* Record the name of a task of asyncio, if the program gave it one. */
static void calls_say_name_of(struct calls_self *me, PyObject *task);

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
 * @step_stamp: when the loop began what it runs; 0: nothing
 * For trio:
 * @frame: frame of the function that implements the loop; NULL: the loop is not running; @counted: it is an
 * object, and this is a reference
 * @exits: the coroutine of the task has ended, but the loop has not yet informed other tasks
 * @expires: the loop is processing deadlines; @now: the time of its clock; @cancels: number of open
 * calls of cancel meanwhile
 */
struct calls_loops {
	uint64_t recording;
	uint32_t coroutines, outer, handles, cancels;
	enum calls_loop step;
	PyObject *task, *frame;
	bool counted, exits, expires;
	double now;
	uint64_t step_stamp;
};

/* The state of this thread. */
static struct calls_loops *calls_loops(void);

/* ---- tasks and other callbacks of asyncio's own loops, from calls of asyncio's own functions */

/* The role of a function of asyncio, by its file, of length len, and its name. */
static enum calls_role calls_asyncio_role(const char *file, size_t len, const char *name);

/* Call when a function with such a role begins, returns a value, and has ended. at: as in
 * calls_record_role */
static void calls_asyncio_begins(struct calls_self *me, enum calls_role role, PyObject *at);
static void calls_asyncio_returns(struct calls_self *me, enum calls_role role, PyObject *value);
static void calls_asyncio_ended(struct calls_self *me, enum calls_role role);

/* ---- trio's tasks, from calls of trio's own functions */

/* The role of a function of trio, by its file, of length len, and its name. */
static enum calls_role calls_trio_role(PyObject *code, const char *file, size_t len,
                                       const char *name);

/* Call when a function with such a role begins, and when it has ended. at: as in
 * calls_record_role */
static void calls_trio_begins(struct calls_self *me, enum calls_role role, PyObject *at);
static void calls_trio_ended(struct calls_self *me, enum calls_role role);

/* Call when the loop calls a coroutine. Returns false if its task is unknown. */
static bool calls_trio_step(struct calls_self *me, struct calls_loops *l,
                            enum preload_call_type type);

/* Call when this coroutine has ended. value: what it yields; NULL: unknown */
static void calls_trio_step_ends(struct calls_self *me, struct calls_loops *l,
                                 enum preload_call_type type, PyObject *value);

/* ---- tasks of asyncio on uvloop, from the coroutines that they run */

/* Call when recording begins: check whether uvloop is imported. */
static void calls_uvloop_begin(void);
static bool calls_uvloop_is_imported(void);

/* The role of a function that creates tasks, by its file, of length len, and its name. A
 * function of uvloop shows that uvloop is imported. */
static enum calls_role calls_uvloop_role(const char *file, size_t len, const char *name);

/* Call when such a function returns value. */
static void calls_uvloop_created(struct calls_self *me, PyObject *at, PyObject *value);

/* Call when a coroutine begins that no other coroutine has called. Returns false if it is not a
 * step of a task on uvloop. */
static bool calls_uvloop_step(struct calls_self *me, struct calls_loops *l);

/* Call when this coroutine has ended. value: what it yields; NULL: unknown */
static void calls_uvloop_step_ends(struct calls_self *me, struct calls_loops *l,
                                   enum preload_call_type type, PyObject *value);

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

static struct calls_loops *calls_loops(void)
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
	tasks.on = python_type(function) == python.builtin &&
	           pointer_at(function, python.at.function.definition) == (PyObject *)&method &&
	           pointer_at(function, python.at.function.self) == python.none;
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

/* Record that a loop begins a step: it runs the object of the last record, and nothing else meanwhile. */
static void say_runs(struct calls_self *me)
{
	if (process.watches)
		calls_loops()->step_stamp = clock_stamp();
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RUNS);
}

/* Record the end of the step. */
static void say_ran(struct calls_self *me)
{
	struct calls_loops *l = calls_loops();

	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
	if (process.watches && l->step_stamp)
		moments_stepped(clock_stamp() - l->step_stamp);
	l->step_stamp = 0;
}

static void calls_say_object(struct calls_self *me, enum preload_say kind, PyObject *object)
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

static void calls_say_name(struct calls_self *me, PyObject *task, PyObject *name,
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

static void calls_forget_name(PyObject *task)
{
	tasks.named[slot_of(task)].task = NULL;
}

/* Only for asyncio's own class, because get_name() of a subclass may be code of the program. */
static void calls_say_name_of(struct calls_self *me, PyObject *task)
{
	PyObject *name;

	if (!python.at.has_task_names || strcmp(calls_type_name(task), "_asyncio.Task"))
		return;
	name = python.PyObject_CallMethod(task, "get_name", NULL);
	if (!name)
		python.PyErr_Clear();
	calls_say_name(me, task, name, is_numbered);
}

/* ---- coroutines */

/* at: as in calls_record_role; in 3.11 perhaps a frame that is no object */
static int line_of(PyObject *at)
{
	const char *frame = (const char *)at, *code;

	if (python_is_frame_object(at))
		return python.PyFrame_GetLineNumber ? python.PyFrame_GetLineNumber(at) : 0;
	code = (const char *)pointer_at(frame, python.at.frame[FRAME_CODE]);
	return python.PyCode_Addr2Line
	               ? python.PyCode_Addr2Line(
				 (PyObject *)(uintptr_t)code,
				 (int)((const char *)pointer_at(
					       frame, python.at.frame[FRAME_INSTRUCTION]) -
	                               code - python.at.memory[MEMORY_INSTRUCTIONS]))
	               : 0;
}

static void say_line(struct calls_self *me, PyObject *code, PyObject *at)
{
	int line = 0;

	if (!python.at.has_monitoring)
		line = line_of(at);
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
	    !python.at.has_monitoring && python_is_suspended(python_frame(at)))
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

/*
 * ---- Reads objects of the program: their types, their attributes, and the variables of functions.
 */

/* PyTypeObject.tp_name. */
static const char *calls_type_name(PyObject *object)
{
	return python_type_name(python_type(object));
}

static bool calls_is_type(PyObject *object, const char *name)
{
	const char *full = calls_type_name(object), *dot = strrchr(full, '.');

	return !strcmp(dot ? dot + 1 : full, name);
}

PyObject *calls_attribute(PyObject *object, const char *name)
{
	PyObject *value = python.PyObject_GetAttrString(object, name);

	if (!value)
		python.PyErr_Clear();
	return value;
}

PyObject *calls_frame(PyObject *at)
{
	if (!python.at.has_monitoring)
		return at;
	return python.PyEval_GetFrame ? python.PyEval_GetFrame() : NULL;
}

/* PyFrameObject ends with f_localsplus[1]; 3.11: f_frame->localsplus. */
static PyObject *read_variable(PyObject *frame, unsigned index)
{
	size_t size;

	if (python.at.call[CALL_LOCALS] != PYTHON_NO_OFFSET)
		return pointer_at(python_frame(frame),
		                  python.at.call[CALL_LOCALS] + index * sizeof(void *));
	size = python_size(frame);
	return pointer_at(frame, size - sizeof(void *) + index * sizeof(void *));
}

PyObject *calls_variable(PyObject *frame, const char *name, unsigned index)
{
	PyObject *value;

	if (!python.at.has_monitoring) {
		value = index == UINT_MAX ? NULL : read_variable(frame, index);
		if (value)
			python.Py_IncRef(value);
		return value;
	}
	value = python.PyFrame_GetVarString ? python.PyFrame_GetVarString(frame, name) : NULL;
	if (!value)
		python.PyErr_Clear();
	return value;
}

static unsigned calls_variable_index(PyObject *code, const char *name)
{
	PyObject *names = calls_attribute(code, "co_varnames"), *item;
	char text[CALLS_TEXT_MAX];
	unsigned found = UINT_MAX;

	if (!names)
		return found;
	for (unsigned i = 0; (item = python.PyTuple_GetItem(names, (Py_ssize_t)i)); i++) {
		size_t len = calls_put_text(text, item);

		if (len == strlen(name) && !memcmp(text, name, len)) {
			found = i;
			break;
		}
	}
	python.PyErr_Clear();
	python.Py_DecRef(names);
	return found;
}

static bool calls_ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

/*
 * ---- A switch of greenlets replaces the stack of the thread, without a call or a return. greenlet
 * itself reports switches to a trace function that each thread has (greenlet.settrace). If the
 * program sets one of its own, ours is gone, and calls of different greenlets are mixed.
 */

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
		/* A hub is a greenlet, too, so these are no steps. */
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

/*
 * ---- asyncio's own loops, which are written in Python. BaseEventLoop._call_soon returns the Handle
 * that it has put into the queue, call_at returns a TimerHandle, and Handle._run runs a handle.
 * The callback of a task's Handle is written in C.
 */

#define US_PER_SECOND 1000000

static enum calls_role calls_asyncio_role(const char *file, size_t len, const char *name)
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
		return pointer_at(callback, python.at.header);
	if (python_type(callback) != python.builtin)
		return NULL;
	method = (const char *)pointer_at(pointer_at(callback, python.at.function.definition), 0);
	return strcmp(method, "task_wakeup") ? NULL : pointer_at(callback, python.at.function.self);
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
	if (what == PRELOAD_SAY_RUNS)
		say_runs(me);
	else
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

static void calls_asyncio_begins(struct calls_self *me, enum calls_role role, PyObject *at)
{
	if (role != CALLS_THAT_RUN)
		return;
	calls_loops()->handles++;
	say_running(me, at);
}

static void calls_asyncio_returns(struct calls_self *me, enum calls_role role, PyObject *value)
{
	if (role == CALLS_THAT_SCHEDULE)
		say_handle(me, PRELOAD_SAY_READY, value);
	else if (role == CALLS_THAT_DEFER)
		say_due(me, value);
}

static void calls_asyncio_ended(struct calls_self *me, enum calls_role role)
{
	struct calls_loops *l = calls_loops();

	if (role != CALLS_THAT_RUN)
		return;
	l->handles -= l->handles > 0;
	say_ran(me);
}

/*
 * ---- trio: its loop is written in Python. These functions are observed:
 *
 *	unrolled_run    is the loop, a generator: each coroutine that it calls is a step of the task
 *	                in its variable "task"
 *	reschedule      puts a task into the loop's queue; spawn_impl calls it for a new task
 *	task_exited     informs the tasks that wait for a task that it has ended
 *	expire          cancels scopes whose deadlines have passed, which reschedules their tasks
 *	run_sync_soon   queues a function for the loop, in any thread; run_cb runs it
 */

/* Indexes of variables of unrolled_run. */
static unsigned task_index = UINT_MAX, runner_index = UINT_MAX;

static enum calls_role calls_trio_role(PyObject *code, const char *file, size_t len,
                                       const char *name)
{
	static const struct {
		const char *file, *name;
		enum calls_role role;
	} functions[] = {
		{ "/trio/_core/_run.py", "unrolled_run", CALLS_OF_TRIO_LOOP },
		{ "/trio/_core/_run.py", "reschedule", CALLS_OF_TRIO_RESCHEDULE },
		{ "/trio/_core/_run.py", "task_exited", CALLS_OF_TRIO_EXITED },
		{ "/trio/_core/_run.py", "expire", CALLS_OF_TRIO_EXPIRE },
		{ "/trio/_core/_run.py", "cancel", CALLS_OF_TRIO_CANCEL },
		{ "/trio/_core/_run.py", "_cancel", CALLS_OF_TRIO_CANCEL },
		{ "/trio/_core/_entry_queue.py", "run_sync_soon", CALLS_OF_TRIO_SOON },
		{ "/trio/_core/_entry_queue.py", "run_cb", CALLS_OF_TRIO_CALLBACK },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (strcmp(name, functions[i].name) ||
		    !calls_ends_with(file, len, functions[i].file))
			continue;
		if (functions[i].role == CALLS_OF_TRIO_LOOP) {
			task_index = calls_variable_index(code, "task");
			runner_index = calls_variable_index(code, "runner");
		}
		return functions[i].role;
	}
	return CALLS_OF_NO_ROLE;
}

/* ---- tasks */

/* The value of a float or int, whose reference is released; -1: it is NULL or not a number. */
static double seconds_of(PyObject *value)
{
	double n = value ? python.PyFloat_AsDouble(value) : -1;

	python.PyErr_Clear();
	if (value)
		python.Py_DecRef(value);
	return n;
}

/* If the program gives no name, trio names a task after its function: "MODULE.QUALNAME". */
static bool is_trio_default(PyObject *task, const char *name, size_t len)
{
	PyObject *coroutine = calls_attribute(task, "coro");
	char end[CALLS_TEXT_MAX + 1] = ".";
	size_t n;

	if (!coroutine)
		return false;
	n = 1 + calls_put_attribute(end + 1, coroutine, "__qualname__");
	python.PyErr_Clear();
	python.Py_DecRef(coroutine);
	return n > 1 && len >= n && !memcmp(name + len - n, end, n);
}

static bool is_trio_task(PyObject *object)
{
	return !strcmp(calls_type_name(object), "Task");
}

/* Record the end of the run of a task that has ended, if that was not done yet. */
static void end_exit(struct calls_self *me, struct calls_loops *l)
{
	if (l->exits)
		say_ran(me);
	l->exits = false;
}

/* The profile function of 3.11 cannot distinguish the start of a coroutine from its
 * continuation. */
static bool is_new(PyObject *task, enum preload_call_type type)
{
	return type == PRELOAD_CALL_START &&
	       seconds_of(calls_attribute(task, "_schedule_points")) == 0;
}

static bool calls_trio_step(struct calls_self *me, struct calls_loops *l,
                            enum preload_call_type type)
{
	PyObject *task = calls_variable(l->frame, "task", task_index);
	bool known = task && is_trio_task(task);

	end_exit(me, l);
	if (known) {
		l->task = task;
		if (is_new(task, type))
			calls_forget_name(task);
		calls_say_object(me, PRELOAD_SAY_TRIO_TASK, task);
		calls_say_name(me, task, calls_attribute(task, "name"), is_trio_default);
		say_runs(me);
	}
	if (task)
		python.Py_DecRef(task);
	return known;
}

/* Whether the task has only let others run. The loop reschedules it at once. */
static bool is_checkpoint(PyObject *yielded)
{
	return yielded && !strcmp(calls_type_name(yielded), "type") &&
	       !strcmp(python_type_name(yielded), "CancelShieldedCheckpoint");
}

/* The run of a task that has ended lasts until task_exited returns, so that the tasks that become
 * ready there were woken by this task. */
static void calls_trio_step_ends(struct calls_self *me, struct calls_loops *l,
                                 enum preload_call_type type, PyObject *value)
{
	l->exits = type != PRELOAD_CALL_YIELD;
	if (l->exits)
		return;
	if (is_checkpoint(value)) {
		calls_say_object(me, PRELOAD_SAY_TRIO_TASK, l->task);
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_READY);
	}
	say_ran(me);
}

/* ---- what makes tasks ready */

static void say_trio_ready(struct calls_self *me, PyObject *task)
{
	if (!is_trio_task(task))
		return;
	calls_say_object(me, PRELOAD_SAY_TRIO_TASK, task);
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_READY);
}

/* Only trio's own clock is known to measure real time. */
static bool is_system_clock(PyObject *loop)
{
	PyObject *runner = calls_variable(loop, "runner", runner_index);
	PyObject *clock = runner ? calls_attribute(runner, "clock") : NULL;
	bool is = clock && !strcmp(calls_type_name(clock), "SystemClock");

	if (runner)
		python.Py_DecRef(runner);
	if (clock)
		python.Py_DecRef(clock);
	return is;
}

/* The loop cancels a scope: the tasks that this wakes were due when the deadline passed. */
static void say_expired(struct calls_self *me, const struct calls_loops *l, PyObject *scope)
{
	double seconds = l->now - seconds_of(calls_attribute(scope, "_registered_deadline"));

	if (l->frame && seconds >= 0 && seconds < 1e6 && is_system_clock(l->frame)) {
		calls_say_object(me, PRELOAD_SAY_HANDLE, scope);
		calls_say_value(me, PRELOAD_SAY_SINCE, (uint64_t)(seconds * US_PER_SECOND));
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_DUE);
	}
	calls_say_object(me, PRELOAD_SAY_HANDLE, scope);
	say_runs(me);
}

/* A job is a function and the tuple of its arguments. Two jobs are only equal if they have the same
 * function and no arguments. */
static void say_job(struct calls_self *me, PyObject *function, PyObject *arguments,
                    enum preload_say what)
{
	calls_say_value(me, PRELOAD_SAY_HANDLE,
	                ((uintptr_t)function >> 4) + 3 * ((uintptr_t)arguments >> 4));
	calls_put(me, PRELOAD_CALL_SAY, what);
}

static void say_soon(struct calls_self *me, PyObject *frame)
{
	PyObject *function = calls_variable(frame, "sync_fn", 1);
	PyObject *arguments = calls_variable(frame, "args", 3);

	if (function && arguments)
		say_job(me, function, arguments, PRELOAD_SAY_READY);
	if (function)
		python.Py_DecRef(function);
	if (arguments)
		python.Py_DecRef(arguments);
}

static void say_callback(struct calls_self *me, PyObject *job)
{
	PyObject *function = python.PyTuple_GetItem(job, 0);
	PyObject *arguments = function ? python.PyTuple_GetItem(job, 1) : NULL;

	python.PyErr_Clear();
	say_job(me, function, arguments, PRELOAD_SAY_RUNS);
}

/* ---- calls */

/* The end of the loop is not recorded if the program has a profile function of its own at that
 * time: then the reference remains until the next loop. A frame that is no object is of an evaluator, which
 * sees its end. */
static void loop_begins(struct calls_loops *l, PyObject *frame)
{
	PyObject *before = l->counted ? l->frame : NULL;
	const bool is_object = python.at.has_monitoring || python_is_frame_object(frame);

	if (is_object)
		python.Py_IncRef(frame);
	if (!l->frame)
		l->outer = l->coroutines;
	l->frame = frame;
	l->counted = is_object;
	l->coroutines = 0;
	l->step = CALLS_NO_LOOP;
	if (before)
		python.Py_DecRef(before);
}

static void loop_ended(struct calls_self *me, struct calls_loops *l)
{
	PyObject *frame = l->frame;

	end_exit(me, l);
	l->frame = NULL;
	l->step = CALLS_NO_LOOP;
	if (!frame)
		return;
	l->coroutines = l->outer;
	if (l->counted)
		python.Py_DecRef(frame);
}

/* Record the beginning of a call with this argument. */
static void trio_begin(struct calls_self *me, struct calls_loops *l, enum calls_role role,
                       PyObject *argument)
{
	if (role == CALLS_OF_TRIO_RESCHEDULE) {
		say_trio_ready(me, argument);
	} else if (role == CALLS_OF_TRIO_CANCEL) {
		if (!l->cancels++)
			say_expired(me, l, argument);
	} else if (role == CALLS_OF_TRIO_CALLBACK) {
		say_callback(me, argument);
	} else if (role == CALLS_OF_TRIO_EXPIRE) {
		python.Py_IncRef(argument);
		l->now = seconds_of(argument);
		l->expires = true;
		l->cancels = 0;
	}
}

static void calls_trio_begins(struct calls_self *me, enum calls_role role, PyObject *at)
{
	static const struct {
		const char *name;
		unsigned index;
	} arguments[CALLS_ROLES] = {
		[CALLS_OF_TRIO_RESCHEDULE] = { "task", 1 },
		[CALLS_OF_TRIO_EXPIRE] = { "now", 1 },
		[CALLS_OF_TRIO_CANCEL] = { "self", 0 },
		[CALLS_OF_TRIO_CALLBACK] = { "job", 0 },
	};
	struct calls_loops *l = calls_loops();
	PyObject *frame, *argument;

	if (role == CALLS_OF_TRIO_EXITED || (role == CALLS_OF_TRIO_CANCEL && !l->expires))
		return;
	frame = calls_frame(at);
	if (!frame)
		return;
	if (role == CALLS_OF_TRIO_LOOP) {
		loop_begins(l, frame);
		return;
	}
	if (role == CALLS_OF_TRIO_SOON) {
		say_soon(me, frame);
		return;
	}
	argument = calls_variable(frame, arguments[role].name, arguments[role].index);
	if (!argument)
		return;
	trio_begin(me, l, role, argument);
	python.Py_DecRef(argument);
}

static void calls_trio_ended(struct calls_self *me, enum calls_role role)
{
	struct calls_loops *l = calls_loops();

	if (role == CALLS_OF_TRIO_LOOP)
		loop_ended(me, l);
	else if (role == CALLS_OF_TRIO_EXITED)
		end_exit(me, l);
	else if (role == CALLS_OF_TRIO_EXPIRE)
		l->expires = false;
	else if (role == CALLS_OF_TRIO_CALLBACK ||
	         (role == CALLS_OF_TRIO_CANCEL && l->cancels && !--l->cancels))
		say_ran(me);
}

/*
 * ---- uvloop: its loop is machine code, whose calls CPython does not report. It runs tasks of asyncio:
 * a coroutine that no other coroutine has called is a step of the loop's current task. It cannot be
 * seen when a task is put into the loop's queue, except when it is created, and when its coroutine
 * yields None, since that puts it there again at once.
 */

static bool is_imported;

static void calls_uvloop_begin(void)
{
	PyObject *modules = python.PySys_GetObject("modules");

	if (modules && python.PyDict_GetItemString(modules, "uvloop"))
		is_imported = true;
}

static bool calls_uvloop_is_imported(void)
{
	return is_imported;
}

static enum calls_role calls_uvloop_role(const char *file, size_t len, const char *name)
{
	bool makes = false;

	if (calls_ends_with(file, len, "/uvloop/__init__.py"))
		is_imported = true;
	else if (calls_ends_with(file, len, "/asyncio/tasks.py"))
		/* Several functions return the same task; this is the innermost one. */
		makes = !strcmp(name, "create_task") ||
		        !strcmp(name,
		                python.at.makes_task_inside ? "_ensure_future" : "ensure_future");
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
	if (python_type(function) == python.builtin)
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
	const size_t at_hash = python.at.type.hash;
	PyObject *type = python_type(loop);

	if (!python.object || pointer_at(type, at_hash) != pointer_at(python.object, at_hash))
		return false;
	for (; type; type = pointer_at(type, python.at.type.base))
		if (!strcmp(python_type_name(type), "uvloop.loop.Loop"))
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

	if (python.at.has_c_current_task)
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

static bool calls_uvloop_step(struct calls_self *me, struct calls_loops *l)
{
	PyObject *loop = running_loop(), *task = loop ? current_task(loop) : NULL;
	bool known = task && task != python.none;

	if (known) {
		l->task = task;
		calls_say_object(me, PRELOAD_SAY_UVLOOP_TASK, task);
		calls_say_name_of(me, task);
		say_runs(me);
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

static void calls_uvloop_step_ends(struct calls_self *me, struct calls_loops *l,
                                   enum preload_call_type type, PyObject *value)
{
	if (type == PRELOAD_CALL_YIELD && value == python.none)
		say_ready(me, l->task);
	say_ran(me);
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

	if (!python.at.has_eager_tasks)
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

static void calls_uvloop_created(struct calls_self *me, PyObject *at, PyObject *value)
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
