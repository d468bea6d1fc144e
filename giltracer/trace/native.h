/* SPDX-License-Identifier: MIT */
/* The C function that a Python function called, derived from a native stack. */
#ifndef GILTRACER_TRACE_NATIVE_H
#define GILTRACER_TRACE_NATIVE_H

#include <stdint.h>

struct stacks;

/*
 * The outermost native frame that the innermost Python frame runs through, without the
 * interpreter's own part (calls, attributes, operators, memory): builtin_pow of k_mul < long_pow <
 * builtin_pow < cfunction_vectorcall_… < eval. Of a collection of garbage, the collector; beyond a
 * function of the interpreter without a symbol, nothing. 0: the stack has no eval frame and was not
 * cut by its dump, no symbols there, or Python itself runs, not C code.
 */
uint32_t native_callee(const struct stacks *stacks, uint32_t stack);

#endif
