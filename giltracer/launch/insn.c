/* SPDX-License-Identifier: MIT */
/*
 * The rules of arch/x86/kernel/uprobes.c and arch/arm64/kernel/probes/: which instructions the
 * kernel emulates at a uprobe. Everything else is single-stepped.
 */
#include "insn.h"

#include <capstone.h>
#include <stdio.h>
#include <string.h>

#define ENTRY_MAX 8 /* instructions looked at: a prologue */

#ifdef __aarch64__
static bool open_handle(csh *ret)
{
	return cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, ret) == CS_ERR_OK;
}

/* hint space: nop, bti, paciasp; and branches. */
static bool is_emulated(const cs_insn *insn)
{
	return insn->id == ARM64_INS_HINT || insn->id == ARM64_INS_NOP || insn->id == ARM64_INS_B ||
	       insn->id == ARM64_INS_BL;
}

/* Prologues here change the stack only by stores, and lr is what a return probe reads. */
static bool is_harmless(csh handle, const cs_insn *insn, bool with_return)
{
	(void)handle;
	(void)with_return;
	return insn->id == ARM64_INS_HINT || insn->id == ARM64_INS_NOP;
}
#else
static bool open_handle(csh *ret)
{
	return cs_open(CS_ARCH_X86, CS_MODE_64, ret) == CS_ERR_OK &&
	       cs_option(*ret, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT) == CS_ERR_OK;
}

static bool is_emulated(const cs_insn *insn)
{
	const uint8_t *b = insn->bytes;
	size_t n = insn->size;

	if (n > 1 && (b[0] & 0xf0) == 0x40) { /* REX */
		b++;
		n--;
	}
	if ((b[0] & 0xf8) == 0x50 && n == 1) /* push */
		return true;
	if (b[0] == 0x90 && n == 1) /* nop */
		return true;
	if (b[0] == 0xe8 || b[0] == 0xe9 || b[0] == 0xeb) /* call, jmp */
		return true;
	return (b[0] & 0xf0) == 0x70 || (n > 1 && b[0] == 0x0f && (b[1] & 0xf0) == 0x80);
}

static bool writes_argument(csh handle, const cs_insn *insn)
{
	static const x86_reg arguments[] = { X86_REG_RDI, X86_REG_EDI, X86_REG_RSI, X86_REG_ESI,
		                             X86_REG_RDX, X86_REG_EDX, X86_REG_RCX, X86_REG_ECX };
	cs_regs read, written;
	uint8_t reads, writes;

	if (cs_regs_access(handle, insn, read, &reads, written, &writes) != CS_ERR_OK)
		return true;
	for (uint8_t i = 0; i < writes; i++)
		for (size_t k = 0; k < sizeof(arguments) / sizeof(*arguments); k++)
			if (written[i] == arguments[k])
				return true;
	return false;
}

static bool writes_stack_pointer(csh handle, const cs_insn *insn)
{
	cs_regs read, written;
	uint8_t reads, writes;

	if (cs_regs_access(handle, insn, read, &reads, written, &writes) != CS_ERR_OK)
		return true;
	for (uint8_t i = 0; i < writes; i++)
		if (written[i] == X86_REG_RSP || written[i] == X86_REG_ESP)
			return true;
	return false;
}

static bool is_harmless(csh handle, const cs_insn *insn, bool with_return)
{
	if (cs_insn_group(handle, insn, CS_GRP_JUMP) || cs_insn_group(handle, insn, CS_GRP_CALL) ||
	    cs_insn_group(handle, insn, CS_GRP_RET) || cs_insn_group(handle, insn, CS_GRP_INT))
		return false;
	if (with_return && writes_stack_pointer(handle, insn))
		return false;
	return !writes_argument(handle, insn);
}
#endif

static void set_text(struct insn_point *ret, const cs_insn *insn)
{
	snprintf(ret->text, sizeof(ret->text), "%.20s%s%.40s", insn->mnemonic,
	         *insn->op_str ? " " : "", insn->op_str);
}

static size_t decode(csh *handle, cs_insn **ret, uint64_t address, const uint8_t *code, size_t len)
{
	*ret = NULL;
	if (!open_handle(handle))
		return 0;
	cs_option(*handle, CS_OPT_DETAIL, CS_OPT_ON);
	return cs_disasm(*handle, code, len, address, ENTRY_MAX, ret);
}

/* endbr64 must never be chosen where something better follows: it is single-stepped. */
static void choose(struct insn_point *ret, csh handle, const cs_insn *insns, size_t n,
                   bool with_return)
{
	set_text(ret, &insns[0]);
	ret->cost = is_emulated(&insns[0]) ? INSN_CHEAP : INSN_DEAR;
	for (size_t i = 0; i < n; i++) {
		if (is_emulated(&insns[i])) {
			ret->skip = (size_t)(insns[i].address - insns[0].address);
			ret->cost = INSN_CHEAP;
			set_text(ret, &insns[i]);
			return;
		}
		if (!is_harmless(handle, &insns[i], with_return))
			return;
	}
}

void insn_entry_point(struct insn_point *ret, uint64_t address, const uint8_t *code, size_t len,
                      bool with_return)
{
	csh handle = 0;
	cs_insn *insns;
	size_t n = decode(&handle, &insns, address, code, len);

	*ret = (struct insn_point){ .cost = INSN_DEAR, .text = "?" };
	if (n)
		choose(ret, handle, insns, n, with_return);
	if (insns)
		cs_free(insns, n);
	if (handle)
		cs_close(&handle);
}
