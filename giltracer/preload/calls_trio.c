/* SPDX-License-Identifier: MIT */
/*
 * trio: its loop is written in Python. These functions are observed:
 *
 *	unrolled_run    is the loop, a generator: each coroutine that it calls is a step of the task
 *	                in its variable "task"
 *	reschedule      puts a task into the loop's queue; spawn_impl calls it for a new task
 *	task_exited     informs the tasks that wait for a task that it has ended
 *	expire          cancels scopes whose deadlines have passed, which reschedules their tasks
 *	run_sync_soon   queues a function for the loop, in any thread; run_cb runs it
 */
#include "preload/calls_trio.h"

#include <limits.h>
#include <string.h>

#define US_PER_SECOND 1000000

/* Indexes of variables of unrolled_run. */
static unsigned task_index = UINT_MAX, runner_index = UINT_MAX;

enum calls_role calls_trio_role(PyObject *code, const char *file, size_t len, const char *name)
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
static double number(PyObject *value)
{
	double n = value ? python.PyFloat_AsDouble(value) : -1;

	python.PyErr_Clear();
	if (value)
		python.Py_DecRef(value);
	return n;
}

/* If the program gives no name, trio names a task after its function: "MODULE.QUALNAME". */
static bool is_default(PyObject *task, const char *name, size_t len)
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

static bool is_task(PyObject *object)
{
	return !strcmp(calls_type_name(object), "Task");
}

/* Record the end of the run of a task that has ended, if that was not done yet. */
static void end_exit(struct calls_self *me, struct calls_loops *l)
{
	if (l->exits)
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
	l->exits = false;
}

/* The profile function of 3.11 cannot distinguish the start of a coroutine from its
 * continuation. */
static bool is_new(PyObject *task, enum preload_call_type type)
{
	return type == PRELOAD_CALL_START && number(calls_attribute(task, "_schedule_points")) == 0;
}

bool calls_trio_step(struct calls_self *me, struct calls_loops *l, enum preload_call_type type)
{
	PyObject *task = calls_variable(l->frame, "task", task_index);
	bool known = task && is_task(task);

	end_exit(me, l);
	if (known) {
		l->task = task;
		if (is_new(task, type))
			calls_forget_name(task);
		calls_say_object(me, PRELOAD_SAY_TRIO_TASK, task);
		calls_say_name(me, task, calls_attribute(task, "name"), is_default);
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RUNS);
	}
	if (task)
		python.Py_DecRef(task);
	return known;
}

/* Whether the task has only let others run. The loop reschedules it at once. */
static bool is_checkpoint(PyObject *yielded)
{
	return yielded && !strcmp(calls_type_name(yielded), "type") &&
	       !strcmp((const char *)pointer_at(yielded, 24), "CancelShieldedCheckpoint");
}

/* The run of a task that has ended lasts until task_exited returns, so that the tasks that become
 * ready there were woken by this task. */
void calls_trio_step_ends(struct calls_self *me, struct calls_loops *l, enum preload_call_type type,
                          PyObject *value)
{
	l->exits = type != PRELOAD_CALL_YIELD;
	if (l->exits)
		return;
	if (is_checkpoint(value)) {
		calls_say_object(me, PRELOAD_SAY_TRIO_TASK, l->task);
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_READY);
	}
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
}

/* ---- what makes tasks ready */

static void say_ready(struct calls_self *me, PyObject *task)
{
	if (!is_task(task))
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
	double seconds = l->now - number(calls_attribute(scope, "_registered_deadline"));

	if (l->frame && seconds >= 0 && seconds < 1e6 && is_system_clock(l->frame)) {
		calls_say_object(me, PRELOAD_SAY_HANDLE, scope);
		calls_say_value(me, PRELOAD_SAY_SINCE, (uint64_t)(seconds * US_PER_SECOND));
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_DUE);
	}
	calls_say_object(me, PRELOAD_SAY_HANDLE, scope);
	calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RUNS);
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
 * time: then the reference remains until the next loop. */
static void loop_begins(struct calls_loops *l, PyObject *frame)
{
	PyObject *before = l->frame;

	python.Py_IncRef(frame);
	if (!before)
		l->outer = l->coroutines;
	l->frame = frame;
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
	python.Py_DecRef(frame);
}

/* Record the beginning of a call with this argument. */
static void begin(struct calls_self *me, struct calls_loops *l, enum calls_role role,
                  PyObject *argument)
{
	if (role == CALLS_OF_TRIO_RESCHEDULE) {
		say_ready(me, argument);
	} else if (role == CALLS_OF_TRIO_CANCEL) {
		if (!l->cancels++)
			say_expired(me, l, argument);
	} else if (role == CALLS_OF_TRIO_CALLBACK) {
		say_callback(me, argument);
	} else if (role == CALLS_OF_TRIO_EXPIRE) {
		python.Py_IncRef(argument);
		l->now = number(argument);
		l->expires = true;
		l->cancels = 0;
	}
}

void calls_trio_begins(struct calls_self *me, enum calls_role role, PyObject *at)
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
	begin(me, l, role, argument);
	python.Py_DecRef(argument);
}

void calls_trio_ended(struct calls_self *me, enum calls_role role)
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
		calls_put(me, PRELOAD_CALL_SAY, PRELOAD_SAY_RAN);
}
