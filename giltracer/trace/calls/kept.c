/* SPDX-License-Identifier: MIT */
/* Keeps the calls that were asked for: the last ones, and those that took long enough. */
#include "trace/calls/reader.h"

/* A caller lasts at least as long as the calls that it makes and ends later. So if a call is kept,
 * its callers are kept, too, and its depth remains correct. */
static void keep(struct slice_thread *t, uint64_t shortest_ns, uint64_t first_end_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct slice *s = &t->v[i];

		if (s->flags & SLICE_OPEN ||
		    (s->dur_ns >= shortest_ns && s->start_ns + s->dur_ns >= first_end_ns))
			t->v[n++] = *s;
	}
	t->n = n;
}

/* The number at index k of the sorted numbers. */
static uint64_t select_number(uint64_t *v, size_t n, size_t k)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		uint64_t pivot = v[low + (high - low) / 2];
		size_t i = low, j = high;

		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i > j)
				break;
			uint64_t swapped = v[i];
			v[i++] = v[j];
			v[j] = swapped;
			if (!j--)
				break;
		}
		if (j != SIZE_MAX && k <= j)
			high = j;
		else if (k >= i)
			low = i;
		else
			break;
	}
	return v[k];
}

/* The time from which on calls of a process are kept: as many end at or after it as were asked
 * for. */
static uint64_t first_end(const struct reader *r, const struct slice_thread *threads, size_t count)
{
	VEC(uint64_t) ends = { 0 };
	uint64_t first = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < threads[i].n; j++)
			*vec_push(&ends) = threads[i].v[j].start_ns + threads[i].v[j].dur_ns;
	if (ends.n > r->entries)
		first = select_number(ends.v, ends.n, ends.n - (size_t)r->entries);
	vec_done(&ends);
	return first;
}

void calls_keep_last(struct reader *r, struct slice_thread *threads, const uint32_t *processes,
                     size_t count)
{
	for (size_t i = 0, n; i < count; i += n) {
		uint64_t total = 0, first = 0;

		for (n = 0; i + n < count && processes[i + n] == processes[i]; n++)
			total += threads[i + n].n;
		if (r->entries && total > r->entries)
			first = first_end(r, &threads[i], n);
		r->overflow |= first != 0;
		if (first < r->start_ns)
			first = r->start_ns;
		for (size_t j = i; (first || r->shortest_ns) && j < i + n; j++)
			keep(&threads[j], r->shortest_ns, first);
	}
}
