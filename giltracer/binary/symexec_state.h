/* SPDX-License-Identifier: MIT */
/* The state at one place of a function: registers, the stack, and the lock that is held. */
#ifndef GILTRACER_BINARY_SYMEXEC_STATE_H
#define GILTRACER_BINARY_SYMEXEC_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "binary/symexec.h"

struct symexec_values;

#define SYMEXEC_SLOTS 64 /* number of stack words that are tracked */
#define SYMEXEC_SP    4

/* 8 bytes of the stack; off is relative to the stack pointer at the function's entry. */
struct symexec_slot {
	int64_t off;
	struct symexec_value value;
};

/* lock and zeros: as in struct symexec_call. */
struct symexec_state {
	struct symexec_value reg[SYMEXEC_REGISTERS];
	struct symexec_slot slots[SYMEXEC_SLOTS];
	unsigned slot_count;
	bool has_lock;
	struct symexec_value lock;
	struct symexec_value zeros[SYMEXEC_ZEROS];
	unsigned zero_count;
};

/* The stack word at off, or NULL. Borrowed. */
const struct symexec_slot *symexec_state_slot(const struct symexec_state *s, int64_t off);

/* Executes a store of size bytes. */
void symexec_state_store(struct symexec_state *s, struct symexec_values *values,
                         struct symexec_value address, struct symexec_value value, unsigned size);

/* Reduces into to what is true on both paths that meet at place. */
void symexec_state_merge(struct symexec_state *into, struct symexec_values *values, uint64_t place,
                         const struct symexec_state *from);

bool symexec_state_same(const struct symexec_state *a, const struct symexec_state *b);

#endif
