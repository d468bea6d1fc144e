/* SPDX-License-Identifier: MIT */
/*
 * Records calls by the profile function of each thread: in CPython 3.11, and in older versions if
 * calls_eval.c cannot record or calls of functions in C are recorded, too. A thread has only one
 * such function. One that the program has set is kept, and one that it sets later replaces ours.
 * From then on the thread's calls are missing, which is logged.
 */
#include "preload/calls_interpreters.h"
#include "preload/calls_record.h"

#include "preload/count.h"
#include "preload/nogil.h"

#include <dlfcn.h>
#include <string.h>

/* PyTrace_* of pystate.h. */
#define PROFILE_CALL     0
#define PROFILE_RETURN   3
#define PROFILE_C_CALL   4
#define PROFILE_C_RAISE  5
#define PROFILE_C_RETURN 6

/* PyFrameObject.f_code; 3.11: PyFrameObject.f_frame->f_code. */
static PyObject *code_of(const PyObject *frame)
{
	return python.minor < 11 ? pointer_at(frame, 32) : pointer_at(pointer_at(frame, 24), 32);
}

/* CPython's objects have the layout that this file expects. */
static bool known;

void calls_profile_begin(void)
{
	PyObject *frame = python.PyEval_GetFrame(), *code;

	if (known)
		return;
	code = frame ? python.PyObject_GetAttrString(frame, "f_code") : NULL;
	known = code && code == code_of(frame) && (!calls.native || calls_native_begin(NULL));
	calls_drop(code);
}

static int on_profile(PyObject *owner, PyObject *frame, int what, PyObject *arg)
{
	(void)owner;
	if (what == PROFILE_CALL)
		calls_record(code_of(frame), PRELOAD_CALL_START, frame, NULL);
	else if (what == PROFILE_RETURN)
		calls_record(code_of(frame), arg ? PRELOAD_CALL_RETURN : PRELOAD_CALL_UNWIND, frame,
		             arg);
	else if (calls.native && what >= PROFILE_C_CALL && what <= PROFILE_C_RETURN)
		calls_record_native(code_of(frame),
		                    what == PROFILE_C_CALL    ? PRELOAD_CALL_START
		                    : what == PROFILE_C_RAISE ? PRELOAD_CALL_UNWIND
		                                              : PRELOAD_CALL_RETURN,
		                    arg, NULL);
	return 0;
}

/* ---- the function of a thread */

static PyObject *on_restored(PyObject *capsule, PyObject *arguments);

static struct method restored = { "giltracer", on_restored, METH_VARARGS, NULL };

enum profiled { NOT_PROFILED, PROFILED_BY_US, PROFILED };

/* Whose profile function the current thread has. */
static enum profiled who_profiles(void)
{
	PyObject *get = python.PySys_GetObject("getprofile"), *function;
	enum profiled who = PROFILED;

	function = get ? python.PyObject_CallObject(get, NULL) : NULL;
	if (!function || function == python.none)
		who = NOT_PROFILED;
	else if (pointer_at(function, 16) == (PyObject *)&restored)
		who = PROFILED_BY_US;
	calls_drop(function);
	return who;
}

/* Log that calls of the current thread are missing. who: whose function it has; PROFILED_BY_US:
 * they were only missing for a while */
static void step_aside(enum profiled who)
{
	struct calls_self *me = &calls_self;

	if (me->stream && who != PROFILED_BY_US)
		calls_say(me, PRELOAD_SAY_ASIDE);
	process_log(&(struct preload_entry){ .type = PRELOAD_ASIDE,
	                                     .number = (uint64_t)process_gettid() },
	            NULL, 0);
}

/*
 * Called when the owner of a thread's profile function is freed. If that thread is running Python
 * code, it has set another function. Otherwise it is ending, or, in a forked child, does not exist.
 */
static void owner_gone(PyObject *capsule)
{
	void *thread = python.PyCapsule_GetPointer(capsule, NULL);

	if (calls.on && !*calls.over && thread == python_thread() && python.PyEval_GetFrame())
		step_aside(who_profiles());
}

/* Set our function for the current thread, whose state is thread. */
static void profile_current(void *thread)
{
	PyObject *capsule = python.PyCapsule_New(thread, NULL, owner_gone);
	PyObject *owner = capsule ? python.PyCFunction_NewEx(&restored, capsule, NULL) : NULL;

	if (!owner)
		python.PyErr_Clear();
	python.PyEval_SetProfile(on_profile, owner);
	if (capsule)
		python.Py_DecRef(capsule);
	if (owner)
		python.Py_DecRef(owner);
}

/* The program has passed to sys.setprofile() what sys.getprofile() returned while ours was set:
 * record the thread again. */
static PyObject *on_restored(PyObject *capsule, PyObject *arguments)
{
	(void)arguments;
	if (!calls.ended)
		profile_current(python.PyCapsule_GetPointer(capsule, NULL));
	else
		python.PyEval_SetProfile(NULL, NULL);
	python.Py_IncRef(python.none);
	return python.none;
}

/* The caller holds the GIL, so it can make any thread the current one for a while. */
static void profile_thread(void *thread)
{
	void *own = python.PyThreadState_Swap(thread);

	if (who_profiles() == PROFILED)
		step_aside(PROFILED);
	else
		profile_current(thread);
	python.PyThreadState_Swap(own);
	/* Setting a function raises an audit event, which notes the other thread's state. */
	calls_interpreters_note(own);
}

/* ---- all threads */

static void *first_thread(void)
{
	return python.PyInterpreterState_ThreadHead(python_interpreter());
}

/* Our function has been set for threads. */
static bool profiling;

const char *calls_profile_start(void)
{
	if (!known)
		return "this interpreter is not built as CPython is";
	/* It ends the program in PyThreadState_Swap(), see profile_thread. */
	if (dlsym(RTLD_DEFAULT, "_Py_NegativeRefcount"))
		return "a debug build of Python does not permit it";
	profiling = true;
	for (void *thread = first_thread(); thread; thread = python.PyThreadState_Next(thread))
		profile_thread(thread);
	return NULL;
}

/* This ends recording in the current thread only. Every thread calls it at its next event. */
void calls_profile_stop(void)
{
	if (profiling)
		python.PyEval_SetProfile(NULL, NULL);
}

/* If CPython calls pthread_create, it holds the GIL and has just made the new thread's state, which
 * is the first one in the list. */
static void profile_new_thread(const char *caller)
{
	void *own = python_thread(), *thread;
	Dl_info ours, theirs;

	if (!own ||
	    (own != python.PyGILState_GetThisThreadState() && !calls_interpreters_runs(own)) ||
	    !dladdr(caller, &ours) || !dladdr((const void *)python.PyThreadState_Swap, &theirs) ||
	    ours.dli_fbase != theirs.dli_fbase)
		return;
	thread = first_thread();
	if (thread && thread != own && !calls_eval_is_on())
		profile_thread(thread);
}

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	if (UNLIKELY(counting.on || process.on))
		names_thread_starts(__builtin_return_address(0));
	if (UNLIKELY(profiling && !calls.ended))
		profile_new_thread(__builtin_return_address(0));
	return stream_create_thread(real, thread, attr, start, arg,
	                            nogil_is_python(__builtin_return_address(0)));
}
