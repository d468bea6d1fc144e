/* SPDX-License-Identifier: MIT */
/*
 * Switches the recording of Python calls on and off. share/python/program.py imports the library
 * as a module. The import fails with an ImportError whose arguments are start, stop, cost, watch,
 * turn, collected and unseen, so that no module of ours is left in the program.
 */

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/calls_record.h"
#include "preload/nogil.h"

/* CPython numbers interpreters from 0 and never reuses a number. Interpreters with higher numbers
 * than this are not recorded. */
#define INTERPRETERS_MAX (1 << 24)
#define WORD_BITS        64

/* @begun: a bit for each interpreter in which recording has begun or cannot begin */
static struct {
	void *main;
	uint64_t *begun;
} interpreters;

static __thread const void *last_thread __attribute__((tls_model("initial-exec")));

bool calls_interpreters_runs(const void *thread)
{
	return thread && thread == last_thread;
}

void calls_interpreters_note(const void *thread)
{
	last_thread = thread;
}

/* Whether to start recording in an interpreter: true once for each. Starting raises events
 * itself. */
static bool claim(uint64_t id)
{
	uint64_t bit = 1ull << id % WORD_BITS, *word = &interpreters.begun[id / WORD_BITS];

	if (LIKELY(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		return false;
	return !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
}

static void say_unrecorded(uint64_t id)
{
	process_log(&(struct preload_entry){ .type = PRELOAD_UNRECORDED, .number = id }, NULL, 0);
}

static void start_here(uint64_t id)
{
	PyObject *type, *value, *trace;
	const char *why;

	python.PyErr_Fetch(&type, &value, &trace);
	why = calls_codes_have_index() ? calls_start_here() : "it has another index";
	python.PyErr_Clear();
	if (why)
		say_unrecorded(id);
	python.PyErr_Restore(type, value, trace);
}

/* An event may be raised while there is no current thread state. */
static int on_event(const char *event, PyObject *arguments, void *nothing)
{
	void *thread = python_thread(), *interpreter;
	int64_t id;

	(void)event;
	(void)arguments;
	(void)nothing;
	if (!thread)
		return 0;
	interpreter = python_interpreter();
	if (LIKELY(interpreter == interpreters.main))
		return 0;
	last_thread = thread;
	id = python.PyInterpreterState_GetID(interpreter);
	if (UNLIKELY(id >= 0 && id < INTERPRETERS_MAX && !calls.ended && claim((uint64_t)id)))
		start_here((uint64_t)id);
	return 0;
}

/* Count the interpreters that exist already as not recorded: code that runs in them may not raise
 * any event. */
static void give_up_older(void)
{
	void *interpreter = python.PyInterpreterState_Head();

	for (; interpreter; interpreter = python.PyInterpreterState_Next(interpreter)) {
		int64_t id = python.PyInterpreterState_GetID(interpreter);

		if (interpreter != interpreters.main && id >= 0 && id < INTERPRETERS_MAX &&
		    claim((uint64_t)id))
			say_unrecorded((uint64_t)id);
	}
}

/* Call in the main interpreter, to record in each interpreter that is made from now on. Older ones
 * are counted as not recorded. */
static void calls_interpreters_watch(void)
{
	void *map;

	if (interpreters.begun || !python.PySys_AddAuditHook || !python.PyInterpreterState_GetID ||
	    !python.PyInterpreterState_Head || !python.PyInterpreterState_Next)
		return;
	map = mmap(NULL, INTERPRETERS_MAX / 8, PROT_READ | PROT_WRITE,
	           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return;
	interpreters.begun = map;
	interpreters.main = python_interpreter();
	give_up_older();
	if (python.PySys_AddAuditHook(on_event, NULL) < 0)
		python.PyErr_Clear();
}

static const uint32_t over = 1;

struct calls calls = { .over = &over };

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

/* This runs before CPython reads the environment: if the library does not record the GIL, the program,
 * and the programs that it executes, have the environment that they would have without us. A process
 * without CPython, such as a script of pyenv that starts it, passes our variables on. */
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
	PyObject *type, *value, *trace;

	/* The recorder of a subinterpreter may be called before recording has begun. */
	if (!calls.on && !calls.ended)
		return;
	calls.on = false;
	calls.ended = true;
	__atomic_store_n(&calls.over, &over, __ATOMIC_RELAXED);
	python.PyErr_Fetch(&type, &value, &trace);
	if (!python.at.has_monitoring) {
		calls_eval_stop();
		calls_profile_stop();
	} else {
		calls_monitor_stop();
	}
	python.PyErr_Restore(type, value, trace);
}

void calls_end(void)
{
	__atomic_store_n(&calls.over, &over, __ATOMIC_RELAXED);
}

__attribute__((noinline, cold)) void
calls_record_slowly(PyObject *code, enum preload_call_type type, PyObject *at, PyObject *value)
{
	uint32_t number;

	calls_self.code = NULL;
	if (calls_are_over()) {
		calls_stop();
		return;
	}
	calls_greenlet_watch();
	number = calls_code_search(code, NULL);
	if (number < PRELOAD_CALL_CODES_MAX)
		calls_put(&calls_self, type, number);
	else
		calls_record_role(code, type, number, at, value);
}

/* Called by start and watch, whichever comes first, and then again by the other. */
static bool prepare(void)
{
	process_begin();
	python_find_layout();
	calls.native = process.control && process.control->c_calls;
	calls_tasks_begin();
	if (!process.on || !calls_file_begin() || !calls_codes_begin())
		return false;
	if (!python.at.has_monitoring) {
		calls_eval_begin();
		calls_profile_begin();
	}
	return true;
}

const char *calls_start_here(void)
{
	if (python.at.has_monitoring)
		return calls_monitor_start();
	if (!calls.native && calls_eval_start())
		return NULL;
	return calls_profile_start();
}

/* Returns None, or a str with the reason why recording cannot start. */
static PyObject *start(PyObject *module, PyObject *nothing)
{
	static const uint32_t not_over = 0;
	const char *why = NULL;

	(void)module;
	(void)nothing;
	if (!prepare())
		why = "its folder could not be found";
	else if (!calls.on) {
		calls.on = true;
		__atomic_store_n(&calls.over,
		                 process.control ? &process.control->stopped : &not_over,
		                 __ATOMIC_RELAXED);
		why = calls_start_here();
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

/* Called when the program is about to import the module that makes interpreters. The recorder is
 * installed in each new interpreter at once, because the interpreter may still exist when recording
 * begins. */
static PyObject *watch(PyObject *module, PyObject *nothing)
{
	(void)module;
	(void)nothing;
	if (prepare())
		calls_interpreters_watch();
	python.Py_IncRef(python.none);
	return python.none;
}

/* Log the overhead of recording a call. ps: in picoseconds */
static PyObject *cost(PyObject *module, PyObject *ps)
{
	long value = python.PyLong_AsLong(ps);

	(void)module;
	if (value > 0)
		process_log(&(struct preload_entry){ .type = PRELOAD_CALL_COST,
		                                     .value = (uint64_t)value },
		            NULL, 0);
	python.Py_IncRef(python.none);
	return python.none;
}

/* What gc.callbacks calls with "start" or "stop", and information about the collection. */
static PyObject *collected(PyObject *module, PyObject *args)
{
	static __thread uint64_t begun_ns, begun_stamp;
	PyObject *phase = python.PyTuple_GetItem(args, 0), *bytes;
	uint64_t now_ns = clock_ns(), stamp = clock_stamp();
	char *text = NULL;
	Py_ssize_t len;

	(void)module;
	bytes = phase ? python.PyUnicode_AsEncodedString(phase, "ascii", "strict") : NULL;
	if (!bytes || python.PyBytes_AsStringAndSize(bytes, &text, &len) < 0)
		return NULL;
	if (!strcmp(text, "start")) {
		begun_ns = now_ns;
		begun_stamp = stamp;
	} else if (begun_ns) {
		if (now_ns - begun_ns >= PRELOAD_COLLECTED_NS && !calls_are_over())
			process_log(&(struct preload_entry){ .type = PRELOAD_COLLECTED,
			                                     .stamp = stamp,
			                                     .number = (uint64_t)process_gettid(),
			                                     .value = begun_stamp },
			            NULL, 0);
		begun_ns = 0;
	}
	python.Py_DecRef(bytes);
	python.Py_IncRef(python.none);
	return python.none;
}

#define TURNS 64

/* Measures what a turn of the GIL costs with uprobes. Tracing has not begun. The minimum, because
 * other threads may interfere. */
static PyObject *turn(PyObject *module, PyObject *nothing)
{
	uint64_t least_ns = UINT64_MAX;

	(void)module;
	(void)nothing;
	process_begin();
	for (unsigned i = 0; i < TURNS && !process_of_gil(); i++) {
		uint64_t start_ns = clock_ns(), ns;

		python.PyEval_RestoreThread(python.PyEval_SaveThread());
		ns = clock_ns() - start_ns;
		if (ns < least_ns)
			least_ns = ns;
	}
	if (least_ns != UINT64_MAX)
		handover_begin(least_ns);
	python.Py_IncRef(python.none);
	return python.none;
}

/* ---- extension modules that need the GIL of a free-threaded build */

#define IMPORT_SYSTEM "<frozen importlib"

static PyObject *create_dynamic; /* of the module _imp */

/* PyModuleObject.md_gil of 3.13, after the header: NULL unless the module declares that it works without a GIL;
 * see nogil.t. */
#define MODULE_GIL 40

static bool needs_gil(PyObject *module)
{
	return python_type(module) == python.module &&
	       !pointer_at(module, python.at.header + MODULE_GIL);
}

/* The innermost frame that is not of the import system. */
static const char *importing_frame(void)
{
	const char *frame = nogil_frame();
	char file[CALLS_TEXT_MAX];

	if (python.at.frame[FRAME_CODE] == PYTHON_NO_OFFSET)
		python_find_layout();
	if (python.at.frame[FRAME_CODE] == PYTHON_NO_OFFSET)
		return NULL;
	for (; frame; frame = (const char *)pointer_at(frame, python.at.frame[FRAME_PREVIOUS])) {
		uintptr_t tagged = (uintptr_t)pointer_at(frame, python.at.frame[FRAME_CODE]);
		PyObject *code = (PyObject *)(tagged & ~(uintptr_t)7);
		size_t len;

		if (!code || python_type(code) != python.code)
			continue;
		len = calls_put_text(file, pointer_at(code, python.at.memory[MEMORY_FILE]));
		if (len < strlen(IMPORT_SYSTEM) ||
		    memcmp(file, IMPORT_SYSTEM, strlen(IMPORT_SYSTEM)) != 0)
			return frame;
	}
	return NULL;
}

static void say_needs_gil(uint32_t frames, const char *name, size_t len)
{
	process_log(&(struct preload_entry){ .type = PRELOAD_NEEDS_GIL,
	                                     .stamp = clock_stamp(),
	                                     .number = frames },
	            name, len);
}

/* In place of _imp.create_dynamic(SPEC, FILE). */
static PyObject *create(PyObject *module, PyObject *args)
{
	PyObject *result = python.PyObject_CallObject(create_dynamic, args);
	PyObject *spec = result && needs_gil(result) ? python.PyTuple_GetItem(args, 0) : NULL;
	char name[CALLS_TEXT_MAX];

	(void)module;
	nogil_imported(join_self());
	if (spec)
		say_needs_gil(frames_from(importing_frame()), name,
		              calls_put_attribute(name, spec, "name"));
	return result;
}

static void watch_extensions(void)
{
	static struct method method = { "create_dynamic", create, METH_VARARGS, NULL };
	PyObject *modules = python.PySys_GetObject("modules"), *imp, *function;

	imp = modules ? python.PyDict_GetItemString(modules, "_imp") : NULL;
	if (create_dynamic || !nogil_on || !imp || !python.module)
		return;
	create_dynamic = python.PyObject_GetAttrString(imp, "create_dynamic");
	function = create_dynamic ? python.PyCFunction_NewEx(&method, NULL, NULL) : NULL;
	if (function && python.PyObject_SetAttrString(imp, "create_dynamic", function) == 0)
		say_needs_gil(0, NULL, 0);
	calls_drop(function);
}

/* ---- the frames of program.py */

/* Where the thread's state has its current frame. at: CURRENT and CURRENT2, or -1, as in
 * probes/README.md */
static const char **current_frame(const long at[2])
{
	char *current = (char *)python_thread() + at[0];

	if (at[1] >= 0)
		current = *(char **)(void *)current + at[1];
	return (const char **)(void *)current;
}

/* Calls FUNCTION(*ARGS) as if by a frame further out, or, if FRAME is None, as if by the interpreter: the
 * program sees none of our frames in between. The interpreter links new frames to the current one, and uses
 * it for nothing else. Arguments: CURRENT, CURRENT2, FRAME, FUNCTION, ARGS */
static PyObject *unseen(PyObject *module, PyObject *args)
{
	PyObject *item[5], *own, *result;
	long at[2];

	(void)module;
	for (int i = 0; i < 5; i++)
		if (!(item[i] = python.PyTuple_GetItem(args, i)))
			return NULL;
	at[0] = python.PyLong_AsLong(item[0]);
	at[1] = python.PyLong_AsLong(item[1]);
	own = python.PyEval_GetFrame();
	if (!own || *current_frame(at) != (const char *)python_frame(own))
		return python.PyObject_CallObject(item[3], item[4]);
	*current_frame(at) = item[2] == python.none ? NULL : (const char *)python_frame(item[2]);
	result = python.PyObject_CallObject(item[3], item[4]);
	*current_frame(at) = (const char *)python_frame(own);
	return result;
}

/* ---- processes that the program starts afresh, in which program.py does not run */

/* Calls method of the module, or of its attribute if that is not NULL, with one of our functions. */
static void hand_over(PyObject *module, const char *attribute, const char *method,
                      struct method *function)
{
	PyObject *of = module;

	if (module && attribute)
		of = python.PyObject_GetAttrString(module, attribute);
	if (of)
		calls_drop(python.PyObject_CallMethod(
			of, method, "N", python.PyCFunction_NewEx(function, NULL, NULL)));
	if (attribute)
		calls_drop(of);
}

PyObject *calls_import_gc(void)
{
	PyObject *modules = python.PySys_GetObject("modules"), *gc;
	bool had = modules && python.PyDict_GetItemString(modules, "gc");
	PyObject *(*import)(const char *);

	*(void **)&import = dlsym(RTLD_DEFAULT, "PyImport_ImportModule");
	gc = import && modules ? import("gc") : NULL;
	if (!gc)
		python.PyErr_Clear();
	else if (!had)
		calls_drop(python.PyObject_CallMethod(modules, "pop", "s", "gc"));
	return gc;
}

/* As program.py does. Up to 3.9, the interpreter uses atexit without a reference, so that stays in
 * sys.modules. */
static void watch_end_and_collections(void)
{
	static struct method at_exit = { "stop", stop, METH_NOARGS, NULL };
	static struct method callback = { "collected", collected, METH_VARARGS, NULL };
	PyObject *(*import)(const char *), *atexit, *gc = calls_import_gc();

	*(void **)&import = dlsym(RTLD_DEFAULT, "PyImport_ImportModule");
	atexit = import ? import("atexit") : NULL;
	hand_over(atexit, NULL, "register", &at_exit);
	hand_over(gc, "callbacks", "append", &callback);
	calls_drop(atexit);
	calls_drop(gc);
}

void calls_start_afresh(void)
{
	PyObject *type, *value, *trace;

	process_begin();
	if (calls.on || calls.ended || !process.control || !process.control->calls ||
	    process.control->stopped || !python_find())
		return;
	python.PyErr_Fetch(&type, &value, &trace);
	python.Py_DecRef(start(NULL, NULL));
	if (calls.on) {
		process_log(&(struct preload_entry){ .type = PRELOAD_CALL_COST }, NULL, 0);
		watch_end_and_collections();
	}
	python.PyErr_Restore(type, value, trace);
}

/* Called for each audit event. The first process with CPython is the one that giltracer starts, unless
 * another one starts it, which is then recorded, too. Before 3.12, layouts are checked by a frame. */
static int on_start(const char *event, PyObject *arguments, void *nothing)
{
	static bool runs, done;

	(void)arguments;
	(void)nothing;
	if (LIKELY(done))
		return 0;
	if (!runs && !strncmp(event, "cpython.run_", 12)) {
		process_begin();
		done = !process.control || !python_find() ||
		       !__atomic_exchange_n(&process.control->began, 1, __ATOMIC_RELAXED);
		runs = true;
	}
	if (!runs || done || !python_thread() ||
	    !(python.at.has_monitoring || python.PyEval_GetFrame()))
		return 0;
	done = true;
	calls_start_afresh();
	return 0;
}

void calls_watch_start(void *(*symbol)(const char *))
{
	static bool watched;
	int (*add_hook)(int (*)(const char *, PyObject *, void *), void *);
	int (*is_initialized)(void);

	*(void **)&add_hook = symbol("PySys_AddAuditHook");
	*(void **)&is_initialized = symbol("Py_IsInitialized");
	if (watched || !process.control || !process.control->calls || !add_hook ||
	    !is_initialized || is_initialized())
		return;
	watched = true;
	add_hook(on_start, NULL);
}

void calls_in_child(void)
{
	calls_lock_in_child();
	calls_file_in_child();
	calls_codes_in_child();
	calls_native_in_child();
	calls_tasks_in_child();
}

/* What CPython calls when it imports the library. */
__attribute__((visibility("default"))) PyObject *PyInit_giltracer_calls(void);

PyObject *PyInit_giltracer_calls(void)
{
	static struct method methods[] = { { "start", start, METH_NOARGS, NULL },
		                           { "stop", stop, METH_NOARGS, NULL },
		                           { "cost", cost, METH_O, NULL },
		                           { "watch", watch, METH_NOARGS, NULL },
		                           { "turn", turn, METH_NOARGS, NULL },
		                           { "collected", collected, METH_VARARGS, NULL },
		                           { "unseen", unseen, METH_VARARGS, NULL } };
	PyObject *all;

	if (!python_find())
		return NULL;
	watch_extensions();
	all = python.PyTuple_Pack((Py_ssize_t)7, python.PyCFunction_NewEx(&methods[0], NULL, NULL),
	                          python.PyCFunction_NewEx(&methods[1], NULL, NULL),
	                          python.PyCFunction_NewEx(&methods[2], NULL, NULL),
	                          python.PyCFunction_NewEx(&methods[3], NULL, NULL),
	                          python.PyCFunction_NewEx(&methods[4], NULL, NULL),
	                          python.PyCFunction_NewEx(&methods[5], NULL, NULL),
	                          python.PyCFunction_NewEx(&methods[6], NULL, NULL));
	if (!all)
		return NULL;
	python.PyErr_SetObject(*python.import_error, all);
	python.Py_DecRef(all);
	return NULL;
}
