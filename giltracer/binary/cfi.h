/* SPDX-License-Identifier: MIT */
/*
 * Call frame information in a form that is quick to apply: what libdw says about one address,
 * compiled once. DWARF 5, section 6.4; the registers' numbers are those of the machine's ABI.
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
 * What the unwinder must know about a machine. Registers beyond @regs are not followed.
 * @elf: e_machine; @sp: DWARF number; @ret: that of the return address column
 * @leaf_on_stack: a call pushes the return address, so that a caller's frame is strictly above
 */
struct cfi_machine {
	uint16_t elf;
	uint8_t regs, sp, ret;
	bool leaf_on_stack;
};

enum cfi_result {
	CFI_OK,      /* regs are the caller's */
	CFI_END,     /* this was the outermost frame */
	CFI_NONE,    /* no rule, or one that needs what we do not have */
	CFI_OUTSIDE, /* needs memory above what was kept */
};

struct cfi;
struct cfi_rule;

/* The rules of one file, which is borrowed until cfi_free. Never NULL. */
struct cfi *cfi_new(Dwfl_Module *file);
void cfi_free(struct cfi *cfi);

/*
 * The rule at a vaddr of the file; NULL if there is none. Borrowed until cfi_free. Each call
 * compiles one: callers keep it.
 */
const struct cfi_rule *cfi_rule(struct cfi *cfi, uint64_t vaddr, const struct cfi_machine *machine);

/* The caller of the frame in regs. @ret_signal: the frame is a signal handler's: the caller was
 * interrupted, so that its pc is exact. Rule NULL is CFI_NONE. */
enum cfi_result cfi_apply(const struct cfi_rule *rule, const struct cfi_machine *machine,
                          const struct cfi_memory *memory, struct cfi_regs *regs, bool *ret_signal);

#endif
