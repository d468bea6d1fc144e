/* SPDX-License-Identifier: MIT */
/* Prints, from an interpreter's own headers, the "frame:" part that its probes/3.N.yaml should
 * have, and what else trace/perf/frames.c takes for granted if it is otherwise. Compiled by
 * frame-offsets.t, once for each interpreter. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#if PY_VERSION_HEX >= 0x030B0000
#include "internal/pycore_frame.h"
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe_structs.h"
#endif
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

static uint32_t state(unsigned kind, unsigned compact_ascii)
{
	PyASCIIObject text;
	uint32_t bits;

	memset(&text, 0, sizeof(text));
	text.state.kind = kind;
	text.state.compact = compact_ascii;
	text.state.ascii = compact_ascii;
	memcpy(&bits, &text.state, sizeof(bits));
	return bits;
}

/* STATE_MASK and STATE_COMPACT_ASCII. */
static void show_other_state(void)
{
	if (state(7, 1) != 0x7c || state(PyUnicode_1BYTE_KIND, 1) != 0x64)
		printf("  state of a str: mask 0x%x, compact ASCII 0x%x\n", state(7, 1),
		       state(PyUnicode_1BYTE_KIND, 1));
}

int main(void)
{
	show_frame();
	SHOW("type", PyObject, ob_type);
	SHOW("line", PyCodeObject, co_firstlineno);
	SHOW("name", PyCodeObject, NAME);
	SHOW("state", PyASCIIObject, state);
	printf("  text: 0x%zx\n", sizeof(PyASCIIObject));
	show_other_state();
	return 0;
}
