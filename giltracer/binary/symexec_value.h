/* SPDX-License-Identifier: MIT */
/* The values that symexec.c computes with. */
#ifndef GILTRACER_BINARY_SYMEXEC_VALUE_H
#define GILTRACER_BINARY_SYMEXEC_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "binary/symexec.h"

/* Offsets are relative to: 0, an argument, a loaded value, the stack pointer at the entry, or an
 * unknown value. */
enum symexec_kind { SYMEXEC_NUMBER, SYMEXEC_ARG, SYMEXEC_LOAD, SYMEXEC_STACK, SYMEXEC_UNKNOWN };

/* All nodes of one run. */
struct symexec_values *symexec_values_new(void);
void symexec_values_free(struct symexec_values *values);

/*
 * The value of this kind and content with offset 0. LOAD: the 8 bytes at {node a, offset b}. ARG:
 * number a, from 1. UNKNOWN: two values are the same if a and b are.
 */
struct symexec_value symexec_value_of(struct symexec_values *values, enum symexec_kind kind,
                                      uint64_t a, int64_t b);

/* Whether it is an address on this function's stack. */
bool symexec_on_stack(const struct symexec_values *values, struct symexec_value address);

static inline struct symexec_value symexec_number(uint64_t n)
{
	return (struct symexec_value){ 0, (int64_t)n };
}

static inline bool symexec_is_number(struct symexec_value v)
{
	return v.node == 0;
}

#endif
