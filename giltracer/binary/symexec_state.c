/* SPDX-License-Identifier: MIT */
/*
 * If two paths meet with different values in a register, the register gets a new value of this
 * meeting point, and values at a fixed distance from it keep that distance. Of memory and locks,
 * only facts that hold on both paths are kept.
 */
#include "binary/symexec_state.h"

#include "binary/symexec_value.h"

const struct symexec_slot *symexec_state_slot(const struct symexec_state *s, int64_t off)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].off == off)
			return &s->slots[i];
	return NULL;
}

static void forget_slot(struct symexec_state *s, int64_t off)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if ((uint64_t)s->slots[i].off - (uint64_t)off + 7 < 15)
			s->slots[i--] = s->slots[--s->slot_count];
}

void symexec_state_store(struct symexec_state *s, struct symexec_values *values,
                         struct symexec_value address, struct symexec_value value, unsigned size)
{
	if (symexec_on_stack(values, address)) {
		forget_slot(s, address.off);
		if (size == 8 && s->slot_count < SYMEXEC_SLOTS)
			s->slots[s->slot_count++] = (struct symexec_slot){ address.off, value };
	} else if (size == 4 && symexec_is_number(value) && value.off == 0 &&
	           s->zero_count < SYMEXEC_ZEROS) {
		s->zeros[s->zero_count++] = address;
	}
}

/* Pairs of values that met at one place, so that values at a fixed distance from one of them keep
 * it. */
struct meeting {
	struct symexec_values *values;
	uint64_t place;
	struct {
		struct symexec_value a, b, met;
	} pairs[SYMEXEC_REGISTERS + SYMEXEC_SLOTS];
	unsigned count;
};

static struct symexec_value meet(struct meeting *m, struct symexec_value a, struct symexec_value b,
                                 int64_t which)
{
	struct symexec_value met;

	if (symexec_same(a, b))
		return a;
	for (unsigned i = 0; i < m->count; i++) {
		int64_t distance = symexec_distance(a, m->pairs[i].a);

		if (m->pairs[i].a.node != a.node || m->pairs[i].b.node != b.node ||
		    symexec_distance(b, m->pairs[i].b) != distance)
			continue;
		return symexec_plus(m->pairs[i].met, distance);
	}
	met = symexec_value_of(m->values, SYMEXEC_UNKNOWN, m->place, which);
	m->pairs[m->count].a = a;
	m->pairs[m->count].b = b;
	m->pairs[m->count++].met = met;
	return met;
}

/* Keeps only the slots that both states know. */
static void merge_slots(struct meeting *m, struct symexec_state *into,
                        const struct symexec_state *from)
{
	for (unsigned i = 0; i < into->slot_count; i++) {
		struct symexec_slot *slot = &into->slots[i];
		unsigned k = 0;

		while (k < from->slot_count && from->slots[k].off != slot->off)
			k++;
		if (k < from->slot_count)
			slot->value = meet(m, slot->value, from->slots[k].value,
			                   (int64_t)(10000 + (uint64_t)slot->off));
		else
			into->slots[i--] = into->slots[--into->slot_count];
	}
}

static bool has_zero(const struct symexec_state *s, struct symexec_value address)
{
	for (unsigned i = 0; i < s->zero_count; i++)
		if (symexec_same(s->zeros[i], address))
			return true;
	return false;
}

static void merge_zeros(struct symexec_state *into, const struct symexec_state *from)
{
	for (unsigned i = 0; i < into->zero_count; i++)
		if (!has_zero(from, into->zeros[i]))
			into->zeros[i--] = into->zeros[--into->zero_count];
}

void symexec_state_merge(struct symexec_state *into, struct symexec_values *values, uint64_t place,
                         const struct symexec_state *from)
{
	struct meeting m = { .values = values, .place = place };

	for (int i = 0; i < SYMEXEC_REGISTERS; i++)
		into->reg[i] = meet(&m, into->reg[i], from->reg[i], 1000 + i);
	merge_slots(&m, into, from);
	into->has_lock &= from->has_lock && symexec_same(into->lock, from->lock);
	merge_zeros(into, from);
}

static bool same_slots(const struct symexec_state *a, const struct symexec_state *b)
{
	if (a->slot_count != b->slot_count)
		return false;
	for (unsigned i = 0; i < a->slot_count; i++) {
		bool found = false;

		for (unsigned k = 0; k < b->slot_count; k++)
			found |= a->slots[i].off == b->slots[k].off &&
			         symexec_same(a->slots[i].value, b->slots[k].value);
		if (!found)
			return false;
	}
	return true;
}

bool symexec_state_same(const struct symexec_state *a, const struct symexec_state *b)
{
	for (int i = 0; i < SYMEXEC_REGISTERS; i++)
		if (!symexec_same(a->reg[i], b->reg[i]))
			return false;
	if (a->has_lock != b->has_lock || (a->has_lock && !symexec_same(a->lock, b->lock)) ||
	    a->zero_count != b->zero_count)
		return false;
	for (unsigned i = 0; i < a->zero_count; i++)
		if (!has_zero(b, a->zeros[i]))
			return false;
	return same_slots(a, b);
}
