/* SPDX-License-Identifier: MIT */
/* Prints, from an interpreter's own headers, the "memory:" part that its probes/3.N.yaml should
 * have. Compiled by memory-offsets.t, once for each interpreter. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x03080000
#include "internal/pycore_pystate.h"
#elif PY_VERSION_HEX >= 0x03070000
#include "internal/pystate.h"
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_runtime.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_gil.h"
#endif

#define SHOW(key, type, field) printf("  " key ": 0x%zx\n", offsetof(type, field))

/* 3.6 has these structs in a source file: Python/pystate.c, interp_head. */
static void show_roots(void)
{
#if PY_VERSION_HEX >= 0x03070000
	puts("  root: _PyRuntime");
	SHOW("interpreters", _PyRuntimeState, interpreters.head);
#else
	puts("  root: interp_head");
	puts("  interpreters: 0x0");
#endif
	SHOW("next-interpreter", PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030C0000
	SHOW("interpreter-id", PyInterpreterState, id);
#endif
#if PY_VERSION_HEX >= 0x030B0000
	SHOW("threads", PyInterpreterState, threads.head);
#else
	SHOW("threads", PyInterpreterState, tstate_head);
#endif
	SHOW("next-thread", PyThreadState, next);
	SHOW("thread-id", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030B0000
	SHOW("native-id", PyThreadState, native_thread_id);
#endif
}

static void show_gil(void)
{
#if PY_VERSION_HEX >= 0x030C0000
	SHOW("gil", PyInterpreterState, ceval.gil);
#elif PY_VERSION_HEX >= 0x03070000
	SHOW("gil", _PyRuntimeState, ceval.gil);
#endif
#if PY_VERSION_HEX >= 0x03070000
	SHOW("gil-holder", struct _gil_runtime_state, last_holder);
	SHOW("gil-locked", struct _gil_runtime_state, locked);
	printf("  gil-size: 0x%zx\n", sizeof(struct _gil_runtime_state));
#endif
}

static void show_code(void)
{
	SHOW("file", PyCodeObject, co_filename);
#if PY_VERSION_HEX >= 0x030A0000
	SHOW("table", PyCodeObject, co_linetable);
#else
	SHOW("table", PyCodeObject, co_lnotab);
#endif
#if PY_VERSION_HEX >= 0x030B0000
	SHOW("instructions", PyCodeObject, co_code_adaptive);
#else
	puts("  instructions: 0x0");
#endif
	SHOW("size", PyVarObject, ob_size);
	SHOW("bytes", PyBytesObject, ob_sval);
	SHOW("length", PyASCIIObject, length);
	printf("  wide-text: 0x%zx\n", sizeof(PyCompactUnicodeObject));
}

static void show_names(void)
{
#if PY_VERSION_HEX >= 0x030C0000
	SHOW("modules", PyInterpreterState, imports.modules);
#else
	SHOW("modules", PyInterpreterState, modules);
#endif
	SHOW("cached-keys", PyHeapTypeObject, ht_cached_keys);
#if PY_VERSION_HEX >= 0x030E0000
	SHOW("debugger", _PyRuntimeState, debug_offsets.debugger_support);
#endif
}

int main(void)
{
	show_roots();
	show_gil();
	show_code();
	show_names();
	return 0;
}
