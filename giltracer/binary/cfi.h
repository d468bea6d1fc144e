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

#define CFI_REGS 33 /* the most that a machine we know has: aarch64's x0…x30, sp, and pc */

/**
 * @regs: by DWARF number, valid where @valid has the bit
 * @pc: of the frame; @sp is regs[machine's sp]
 */
struct cfi_regs {
	uint64_t regs[CFI_REGS];
	uint64_t valid;
	uint64_t pc;
};

/* The memory that a sample kept: size bytes from address base on. */
struct cfi_memory {
	const uint8_t *data;
	uint64_t base, size;
};

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

/*
 * One DWARF location expression. Returns false if it reads what is not there, is not understood or
 * does not end. ret_value: the result is a value, else an address.
 */
bool cfi_evaluate(const Dwarf_Op *ops, size_t n, const struct cfi_regs *regs,
                  const struct cfi_memory *memory, uint64_t cfa, uint64_t *ret, bool *ret_value,
                  bool *ret_outside);

/* The 64-bit word at address; false if it was not kept; *ret_outside is set if it lies above. */
static inline bool cfi_read(const struct cfi_memory *memory, uint64_t address, uint64_t *ret,
                            bool *ret_outside)
{
	uint64_t at = address - memory->base;

	if (memory->size < 8 || at > memory->size - 8) {
		*ret_outside = address >= memory->base;
		return false;
	}
	__builtin_memcpy(ret, memory->data + at, 8);
	return true;
}

#endif
