/* SPDX-License-Identifier: MIT */
/* The C function that a Python function called, derived from a native stack. */
#ifndef GILTRACER_TRACE_NATIVE_H
#define GILTRACER_TRACE_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

struct stacks;

/**
 * @callee: the function's frame, 0: none. If the function has no symbol, a frame without a parent
 * whose name is that of the file
 * @decided: callee is the answer, also if it is 0 because Python itself runs; otherwise frames are
 * missing that may be the function's: the stack has no eval frame or was cut by its dump, or the
 * interpreter has no symbols there
 * @file: such a frame for the file that the function is in, 0: not known
 */
struct native {
	uint32_t callee;
	bool decided;
	uint32_t file;
};

/*
 * The outermost native frame that the innermost Python frame calls, except for functions of the
 * interpreter itself (calls, attributes, operators, memory): builtin_pow in k_mul < long_pow <
 * builtin_pow < cfunction_vectorcall_… < eval. During a garbage collection, the collector; frames
 * beyond an interpreter's function without a symbol are not used.
 */
struct native native_callee(struct stacks *stacks, uint32_t stack);

#endif
