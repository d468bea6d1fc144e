/* SPDX-License-Identifier: MIT */
/* Targets of x86-64 jumps and calls, from their bytes only: a whole file is searched at every byte,
 * for which a disassembler is too slow. Intel's manual, volume 2: CALL, JMP, Jcc, LOOP. */
#ifndef GILTRACER_BINARY_X86_H
#define GILTRACER_BINARY_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum x86_branch_kind { X86_CALL, X86_JUMP, X86_CONDITIONAL };

/**
 * @target: the address it leads to or, if @slot, the address of the pointer to it, as in jmp
 * *slot(%rip)
 */
struct x86_branch {
	enum x86_branch_kind kind;
	bool slot;
	uint64_t target;
};

static inline bool x86_set_branch(struct x86_branch *ret, enum x86_branch_kind kind, bool slot,
                                  const uint8_t *distance, uint64_t next)
{
	int32_t value;

	memcpy(&value, distance, sizeof(value));
	*ret = (struct x86_branch){ kind, slot, next + (uint64_t)(int64_t)value };
	return true;
}

/* The branch with a 4-byte distance that starts at code, of which left bytes are available, if code
 * is loaded at address. Few other bytes look like one by chance. */
static inline bool x86_wide_branch(const uint8_t *code, size_t left, uint64_t address,
                                   struct x86_branch *ret)
{
	if (left < 5)
		return false;
	switch (code[0]) {
	case 0xe8:
	case 0xe9:
		return x86_set_branch(ret, code[0] == 0xe8 ? X86_CALL : X86_JUMP, false, code + 1,
		                      address + 5);
	case 0x0f:
		return left >= 6 && (code[1] & 0xf0) == 0x80 &&
		       x86_set_branch(ret, X86_CONDITIONAL, false, code + 2, address + 6);
	case 0xff:
		return left >= 6 && (code[1] == 0x15 || code[1] == 0x25) &&
		       x86_set_branch(ret, code[1] == 0x15 ? X86_CALL : X86_JUMP, true, code + 2,
		                      address + 6);
	default:
		return false;
	}
}

/* The same with a distance of any size. Returns false if the bytes are not a branch, or if its
 * target is in a register. */
static inline bool x86_branch(const uint8_t *code, size_t left, uint64_t address,
                              struct x86_branch *ret)
{
	if (x86_wide_branch(code, left, address, ret))
		return true;
	if (left < 2 || (code[0] != 0xeb && (code[0] & 0xf0) != 0x70 && (code[0] & 0xfc) != 0xe0))
		return false;
	*ret = (struct x86_branch){ .kind = code[0] == 0xeb ? X86_JUMP : X86_CONDITIONAL,
		                    .target = address + 2 + (uint64_t)(int8_t)code[1] };
	return true;
}

/* The same for one complete instruction, as delimited by a disassembler: it may start with bnd,
 * notrack or the hints of old compilers. */
static inline bool x86_branch_of(const uint8_t *bytes, size_t size, uint64_t address,
                                 struct x86_branch *ret)
{
	size_t prefixes = 0;

	while (prefixes + 1 < size &&
	       (bytes[prefixes] == 0xf2 || bytes[prefixes] == 0x2e || bytes[prefixes] == 0x3e))
		prefixes++;
	return x86_branch(bytes + prefixes, size - prefixes, address + prefixes, ret);
}

#endif
