/* SPDX-License-Identifier: MIT */
/*
 * Only what moves values about is understood: mov, lea, push, pop, adding constants, and xor of a
 * register with itself. Of any other instruction only which registers it changes matters: each gets
 * a value of its own.
 */
#include "flow_step.h"

#include <string.h>

#include "launch/codemap.h"
#include "launch/flow_state.h"
#include "launch/flow_value.h"

bool flow_machine_open(struct flow_machine *m, const struct codemap *map,
                       struct flow_values *values)
{
	*m = (struct flow_machine){ .map = map, .values = values };
#ifdef __x86_64__
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &m->handle) != CS_ERR_OK)
		return false;
	cs_option(m->handle, CS_OPT_DETAIL, CS_OPT_ON);
	m->insn = cs_malloc(m->handle);
#endif
	return m->insn;
}

void flow_machine_close(struct flow_machine *m)
{
	if (m->insn)
		cs_free(m->insn, 1);
	if (m->handle)
		cs_close(&m->handle);
}

/* A value nothing is known of but where it came from. */
static struct flow_value other(struct flow_machine *m, int64_t which)
{
	return flow_value_of(m->values, FLOW_UNKNOWN, m->insn->address, which);
}

static struct flow_value load(struct flow_machine *m, struct flow_state *s,
                              struct flow_value address)
{
	uint64_t value;

	if (flow_on_stack(m->values, address)) {
		const struct flow_slot *slot = flow_state_slot(s, address.off);

		return slot ? slot->value : other(m, 100);
	}
	if (flow_is_number(address) && codemap_relocated(m->map, (uint64_t)address.off, &value))
		return flow_number(value);
	return flow_value_of(m->values, FLOW_LOAD, address.node, address.off);
}

/* Encoding order; -1 for what is no 64-bit or 32-bit general register. *ret_size in bytes. */
static int register_index(x86_reg reg, unsigned *ret_size)
{
	static const x86_reg wide[FLOW_REGISTERS] = {
		X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP,
		X86_REG_RSI, X86_REG_RDI, X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11,
		X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15
	};
	static const x86_reg half[FLOW_REGISTERS] = {
		X86_REG_EAX,  X86_REG_ECX,  X86_REG_EDX,  X86_REG_EBX, X86_REG_ESP,  X86_REG_EBP,
		X86_REG_ESI,  X86_REG_EDI,  X86_REG_R8D,  X86_REG_R9D, X86_REG_R10D, X86_REG_R11D,
		X86_REG_R12D, X86_REG_R13D, X86_REG_R14D, X86_REG_R15D
	};

	for (int i = 0; i < FLOW_REGISTERS; i++) {
		if (reg != wide[i] && reg != half[i])
			continue;
		*ret_size = reg == wide[i] ? 8 : 4;
		return i;
	}
	return -1;
}

/* Any part of a general register. */
static int parent_register(csh handle, x86_reg reg)
{
	static const char *const names[FLOW_REGISTERS] = { "ax",  "cx",  "dx",  "bx", "sp",  "bp",
		                                           "si",  "di",  "r8",  "r9", "r10", "r11",
		                                           "r12", "r13", "r14", "r15" };
	unsigned size;
	int index = register_index(reg, &size);
	const char *name = cs_reg_name(handle, reg);

	if (index >= 0 || !name)
		return index;
	for (int i = 0; i < FLOW_REGISTERS; i++)
		if (!strncmp(name, names[i], strlen(names[i])) ||
		    (i < 4 && name[0] == names[i][0] && (name[1] == 'l' || name[1] == 'h') &&
		     !name[2]) ||
		    (i >= 4 && i < 8 && !strncmp(name, names[i], 2)))
			index = i;
	return index;
}

static struct flow_value effective_address(struct flow_machine *m, const struct flow_state *s,
                                           const x86_op_mem *mem)
{
	struct flow_value base;
	unsigned size;
	int index;

	if (mem->segment != X86_REG_INVALID || mem->index != X86_REG_INVALID)
		return other(m, 101);
	if (mem->base == X86_REG_RIP)
		return flow_number(m->insn->address + m->insn->size + (uint64_t)mem->disp);
	if (mem->base == X86_REG_INVALID)
		return flow_number((uint64_t)mem->disp);
	index = register_index(mem->base, &size);
	if (index < 0)
		return other(m, 102);
	base = s->reg[index];
	base.off += mem->disp;
	return base;
}

static struct flow_value read_operand(struct flow_machine *m, struct flow_state *s,
                                      const cs_x86_op *op)
{
	unsigned size;
	int index;

	switch (op->type) {
	case X86_OP_IMM:
		return flow_number(op->size == 4 ? (uint32_t)op->imm : (uint64_t)op->imm);
	case X86_OP_REG:
		index = register_index(op->reg, &size);
		if (index >= 0 && (size == 8 || flow_is_number(s->reg[index])))
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

/* Everything the instruction changes and that is not understood gets a value of its own. */
static void clobber(struct flow_machine *m, struct flow_state *s)
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

static void do_move(struct flow_machine *m, struct flow_state *s, const cs_x86 *x86)
{
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	unsigned size;
	int index;

	if (to->type == X86_OP_MEM) {
		flow_state_store(s, m->values, effective_address(m, s, &to->mem),
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

static void do_lea(struct flow_machine *m, struct flow_state *s, const cs_x86 *x86)
{
	unsigned size;
	int index = register_index(x86->operands[0].reg, &size);

	if (index >= 0 && size == 8)
		s->reg[index] = effective_address(m, s, &x86->operands[1].mem);
	else
		clobber(m, s);
}

static void do_add(struct flow_machine *m, struct flow_state *s, const cs_x86 *x86, int sign)
{
	const cs_x86_op *to = &x86->operands[0], *by = &x86->operands[1];
	unsigned size = 0;
	int index = to->type == X86_OP_REG ? register_index(to->reg, &size) : -1;

	if (index >= 0 && size == 8 && by->type == X86_OP_IMM)
		s->reg[index].off += sign * by->imm;
	else
		clobber(m, s);
}

static void do_xor(struct flow_machine *m, struct flow_state *s, const cs_x86 *x86)
{
	const cs_x86_op *a = &x86->operands[0], *b = &x86->operands[1];
	unsigned size;
	int index = a->type == X86_OP_REG ? register_index(a->reg, &size) : -1;

	if (index >= 0 && b->type == X86_OP_REG && a->reg == b->reg)
		s->reg[index] = flow_number(0);
	else
		clobber(m, s);
}

static void do_push(struct flow_machine *m, struct flow_state *s, const cs_x86 *x86)
{
	struct flow_value value = read_operand(m, s, &x86->operands[0]);

	s->reg[FLOW_SP].off -= 8;
	flow_state_store(s, m->values, s->reg[FLOW_SP], value, 8);
}

static void do_pop(struct flow_machine *m, struct flow_state *s, const cs_x86 *x86)
{
	struct flow_value value = load(m, s, s->reg[FLOW_SP]);
	unsigned size;
	int index = register_index(x86->operands[0].reg, &size);

	s->reg[FLOW_SP].off += 8;
	if (index >= 0)
		s->reg[index] = value;
}

void flow_step(struct flow_machine *m, struct flow_state *s)
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

/* Memory that a callee can reach is not followed anyway. */
void flow_after_call(struct flow_machine *m, struct flow_state *s)
{
	static const int volatiles[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };

	for (size_t i = 0; i < sizeof(volatiles) / sizeof(*volatiles); i++)
		s->reg[volatiles[i]] = other(m, volatiles[i]);
}

uint64_t flow_branch_target(const struct flow_machine *m, const char **ret_import)
{
	const cs_x86_op *op = &m->insn->detail->x86.operands[0];
	uint64_t at;

	*ret_import = NULL;
	if (op->type == X86_OP_IMM) {
		*ret_import = codemap_import(m->map, (uint64_t)op->imm);
		return codemap_resolve(m->map, (uint64_t)op->imm);
	}
	if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP) {
		at = m->insn->address + m->insn->size + (uint64_t)op->mem.disp;
		*ret_import = codemap_import(m->map, at);
	}
	return 0;
}

bool flow_is_branch(const struct flow_machine *m)
{
	return cs_insn_group(m->handle, m->insn, CS_GRP_JUMP) || m->insn->id == X86_INS_CALL;
}

bool flow_is_end(const struct flow_machine *m)
{
	return cs_insn_group(m->handle, m->insn, CS_GRP_RET) || m->insn->id == X86_INS_UD2 ||
	       m->insn->id == X86_INS_HLT || m->insn->id == X86_INS_INT3;
}
