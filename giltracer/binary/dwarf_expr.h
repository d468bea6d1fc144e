/* SPDX-License-Identifier: MIT */
/* DWARF expressions, and the registers and memory that they use. */
#ifndef GILTRACER_BINARY_DWARF_EXPR_H
#define GILTRACER_BINARY_DWARF_EXPR_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_REGS 33 /* the largest number of supported machines: aarch64's x0…x30, sp, and pc */

/**
 * @regs: by DWARF number; valid if the bit in @valid is set
 * @pc: of the frame; the stack pointer is regs[machine's sp]
 */
struct cfi_regs {
	uint64_t regs[CFI_REGS];
	uint64_t valid;
	uint64_t pc;
};

/* The memory that a sample contains: size bytes from address base on. */
struct cfi_memory {
	const uint8_t *data;
	uint64_t base, size;
};

/* Reads the 64-bit word at address. Returns false if it was not saved; *ret_outside is set if it
 * lies above the saved part. */
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
 * The environment in which expressions are evaluated.
 * @regs: of the frame; @cfa: its canonical frame address, 0 while it is being computed
 * @outside: set if memory above the saved part was needed
 */
struct cfi_frame {
	const struct cfi_regs *regs;
	const struct cfi_memory *memory;
	uint64_t cfa;
	bool outside;
};

/*
 * Evaluates a DWARF location expression. Returns false if it reads unavailable data, is not
 * supported or does not end. ret_value: the result is a value, otherwise an address.
 */
bool dwarf_expr_evaluate(const Dwarf_Op *ops, size_t n, struct cfi_frame *frame, uint64_t *ret,
                         bool *ret_value);

#endif
