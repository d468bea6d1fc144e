/* SPDX-License-Identifier: MIT */
/* What is known at one place of a function: registers, the stack, and the lock that is held. */
#ifndef GILTRACER_BINARY_SYMEXEC_STATE_H
#define GILTRACER_BINARY_SYMEXEC_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "binary/symexec.h"

struct symexec_values;

#define SYMEXEC_SLOTS 64 /* stack words that are followed */
#define SYMEXEC_SP    4

/* 8 bytes of the stack, off from where it was at the function's entry. */
struct symexec_slot {
	int64_t off;
	struct symexec_value value;
};

/* lock and zeros: as struct symexec_call has them. */
struct symexec_state {
	struct symexec_value reg[SYMEXEC_REGISTERS];
	struct symexec_slot slots[SYMEXEC_SLOTS];
	unsigned slot_count;
	bool has_lock;
	struct symexec_value lock;
	struct symexec_value zeros[SYMEXEC_ZEROS];
	unsigned zero_count;
};

/* The stack word at off, NULL if it is not known. Borrowed. */
const struct symexec_slot *symexec_state_slot(const struct symexec_state *s, int64_t off);

/* A store of size bytes. */
void symexec_state_store(struct symexec_state *s, struct symexec_values *values,
                         struct symexec_value address, struct symexec_value value, unsigned size);

/* into becomes what is true on both ways that meet at a place. */
void symexec_state_merge(struct symexec_state *into, struct symexec_values *values, uint64_t place,
                         const struct symexec_state *from);

bool symexec_state_same(const struct symexec_state *a, const struct symexec_state *b);

#endif
