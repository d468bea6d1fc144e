/* SPDX-License-Identifier: MIT */
/* Call stacks as a prefix tree, its nodes found through one hash table. */
#include "trace/stacks.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"

#define FIRST_SLOTS 1024

/* any: the flags of the frame and of all its callers. */
struct stacks {
	struct names *names;
	VEC(struct stack_frame) frames;
	VEC(uint32_t) any;
	struct hash_seed seed;
	uint32_t *slots; /* ids, 0: free */
	uint32_t mask;
};

struct stacks *stacks_new(struct names *names)
{
	struct stacks *stacks = xcalloc(1, sizeof(*stacks));

	stacks->names = names;
	stacks->seed = hash_seed();
	stacks->slots = xcalloc(FIRST_SLOTS, sizeof(*stacks->slots));
	stacks->mask = FIRST_SLOTS - 1;
	*vec_push(&stacks->frames) = (struct stack_frame){ 0 };
	*vec_push(&stacks->any) = 0;
	return stacks;
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	vec_done(&stacks->frames);
	vec_done(&stacks->any);
	free(stacks->slots);
	free(stacks);
}

static uint32_t frame_hash(const struct stacks *stacks, const struct stack_frame *f)
{
	uint64_t hash = hash_number(stacks->seed, (uint64_t)f->parent << 32 | f->name);

	hash = hash_more(stacks->seed, hash, (uint64_t)f->module << 32 | f->line);
	return (uint32_t)hash_more(stacks->seed, hash, f->flags);
}

static bool frame_equal(const struct stack_frame *a, const struct stack_frame *b)
{
	return a->parent == b->parent && a->name == b->name && a->module == b->module &&
	       a->line == b->line && a->flags == b->flags;
}

static void grow(struct stacks *stacks)
{
	uint32_t mask = stacks->mask * 2 + 1;
	uint32_t *slots = xcalloc((size_t)mask + 1, sizeof(*slots));

	for (uint32_t id = 1; id < stacks->frames.n; id++) {
		uint32_t at = frame_hash(stacks, &stacks->frames.v[id]) & mask;

		while (slots[at])
			at = (at + 1) & mask;
		slots[at] = id;
	}
	free(stacks->slots);
	stacks->slots = slots;
	stacks->mask = mask;
}

uint32_t stacks_id(struct stacks *stacks, const struct stack_frame *frame)
{
	uint32_t at = frame_hash(stacks, frame) & stacks->mask, id;

	assert(frame->parent < stacks->frames.n);
	for (; (id = stacks->slots[at]); at = (at + 1) & stacks->mask)
		if (frame_equal(&stacks->frames.v[id], frame))
			return id;
	id = stacks->frames.n;
	stacks->slots[at] = id;
	*vec_push(&stacks->frames) = *frame;
	*vec_push(&stacks->any) = stacks->any.v[frame->parent] | frame->flags;
	if (stacks->frames.n > stacks->mask / 2)
		grow(stacks);
	return id;
}

const struct stack_frame *stacks_get(const struct stacks *stacks, uint32_t id)
{
	assert(id < stacks->frames.n);
	return &stacks->frames.v[id];
}

uint32_t stacks_count(const struct stacks *stacks)
{
	return stacks->frames.n;
}

const struct names *stacks_names(const struct stacks *stacks)
{
	return stacks->names;
}

bool stacks_any(const struct stacks *stacks, uint32_t id, uint32_t flags)
{
	assert(id < stacks->any.n);
	return stacks->any.v[id] & flags;
}
