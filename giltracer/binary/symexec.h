/* SPDX-License-Identifier: MIT */
/*
 * Symbolic execution of one function: the contents of the registers at each call, as symbols
 * instead of numbers. This shows which lock a pthread call is about, and how to reach it from an
 * argument. x86-64 only; on other machines nothing is found.
 */
#ifndef GILTRACER_BINARY_SYMEXEC_H
#define GILTRACER_BINARY_SYMEXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"

struct codemap;
struct noreturn;

/* node + off. Node 0 is the number 0, so that {0, off} is a constant or link-time address. */
struct symexec_value {
	uint32_t node;
	int64_t off;
};

/* value + by, wrapping around as in the processor. */
static inline struct symexec_value symexec_plus(struct symexec_value value, int64_t by)
{
	return (struct symexec_value){ value.node, (int64_t)((uint64_t)value.off + (uint64_t)by) };
}

/* a - b, for two values with the same node. */
static inline int64_t symexec_distance(struct symexec_value a, struct symexec_value b)
{
	return (int64_t)((uint64_t)a.off - (uint64_t)b.off);
}

#define SYMEXEC_ZEROS 6
/* In the order of their encoding: ax cx dx bx sp bp si di r8 … r15. */
#define SYMEXEC_REGISTERS 16

/**
 * @address: of the call or tail jump; @next: of the instruction after it
 * @target: of a direct call, otherwise 0
 * @import: the imported function it calls, or NULL; borrowed from the codemap
 * @reg: the registers at the call
 * @has_lock, @lock: argument of the last pthread_mutex_lock on the path to the call
 * @zeros: addresses at which a 4-byte 0 was stored since then, the first SYMEXEC_ZEROS of them
 */
struct symexec_call {
	uint64_t address, next, target;
	const char *import;
	struct symexec_value reg[SYMEXEC_REGISTERS];
	bool has_lock;
	struct symexec_value lock;
	struct symexec_value zeros[SYMEXEC_ZEROS];
	unsigned zero_count;
};

/* unbalanced: the stack pointer at a return differs from that at the start, so the run did not
 * start at a function's entry. */
struct symexec {
	VEC(struct symexec_call) calls; /* by address, each once */
	bool unbalanced;
	struct symexec_values *values; /* symexec_value.h */
};

#define SYMEXEC_DI 7
#define SYMEXEC_SI 6

/* entry: the start address. known: it is a function's entry, so the arguments are known. Free with
 * symexec_free. Never NULL; invalid code ends the path. */
struct symexec *symexec_run(const struct codemap *map, struct noreturn *noreturn, uint64_t entry,
                            bool known);
void symexec_free(struct symexec *run);

/*
 * The start of the straight stretch of code around an address: after the last unconditional jump or
 * return before it, decoded from start, the function's entry.
 */
uint64_t symexec_chunk(const struct codemap *map, uint64_t start, uint64_t address);

/* The call at an address; NULL if it is not reached. */
const struct symexec_call *symexec_at(const struct symexec *run, uint64_t address);

/*
 * How to read a value at the function's entry, "+0x180(+0x10(arg1))": for values that are a chain
 * of loads from an argument. NULL for other values, or if off is not 0. Caller frees.
 */
char *symexec_expression(const struct symexec *run, struct symexec_value value);

/* The number of loads that lead from an argument of the function to a value, plus an offset; -1 if
 * it does not come from an argument. */
int symexec_depth(const struct symexec *run, struct symexec_value value);

static inline bool symexec_same(struct symexec_value a, struct symexec_value b)
{
	return a.node == b.node && a.off == b.off;
}

DEFINE_CLEANUP(struct symexec *, symexec_free);

#endif
