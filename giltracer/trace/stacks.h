/* SPDX-License-Identifier: MIT */
/*
 * Call stacks as a prefix tree: a stack is the id of its innermost frame, whose parent is the
 * caller. Id 0 is the root (no frame). Frames hold ids into a struct names.
 */
#ifndef GILTRACER_TRACE_STACKS_H
#define GILTRACER_TRACE_STACKS_H

#include <stdbool.h>
#include <stdint.h>

enum stack_frame_flags {
	STACK_KERNEL = 1 << 0,
	STACK_PYTHON = 1 << 1,  /* a Python function; name is its qualified name */
	STACK_INLINED = 1 << 2, /* its caller's code was inlined around it */
	STACK_EVAL = 1 << 3, /* a native frame that evaluates Python (_PyEval_EvalFrameDefault) */
	STACK_TAKE_GIL = 1 << 4,   /* a native frame that waits for the GIL (take_gil or a clone) */
	STACK_TRUNCATED = 1 << 5,  /* the outermost known frame: the dump ended here */
	STACK_UNKNOWN = 1 << 6,    /* no symbol: name is "[module+0xoffset]" */
	STACK_BROKEN = 1 << 7,     /* the outermost known frame: it has no unwind information */
	STACK_FIRST_LINE = 1 << 9, /* a Python function that may not have executed anything yet */
	STACK_MISMATCH = 1 << 8,   /* Python frames may not match native ones: see stack_merge.h */
};

/**
 * @parent: stack id of the caller, 0 for none
 * @name, @module: ids in the names given to stacks_new; module is the file's base name
 * @line: of Python frames if known, else 0
 */
struct stack_frame {
	uint32_t parent;
	uint32_t name;
	uint32_t module;
	uint32_t line;
	uint32_t flags;
};

struct names;
struct stacks;

/* names is borrowed until stacks_free. */
struct stacks *stacks_new(struct names *names);
void stacks_free(struct stacks *stacks);

/* The id of frame on top of frame->parent; equal frames on equal parents have the same id. */
uint32_t stacks_id(struct stacks *stacks, const struct stack_frame *frame);

/* Ids are 1 … stacks_count - 1; a parent's id is lower than its child's. The frame is borrowed
 * until the next stacks_id. Id 0 is the root, all zero. */
const struct stack_frame *stacks_get(const struct stacks *stacks, uint32_t id);
uint32_t stacks_count(const struct stacks *stacks);
const struct names *stacks_names(const struct stacks *stacks);

/* Whether any frame of the stack has one of flags. */
bool stacks_any(const struct stacks *stacks, uint32_t id, uint32_t flags);

#endif
