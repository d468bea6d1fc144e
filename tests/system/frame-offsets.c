/* SPDX-License-Identifier: MIT */
/* Prints, from an interpreter's own headers, the "frame:" part that its probes/3.N.yaml should
 * have. Compiled by frame-offsets.t, once for each interpreter. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030B0000
#include "internal/pycore_frame.h"
#else
#include "frameobject.h"
#endif

#define SHOW(key, type, field) printf("  " key ": 0x%zx\n", offsetof(type, field))

#if PY_VERSION_HEX >= 0x030B0000
#define FRAME _PyInterpreterFrame
#define NAME  co_qualname
#else
#define FRAME PyFrameObject
#define NAME  co_name
#endif

static void show_frame(void)
{
#if PY_VERSION_HEX >= 0x030D0000
	SHOW("current", PyThreadState, current_frame);
	SHOW("previous", FRAME, previous);
	SHOW("code", FRAME, f_executable);
	SHOW("instruction", FRAME, instr_ptr);
	puts("  instruction-size: 8");
#elif PY_VERSION_HEX >= 0x030B0000
	SHOW("current", PyThreadState, cframe);
	SHOW("current2", _PyCFrame, current_frame);
	SHOW("previous", FRAME, previous);
	SHOW("code", FRAME, f_code);
	SHOW("instruction", FRAME, prev_instr);
	puts("  instruction-size: 8");
#else
	SHOW("current", PyThreadState, frame);
	SHOW("previous", FRAME, f_back);
	SHOW("code", FRAME, f_code);
	SHOW("instruction", FRAME, f_lasti);
	puts("  instruction-size: 4");
#endif
}

int main(void)
{
	show_frame();
	SHOW("type", PyObject, ob_type);
	SHOW("line", PyCodeObject, co_firstlineno);
	SHOW("name", PyCodeObject, NAME);
	SHOW("state", PyASCIIObject, state);
	printf("  text: 0x%zx\n", sizeof(PyASCIIObject));
	return 0;
}
