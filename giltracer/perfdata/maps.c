/* SPDX-License-Identifier: MIT */
/* Address spaces by process. */
#include "perfdata/maps.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/search.h"
#include "base/vec.h"
#include "perfdata/u64map.h"

/* What a process has mapped, and its children have until they map something else: a program that
 * forks thousands has most of it once. */
struct mappings {
	size_t users, alloc;
	struct map v[];
};

/* Spaces do not move: they are borrowed. */
struct maps {
	VEC(struct address_space *) spaces;
	struct u64map by_pid;
	uint32_t generation;
};

struct maps *maps_new(void)
{
	return xcalloc(1, sizeof(struct maps));
}

/* The space has nothing mapped. */
static void drop(struct address_space *space)
{
	if (space->mappings && --space->mappings->users == 0)
		free(space->mappings);
	space->mappings = NULL;
	space->v = NULL;
	space->n = 0;
}

/* The space has mappings of its own, with room for at least one more cut and one more mapping. */
static void own(struct address_space *space)
{
	struct mappings *old = space->mappings, *new;
	size_t n = space->n, alloc;

	if (old && old->users == 1 && old->alloc >= n + 2)
		return;
	alloc = n * 2 + 16;
	new = xcalloc(1, sizeof(*new) + alloc * sizeof(new->v[0]));
	*new = (struct mappings){ .users = 1, .alloc = alloc };
	if (n)
		memcpy(new->v, space->v, n * sizeof(new->v[0]));
	drop(space);
	space->mappings = new;
	space->v = new->v;
	space->n = n;
}

void maps_free(struct maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->spaces.n; i++) {
		drop(maps->spaces.v[i]);
		free(maps->spaces.v[i]);
	}
	vec_done(&maps->spaces);
	u64map_done(&maps->by_pid);
	free(maps);
}

struct address_space *maps_space(struct maps *maps, uint32_t pid)
{
	uint32_t at = u64map_get(&maps->by_pid, pid);
	struct address_space *space;

	if (at != UINT32_MAX)
		return maps->spaces.v[at];
	space = xcalloc(1, sizeof(*space));
	space->pid = pid;
	u64map_set(&maps->by_pid, pid, maps->spaces.n);
	*vec_push(&maps->spaces) = space;
	return space;
}

/* The index of the first mapping that ends above address. */
static size_t lower(const struct address_space *space, uint64_t address)
{
	return SEARCH_AFTER(space->v, space->n, end, address);
}

const struct map *space_find(const struct address_space *space, uint64_t address)
{
	size_t at = lower(space, address);

	if (at == space->n || space->v[at].start > address)
		return NULL;
	return &space->v[at];
}

/* There is room: own() was called. */
static void insert(struct address_space *space, size_t at, const struct map *new)
{
	memmove(space->v + at + 1, space->v + at, (space->n - at) * sizeof(*space->v));
	space->v[at] = *new;
	space->n++;
}

/* Takes [start, end) out of what is mapped; returns the index where it would be inserted. */
static size_t cut(struct address_space *space, uint64_t start, uint64_t end)
{
	size_t first = lower(space, start), last = first;

	if (first < space->n && space->v[first].start < start) {
		struct map tail = space->v[first];

		space->v[first].end = start;
		first++;
		if (tail.end > end) {
			tail.offset += end - tail.start;
			tail.start = end;
			insert(space, first, &tail);
			return first;
		}
	}
	for (last = first; last < space->n && space->v[last].end <= end;)
		last++;
	if (last > first)
		memmove(space->v + first, space->v + last, (space->n - last) * sizeof(*space->v));
	space->n -= last - first;
	if (first < space->n && space->v[first].start < end) {
		space->v[first].offset += end - space->v[first].start;
		space->v[first].start = end;
	}
	return first;
}

void maps_mmap(struct maps *maps, uint32_t pid, uint64_t start, uint64_t length, uint64_t offset,
               struct module *module)
{
	struct address_space *space = maps_space(maps, pid);
	struct map map = { start, start + length, offset, module };

	if (map.end <= map.start)
		return;
	own(space);
	insert(space, cut(space, start, map.end), &map);
	space->generation = ++maps->generation;
}

void maps_fork(struct maps *maps, uint32_t pid, uint32_t parent_pid)
{
	struct address_space *child, *parent;

	if (pid == parent_pid)
		return;
	child = maps_space(maps, pid);
	parent = maps_space(maps, parent_pid);
	drop(child);
	if (parent->mappings) {
		parent->mappings->users++;
		child->mappings = parent->mappings;
		child->v = parent->v;
		child->n = parent->n;
	}
	child->generation = ++maps->generation;
}

void maps_exec(struct maps *maps, uint32_t pid)
{
	struct address_space *space = maps_space(maps, pid);

	drop(space);
	space->generation = ++maps->generation;
}
