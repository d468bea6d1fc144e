/* SPDX-License-Identifier: MIT */
/*
 * The rules of arch/x86/kernel/uprobes.c and arch/arm64/kernel/probes/: which instructions the
 * kernel emulates at a uprobe. All others are single-stepped.
 */
#include "python/probe_site.h"

#include <capstone.h>
#include <stdio.h>

#include "binary/x86.h"

#define ENTRY_MAX 16 /* number of instructions to examine: a prologue */

#ifdef __aarch64__
static bool open_handle(csh *ret)
{
	return cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, ret) == CS_ERR_OK;
}

/* Hint space: nop, bti, paciasp; and branches. */
static bool is_emulated(const cs_insn *insn)
{
	return insn->id == ARM64_INS_HINT || insn->id == ARM64_INS_NOP || insn->id == ARM64_INS_B ||
	       insn->id == ARM64_INS_BL;
}

/* Prologues on this architecture change the stack only by stores, and a return probe reads lr. */
static const char *why_not(csh handle, const cs_insn *insn, bool with_return)
{
	(void)handle;
	(void)with_return;
	return insn->id == ARM64_INS_HINT || insn->id == ARM64_INS_NOP
	               ? NULL
	               : "the function does not start with a nop";
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

static const char *why_not(csh handle, const cs_insn *insn, bool with_return)
{
	if (cs_insn_group(handle, insn, CS_GRP_JUMP) || cs_insn_group(handle, insn, CS_GRP_CALL) ||
	    cs_insn_group(handle, insn, CS_GRP_RET) || cs_insn_group(handle, insn, CS_GRP_INT))
		return "the function branches before an instruction that the kernel emulates";
	if (with_return && writes_stack_pointer(handle, insn))
		return "the stack pointer changes before an instruction that the kernel emulates";
	if (writes_argument(handle, insn))
		return "an argument register changes before an instruction that the kernel "
		       "emulates";
	return NULL;
}
#endif

static void set_text(struct probe_site *ret, const cs_insn *insn)
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

/* Chooses the probe's instruction. endbr64 is single-stepped, so it must not be chosen if an
 * emulated instruction follows. */
static void choose(struct probe_site *ret, csh handle, const cs_insn *insns, size_t n,
                   bool with_return)
{
	set_text(ret, &insns[0]);
	ret->cost = PROBE_SINGLE_STEPPED;
	for (size_t i = 0; i < n; i++) {
		if (is_emulated(&insns[i])) {
			ret->skip = (size_t)(insns[i].address - insns[0].address);
			ret->cost = PROBE_EMULATED;
			ret->why = NULL;
			set_text(ret, &insns[i]);
			return;
		}
		ret->why = why_not(handle, &insns[i], with_return);
		if (ret->why)
			return;
	}
	ret->why = "the kernel emulates no instruction near the entry";
}

#ifndef __aarch64__
static bool jump_target(const cs_insn *insn, uint64_t *ret)
{
	struct x86_branch b;

	if (!x86_branch_of(insn->bytes, insn->size, insn->address, &b) || b.slot ||
	    b.kind == X86_CALL)
		return false;
	*ret = b.target;
	return true;
}
#else
static bool jump_target(const cs_insn *insn, uint64_t *ret)
{
	(void)insn;
	(void)ret;
	return false;
}
#endif

/* Whether some code jumps behind the entry, but not behind the probe: then the probe would be hit
 * more often than the function is called. */
static bool is_reentered(csh handle, uint64_t address, size_t skip, const uint8_t *code, size_t len)
{
	uint64_t entry = address, target;
	cs_insn *insn = skip ? cs_malloc(handle) : NULL;
	bool found = false;

	cs_option(handle, CS_OPT_DETAIL, CS_OPT_OFF);
	while (insn && !found && cs_disasm_iter(handle, &code, &len, &address, insn))
		found = jump_target(insn, &target) && target > entry && target <= entry + skip;
	if (insn)
		cs_free(insn, 1);
	return found;
}

void probe_site_find(struct probe_site *ret, uint64_t address, const uint8_t *code, size_t len,
                     bool with_return)
{
	csh handle = 0;
	cs_insn *insns;
	size_t n = decode(&handle, &insns, address, code, len);

	*ret = (struct probe_site){ .cost = PROBE_SINGLE_STEPPED,
		                    .text = "?",
		                    .why = "it cannot be decoded" };
	if (n)
		choose(ret, handle, insns, n, with_return);
	if (n && is_reentered(handle, address, ret->skip, code, len)) {
		*ret = (struct probe_site){ .cost = PROBE_SINGLE_STEPPED,
			                    .why = "the function jumps back into its entry" };
		set_text(ret, &insns[0]);
	}
	if (insns)
		cs_free(insns, n);
	if (handle)
		cs_close(&handle);
}
