/* SPDX-License-Identifier: MIT */
/* Finds the C function that a Python function called. */
#include "native.h"

#include <stdbool.h>
#include <string.h>

#include "binary/clone.h"
#include "base/str.h"
#include "trace/names.h"
#include "trace/stacks.h"

/*
 * Functions of the interpreter itself: for calls (Objects/call.c, Objects/methodobject.c,
 * Objects/descrobject.c and Python/ceval.c of CPython 3.6 to 3.15), for attributes and operators,
 * and of the memory allocator. None of these is what kept the GIL.
 */
static bool is_interpreter(const char *name)
{
	static const char *const prefixes[] = {
		"PyObject_Call",
		"_PyObject_Call",
		"_PyObject_FastCall",
		"_PyObject_MakeTpCall",
		"cfunction_call",
		"PyCFunction_Call",
		"_PyCFunction_",
		"_PyMethodDef_",
		"call_function",
		"do_call_core",
		"object_vacall",
		"type_call",
		"slot_tp_",
		"wrap_",
		"PyEval_",
		"_PyEval_",
		"_Py_HandlePending",
		"_PyFunction_",
		"trace_call_",
		"call_trace",
		"PyObject_GetAttr",
		"_PyObject_GetMethod",
		"PyObject_Generic",
		"_PyObject_Generic",
		"_PyType_Lookup",
		"PyObject_SetAttr",
		"PyObject_Malloc",
		"_PyObject_Malloc",
		"PyObject_Free",
		"_PyObject_Free",
		"PyMem_",
		"_PyMem_",
		"pymalloc_",
		"_PyObject_GC_",
		"PyNumber_",
		"PyIter_Next",
		"_Py_Dealloc",
		"_Py_DECREF",
		"_Py_XDECREF",
		"_PyFrame_Clear",
		"_PyEvalFrameClear",
		"clear_thread_frame",
		"eval_frame_handle_pending",
	};
	static const char *const whole[] = { "malloc",      "calloc",    "realloc",   "free",
		                             "_int_malloc", "_int_free", "sysmalloc", "brk",
		                             "mmap",        "munmap",    "gc_alloc",  "cfree" };

	/* PyObject_Vectorcall, cfunction_vectorcall_O, method_vectorcall_FASTCALL, … */
	if (strstr(name, "ectorcall"))
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_has_prefix(name, prefixes[i]))
			return true;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcmp(name, whole[i]))
			return true;
	return false;
}

/* Whether a frame is in the interpreter's file: python3.14, libpython3.13.so.1.0. */
static bool is_in_interpreter(const struct names *names, const struct stack_frame *frame)
{
	const char *module = names_get(names, frame->module);

	return str_has_prefix(module, "python3") || str_has_prefix(module, "libpython3");
}

/* The garbage collector runs when an object is created or, from 3.12 on, between instructions;
 * the code that it interrupts did not keep the GIL. */
static bool is_collector(const struct names *names, const struct stack_frame *frame)
{
	static const char *const functions[] = { "gc_collect_main", "collect", "_Py_RunGC" };
	const char *name = names_get(names, frame->name);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (clone_of(name, functions[i]))
			return is_in_interpreter(names, frame);
	return false;
}

struct native native_callee(const struct stacks *stacks, uint32_t stack)
{
	const struct names *names = stacks_names(stacks);
	struct native ret = { 0, true };
	bool collector = false;

	for (; stack; stack = stacks_get(stacks, stack)->parent) {
		const struct stack_frame *frame = stacks_get(stacks, stack);

		if (frame->flags & STACK_EVAL)
			return ret;
		if (ret.decided && !collector &&
		    !(frame->flags & (STACK_KERNEL | STACK_UNKNOWN | STACK_PYTHON)) &&
		    !is_interpreter(names_get(names, frame->name)))
			ret.callee = stack;
		/*
		 * Frames further out may belong to the caller of a Python function: compilers split
		 * the evaluation loop, so a frame without a symbol may be the one that runs that
		 * function.
		 */
		if (is_collector(names, frame)) {
			collector = true;
			ret = (struct native){ stack, true };
		}
		if (!collector && frame->flags & STACK_UNKNOWN && is_in_interpreter(names, frame))
			ret.decided = false;
		if (frame->flags &
		    STACK_TRUNCATED) { /* a large frame of C, in which the dump ends */
			ret.decided &= collector;
			return ret;
		}
	}
	return (struct native){ 0, false };
}
