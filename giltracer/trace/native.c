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
		"Py_DECREF",
		"Py_XDECREF",
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

/* A frame without a symbol in libc is an allocator's or a copy's, whose caller is what matters. */
static bool is_libc(const char *module)
{
	return str_has_prefix(module, "libc.") || str_has_prefix(module, "libc-") ||
	       str_has_prefix(module, "libpthread") || str_has_prefix(module, "ld-") ||
	       *module == '[';
}

/* The frame that stands for any function of the file. */
static uint32_t file_frame(struct stacks *stacks, uint32_t module)
{
	struct stack_frame frame = { .name = module, .module = module, .flags = STACK_UNKNOWN };

	return stacks_id(stacks, &frame);
}

/* A frame without a symbol is known by its file, if that is neither the interpreter nor libc. */
static bool is_known(const struct names *names, const struct stack_frame *frame)
{
	const char *module = names_get(names, frame->module);

	if (frame->flags & (STACK_KERNEL | STACK_PYTHON))
		return false;
	if (frame->flags & STACK_UNKNOWN)
		return *module && !is_libc(module) && !is_in_interpreter(names, frame);
	return !is_interpreter(names_get(names, frame->name));
}

struct native native_callee(struct stacks *stacks, uint32_t stack)
{
	const struct names *names = stacks_names(stacks);
	struct native ret = { .decided = true };
	bool collector = false;
	uint32_t file = 0;

	for (; stack; stack = stacks_get(stacks, stack)->parent) {
		const struct stack_frame frame = *stacks_get(stacks, stack);

		if (frame.flags & STACK_EVAL)
			break;
		if (ret.decided && !collector && is_known(names, &frame)) {
			ret.callee = frame.flags & STACK_UNKNOWN ? file_frame(stacks, frame.module)
			                                         : stack;
			if (!is_libc(names_get(names, frame.module)))
				file = frame.module;
		}
		/*
		 * Frames further out may belong to the caller of a Python function: compilers split
		 * the evaluation loop, so a frame without a symbol may be the one that runs that
		 * function.
		 */
		if (is_collector(names, &frame)) {
			collector = true;
			ret = (struct native){ .callee = stack, .decided = true };
			file = frame.module;
		}
		if (!collector && ret.decided && frame.flags & STACK_UNKNOWN &&
		    is_in_interpreter(names, &frame)) {
			file = file ? file : frame.module;
			ret.decided = false;
		}
		if (frame.flags &
		    STACK_TRUNCATED) { /* a large frame of C, in which the dump ends */
			ret.decided &= collector;
			break;
		}
	}
	if (!stack) { /* no evaluation loop: it may be one of the functions without a symbol */
		file = ret.decided ? 0 : file;
		ret = (struct native){ .decided = false };
	}
	ret.file = file ? file_frame(stacks, file) : 0;
	return ret;
}
