/* SPDX-License-Identifier: MIT */
/*
 * Call frame information in a form that is quick to apply: libdw's answer for one address, compiled
 * once. DWARF 5, section 6.4; the registers' numbers are those of the machine's ABI.
 */
#ifndef GILTRACER_BINARY_CFI_H
#define GILTRACER_BINARY_CFI_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/dwarf_expr.h"

/**
 * Properties of a machine that the unwinder needs. Registers from number @regs on are not tracked.
 * @elf: e_machine; @sp: DWARF number; @ret: that of the return address column
 * @leaf_on_stack: a call pushes the return address, so the caller's frame is strictly above
 */
struct cfi_machine {
	uint16_t elf;
	uint8_t regs, sp, ret;
	bool leaf_on_stack;
};

enum cfi_result {
	CFI_OK,      /* regs are the caller's */
	CFI_END,     /* this was the outermost frame */
	CFI_NONE,    /* no rule, or a rule that needs unavailable data */
	CFI_OUTSIDE, /* needs memory above the saved part */
};

struct cfi;
struct cfi_rule;

/* The rules of one file, which is borrowed until cfi_free. Never NULL. */
struct cfi *cfi_new(Dwfl_Module *file);
void cfi_free(struct cfi *cfi);

/*
 * The rule at a vaddr of the file; NULL if there is none. Borrowed until cfi_free. Each call
 * compiles a rule, so callers should keep it.
 */
const struct cfi_rule *cfi_rule(struct cfi *cfi, uint64_t vaddr, const struct cfi_machine *machine);

/* Computes the caller of the frame in regs. @ret_signal: the frame is a signal handler's, so the
 * caller was interrupted and its pc is exact. Rule NULL gives CFI_NONE. */
enum cfi_result cfi_apply(const struct cfi_rule *rule, const struct cfi_machine *machine,
                          const struct cfi_memory *memory, struct cfi_regs *regs, bool *ret_signal);

#endif
