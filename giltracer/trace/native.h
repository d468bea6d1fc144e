/* SPDX-License-Identifier: MIT */
/* The C function that a Python function called, derived from a native stack. */
#ifndef GILTRACER_TRACE_NATIVE_H
#define GILTRACER_TRACE_NATIVE_H

#include <stdint.h>

struct stacks;

/*
 * The outermost native frame that the innermost Python frame calls, except for functions of the
 * interpreter itself (calls, attributes, operators, memory): builtin_pow in k_mul < long_pow <
 * builtin_pow < cfunction_vectorcall_… < eval. During a garbage collection, the collector; frames
 * beyond an interpreter's function without a symbol are not used. 0: the stack has no eval frame
 * and was not cut by its dump, or has no symbols there, or Python itself runs instead of C code.
 */
uint32_t native_callee(const struct stacks *stacks, uint32_t stack);

#endif
