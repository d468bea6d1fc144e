/* SPDX-License-Identifier: MIT */
/* The C function below a Python function. */
#include "native.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "trace/names.h"
#include "trace/stacks.h"

/*
 * How the interpreter calls what it was asked to call: Objects/call.c, Objects/methodobject.c,
 * Objects/descrobject.c and Python/ceval.c of CPython 3.6 to 3.13.
 */
static bool is_call_protocol(const char *name)
{
	static const char *const prefixes[] = {
		"PyObject_Call",      "_PyObject_Call",
		"_PyObject_FastCall", "_PyObject_MakeTpCall",
		"cfunction_call",     "PyCFunction_Call",
		"_PyCFunction_",      "_PyMethodDef_",
		"call_function",      "do_call_core",
		"object_vacall",      "type_call",
		"slot_tp_",           "wrap_",
		"_PyEval_",           "_PyFunction_",
		"trace_call_",        "call_trace",
	};

	/* PyObject_Vectorcall, cfunction_vectorcall_O, method_vectorcall_FASTCALL, … */
	if (strstr(name, "ectorcall"))
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_has_prefix(name, prefixes[i]))
			return true;
	return false;
}

uint32_t native_callee(const struct stacks *stacks, uint32_t stack)
{
	const struct names *names = stacks_names(stacks);
	uint32_t callee = 0;

	while (stack) {
		const struct stack_frame *frame = stacks_get(stacks, stack);

		if (frame->flags & STACK_EVAL)
			return callee;
		if (!(frame->flags & (STACK_KERNEL | STACK_UNKNOWN | STACK_PYTHON)) &&
		    !is_call_protocol(names_get(names, frame->name)))
			callee = stack;
		stack = frame->parent;
	}
	return 0;
}
