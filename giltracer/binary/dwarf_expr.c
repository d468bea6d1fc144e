/* SPDX-License-Identifier: MIT */
/* DWARF expressions as used in call frame information (DWARF 5, section 2.5). */
#include "binary/dwarf_expr.h"

#include <dwarf.h>

#define STACK_MAX 64
#define STEPS_MAX 1000

struct machine {
	struct cfi_frame *frame;
	uint64_t stack[STACK_MAX];
	unsigned n;
	bool bad, value;
};

static void push(struct machine *m, uint64_t v)
{
	if (m->n == STACK_MAX)
		m->bad = true;
	else
		m->stack[m->n++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (m->n == 0) {
		m->bad = true;
		return 0;
	}
	return m->stack[--m->n];
}

static uint64_t peek(struct machine *m, uint64_t depth)
{
	if (depth >= m->n) {
		m->bad = true;
		return 0;
	}
	return m->stack[m->n - 1 - depth];
}

static void push_reg(struct machine *m, uint64_t reg, uint64_t offset)
{
	if (reg >= CFI_REGS || !(m->frame->regs->valid >> reg & 1))
		m->bad = true;
	else
		push(m, m->frame->regs->regs[reg] + offset);
}

static void deref(struct machine *m, uint64_t size)
{
	uint64_t v = 0;

	if (size == 0 || size > 8 || !cfi_read(m->frame->memory, pop(m), &v, &m->frame->outside))
		m->bad = true;
	else
		push(m, size == 8 ? v : v & ((UINT64_C(1) << size * 8) - 1));
}

static uint64_t shift(uint8_t atom, uint64_t a, uint64_t b)
{
	if (atom == DW_OP_shra)
		return (uint64_t)((int64_t)a >> (b > 63 ? 63 : b));
	if (b > 63)
		return 0;
	return atom == DW_OP_shl ? a << b : a >> b;
}

static uint64_t divide(struct machine *m, uint8_t atom, uint64_t a, uint64_t b)
{
	if (b == 0 || (atom == DW_OP_div && (int64_t)a == INT64_MIN && (int64_t)b == -1)) {
		m->bad = true;
		return 0;
	}
	return atom == DW_OP_div ? (uint64_t)((int64_t)a / (int64_t)b) : a % b;
}

/* a is below b on the stack. */
static uint64_t binary(struct machine *m, uint8_t atom, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (atom) {
	case DW_OP_and:
		return a & b;
	case DW_OP_or:
		return a | b;
	case DW_OP_xor:
		return a ^ b;
	case DW_OP_plus:
		return a + b;
	case DW_OP_minus:
		return a - b;
	case DW_OP_mul:
		return a * b;
	case DW_OP_div:
	case DW_OP_mod:
		return divide(m, atom, a, b);
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
		return shift(atom, a, b);
	case DW_OP_eq:
		return x == y;
	case DW_OP_ne:
		return x != y;
	case DW_OP_lt:
		return x < y;
	case DW_OP_le:
		return x <= y;
	case DW_OP_gt:
		return x > y;
	case DW_OP_ge:
		return x >= y;
	}
	m->bad = true;
	return 0;
}

static void rotate(struct machine *m)
{
	uint64_t a = pop(m), b = pop(m), c = pop(m);

	push(m, a);
	push(m, c);
	push(m, b);
}

static void swap(struct machine *m)
{
	uint64_t a = pop(m), b = pop(m);

	push(m, a);
	push(m, b);
}

static void other(struct machine *m, const Dwarf_Op *op)
{
	uint64_t b;

	switch (op->atom) {
	case DW_OP_dup:
		push(m, peek(m, 0));
		break;
	case DW_OP_over:
		push(m, peek(m, 1));
		break;
	case DW_OP_pick:
		push(m, peek(m, op->number));
		break;
	case DW_OP_drop:
		pop(m);
		break;
	case DW_OP_swap:
		swap(m);
		break;
	case DW_OP_rot:
		rotate(m);
		break;
	case DW_OP_abs:
		b = pop(m);
		push(m, (int64_t)b < 0 ? -b : b);
		break;
	case DW_OP_neg:
		push(m, -pop(m));
		break;
	case DW_OP_not:
		push(m, ~pop(m));
		break;
	case DW_OP_plus_uconst:
		push(m, pop(m) + op->number);
		break;
	case DW_OP_deref:
		deref(m, 8);
		break;
	case DW_OP_deref_size:
		deref(m, op->number);
		break;
	case DW_OP_call_frame_cfa:
		push(m, m->frame->cfa);
		break;
	case DW_OP_stack_value:
		m->value = true;
		break;
	case DW_OP_nop:
		break;
	default:
		b = pop(m);
		push(m, binary(m, op->atom, pop(m), b));
	}
}

static void execute(struct machine *m, const Dwarf_Op *op)
{
	uint8_t atom = op->atom;

	if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
		push(m, op->number);
	else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		push(m, atom - DW_OP_lit0);
	else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		push_reg(m, atom - DW_OP_breg0, op->number);
	else if (atom == DW_OP_bregx)
		push_reg(m, op->number, op->number2);
	else
		other(m, op);
}

/* The index of the op that a branch at ops[at] leads to, n for the end. If there is no such op, the
 * machine is marked bad. */
static size_t target(struct machine *m, const Dwarf_Op *ops, size_t n, size_t at)
{
	uint64_t offset = ops[at].offset + 3 + (int16_t)ops[at].number;

	for (size_t i = 0; i < n; i++)
		if (ops[i].offset == offset)
			return i;
	m->bad = true;
	return n;
}

bool dwarf_expr_evaluate(const Dwarf_Op *ops, size_t n, struct cfi_frame *frame, uint64_t *ret,
                         bool *ret_value)
{
	struct machine m = { .frame = frame };
	size_t at = 0;
	unsigned steps = 0;

	for (; at < n && !m.bad && steps < STEPS_MAX; steps++) {
		const Dwarf_Op *op = &ops[at];

		if (op->atom == DW_OP_skip || (op->atom == DW_OP_bra && pop(&m))) {
			at = target(&m, ops, n, at);
			continue;
		}
		if (op->atom != DW_OP_bra)
			execute(&m, op);
		at++;
	}
	if (m.bad || at < n || m.n == 0)
		return false;
	*ret = m.stack[m.n - 1];
	*ret_value = m.value;
	return true;
}
