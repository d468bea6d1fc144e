/* SPDX-License-Identifier: MIT */
/*
 * Stacks of samples: user frames from the registers and the stack dump (PERF_SAMPLE_REGS_USER,
 * PERF_SAMPLE_STACK_USER, see perf_event_open(2)) by call frame information, kernel frames from the
 * callchain. Frame pointers are never followed: where the information ends, the stack says so.
 *
 * A location is a place in a program: module and vaddr. Equal places have equal numbers, so that
 * whoever names them does it once.
 */
#ifndef GILTRACER_PERFDATA_UNWIND_H
#define GILTRACER_PERFDATA_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/cfi.h"
#include "perfdata/cursor.h"
#include "perfdata/maps.h"

#define UNWIND_MAX_FRAMES 1024

/* abi of struct unwind_sample: PERF_SAMPLE_REGS_ABI_*. */
enum unwind_abi { UNWIND_ABI_NONE, UNWIND_ABI_32, UNWIND_ABI_64 };

/* e_machine of the recording: "x86_64", "aarch64"; 0 if we cannot unwind it. aarch64 is by the
 * book (AADWARF64), not tested. */
uint16_t unwind_machine(const char *arch);

/**
 * Cursors are empty where nothing was recorded.
 * @regs: user registers, one u64 per bit of regs_mask from the lowest; perf's numbering
 *        (asm/perf_regs.h)
 * @stack: memory from the stack pointer on: what the kernel really copied
 * @chain: the callchain, u64 each, with its PERF_CONTEXT_* marks, innermost first
 */
struct unwind_sample {
	uint32_t pid;
	uint32_t abi;
	uint64_t regs_mask;
	struct cursor regs, stack, chain;
};

enum unwind_end {
	UNWIND_COMPLETE,  /* the outermost frame is there */
	UNWIND_TRUNCATED, /* the dump, or UNWIND_MAX_FRAMES, ended first */
	UNWIND_BROKEN,    /* no rule for the outermost frame that is there */
	UNWIND_NO_USER,   /* the sample has no user registers: a kernel thread, or a 32-bit one */
};

/* Locations, innermost first; the first kernel_n are the kernel's. Valid until the next stack. */
struct unwind_stack {
	const uint32_t *locations;
	size_t n, kernel_n;
	enum unwind_end end;
};

/**
 * @module: NULL: the kernel, or memory that is no file's
 * @address: vaddr in module; the address in memory if there is no module or its file cannot be
 *           used and then @offset is the file offset. Of a caller it is one less than the return
 *           address, so that it lies in the call
 */
struct location {
	struct module *module;
	uint64_t address, offset;
	const struct cfi_rule *rule;
	bool kernel, usable, ruled;
};

struct unwinder;

/* machine: of unwind_machine(). maps is borrowed until unwinder_free. */
struct unwinder *unwinder_new(uint16_t machine, struct maps *maps);
void unwinder_free(struct unwinder *unwinder);

/* Never fails: what cannot be unwound is a short stack that says why. */
void unwind_stack(struct unwinder *unwinder, const struct unwind_sample *sample,
                  struct unwind_stack *ret);

/* Borrowed until the next stack. */
const struct location *unwinder_location(const struct unwinder *unwinder, uint32_t id);

#endif
