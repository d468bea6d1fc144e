/* SPDX-License-Identifier: MIT */
/*
 * A worklist over basic blocks. Where two ways meet with different values in a register, the
 * register gets a value of that meeting's own. Should that not come to rest, nothing is known.
 */
#include "flow.h"

#include <capstone.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/codemap.h"
#include "launch/noreturn.h"

#define SLOTS      64     /* stack words that are followed */
#define STEPS_MAX  400000 /* instructions in all: twenty times the largest function of CPython */
#define BLOCKS_MAX 8000

enum node_type { NODE_NUMBER, NODE_ARG, NODE_LOAD, NODE_STACK, NODE_OTHER };

/* LOAD: the 8 bytes at {a, b}. ARG: number a. OTHER: what only place a, b tells from others. */
struct node {
	enum node_type type;
	uint64_t a;
	int64_t b;
};

struct stack_slot {
	int64_t off;
	struct flow_value value;
};

struct state {
	struct flow_value reg[FLOW_REGISTERS];
	struct stack_slot slots[SLOTS];
	unsigned slot_count;
	bool has_lock;
	struct flow_value lock;
	struct flow_value zeros[FLOW_ZEROS];
	unsigned zero_count;
};

/*
 * What comes into a block from one place. Only the latest counts: what an earlier visit left behind
 * would look like another way to get there.
 */
struct edge {
	uint64_t from;
	uint32_t next; /* edge into the same block, position + 1 */
	struct state state;
};

struct block {
	uint64_t address;
	uint64_t end; /* how far the last visit went */
	uint32_t edges;
	bool pending;
};

/* Open addressing: key to position in an array, 0 is free, else position + 1. */
struct table {
	uint64_t *keys;
	uint32_t *positions;
	size_t size, used;
};

struct flow_private {
	VEC(struct node) nodes;
	struct table by_content;
};

struct runner {
	const struct codemap *map;
	struct noreturn *noreturn;
	struct flow *flow;
	csh handle;
	cs_insn *insn;
	uint64_t start, end; /* of the function entered */
	VEC(struct block) blocks;
	VEC(struct edge) edges;
	struct table by_address;
	size_t pending;
	size_t steps;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
	return x ^ x >> 29;
}

/* The place of a key or, if it is not there, a free one. */
static uint32_t *table_find(struct table *t, uint64_t key)
{
	size_t i = mix(key) & (t->size - 1);

	while (t->positions[i] && t->keys[i] != key)
		i = (i + 1) & (t->size - 1);
	t->keys[i] = key;
	return &t->positions[i];
}

static void table_grow(struct table *t)
{
	struct table bigger = { .size = t->size ? 2 * t->size : 256, .used = t->used };

	bigger.keys = xcalloc(bigger.size, sizeof(*bigger.keys));
	bigger.positions = xcalloc(bigger.size, sizeof(*bigger.positions));
	for (size_t i = 0; i < t->size; i++)
		if (t->positions[i])
			*table_find(&bigger, t->keys[i]) = t->positions[i];
	free(t->keys);
	free(t->positions);
	*t = bigger;
}

/* Where the position of a key is to be found or put; 0 there means it is new. */
static uint32_t *table_slot(struct table *t, uint64_t key)
{
	if (2 * (t->used + 1) > t->size)
		table_grow(t);
	return table_find(t, key);
}

static void table_done(struct table *t)
{
	free(t->keys);
	free(t->positions);
}

/* Nodes of equal content are one. Should two contents collide, they merely stay apart. */
static struct flow_value node_value(struct flow *flow, enum node_type type, uint64_t a, int64_t b)
{
	struct flow_private *p = flow->priv;
	uint64_t key = mix(mix(mix(type + 1) + a) + (uint64_t)b);
	uint32_t *slot = table_slot(&p->by_content, key);
	const struct node *known = *slot ? &p->nodes.v[*slot - 1] : NULL;

	if (known && known->type == type && known->a == a && known->b == b)
		return (struct flow_value){ *slot - 1, 0 };
	p->by_content.used += !*slot;
	*vec_push(&p->nodes) = (struct node){ type, a, b };
	*slot = (uint32_t)p->nodes.n;
	return (struct flow_value){ *slot - 1, 0 };
}

static struct flow_value number(uint64_t n)
{
	return (struct flow_value){ 0, (int64_t)n };
}

static bool is_number(struct flow_value v)
{
	return v.node == 0;
}

/* A value nothing is known of but where it came from. */
static struct flow_value other(struct runner *r, uint64_t place, int64_t which)
{
	return node_value(r->flow, NODE_OTHER, place, which);
}

static bool on_stack(const struct runner *r, struct flow_value address)
{
	return r->flow->priv->nodes.v[address.node].type == NODE_STACK;
}

static struct stack_slot *find_slot(struct state *s, int64_t off)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].off == off)
			return &s->slots[i];
	return NULL;
}

static void forget_slot(struct state *s, int64_t off)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].off > off - 8 && s->slots[i].off < off + 8)
			s->slots[i--] = s->slots[--s->slot_count];
}

static void store(struct runner *r, struct state *s, struct flow_value address,
                  struct flow_value value, unsigned size)
{
	if (on_stack(r, address)) {
		forget_slot(s, address.off);
		if (size == 8 && s->slot_count < SLOTS)
			s->slots[s->slot_count++] = (struct stack_slot){ address.off, value };
	} else if (size == 4 && is_number(value) && value.off == 0 && s->zero_count < FLOW_ZEROS) {
		s->zeros[s->zero_count++] = address;
	}
}

static struct flow_value load(struct runner *r, struct state *s, struct flow_value address)
{
	uint64_t value;

	if (on_stack(r, address)) {
		const struct stack_slot *slot = find_slot(s, address.off);

		return slot ? slot->value : other(r, r->insn->address, 100);
	}
	if (is_number(address) && codemap_relocated(r->map, (uint64_t)address.off, &value))
		return number(value);
	return node_value(r->flow, NODE_LOAD, address.node, address.off);
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

static struct flow_value effective_address(struct runner *r, const struct state *s,
                                           const x86_op_mem *mem)
{
	struct flow_value base;
	unsigned size;
	int index;

	if (mem->segment != X86_REG_INVALID || mem->index != X86_REG_INVALID)
		return other(r, r->insn->address, 101);
	if (mem->base == X86_REG_RIP)
		return number(r->insn->address + r->insn->size + (uint64_t)mem->disp);
	if (mem->base == X86_REG_INVALID)
		return number((uint64_t)mem->disp);
	index = register_index(mem->base, &size);
	if (index < 0)
		return other(r, r->insn->address, 102);
	base = s->reg[index];
	base.off += mem->disp;
	return base;
}

static struct flow_value read_operand(struct runner *r, struct state *s, const cs_x86_op *op)
{
	unsigned size;
	int index;

	switch (op->type) {
	case X86_OP_IMM:
		return number(op->size == 4 ? (uint32_t)op->imm : (uint64_t)op->imm);
	case X86_OP_REG:
		index = register_index(op->reg, &size);
		if (index >= 0 && (size == 8 || is_number(s->reg[index])))
			return s->reg[index];
		return other(r, r->insn->address, 103);
	case X86_OP_MEM:
		if (op->size == 8)
			return load(r, s, effective_address(r, s, &op->mem));
		return other(r, r->insn->address, 104);
	default:
		return other(r, r->insn->address, 105);
	}
}

/* Everything the instruction changes and that is not understood gets a value of its own. */
static void clobber(struct runner *r, struct state *s)
{
	cs_regs read, written;
	uint8_t reads = 0, writes = 0;

	if (cs_regs_access(r->handle, r->insn, read, &reads, written, &writes) != CS_ERR_OK)
		return;
	for (uint8_t i = 0; i < writes; i++) {
		int index = parent_register(r->handle, written[i]);

		if (index >= 0)
			s->reg[index] = other(r, r->insn->address, index);
	}
}

static void do_move(struct runner *r, struct state *s, const cs_x86 *x86)
{
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	unsigned size;
	int index;

	if (to->type == X86_OP_MEM) {
		store(r, s, effective_address(r, s, &to->mem), read_operand(r, s, from), to->size);
		return;
	}
	index = to->type == X86_OP_REG ? register_index(to->reg, &size) : -1;
	if (index < 0) {
		clobber(r, s);
		return;
	}
	s->reg[index] = read_operand(r, s, from);
}

static void do_lea(struct runner *r, struct state *s, const cs_x86 *x86)
{
	unsigned size;
	int index = register_index(x86->operands[0].reg, &size);

	if (index >= 0 && size == 8)
		s->reg[index] = effective_address(r, s, &x86->operands[1].mem);
	else
		clobber(r, s);
}

static void do_add(struct runner *r, struct state *s, const cs_x86 *x86, int sign)
{
	const cs_x86_op *to = &x86->operands[0], *by = &x86->operands[1];
	unsigned size = 0;
	int index = to->type == X86_OP_REG ? register_index(to->reg, &size) : -1;

	if (index >= 0 && size == 8 && by->type == X86_OP_IMM)
		s->reg[index].off += sign * by->imm;
	else
		clobber(r, s);
}

static void do_xor(struct runner *r, struct state *s, const cs_x86 *x86)
{
	const cs_x86_op *a = &x86->operands[0], *b = &x86->operands[1];
	unsigned size;
	int index = a->type == X86_OP_REG ? register_index(a->reg, &size) : -1;

	if (index >= 0 && b->type == X86_OP_REG && a->reg == b->reg)
		s->reg[index] = number(0);
	else
		clobber(r, s);
}

#define SP 4

static void do_push(struct runner *r, struct state *s, const cs_x86 *x86)
{
	struct flow_value value = read_operand(r, s, &x86->operands[0]);

	s->reg[SP].off -= 8;
	store(r, s, s->reg[SP], value, 8);
}

static void do_pop(struct runner *r, struct state *s, const cs_x86 *x86)
{
	struct flow_value value = load(r, s, s->reg[SP]);
	unsigned size;
	int index = register_index(x86->operands[0].reg, &size);

	s->reg[SP].off += 8;
	if (index >= 0)
		s->reg[index] = value;
}

/* The registers that a callee may change; and memory it can reach, which is not followed. */
static void after_call(struct runner *r, struct state *s)
{
	static const int volatiles[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };

	for (size_t i = 0; i < sizeof(volatiles) / sizeof(*volatiles); i++)
		s->reg[volatiles[i]] = other(r, r->insn->address, volatiles[i]);
}

static struct flow_call *call_at(struct flow *flow, uint64_t address)
{
	for (size_t i = 0; i < flow->calls.n; i++)
		if (flow->calls.v[i].address == address)
			return &flow->calls.v[i];
	*vec_push(&flow->calls) = (struct flow_call){ .address = address };
	return &flow->calls.v[flow->calls.n - 1];
}

/* The last visit counts: it has what is true on all ways that lead here. */
static void record_call(struct runner *r, struct state *s, uint64_t target, const char *import)
{
	struct flow_call *call = call_at(r->flow, r->insn->address);

	call->next = r->insn->address + r->insn->size;
	call->target = target;
	call->import = import;
	memcpy(call->reg, s->reg, sizeof(call->reg));
	call->has_lock = s->has_lock;
	call->lock = s->lock;
	memcpy(call->zeros, s->zeros, sizeof(call->zeros));
	call->zero_count = s->zero_count;
	if (import && !strcmp(import, "pthread_mutex_lock")) {
		s->has_lock = true;
		s->lock = s->reg[FLOW_DI];
		s->zero_count = 0;
	}
}

/* The target of a direct branch, or the import behind an indirect one. */
static uint64_t branch_target(const struct runner *r, const char **ret_import)
{
	const cs_x86_op *op = &r->insn->detail->x86.operands[0];
	uint64_t at;

	*ret_import = NULL;
	if (op->type == X86_OP_IMM) {
		*ret_import = codemap_import(r->map, (uint64_t)op->imm);
		return codemap_resolve(r->map, (uint64_t)op->imm);
	}
	if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP) {
		at = r->insn->address + r->insn->size + (uint64_t)op->mem.disp;
		*ret_import = codemap_import(r->map, at);
	}
	return 0;
}

/* Values that met at one place, so that what kept its distance from one of them keeps it. */
struct meeting {
	struct runner *r;
	uint64_t place;
	struct {
		struct flow_value a, b, met;
	} pairs[FLOW_REGISTERS + SLOTS];
	unsigned count;
};

static struct flow_value meet(struct meeting *m, struct flow_value a, struct flow_value b,
                              int64_t which)
{
	struct flow_value met;

	if (flow_same(a, b))
		return a;
	for (unsigned i = 0; i < m->count; i++) {
		int64_t distance = a.off - m->pairs[i].a.off;

		if (m->pairs[i].a.node != a.node || m->pairs[i].b.node != b.node ||
		    b.off - m->pairs[i].b.off != distance)
			continue;
		met = m->pairs[i].met;
		met.off += distance;
		return met;
	}
	met = other(m->r, m->place, which);
	m->pairs[m->count].a = a;
	m->pairs[m->count].b = b;
	m->pairs[m->count++].met = met;
	return met;
}

/* Only what both have in it is known. */
static void merge_slots(struct meeting *m, struct state *into, const struct state *from)
{
	for (unsigned i = 0; i < into->slot_count; i++) {
		struct stack_slot *slot = &into->slots[i];
		unsigned k = 0;

		while (k < from->slot_count && from->slots[k].off != slot->off)
			k++;
		if (k < from->slot_count)
			slot->value = meet(m, slot->value, from->slots[k].value, 10000 + slot->off);
		else
			into->slots[i--] = into->slots[--into->slot_count];
	}
}

static bool has_zero(const struct state *s, struct flow_value address)
{
	for (unsigned i = 0; i < s->zero_count; i++)
		if (flow_same(s->zeros[i], address))
			return true;
	return false;
}

static void merge_zeros(struct state *into, const struct state *from)
{
	for (unsigned i = 0; i < into->zero_count; i++)
		if (!has_zero(from, into->zeros[i]))
			into->zeros[i--] = into->zeros[--into->zero_count];
}

static void merge(struct runner *r, uint64_t place, struct state *into, const struct state *from)
{
	struct meeting m = { .r = r, .place = place };

	for (int i = 0; i < FLOW_REGISTERS; i++)
		into->reg[i] = meet(&m, into->reg[i], from->reg[i], 1000 + i);
	merge_slots(&m, into, from);
	into->has_lock &= from->has_lock && flow_same(into->lock, from->lock);
	merge_zeros(into, from);
}

static bool same_slots(const struct state *a, const struct state *b)
{
	if (a->slot_count != b->slot_count)
		return false;
	for (unsigned i = 0; i < a->slot_count; i++) {
		bool found = false;

		for (unsigned k = 0; k < b->slot_count; k++)
			found |= a->slots[i].off == b->slots[k].off &&
			         flow_same(a->slots[i].value, b->slots[k].value);
		if (!found)
			return false;
	}
	return true;
}

static bool same_state(const struct state *a, const struct state *b)
{
	for (int i = 0; i < FLOW_REGISTERS; i++)
		if (!flow_same(a->reg[i], b->reg[i]))
			return false;
	if (a->has_lock != b->has_lock || (a->has_lock && !flow_same(a->lock, b->lock)) ||
	    a->zero_count != b->zero_count)
		return false;
	for (unsigned i = 0; i < a->zero_count; i++)
		if (!has_zero(b, a->zeros[i]))
			return false;
	return same_slots(a, b);
}

static void wake(struct runner *r, struct block *block)
{
	r->pending += !block->pending;
	block->pending = true;
}

/* A block that ran through here ends here from now on. */
static void split_blocks(struct runner *r, uint64_t address)
{
	for (size_t i = 0; i < r->blocks.n; i++)
		if (r->blocks.v[i].address < address && r->blocks.v[i].end > address)
			wake(r, &r->blocks.v[i]);
}

static struct block *block_at(struct runner *r, uint64_t address)
{
	uint32_t *slot = table_slot(&r->by_address, address);

	if (*slot)
		return &r->blocks.v[*slot - 1];
	if (r->blocks.n == BLOCKS_MAX)
		return NULL;
	r->by_address.used++;
	*slot = (uint32_t)r->blocks.n + 1;
	split_blocks(r, address);
	*vec_push(&r->blocks) = (struct block){ .address = address };
	return &r->blocks.v[r->blocks.n - 1];
}

static void go_to(struct runner *r, uint64_t from, uint64_t address, const struct state *state)
{
	struct block *block = block_at(r, address);

	for (uint32_t e = block ? block->edges : 0; e; e = r->edges.v[e - 1].next) {
		struct edge *edge = &r->edges.v[e - 1];

		if (edge->from != from)
			continue;
		if (!same_state(&edge->state, state)) {
			edge->state = *state;
			wake(r, block);
		}
		return;
	}
	if (!block)
		return;
	*vec_push(&r->edges) = (struct edge){ .from = from, .next = block->edges, .state = *state };
	block->edges = (uint32_t)r->edges.n;
	wake(r, block);
}

/* All that comes into a block, as one. */
static void enter(struct runner *r, const struct block *block, struct state *ret)
{
	uint32_t e = block->edges;

	*ret = r->edges.v[e - 1].state;
	while ((e = r->edges.v[e - 1].next))
		merge(r, block->address, ret, &r->edges.v[e - 1].state);
}

/* A jump out of the function: to a part of it that the compiler moved away, or to another function
 * instead of calling it. Nobody jumps conditionally, or into the middle, of another function. */
static bool stays_inside(const struct runner *r, uint64_t target, bool conditional)
{
	uint64_t start, end;

	if (target >= r->start && target < r->end)
		return true;
	return conditional || !codemap_function(r->map, target, &start, &end) || start != target;
}

/* Do one instruction that is no branch. */
static void step(struct runner *r, struct state *s)
{
	const cs_x86 *x86 = &r->insn->detail->x86;

	switch (r->insn->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		do_move(r, s, x86);
		break;
	case X86_INS_LEA:
		do_lea(r, s, x86);
		break;
	case X86_INS_ADD:
		do_add(r, s, x86, 1);
		break;
	case X86_INS_SUB:
		do_add(r, s, x86, -1);
		break;
	case X86_INS_XOR:
		do_xor(r, s, x86);
		break;
	case X86_INS_PUSH:
		do_push(r, s, x86);
		break;
	case X86_INS_POP:
		do_pop(r, s, x86);
		break;
	default:
		clobber(r, s);
	}
}

/* Do a branch; whether what follows it is reached. */
static bool branch(struct runner *r, struct state *s)
{
	bool conditional = r->insn->id != X86_INS_JMP;
	const char *import;
	uint64_t target = branch_target(r, &import);

	if (r->insn->id == X86_INS_CALL) {
		record_call(r, s, target, import);
		after_call(r, s);
		if (import)
			return !noreturn_import(import);
		return !target || !noreturn_function(r->noreturn, target);
	}
	if (import || (target && !stays_inside(r, target, conditional)))
		record_call(r, s, target, import);
	else if (target)
		go_to(r, r->insn->address, target, s);
	return conditional;
}

static bool is_branch(const struct runner *r)
{
	return cs_insn_group(r->handle, r->insn, CS_GRP_JUMP) || r->insn->id == X86_INS_CALL;
}

static bool is_end(const struct runner *r)
{
	return cs_insn_group(r->handle, r->insn, CS_GRP_RET) || r->insn->id == X86_INS_UD2 ||
	       r->insn->id == X86_INS_HLT || r->insn->id == X86_INS_INT3;
}

static bool is_leader(struct runner *r, uint64_t address)
{
	return *table_slot(&r->by_address, address) != 0;
}

/* From a block's beginning to its end, which is where another begins or the code goes elsewhere.
 * Returns the address there. */
static uint64_t run_block(struct runner *r, uint64_t address, struct state *s)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(r->map, address, 1u << 20, &len);
	uint64_t first = address, start, end = UINT64_MAX;

	codemap_function(r->map, address, &start, &end);
	while (code && address < end && r->steps++ < STEPS_MAX &&
	       cs_disasm_iter(r->handle, &code, &len, &address, r->insn)) {
		if (is_end(r))
			return address;
		if (!is_branch(r)) {
			step(r, s);
		} else if (!branch(r, s)) {
			return address;
		} else if (r->insn->id != X86_INS_CALL) {
			go_to(r, r->insn->address, address, s);
			return address;
		}
		if (address != first && is_leader(r, address)) {
			go_to(r, r->insn->address, address, s);
			return address;
		}
	}
	return address;
}

static void run_all(struct runner *r)
{
	struct state *s = xcalloc(1, sizeof(*s));

	while (r->pending && r->steps < STEPS_MAX)
		for (size_t i = 0; i < r->blocks.n; i++) {
			uint64_t end;

			if (!r->blocks.v[i].pending)
				continue;
			r->blocks.v[i].pending = false;
			r->pending--;
			enter(r, &r->blocks.v[i], s);
			end = run_block(r, r->blocks.v[i].address, s);
			r->blocks.v[i].end = end;
		}
	free(s);
	/* What is still in motion is not known. */
	if (r->pending)
		vec_done(&r->flow->calls);
}

static void begin(struct runner *r, uint64_t entry, bool known)
{
	static const int arguments[] = { 7, 6, 2, 1, 8, 9 };
	struct state *s = xcalloc(1, sizeof(*s));

	for (int i = 0; i < FLOW_REGISTERS; i++)
		s->reg[i] = other(r, entry, i);
	s->reg[SP] = node_value(r->flow, NODE_STACK, 0, 0);
	for (unsigned i = 0; known && i < sizeof(arguments) / sizeof(*arguments); i++)
		s->reg[arguments[i]] = node_value(r->flow, NODE_ARG, i + 1, 0);
	go_to(r, 0, entry, s);
	free(s);
}

static int calls_by_address(const void *a, const void *b)
{
	const struct flow_call *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

struct flow *flow_run(const struct codemap *map, struct noreturn *noreturn, uint64_t entry,
                      bool known)
{
	struct flow *flow = xcalloc(1, sizeof(*flow));
	struct runner r = { .map = map, .noreturn = noreturn, .flow = flow };

	flow->priv = xcalloc(1, sizeof(*flow->priv));
	*vec_push(&flow->priv->nodes) = (struct node){ NODE_NUMBER, 0, 0 };
#ifdef __x86_64__
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &r.handle) != CS_ERR_OK)
		return flow;
	cs_option(r.handle, CS_OPT_DETAIL, CS_OPT_ON);
	r.insn = cs_malloc(r.handle);
	if (r.insn && codemap_function(map, entry, &r.start, &r.end)) {
		begin(&r, entry, known);
		run_all(&r);
	}
	if (r.insn)
		cs_free(r.insn, 1);
	cs_close(&r.handle);
#endif
	vec_done(&r.blocks);
	vec_done(&r.edges);
	table_done(&r.by_address);
	if (flow->calls.n)
		qsort(flow->calls.v, flow->calls.n, sizeof(*flow->calls.v), calls_by_address);
	return flow;
}

uint64_t flow_chunk(const struct codemap *map, uint64_t start, uint64_t address)
{
	uint64_t chunk = start;
#ifdef __x86_64__
	struct runner r = { .map = map };
	size_t len = 0;
	const uint8_t *code = codemap_bytes(map, start, address - start, &len);
	uint64_t here = start;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &r.handle) != CS_ERR_OK)
		return start;
	cs_option(r.handle, CS_OPT_DETAIL, CS_OPT_ON);
	r.insn = cs_malloc(r.handle);
	while (r.insn && code && here < address &&
	       cs_disasm_iter(r.handle, &code, &len, &here, r.insn))
		if (is_end(&r) || r.insn->id == X86_INS_JMP)
			chunk = here;
	if (r.insn)
		cs_free(r.insn, 1);
	cs_close(&r.handle);
#else
	(void)map;
	(void)address;
#endif
	return chunk;
}

void flow_free(struct flow *flow)
{
	if (!flow)
		return;
	vec_done(&flow->calls);
	vec_done(&flow->priv->nodes);
	table_done(&flow->priv->by_content);
	free(flow->priv);
	free(flow);
}

const struct flow_call *flow_at(const struct flow *flow, uint64_t address)
{
	for (size_t i = 0; i < flow->calls.n; i++)
		if (flow->calls.v[i].address == address)
			return &flow->calls.v[i];
	return NULL;
}

char *flow_expression(const struct flow *flow, struct flow_value value)
{
	CLEANUP(str_done) struct str text = { 0 };
	const struct node *node = &flow->priv->nodes.v[value.node];
	unsigned depth = 0;

	if (value.off)
		return NULL;
	while (node->type == NODE_LOAD) {
		if (node->b < 0)
			return NULL;
		str_addf(&text, "+0x%llx(", (unsigned long long)node->b);
		depth++;
		node = &flow->priv->nodes.v[node->a];
	}
	if (node->type != NODE_ARG || node->a > 4)
		return NULL;
	str_addf(&text, "arg%u", (unsigned)node->a);
	while (depth--)
		str_addc(&text, ')');
	return str_take(&text);
}

int flow_depth(const struct flow *flow, struct flow_value value)
{
	const struct node *node = &flow->priv->nodes.v[value.node];
	int depth = 0;

	for (; node->type == NODE_LOAD; depth++)
		node = &flow->priv->nodes.v[node->a];
	return node->type == NODE_ARG ? depth : -1;
}
