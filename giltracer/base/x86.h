/* SPDX-License-Identifier: MIT */
/* The few instructions of x86-64 that are told from their bytes alone, without a disassembler. */
#ifndef GILTRACER_BASE_X86_H
#define GILTRACER_BASE_X86_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The operand that a jump, a call or an address relative to %rip ends with. */
static inline int64_t x86_rel32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* jmp rel32 and jcc rel32 (Intel's manual, volume 2, JMP and Jcc): where the one that starts at
 * code, of which left bytes are there, leads if code is loaded at address; 0 for what is neither.
 */
static inline uint64_t x86_jump_target(const uint8_t *code, size_t left, uint64_t address)
{
	if (left >= 5 && code[0] == 0xe9)
		return address + 5 + (uint64_t)x86_rel32(code + 1);
	if (left >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80)
		return address + 6 + (uint64_t)x86_rel32(code + 2);
	return 0;
}

#endif
