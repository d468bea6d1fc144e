/* SPDX-License-Identifier: MIT */
/*
 * Where two ways meet with different values in a register, the register gets a value of that
 * meeting's own, and what kept its distance from it keeps it. Of memory and locks, only what both
 * ways agree on is known behind the meeting.
 */
#include "flow_state.h"

#include "launch/flow_value.h"

const struct flow_slot *flow_state_slot(const struct flow_state *s, int64_t off)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].off == off)
			return &s->slots[i];
	return NULL;
}

static void forget_slot(struct flow_state *s, int64_t off)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].off > off - 8 && s->slots[i].off < off + 8)
			s->slots[i--] = s->slots[--s->slot_count];
}

void flow_state_store(struct flow_state *s, struct flow_values *values, struct flow_value address,
                      struct flow_value value, unsigned size)
{
	if (flow_on_stack(values, address)) {
		forget_slot(s, address.off);
		if (size == 8 && s->slot_count < FLOW_SLOTS)
			s->slots[s->slot_count++] = (struct flow_slot){ address.off, value };
	} else if (size == 4 && flow_is_number(value) && value.off == 0 &&
	           s->zero_count < FLOW_ZEROS) {
		s->zeros[s->zero_count++] = address;
	}
}

/* Values that met at one place, so that what kept its distance from one of them keeps it. */
struct meeting {
	struct flow_values *values;
	uint64_t place;
	struct {
		struct flow_value a, b, met;
	} pairs[FLOW_REGISTERS + FLOW_SLOTS];
	unsigned count;
};

static struct flow_value meet(struct meeting *m, struct flow_value a, struct flow_value b,
                              int64_t which)
{
	struct flow_value met;

	if (flow_same(a, b))
		return a;
	for (unsigned i = 0; i < m->count; i++) {
		int64_t distance = a.off - m->pairs[i].a.off;

		if (m->pairs[i].a.node != a.node || m->pairs[i].b.node != b.node ||
		    b.off - m->pairs[i].b.off != distance)
			continue;
		met = m->pairs[i].met;
		met.off += distance;
		return met;
	}
	met = flow_value_of(m->values, FLOW_UNKNOWN, m->place, which);
	m->pairs[m->count].a = a;
	m->pairs[m->count].b = b;
	m->pairs[m->count++].met = met;
	return met;
}

/* Only what both have in it is known. */
static void merge_slots(struct meeting *m, struct flow_state *into, const struct flow_state *from)
{
	for (unsigned i = 0; i < into->slot_count; i++) {
		struct flow_slot *slot = &into->slots[i];
		unsigned k = 0;

		while (k < from->slot_count && from->slots[k].off != slot->off)
			k++;
		if (k < from->slot_count)
			slot->value = meet(m, slot->value, from->slots[k].value, 10000 + slot->off);
		else
			into->slots[i--] = into->slots[--into->slot_count];
	}
}

static bool has_zero(const struct flow_state *s, struct flow_value address)
{
	for (unsigned i = 0; i < s->zero_count; i++)
		if (flow_same(s->zeros[i], address))
			return true;
	return false;
}

static void merge_zeros(struct flow_state *into, const struct flow_state *from)
{
	for (unsigned i = 0; i < into->zero_count; i++)
		if (!has_zero(from, into->zeros[i]))
			into->zeros[i--] = into->zeros[--into->zero_count];
}

void flow_state_merge(struct flow_state *into, struct flow_values *values, uint64_t place,
                      const struct flow_state *from)
{
	struct meeting m = { .values = values, .place = place };

	for (int i = 0; i < FLOW_REGISTERS; i++)
		into->reg[i] = meet(&m, into->reg[i], from->reg[i], 1000 + i);
	merge_slots(&m, into, from);
	into->has_lock &= from->has_lock && flow_same(into->lock, from->lock);
	merge_zeros(into, from);
}

static bool same_slots(const struct flow_state *a, const struct flow_state *b)
{
	if (a->slot_count != b->slot_count)
		return false;
	for (unsigned i = 0; i < a->slot_count; i++) {
		bool found = false;

		for (unsigned k = 0; k < b->slot_count; k++)
			found |= a->slots[i].off == b->slots[k].off &&
			         flow_same(a->slots[i].value, b->slots[k].value);
		if (!found)
			return false;
	}
	return true;
}

bool flow_state_same(const struct flow_state *a, const struct flow_state *b)
{
	for (int i = 0; i < FLOW_REGISTERS; i++)
		if (!flow_same(a->reg[i], b->reg[i]))
			return false;
	if (a->has_lock != b->has_lock || (a->has_lock && !flow_same(a->lock, b->lock)) ||
	    a->zero_count != b->zero_count)
		return false;
	for (unsigned i = 0; i < a->zero_count; i++)
		if (!has_zero(b, a->zeros[i]))
			return false;
	return same_slots(a, b);
}
