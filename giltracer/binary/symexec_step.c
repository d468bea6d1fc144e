/* SPDX-License-Identifier: MIT */
/*
 * Only instructions that move values are interpreted: mov, lea, push, pop, adding constants, and
 * xor of a register with itself. For other instructions only the registers that they change matter:
 * each of these gets a new value.
 */
#include "binary/symexec_step.h"

#include <string.h>

#include "binary/codemap.h"
#include "binary/symexec_state.h"
#include "binary/symexec_value.h"
#include "binary/x86.h"

bool symexec_machine_open(struct symexec_machine *m, const struct codemap *map,
                          struct symexec_values *values)
{
	*m = (struct symexec_machine){ .map = map, .values = values };
#ifdef __x86_64__
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &m->handle) != CS_ERR_OK)
		return false;
	cs_option(m->handle, CS_OPT_DETAIL, CS_OPT_ON);
	m->insn = cs_malloc(m->handle);
#endif
	return m->insn;
}

void symexec_machine_close(struct symexec_machine *m)
{
	if (m->insn)
		cs_free(m->insn, 1);
	if (m->handle)
		cs_close(&m->handle);
}

/* A value of which only the origin is known. */
static struct symexec_value other(struct symexec_machine *m, int64_t which)
{
	return symexec_value_of(m->values, SYMEXEC_UNKNOWN, m->insn->address, which);
}

static struct symexec_value load(struct symexec_machine *m, struct symexec_state *s,
                                 struct symexec_value address)
{
	uint64_t value;

	if (symexec_on_stack(m->values, address)) {
		const struct symexec_slot *slot = symexec_state_slot(s, address.off);

		return slot ? slot->value : other(m, 100);
	}
	if (symexec_is_number(address) && codemap_relocated(m->map, (uint64_t)address.off, &value))
		return symexec_number(value);
	return symexec_value_of(m->values, SYMEXEC_LOAD, address.node, address.off);
}

/* The register's number in encoding order; -1 if it is not a 64-bit or 32-bit general register.
 * *ret_size in bytes. */
static int register_index(x86_reg reg, unsigned *ret_size)
{
	static const x86_reg wide[SYMEXEC_REGISTERS] = {
		X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP,
		X86_REG_RSI, X86_REG_RDI, X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11,
		X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15
	};
	static const x86_reg half[SYMEXEC_REGISTERS] = {
		X86_REG_EAX,  X86_REG_ECX,  X86_REG_EDX,  X86_REG_EBX, X86_REG_ESP,  X86_REG_EBP,
		X86_REG_ESI,  X86_REG_EDI,  X86_REG_R8D,  X86_REG_R9D, X86_REG_R10D, X86_REG_R11D,
		X86_REG_R12D, X86_REG_R13D, X86_REG_R14D, X86_REG_R15D
	};

	for (int i = 0; i < SYMEXEC_REGISTERS; i++) {
		if (reg != wide[i] && reg != half[i])
			continue;
		*ret_size = reg == wide[i] ? 8 : 4;
		return i;
	}
	return -1;
}

/* The number of the general register that reg is a part of, or -1. */
static int parent_register(csh handle, x86_reg reg)
{
	static const char *const names[SYMEXEC_REGISTERS] = { "ax",  "cx",  "dx",  "bx",
		                                              "sp",  "bp",  "si",  "di",
		                                              "r8",  "r9",  "r10", "r11",
		                                              "r12", "r13", "r14", "r15" };
	unsigned size;
	int index = register_index(reg, &size);
	const char *name = cs_reg_name(handle, reg);

	if (index >= 0 || !name)
		return index;
	for (int i = 0; i < SYMEXEC_REGISTERS; i++)
		if (!strncmp(name, names[i], strlen(names[i])) ||
		    (i < 4 && name[0] == names[i][0] && (name[1] == 'l' || name[1] == 'h') &&
		     !name[2]) ||
		    (i >= 4 && i < 8 && !strncmp(name, names[i], 2)))
			index = i;
	return index;
}

static struct symexec_value effective_address(struct symexec_machine *m,
                                              const struct symexec_state *s, const x86_op_mem *mem)
{
	unsigned size;
	int index;

	if (mem->segment != X86_REG_INVALID || mem->index != X86_REG_INVALID)
		return other(m, 101);
	if (mem->base == X86_REG_RIP)
		return symexec_number(m->insn->address + m->insn->size + (uint64_t)mem->disp);
	if (mem->base == X86_REG_INVALID)
		return symexec_number((uint64_t)mem->disp);
	index = register_index(mem->base, &size);
	if (index < 0)
		return other(m, 102);
	return symexec_plus(s->reg[index], mem->disp);
}

static struct symexec_value read_operand(struct symexec_machine *m, struct symexec_state *s,
                                         const cs_x86_op *op)
{
	unsigned size;
	int index;

	switch (op->type) {
	case X86_OP_IMM:
		return symexec_number(op->size == 4 ? (uint32_t)op->imm : (uint64_t)op->imm);
	case X86_OP_REG:
		index = register_index(op->reg, &size);
		if (index >= 0 && (size == 8 || symexec_is_number(s->reg[index])))
			return s->reg[index];
		return other(m, 103);
	case X86_OP_MEM:
		if (op->size == 8)
			return load(m, s, effective_address(m, s, &op->mem));
		return other(m, 104);
	default:
		return other(m, 105);
	}
}

/* Gives each register that the instruction writes an unknown value. */
static void clobber(struct symexec_machine *m, struct symexec_state *s)
{
	cs_regs read, written;
	uint8_t reads = 0, writes = 0;

	if (cs_regs_access(m->handle, m->insn, read, &reads, written, &writes) != CS_ERR_OK)
		return;
	for (uint8_t i = 0; i < writes; i++) {
		int index = parent_register(m->handle, written[i]);

		if (index >= 0)
			s->reg[index] = other(m, index);
	}
}

static void do_move(struct symexec_machine *m, struct symexec_state *s, const cs_x86 *x86)
{
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	unsigned size;
	int index;

	if (to->type == X86_OP_MEM) {
		symexec_state_store(s, m->values, effective_address(m, s, &to->mem),
		                    read_operand(m, s, from), to->size);
		return;
	}
	index = to->type == X86_OP_REG ? register_index(to->reg, &size) : -1;
	if (index < 0) {
		clobber(m, s);
		return;
	}
	s->reg[index] = read_operand(m, s, from);
}

static void do_lea(struct symexec_machine *m, struct symexec_state *s, const cs_x86 *x86)
{
	unsigned size;
	int index = register_index(x86->operands[0].reg, &size);

	if (index >= 0 && size == 8)
		s->reg[index] = effective_address(m, s, &x86->operands[1].mem);
	else
		clobber(m, s);
}

static void do_add(struct symexec_machine *m, struct symexec_state *s, const cs_x86 *x86, int sign)
{
	const cs_x86_op *to = &x86->operands[0], *by = &x86->operands[1];
	unsigned size = 0;
	int index = to->type == X86_OP_REG ? register_index(to->reg, &size) : -1;

	if (index >= 0 && size == 8 && by->type == X86_OP_IMM)
		s->reg[index] = symexec_plus(s->reg[index],
		                             sign < 0 ? (int64_t) - (uint64_t)by->imm : by->imm);
	else
		clobber(m, s);
}

static void do_xor(struct symexec_machine *m, struct symexec_state *s, const cs_x86 *x86)
{
	const cs_x86_op *a = &x86->operands[0], *b = &x86->operands[1];
	unsigned size;
	int index = a->type == X86_OP_REG ? register_index(a->reg, &size) : -1;

	if (index >= 0 && b->type == X86_OP_REG && a->reg == b->reg)
		s->reg[index] = symexec_number(0);
	else
		clobber(m, s);
}

static void do_push(struct symexec_machine *m, struct symexec_state *s, const cs_x86 *x86)
{
	struct symexec_value value = read_operand(m, s, &x86->operands[0]);

	s->reg[SYMEXEC_SP] = symexec_plus(s->reg[SYMEXEC_SP], -8);
	symexec_state_store(s, m->values, s->reg[SYMEXEC_SP], value, 8);
}

static void do_pop(struct symexec_machine *m, struct symexec_state *s, const cs_x86 *x86)
{
	struct symexec_value value = load(m, s, s->reg[SYMEXEC_SP]);
	unsigned size;
	int index = register_index(x86->operands[0].reg, &size);

	s->reg[SYMEXEC_SP] = symexec_plus(s->reg[SYMEXEC_SP], 8);
	if (index >= 0)
		s->reg[index] = value;
}

void symexec_step(struct symexec_machine *m, struct symexec_state *s)
{
	const cs_x86 *x86 = &m->insn->detail->x86;

	switch (m->insn->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		do_move(m, s, x86);
		break;
	case X86_INS_LEA:
		do_lea(m, s, x86);
		break;
	case X86_INS_ADD:
		do_add(m, s, x86, 1);
		break;
	case X86_INS_SUB:
		do_add(m, s, x86, -1);
		break;
	case X86_INS_XOR:
		do_xor(m, s, x86);
		break;
	case X86_INS_PUSH:
		do_push(m, s, x86);
		break;
	case X86_INS_POP:
		do_pop(m, s, x86);
		break;
	default:
		clobber(m, s);
	}
}

/* Memory that a callee can reach is not tracked anyway. */
void symexec_after_call(struct symexec_machine *m, struct symexec_state *s)
{
	static const int volatiles[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };

	for (size_t i = 0; i < sizeof(volatiles) / sizeof(*volatiles); i++)
		s->reg[volatiles[i]] = other(m, volatiles[i]);
}

uint64_t symexec_branch_target(const struct symexec_machine *m, const char **ret_import)
{
	const cs_insn *insn = m->insn;
	struct x86_branch b;

	*ret_import = NULL;
	if (!x86_branch_of(insn->bytes, insn->size, insn->address, &b))
		return 0;
	*ret_import = codemap_import(m->map, b.target);
	return b.slot ? 0 : codemap_resolve(m->map, b.target);
}

bool symexec_is_branch(const struct symexec_machine *m)
{
	return cs_insn_group(m->handle, m->insn, CS_GRP_JUMP) || m->insn->id == X86_INS_CALL;
}

bool symexec_is_end(const struct symexec_machine *m)
{
	return cs_insn_group(m->handle, m->insn, CS_GRP_RET) || m->insn->id == X86_INS_UD2 ||
	       m->insn->id == X86_INS_HLT || m->insn->id == X86_INS_INT3;
}
