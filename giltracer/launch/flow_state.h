/* SPDX-License-Identifier: MIT */
/* What is known at one place of a function: registers, the stack, and the lock that is held. */
#ifndef GILTRACER_LAUNCH_FLOW_STATE_H
#define GILTRACER_LAUNCH_FLOW_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/flow.h"

struct flow_values;

#define FLOW_SLOTS 64 /* stack words that are followed */
#define FLOW_SP    4

/* 8 bytes of the stack, off from where it was at the function's entry. */
struct flow_slot {
	int64_t off;
	struct flow_value value;
};

/* lock and zeros: as struct flow_call has them. */
struct flow_state {
	struct flow_value reg[FLOW_REGISTERS];
	struct flow_slot slots[FLOW_SLOTS];
	unsigned slot_count;
	bool has_lock;
	struct flow_value lock;
	struct flow_value zeros[FLOW_ZEROS];
	unsigned zero_count;
};

/* The stack word at off, NULL if it is not known. Borrowed. */
const struct flow_slot *flow_state_slot(const struct flow_state *s, int64_t off);

/* A store of size bytes. */
void flow_state_store(struct flow_state *s, struct flow_values *values, struct flow_value address,
                      struct flow_value value, unsigned size);

/* into becomes what is true on both ways that meet at a place. */
void flow_state_merge(struct flow_state *into, struct flow_values *values, uint64_t place,
                      const struct flow_state *from);

bool flow_state_same(const struct flow_state *a, const struct flow_state *b);

#endif
