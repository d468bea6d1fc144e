/* SPDX-License-Identifier: MIT */
/* DWARF expressions, and the registers and memory that they are about. */
#ifndef GILTRACER_BINARY_DWARF_EXPR_H
#define GILTRACER_BINARY_DWARF_EXPR_H

#include <elfutils/libdw.h>
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

/**
 * What expressions are evaluated in.
 * @regs: of the frame; @cfa: its canonical frame address, 0 while that is looked for
 * @outside: set if memory above what was kept was needed
 */
struct cfi_frame {
	const struct cfi_regs *regs;
	const struct cfi_memory *memory;
	uint64_t cfa;
	bool outside;
};

/*
 * One DWARF location expression. Returns false if it reads what is not there, is not understood or
 * does not end. ret_value: the result is a value, else an address.
 */
bool dwarf_expr_evaluate(const Dwarf_Op *ops, size_t n, struct cfi_frame *frame, uint64_t *ret,
                         bool *ret_value);

#endif
