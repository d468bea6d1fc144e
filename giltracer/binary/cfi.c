/* SPDX-License-Identifier: MIT */
/* libdw's call frame information, compiled into rules. */
#include "binary/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

enum kind {
	REG_CFA_MEM, /* saved in memory at CFA + off */
	REG_CFA_VAL, /* equals CFA + off */
	REG_REG,     /* saved in register off */
	REG_EXPR,    /* given by the expression ops[off … off + n] */
};

struct reg_rule {
	uint8_t reg, kind;
	uint16_t n;
	int32_t off;
};

/**
 * @cfa_reg, @cfa_off: CFA = register + offset, unless cfa_n ops from ops[cfa_off] on give it
 * @ret: the column of the return address; @lost: registers whose values for the caller are lost
 */
struct cfi_rule {
	int64_t cfa_off;
	uint64_t lost;
	Dwarf_Op *ops;
	uint16_t cfa_n;
	uint8_t cfa_reg, ret, n;
	bool signal, outermost;
	bool reads_regs; /* a rule reads the old value of another register */
	struct reg_rule regs[CFI_REGS];
};

struct cfi {
	Dwarf_CFI *eh;    /* of the file itself; owned */
	Dwarf_CFI *debug; /* .debug_frame, possibly of the separate file; owned by Dwfl */
	uint64_t debug_bias;
	VEC(struct cfi_rule *) rules;
};

void cfi_free(struct cfi *cfi)
{
	if (!cfi)
		return;
	for (size_t i = 0; i < cfi->rules.n; i++) {
		free(cfi->rules.v[i]->ops);
		free(cfi->rules.v[i]);
	}
	vec_done(&cfi->rules);
	if (cfi->eh)
		dwarf_cfi_end(cfi->eh);
	free(cfi);
}

struct cfi *cfi_new(Dwfl_Module *file)
{
	struct cfi *cfi = xcalloc(1, sizeof(*cfi));
	GElf_Addr file_bias = 0, bias = 0;
	Elf *elf = dwfl_module_getelf(file, &file_bias);

	cfi->eh = dwarf_getcfi_elf(elf);
	cfi->debug = dwfl_module_dwarf_cfi(file, &bias);
	cfi->debug_bias = file_bias - bias;
	return cfi;
}

/* Appends n ops to the rule's ops; returns the index of the first. */
static int32_t keep_ops(struct cfi_rule *rule, size_t *have, const Dwarf_Op *ops, size_t n)
{
	size_t first = *have;

	rule->ops = xreallocarray(rule->ops, first + n, sizeof(*rule->ops));
	memcpy(rule->ops + first, ops, n * sizeof(*ops));
	*have += n;
	return first;
}

static bool fits(int64_t v)
{
	return v == (int32_t)v;
}

static bool compile_cfa(struct cfi_rule *rule, size_t *have, Dwarf_Frame *frame,
                        const struct cfi_machine *machine)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) < 0 || n == 0 || n > UINT16_MAX)
		return false;
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < machine->regs) {
		rule->cfa_reg = ops[0].number;
		rule->cfa_off = (int64_t)ops[0].number2;
		return true;
	}
	if (n == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31 &&
	    ops[0].atom - DW_OP_breg0 < machine->regs) {
		rule->cfa_reg = ops[0].atom - DW_OP_breg0;
		rule->cfa_off = (int64_t)ops[0].number;
		return true;
	}
	rule->cfa_off = keep_ops(rule, have, ops, n);
	rule->cfa_n = n;
	return true;
}

/* Recognises CFA + off, in memory or as a value, as dwarf_frame_register() writes these two common
 * rules. */
static bool is_offset_rule(const Dwarf_Op *ops, size_t n, struct reg_rule *r)
{
	int64_t off = 0;
	size_t at = 1;

	if (n == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (at < n && ops[at].atom == DW_OP_plus_uconst)
		off = (int64_t)ops[at++].number;
	r->kind = REG_CFA_MEM;
	if (at < n && ops[at].atom == DW_OP_stack_value) {
		r->kind = REG_CFA_VAL;
		at++;
	}
	r->off = off;
	return at == n && fits(off);
}

static bool compile_reg(struct cfi_rule *rule, size_t *have, Dwarf_Frame *frame, uint8_t reg)
{
	struct reg_rule *r = &rule->regs[rule->n];
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n) < 0)
		return false;
	if (n == 0 && !ops) /* same value */
		return true;
	if (n == 0) {
		rule->lost |= UINT64_C(1) << reg;
		return true;
	}
	if (n > UINT16_MAX)
		return false;
	*r = (struct reg_rule){ .reg = reg };
	if (n == 1 && ops[0].atom == DW_OP_regx && ops[0].number < CFI_REGS) {
		r->kind = REG_REG;
		r->off = ops[0].number;
	} else if (!is_offset_rule(ops, n, r)) {
		r->kind = REG_EXPR;
		r->off = keep_ops(rule, have, ops, n);
		r->n = n;
	}
	rule->reads_regs |= r->kind == REG_REG || r->kind == REG_EXPR;
	rule->n++;
	return true;
}

static struct cfi_rule *compile(Dwarf_Frame *frame, const struct cfi_machine *machine)
{
	struct cfi_rule *rule = xcalloc(1, sizeof(*rule));
	bool signal = false, ok;
	size_t have = 0;
	int ret = dwarf_frame_info(frame, NULL, NULL, &signal);

	rule->signal = signal;
	rule->ret = ret;
	ok = ret >= 0 && ret < machine->regs && compile_cfa(rule, &have, frame, machine);
	for (uint8_t reg = 0; ok && reg < machine->regs; reg++)
		ok = compile_reg(rule, &have, frame, reg);
	if (!ok) {
		free(rule->ops);
		free(rule);
		return NULL;
	}
	rule->outermost = rule->lost >> ret & 1;
	return rule;
}

const struct cfi_rule *cfi_rule(struct cfi *cfi, uint64_t vaddr, const struct cfi_machine *machine)
{
	Dwarf_Frame *frame = NULL;
	struct cfi_rule *rule;

	if ((!cfi->eh || dwarf_cfi_addrframe(cfi->eh, vaddr, &frame) < 0) &&
	    (!cfi->debug || dwarf_cfi_addrframe(cfi->debug, vaddr + cfi->debug_bias, &frame) < 0))
		return NULL;
	rule = compile(frame, machine);
	free(frame);
	if (rule)
		*vec_push(&cfi->rules) = rule;
	return rule;
}

static bool reg_value(const struct cfi_rule *rule, const struct reg_rule *r,
                      struct cfi_frame *frame, uint64_t *ret)
{
	bool value = false;

	switch ((enum kind)r->kind) {
	case REG_CFA_MEM:
		return cfi_read(frame->memory, frame->cfa + r->off, ret, &frame->outside);
	case REG_CFA_VAL:
		*ret = frame->cfa + r->off;
		return true;
	case REG_REG:
		*ret = frame->regs->regs[r->off];
		return frame->regs->valid >> r->off & 1;
	case REG_EXPR:
		if (!dwarf_expr_evaluate(rule->ops + r->off, r->n, frame, ret, &value))
			return false;
		return value || cfi_read(frame->memory, *ret, ret, &frame->outside);
	}
	return false;
}

static bool find_cfa(const struct cfi_rule *rule, struct cfi_frame *frame)
{
	const struct cfi_regs *regs = frame->regs;
	bool value;

	if (rule->cfa_n)
		return dwarf_expr_evaluate(rule->ops + rule->cfa_off, rule->cfa_n, frame,
		                           &frame->cfa, &value);
	frame->cfa = regs->regs[rule->cfa_reg] + rule->cfa_off;
	return regs->valid >> rule->cfa_reg & 1;
}

/* Replaces the registers of the frame in regs by those of its caller. A saved register that cannot
 * be read is marked invalid; only the return address must be readable. */
static bool restore(const struct cfi_rule *rule, struct cfi_frame *frame, struct cfi_regs *regs)
{
	struct cfi_frame from = *frame;
	struct cfi_regs old;

	if (rule->reads_regs) {
		old = *regs;
		from.regs = &old;
	}
	regs->valid &= ~rule->lost;
	for (uint8_t i = 0; i < rule->n; i++) {
		const struct reg_rule *r = &rule->regs[i];
		uint64_t bit = UINT64_C(1) << r->reg, v;

		from.outside = false;
		if (reg_value(rule, r, &from, &v)) {
			regs->regs[r->reg] = v;
			regs->valid |= bit;
			continue;
		}
		regs->valid &= ~bit;
		if (r->reg == rule->ret) {
			frame->outside = from.outside;
			return false;
		}
	}
	return regs->valid >> rule->ret & 1;
}

enum cfi_result cfi_apply(const struct cfi_rule *rule, const struct cfi_machine *machine,
                          const struct cfi_memory *memory, struct cfi_regs *regs, bool *ret_signal)
{
	struct cfi_frame frame = { .regs = regs, .memory = memory };
	uint64_t sp = regs->regs[machine->sp];

	if (!rule)
		return CFI_NONE;
	if (rule->outermost)
		return CFI_END;
	if (!find_cfa(rule, &frame) || !restore(rule, &frame, regs))
		return frame.outside ? CFI_OUTSIDE : CFI_NONE;
	if (!rule->signal && (frame.cfa < sp || (frame.cfa == sp && machine->leaf_on_stack)))
		return CFI_NONE;
	regs->pc = regs->regs[rule->ret];
	*ret_signal = rule->signal;
	return regs->pc ? CFI_OK : CFI_END;
}
