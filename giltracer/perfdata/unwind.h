/* SPDX-License-Identifier: MIT */
/*
 * Stacks of samples: user frames from the registers and the stack dump (PERF_SAMPLE_REGS_USER,
 * PERF_SAMPLE_STACK_USER, see perf_event_open(2)) by call frame information, kernel frames from the
 * callchain. Frame pointers are never followed; if the information ends early, the stack is marked.
 *
 * A location is a place in a program: module and vaddr. Equal places have equal ids, so each is
 * symbolized once.
 */
#ifndef GILTRACER_PERFDATA_UNWIND_H
#define GILTRACER_PERFDATA_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/cfi.h"
#include "base/cursor.h"
#include "perfdata/maps.h"

#define UNWIND_MAX_FRAMES 1024

/* abi of struct unwind_sample: PERF_SAMPLE_REGS_ABI_*. */
enum unwind_abi { UNWIND_ABI_NONE, UNWIND_ABI_32, UNWIND_ABI_64 };

/* e_machine of the recording's architecture: "x86_64" or "aarch64"; 0 if it cannot be unwound.
 * aarch64 follows the specification (AADWARF64) but is not tested. */
uint16_t unwind_machine(const char *arch);

/**
 * Cursors are empty if nothing was recorded.
 * @regs: user registers, one u64 per bit of regs_mask from the lowest; perf's numbering
 *        (asm/perf_regs.h)
 * @stack: memory from the stack pointer on; only what the kernel copied
 * @chain: the callchain, u64 each, with its PERF_CONTEXT_* marks, innermost first
 */
struct unwind_sample {
	uint32_t pid;
	uint32_t abi;
	uint64_t regs_mask;
	struct cursor regs, stack, chain;
};

enum unwind_end {
	UNWIND_COMPLETE,  /* the stack includes its outermost frame */
	UNWIND_TRUNCATED, /* the dump or UNWIND_MAX_FRAMES ended first */
	UNWIND_BROKEN,    /* there is no rule for the last frame found */
	UNWIND_NO_USER,   /* no user registers: a kernel thread or a 32-bit thread */
};

/* Locations, innermost first; the first kernel_n are the kernel's. Valid until the next stack. */
struct unwind_stack {
	const uint32_t *locations;
	size_t n, kernel_n;
	enum unwind_end end;
};

/**
 * @module: NULL: the kernel, or memory that belongs to no file
 * @address: vaddr in module; the address in memory if there is no module or its file cannot be
 *           used. For a caller it is one less than the return address, so it lies within the call
 * @offset: file offset, if there is a module
 */
struct location {
	struct module *module;
	uint64_t address, offset;
	const struct cfi_rule *rule;
	bool kernel, usable, ruled;
};

struct unwinder;

/* machine: from unwind_machine(). maps is borrowed until unwinder_free. */
struct unwinder *unwinder_new(uint16_t machine, struct maps *maps);
void unwinder_free(struct unwinder *unwinder);

/* Never fails: if unwinding ends early, the stack is short and ret->end gives the reason. */
void unwind_stack(struct unwinder *unwinder, const struct unwind_sample *sample,
                  struct unwind_stack *ret);

/* Borrowed until the next stack. */
const struct location *unwinder_location(const struct unwinder *unwinder, uint32_t id);

#endif
