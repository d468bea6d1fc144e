/* SPDX-License-Identifier: MIT */
/* Prints, from the headers of a free-threaded interpreter, the ways to what its probes fetch, as
 * they stand in probes/3.Nt.yaml. Compiled by nogil.t. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"

#define AT(type, field) (long)offsetof(type, field)

int main(void)
{
	long gil = AT(PyInterpreterState, ceval.gil), interp = AT(PyThreadState, interp);
	long on = AT(struct _gil_runtime_state, enabled);
	long type = AT(PyObject, ob_type), name = AT(PyTypeObject, tp_name);

	printf("gil: \"+0x%lx(+0x%lx(arg1))\"\n", gil, interp);
	printf("gil: \"+0x%lx(arg1)\"\n", gil);
	printf("on: \"+0x%lx(+0x%lx(+0x%lx(arg1))):u32\"\n", on, gil, interp);
	printf("on: \"+0x%lx(+0x%lx(arg1)):u32\"\n", on, gil);
	printf("name: \"+0x%zx(arg2):ustring\"\n", sizeof(PyASCIIObject));
	printf("of: \"+0x0(+0x%lx(+0x%lx(arg1))):ustring\"\n", name, type - AT(PyObject, ob_mutex));
	/* The lock of a _thread.lock follows its head. */
	printf("in: \"+0x0(+0x%lx(-0x%lx(arg1))):ustring\"\n", name, (long)sizeof(PyObject) - type);
	printf("tstate: \"+0x%lx(arg1)\"\n", AT(struct _stoptheworld_state, requester));
	printf("tstate: \"+0x%lx(arg1)\"\n", AT(PyInterpreterState, stoptheworld.requester));
	printf("tstate: \"+0x%lx(arg1)\"\n", AT(_PyRuntimeState, stoptheworld.requester));
	return 0;
}
