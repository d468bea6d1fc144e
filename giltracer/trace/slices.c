/* SPDX-License-Identifier: MIT */
/* Sorts calls in the order in which a page draws them: by start, outer before inner, each with
 * its depth. */
#include "trace/slices.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "trace/names.h"
#include "trace/aio.h"

static uint64_t end_of(const struct slice *s)
{
	return s->start_ns + s->dur_ns;
}

static void set_depth(struct slice_thread *t, struct slice *s, size_t depth)
{
	s->depth = depth < UINT16_MAX ? (uint16_t)depth : UINT16_MAX;
	if (s->depth > t->max_depth)
		t->max_depth = s->depth;
}

static int by_start(const void *va, const void *vb)
{
	const struct slice *a = va, *b = vb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return 0;
}

static bool is_sorted(const struct slice_thread *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (by_start(&t->v[i - 1], &t->v[i]) > 0)
			return false;
	return true;
}

/* Tracers write a call when it returns, inner ones first: a tree in post-order, whose subtrees
 * have these sizes. False if it is not a tree, because calls overlap or ends decrease. */
static bool subtree_sizes(const struct slice_thread *t, uint32_t *size)
{
	VEC(uint32_t) roots = { 0 };
	bool tree = true;

	for (size_t i = 0; i < t->n && tree; i++) {
		const struct slice *s = &t->v[i];

		size[i] = 1;
		while (roots.n && t->v[roots.v[roots.n - 1]].start_ns >= s->start_ns)
			size[i] += size[roots.v[--roots.n]];
		if ((roots.n && end_of(&t->v[roots.v[roots.n - 1]]) > s->start_ns) ||
		    (i && end_of(s) < end_of(s - 1)))
			tree = false;
		*vec_push(&roots) = (uint32_t)i;
	}
	vec_done(&roots);
	return tree;
}

/*
 * Converts post-order to pre-order, in linear time: from the last call on, each is stored where its
 * subtree begins, and the previous subtree ends there. Its depth is the number of subtrees around
 * it.
 */
static void preorder(struct slice_thread *t, const uint32_t *size)
{
	struct slice *out = xcalloc(t->n, sizeof(*out));
	VEC(size_t) open = { 0 };
	size_t end = t->n;

	for (size_t i = t->n; i--;) {
		size_t at;

		while (open.n && end == open.v[open.n - 1] + 1)
			end = open.v[--open.n];
		at = end - size[i];
		out[at] = t->v[i];
		set_depth(t, &out[at], open.n);
		if (size[i] > 1)
			*vec_push(&open) = at;
		else
			end = at;
	}
	vec_done(&open);
	free(t->v);
	t->v = out;
}

/* The depth of a call is the number of calls in progress when it starts. A call that outlasts
 * its caller (another clock, a corrected time) keeps its depth and is counted. */
static uint64_t set_depths(struct slice_thread *t)
{
	VEC(uint64_t) ends = { 0 };
	uint64_t overlapping = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct slice *s = &t->v[i];

		while (ends.n && ends.v[ends.n - 1] <= s->start_ns)
			ends.n--;
		overlapping += ends.n && ends.v[ends.n - 1] < end_of(s);
		set_depth(t, s, ends.n);
		*vec_push(&ends) = end_of(s);
	}
	vec_done(&ends);
	return overlapping;
}

uint64_t slice_thread_finish(struct slice_thread *t)
{
	CLEANUP(free) uint32_t *size = NULL;

	if (!is_sorted(t)) {
		size = t->n < UINT32_MAX ? xcalloc(t->n, sizeof(*size)) : NULL;
		if (size && subtree_sizes(t, size)) {
			preorder(t, size);
			return 0;
		}
		qsort(t->v, t->n, sizeof(*t->v), by_start);
	}
	return set_depths(t);
}

struct slice_thread *slices_find(const struct slices *slices, uint32_t pid, uint32_t tid)
{
	uint32_t at;

	if (slices && slices->by_id.n) {
		at = idmap_get(&slices->by_id, idmap_pair(pid, tid));
		return at == IDMAP_NONE ? NULL : &slices->threads[at];
	}
	for (size_t i = 0; slices && i < slices->thread_count; i++)
		if (slices->threads[i].tid == tid && slices->threads[i].pid == pid)
			return &slices->threads[i];
	return NULL;
}

void slices_free(struct slices *slices)
{
	if (!slices)
		return;
	idmap_done(&slices->by_id);
	if (slices->tasks)
		aio_done(slices->tasks);
	free(slices->tasks);
	for (size_t i = 0; i < slices->thread_count; i++)
		free(slices->threads[i].v);
	free(slices->collections);
	free(slices->threads);
	names_free(slices->names);
	free(slices);
}
