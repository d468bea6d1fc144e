/* SPDX-License-Identifier: MIT */
/*
 * Reads the names that the program gives to its threads, for the page of totals and for recordings;
 * before CPython 3.14, the kernel does not know them. In a recording, share/python/program.py does
 * so in the process that giltracer starts and in those that this one forks; this file does so in
 * all others. Before the first thread starts, the method of threading.Thread that each thread calls
 * first is replaced by one that calls the original and then us.
 */
#include "preload/count.h"
#include "preload/calls_record.h"
#include "preload/locks.h"

#include <dlfcn.h>
#include <string.h>

#define NAME_MAX_BYTES 200

/* What program.py leaves among the built-in names. */
#define HOOK "__giltracer_start__"

/* Imports nothing, and adds no frame that a tracer could see, because a thread starts tracing
 * later. */
static const char source[] =
	"watch = '''\n"
	"def watching(real, dummy, tell):\n"
	"    def %s(self):\n"
	"        real(self)\n"
	"        try:\n"
	"            if not isinstance(self, dummy):\n"
	"                tell(self._name)\n"
	"        except Exception:\n"
	"            pass\n"
	"    return %s\n"
	"'''\n"
	"def install(thread, dummy):\n"
	"    method = '_set_native_id' if hasattr(thread, '_set_native_id') else '_set_ident'\n"
	"    real = getattr(thread, method, None)\n"
	"    if type(real) is not type(install):\n"
	"        return\n"
	"    space = {'__name__': 'threading', '__builtins__': __builtins__}\n"
	"    exec(compile(watch % (method, method), real.__code__.co_filename, 'exec', 0, True),\n"
	"         space)\n"
	"    watching = space['watching'](real, dummy, tell)\n"
	"    watching.__qualname__ = real.__qualname__\n"
	"    if hasattr(watching.__code__, 'co_qualname'):\n"
	"        watching.__code__ = watching.__code__.replace(\n"
	"            co_qualname=real.__qualname__,\n"
	"            co_firstlineno=real.__code__.co_firstlineno)\n"
	"    setattr(thread, method, watching)\n"
	"install(threading.Thread, threading._DummyThread)\n";

/* Functions of CPython that only this file uses. */
static struct {
	int (*PyGILState_Check)(void);
	PyObject *(*PyImport_GetModuleDict)(void);
	int (*PyDict_SetItemString)(PyObject *, const char *, PyObject *);
	PyObject *(*PyDict_New)(void);
	PyObject *(*PyEval_GetBuiltins)(void);
	int (*PyErr_ExceptionMatches)(PyObject *);
	void (*PyErr_SetInterrupt)(void);
	PyObject **keyboard_interrupt;
	PyObject *(*PyRun_String)(const char *, int, PyObject *, PyObject *);
} api;

/* Whether the names are recorded here, not by share/python/program.py. */
static bool recorded;

static bool find_api(void)
{
#define FIND(name) (*(void **)&api.name = dlsym(RTLD_DEFAULT, #name)) != NULL
	api.keyboard_interrupt = dlsym(RTLD_DEFAULT, "PyExc_KeyboardInterrupt");
	return api.keyboard_interrupt && FIND(PyErr_ExceptionMatches) && FIND(PyErr_SetInterrupt) &&
	       python_find() && FIND(PyGILState_Check) && FIND(PyImport_GetModuleDict) &&
	       FIND(PyDict_SetItemString) && FIND(PyDict_New) && FIND(PyEval_GetBuiltins) &&
	       FIND(PyRun_String);
#undef FIND
}

/* The process whose main thread has been written. */
static _Atomic pid_t written;

/* A line "PID TID NAME" of PRELOAD_NAMES. */
static void write_name(pid_t pid, pid_t tid, const char *name)
{
	char line[NAME_MAX_BYTES + 48], *at = line;
	size_t len = strlen(name) < NAME_MAX_BYTES ? strlen(name) : NAME_MAX_BYTES;

	at = process_put_number(at, (uint64_t)pid);
	*at++ = ' ';
	at = process_put_number(at, (uint64_t)tid);
	*at++ = ' ';
	for (size_t i = 0; i < len; i++)
		*at++ = (char)(name[i] == '\n' ? ' ' : name[i]);
	*at++ = '\n';
	process_append(PRELOAD_NAMES, line, (size_t)(at - line));
}

static PyObject *main_name(void)
{
	PyObject *threading = python.PyDict_GetItemString(api.PyImport_GetModuleDict(),
	                                                  "threading");
	PyObject *thread = threading ? python.PyObject_GetAttrString(threading, "_main_thread")
	                             : NULL;
	PyObject *name = thread ? python.PyObject_GetAttrString(thread, "_name") : NULL;
	PyObject *bytes = name ? python.PyUnicode_AsEncodedString(name, "utf-8", "replace") : NULL;

	if (thread)
		python.Py_DecRef(thread);
	if (name)
		python.Py_DecRef(name);
	if (!bytes)
		python.PyErr_Clear();
	return bytes;
}

static void record(const char *name)
{
	pid_t pid = process.pid;
	PyObject *bytes;
	char *text;

	if (!process.on || !recorded)
		return;
	if (written != pid) {
		written = pid;
		bytes = main_name();
		if (bytes && python.PyBytes_AsStringAndSize(bytes, &text, NULL) == 0)
			write_name(pid, pid, text);
		if (bytes)
			python.Py_DecRef(bytes);
	}
	write_name(pid, process_gettid(), name);
}

static PyObject *tell(PyObject *module, PyObject *name)
{
	PyObject *bytes = python.PyUnicode_AsEncodedString(name, "utf-8", "replace");
	char *text;

	(void)module;
	if (!bytes)
		return NULL;
	if (python.PyBytes_AsStringAndSize(bytes, &text, NULL) == 0) {
		count_named(text);
		record(text);
	} else {
		python.PyErr_Clear();
	}
	python.Py_DecRef(bytes);
	python.Py_IncRef(python.none);
	return python.none;
}

/* Clears the error, but leaves Ctrl-C to the program. */
static void forget_error(void)
{
	bool interrupted = api.PyErr_ExceptionMatches(*api.keyboard_interrupt);

	python.PyErr_Clear();
	if (interrupted)
		api.PyErr_SetInterrupt();
}

static void install(PyObject *threading)
{
	static struct method method = { "tell", tell, METH_O, NULL };
	PyObject *space = api.PyDict_New(), *builtins = api.PyEval_GetBuiltins();
	PyObject *told = python.PyCFunction_NewEx(&method, NULL, NULL);
	PyObject *result = NULL;

	if (space && told && api.PyDict_SetItemString(space, "__builtins__", builtins) == 0 &&
	    api.PyDict_SetItemString(space, "threading", threading) == 0 &&
	    api.PyDict_SetItemString(space, "tell", told) == 0)
		result = api.PyRun_String(source, FILE_INPUT, space, space);
	counting.named = result != NULL;
	recorded = !python.PyDict_GetItemString(builtins, HOOK);
	/* Before 3.8, and in a program that embeds CPython, no audit event told that it begins. */
	if (recorded)
		calls_start_afresh();
	if (!result)
		forget_error();
	if (result)
		python.Py_DecRef(result);
	if (told)
		python.Py_DecRef(told);
	if (space)
		python.Py_DecRef(space);
}

/* Whether CPython's own code creates the thread, while it holds the GIL. */
static bool is_safe(const void *caller)
{
	Dl_info ours, theirs;

	return dladdr(caller, &ours) && dladdr((const void *)api.PyGILState_Check, &theirs) &&
	       ours.dli_fbase == theirs.dli_fbase && api.PyGILState_Check();
}

void names_thread_starts(const void *caller)
{
	static bool done, found;
	PyObject *type, *value, *trace, *threading;

	if (done)
		return;
	if (!found && !find_api()) {
		done = true;
		return;
	}
	found = true;
	if (!is_safe(caller))
		return;
	threading = python.PyDict_GetItemString(api.PyImport_GetModuleDict(), "threading");
	if (!threading)
		return;
	done = true;
	python.PyErr_Fetch(&type, &value, &trace);
	if (process.mutexes)
		locks_watch_takes(api.PyImport_GetModuleDict());
	install(threading);
	python.PyErr_Restore(type, value, trace);
}
