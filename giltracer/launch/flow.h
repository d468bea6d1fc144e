/* SPDX-License-Identifier: MIT */
/*
 * What is in the registers at each call of one function: its machine code run on symbols instead of
 * numbers. Enough to tell which lock a pthread call is about, and how to reach it from an argument.
 * x86-64 only; elsewhere nothing is found.
 */
#ifndef GILTRACER_LAUNCH_FLOW_H
#define GILTRACER_LAUNCH_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"

struct codemap;
struct noreturn;

/* node + off. Node 0 is the number 0, so that {0, off} is a constant or link-time address. */
struct flow_value {
	uint32_t node;
	int64_t off;
};

#define FLOW_ZEROS     6
#define FLOW_REGISTERS 16 /* in the order of their encoding: ax cx dx bx sp bp si di r8 … r15 */

/**
 * @address: of the call or tail jump; @next: of the instruction behind it
 * @target: of a direct call, else 0
 * @import: the imported function it calls, or NULL; borrowed from the codemap
 * @reg: the registers at the call
 * @has_lock, @lock: argument of the last pthread_mutex_lock on the way here
 * @zeros: where a 4-byte 0 was stored since, the first FLOW_ZEROS of them
 */
struct flow_call {
	uint64_t address, next, target;
	const char *import;
	struct flow_value reg[FLOW_REGISTERS];
	bool has_lock;
	struct flow_value lock;
	struct flow_value zeros[FLOW_ZEROS];
	unsigned zero_count;
};

/* unbalanced: a return is not at the height of the stack where it began, so the run did not begin
 * at a function's entry. */
struct flow {
	VEC(struct flow_call) calls; /* by address, each once */
	bool unbalanced;
	struct flow_values *values; /* flow_value.h */
};

#define FLOW_DI 7
#define FLOW_SI 6

/* entry: where to begin. known: it is a function's entry, so the arguments are in place. Free with
 * flow_free. Never NULL; what makes no sense ends the path. */
struct flow *flow_run(const struct codemap *map, struct noreturn *noreturn, uint64_t entry,
                      bool known);
void flow_free(struct flow *flow);

/*
 * Where the straight stretch of code around an address begins: behind the last unconditional jump
 * or return before it, counted from start, the function's entry.
 */
uint64_t flow_chunk(const struct codemap *map, uint64_t start, uint64_t address);

/* The call at an address, NULL if it is not reached. */
const struct flow_call *flow_at(const struct flow *flow, uint64_t address);

/*
 * How to read a value at the function's entry, "+0x180(+0x10(arg1))": for values that are a chain
 * of loads from an argument. NULL for others, and where off is not 0. Caller frees.
 */
char *flow_expression(const struct flow *flow, struct flow_value value);

/* How many loads lead from an argument of the function to a value, plus an offset; -1 if it does
 * not come from one. */
int flow_depth(const struct flow *flow, struct flow_value value);

static inline bool flow_same(struct flow_value a, struct flow_value b)
{
	return a.node == b.node && a.off == b.off;
}

DEFINE_CLEANUP(struct flow *, flow_free);

#endif
