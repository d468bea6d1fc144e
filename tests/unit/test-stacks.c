/* SPDX-License-Identifier: MIT */
#include "trace/stacks.h"

#include "tap.h"

static uint32_t add(struct stacks *stacks, uint32_t parent, uint32_t name, uint32_t flags)
{
	return stacks_id(stacks,
	                 &(struct stack_frame){ .parent = parent, .name = name, .flags = flags });
}

static void test_equal(void)
{
	struct stacks *stacks = stacks_new(NULL);
	uint32_t main_id = add(stacks, 0, 1, 0), leaf = add(stacks, main_id, 2, STACK_TAKE_GIL);

	ok(main_id == 1 && leaf == 2, "ids count up from 1");
	ok(add(stacks, main_id, 2, STACK_TAKE_GIL) == leaf, "an equal frame is the same stack");
	ok(add(stacks, leaf, 2, STACK_TAKE_GIL) != leaf, "recursion is another stack");
	ok(add(stacks, main_id, 2, 0) != leaf, "so is another flag");
	ok(stacks_id(stacks,
	             &(struct stack_frame){
			     .parent = main_id, .name = 2, .line = 7, .flags = STACK_TAKE_GIL }) !=
	           leaf,
	   "and another line");
	ok(stacks_id(stacks, &(struct stack_frame){ .parent = main_id,
	                                            .name = 2,
	                                            .module = 7,
	                                            .flags = STACK_TAKE_GIL }) != leaf,
	   "and another module");
	is_u64(stacks_count(stacks), 7, "six stacks and the root");
	is_u64(stacks_get(stacks, leaf)->parent, main_id, "a frame knows its caller");
	is_u64(stacks_get(stacks, 0)->name, 0, "the root has no name");
	stacks_free(stacks);
}

static void test_any(void)
{
	struct stacks *stacks = stacks_new(NULL);
	uint32_t a = add(stacks, 0, 1, STACK_EVAL), b = add(stacks, a, 2, STACK_TAKE_GIL),
		 c = add(stacks, b, 3, 0), other = add(stacks, a, 4, 0);

	ok(stacks_any(stacks, c, STACK_TAKE_GIL), "a flag of a caller counts");
	ok(stacks_any(stacks, b, STACK_TAKE_GIL), "a flag of the frame counts");
	ok(!stacks_any(stacks, other, STACK_TAKE_GIL), "one of a sibling does not");
	ok(!stacks_any(stacks, a, STACK_TAKE_GIL), "nor one of a callee");
	ok(!stacks_any(stacks, 0, ~0U), "the root has none");
	stacks_free(stacks);
}

/* 200,000 stacks by a fixed rule, asked for twice: the table grows and loses none. */
static void test_many(void)
{
	struct stacks *stacks = stacks_new(NULL);
	uint32_t wrong = 0, bad_parent = 0;

	for (int round = 0; round < 2; round++) {
		uint32_t seed = 1;

		for (uint32_t i = 1; i <= 200000; i++) {
			uint32_t id;

			seed = seed * 1664525 + 1013904223;
			id = add(stacks, seed % i, i, 0);
			wrong += id != i;
			bad_parent += stacks_get(stacks, id)->parent >= id;
		}
	}
	is_u64(wrong, 0, "200,000 stacks keep their ids");
	is_u64(bad_parent, 0, "a parent's id is lower than its child's");
	is_u64(stacks_count(stacks), 200001, "and none is there twice");
	stacks_free(stacks);
}

int main(void)
{
	test_equal();
	test_any();
	test_many();
	stacks_free(NULL);
	return done_testing();
}
