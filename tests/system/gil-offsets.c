/* SPDX-License-Identifier: MIT */
/* Prints, from an interpreter's own headers, the offsets by which take_gil's probe finds the GIL.
 * Compiled by gil-offsets.t for interpreters whose GIL is per interpreter (3.12+). */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_interp.h"

int main(void)
{
	printf("+0x%zx(+0x%zx(arg1))\n", offsetof(PyInterpreterState, ceval.gil),
	       offsetof(PyThreadState, interp));
	return 0;
}
