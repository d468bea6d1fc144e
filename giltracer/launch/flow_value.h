/* SPDX-License-Identifier: MIT */
/* The values that flow.c computes with. */
#ifndef GILTRACER_LAUNCH_FLOW_VALUE_H
#define GILTRACER_LAUNCH_FLOW_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/flow.h"

/* Offsets are counted from: 0, an argument, what a load found, the stack pointer at the entry, or
 * something nothing is known of. */
enum flow_kind { FLOW_NUMBER, FLOW_ARG, FLOW_LOAD, FLOW_STACK, FLOW_UNKNOWN };

/* All nodes of one run. */
struct flow_values *flow_values_new(void);
void flow_values_free(struct flow_values *values);

/*
 * The value of a kind with this content, and offset 0. LOAD: the 8 bytes at {node a, offset b}.
 * ARG: number a, from 1. UNKNOWN: two are the same if both a and b are.
 */
struct flow_value flow_value_of(struct flow_values *values, enum flow_kind kind, uint64_t a,
                                int64_t b);

/* Whether it is an address on this function's stack. */
bool flow_on_stack(const struct flow_values *values, struct flow_value address);

static inline struct flow_value flow_number(uint64_t n)
{
	return (struct flow_value){ 0, (int64_t)n };
}

static inline bool flow_is_number(struct flow_value v)
{
	return v.node == 0;
}

#endif
