/* SPDX-License-Identifier: MIT */
/*
 * Reads the chains of Python frames of many threads in a process. The previous locations of the
 * frames are read first, all at once: if a stack is read repeatedly, most of its frames have not
 * moved.
 */
#ifndef GILTRACER_PYTHON_STACK_READER_H
#define GILTRACER_PYTHON_STACK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "python/memory.h"
#include "python/target.h"

/* How many frames are read for a snapshot, in all threads and attempts: more than any program needs.
 * A process could have threads that share an endless chain. */
#define STACK_READER_FRAMES 500000

/* A frame of the process. */
struct raw_frame {
	uint64_t address, previous, code, instruction;
};

/**
 * @current: the value at FRAME_CURRENT of its PyThreadState, read by the caller
 * @frames: innermost first; input: those of the previous reading
 * @before: the previous reading
 */
struct raw_stack {
	uint64_t current;
	VEC(struct raw_frame) frames;
	VEC(struct raw_frame) before;
};

/* @size: bytes of a frame that are read; @left: frames that may be read; @is_over: there were more */
struct stack_reader {
	const struct target *target;
	size_t size, left;
	bool is_over;
	struct batch batch;
	VEC(uint8_t) bytes;
	VEC(size_t) at; /* offset of each guessed frame in bytes */
};

void stack_reader_init(struct stack_reader *reader, const struct target *target);
void stack_reader_done(struct stack_reader *reader);

/* A snapshot begins. */
void stack_reader_begin(struct stack_reader *reader);

/* Read all chains; the present frames become before. False: a chain was broken; then no thread
 * has frames. */
bool stack_reader_read(struct stack_reader *reader, struct raw_stack *const *stacks, size_t n);

/* Whether two readings in a row found the same frames in the same functions. */
bool raw_stack_is_same(const struct raw_stack *stack);
void raw_stack_done(struct raw_stack *stack);

#endif
