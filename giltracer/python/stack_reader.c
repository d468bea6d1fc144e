/* SPDX-License-Identifier: MIT */
#include "python/stack_reader.h"

#include <string.h>

#include "python/memory.h"

#define SIZE_MAX_ 256
#define NEAR      1024 /* how many guesses are compared before a frame is read by itself */
#define AHEAD     256  /* maximum number of frames in one read, all of which fail if one is gone */
#define GUESSES   (64u << 20) /* bytes of guesses that are read at once */

static uint32_t frame_at(const struct stack_reader *r, enum python_frame_key key)
{
	return r->target->def->layout.frame[key];
}

void stack_reader_init(struct stack_reader *r, const struct target *target)
{
	const uint32_t *frame = target->def->layout.frame;
	size_t end = frame[FRAME_INSTRUCTION] + frame[FRAME_INSTRUCTION_SIZE];

	*r = (struct stack_reader){ .target = target };
	end = frame[FRAME_CODE] + 8 > end ? frame[FRAME_CODE] + 8 : end;
	r->size = frame[FRAME_PREVIOUS] + 8 > end ? frame[FRAME_PREVIOUS] + 8 : end;
}

void stack_reader_begin(struct stack_reader *r)
{
	r->left = STACK_READER_FRAMES;
	r->is_over = false;
}

void stack_reader_done(struct stack_reader *r)
{
	batch_done(&r->batch);
	vec_done(&r->bytes);
	vec_done(&r->at);
}

void raw_stack_done(struct raw_stack *stack)
{
	vec_done(&stack->frames);
	vec_done(&stack->before);
}

static struct raw_frame parse(const struct stack_reader *r, uint64_t address, const uint8_t *raw)
{
	const uint32_t at = frame_at(r, FRAME_INSTRUCTION);

	return (struct raw_frame){
		.address = address,
		.previous = bytes_u64(raw, frame_at(r, FRAME_PREVIOUS)),
		/* From 3.14 on the lowest bits are a tag (_PyStackRef). */
		.code = bytes_u64(raw, frame_at(r, FRAME_CODE)) & ~(uint64_t)7,
		.instruction = frame_at(r, FRAME_INSTRUCTION_SIZE) == 8 ? bytes_u64(raw, at)
		                                                        : bytes_u32(raw, at),
	};
}

/* In 3.11 and 3.12, PyThreadState points to an object that contains the current frame. */
static bool read_current(struct stack_reader *r, struct raw_stack *const *stacks, size_t n)
{
	uint32_t at = frame_at(r, FRAME_CURRENT2);

	if (at == PYTHON_NO_OFFSET)
		return true;
	for (size_t i = 0; i < n; i++)
		if (stacks[i]->current)
			batch_add(&r->batch, stacks[i]->current + at, &stacks[i]->current, 8);
	return batch_read(&r->batch, r->target->pid);
}

/* From 3.11 on, the frames of a thread are close together, callers at lower addresses. Returns
 * the number of frames from j on that are read together, with the memory between them. */
static size_t neighbours(const struct raw_stack *stack, size_t j)
{
	const struct raw_frame *f = stack->before.v;
	size_t n = 1;

	while (j + n < stack->before.n && f[j + n].address < f[j + n - 1].address &&
	       f[j + n - 1].address - f[j + n].address <= NEAR)
		n++;
	return n;
}

/* Sets where each guessed frame will be stored; returns the total number of bytes. */
static size_t place_guesses(struct stack_reader *r, struct raw_stack *const *stacks, size_t n)
{
	size_t end = 0;

	r->at.n = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0, count; j < stacks[i]->before.n; j += count) {
			const struct raw_frame *f = &stacks[i]->before.v[j];

			count = neighbours(stacks[i], j);
			for (size_t k = 0; k < count; k++)
				*vec_push(&r->at) = end + (f[k].address - f[count - 1].address);
			end += f[0].address - f[count - 1].address + r->size;
		}
	return end;
}

/* Reads the previous locations of the frames, neighbours together. False: some of them are no
 * longer mapped. */
static bool read_guesses(struct stack_reader *r, struct raw_stack *const *stacks, size_t n)
{
	size_t at = 0, bytes = place_guesses(r, stacks, n);

	if (bytes > GUESSES)
		return false;
	vec_reserve(&r->bytes, bytes + 1);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0, count; j < stacks[i]->before.n; j += count) {
			const struct raw_frame *f = &stacks[i]->before.v[j];

			count = neighbours(stacks[i], j);
			batch_add(&r->batch, f[count - 1].address,
			          r->bytes.v + r->at.v[at + count - 1],
			          f[0].address - f[count - 1].address + r->size);
			at += count;
		}
	return batch_read(&r->batch, r->target->pid);
}

/* The frame at address: from a guess, searched from *guess on, or else read now. */
static bool find_frame(struct stack_reader *r, const struct raw_stack *stack, uint64_t address,
                       const size_t *at, size_t *guess, struct raw_frame *ret)
{
	uint8_t raw[SIZE_MAX_];

	for (size_t i = *guess; at && i < stack->before.n && i < *guess + AHEAD; i++)
		if (stack->before.v[i].address == address) {
			*guess = i + 1;
			*ret = parse(r, address, r->bytes.v + at[i]);
			return true;
		}
	if (r->size > sizeof(raw) || !memory_read(r->target->pid, address, raw, r->size))
		return false;
	*ret = parse(r, address, raw);
	return true;
}

static bool walk(struct stack_reader *r, struct raw_stack *stack, const size_t *at)
{
	uint64_t address = stack->current, mark = 0;
	size_t guess = 0, mark_next = 1;

	while (address) {
		struct raw_frame *frame;

		/* A chain that leads back to a frame of its own (Brent's algorithm). */
		if (address == mark)
			return false;
		if (stack->frames.n == mark_next) {
			mark = address;
			mark_next *= 2;
		}
		r->is_over |= !r->left;
		if (r->is_over)
			return false;
		r->left--;
		frame = vec_push(&stack->frames);
		if (!find_frame(r, stack, address, at, &guess, frame))
			return false;
		address = frame->previous;
	}
	return true;
}

static void swap(struct raw_stack *stack)
{
	__typeof__(stack->frames) frames = stack->frames;

	memcpy(&stack->frames, &stack->before, sizeof(frames));
	memcpy(&stack->before, &frames, sizeof(frames));
	stack->frames.n = 0;
}

static bool walk_all(struct stack_reader *r, struct raw_stack *const *stacks, size_t n,
                     bool guessed)
{
	const size_t *at = r->at.v;

	for (size_t i = 0; i < n; i++) {
		if (!walk(r, stacks[i], guessed ? at : NULL))
			return false;
		at = at ? at + stacks[i]->before.n : NULL;
	}
	return true;
}

bool stack_reader_read(struct stack_reader *r, struct raw_stack *const *stacks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		swap(stacks[i]);
	if (read_current(r, stacks, n) && walk_all(r, stacks, n, read_guesses(r, stacks, n)))
		return true;
	for (size_t i = 0; i < n; i++)
		stacks[i]->frames.n = 0;
	return false;
}

bool raw_stack_is_same(const struct raw_stack *stack)
{
	if (stack->frames.n != stack->before.n)
		return false;
	for (size_t i = 0; i < stack->frames.n; i++)
		if (stack->frames.v[i].address != stack->before.v[i].address ||
		    stack->frames.v[i].code != stack->before.v[i].code)
			return false;
	return true;
}
