/* SPDX-License-Identifier: MIT */
/*
 * A worklist over basic blocks. A block begins where a jump leads, and is run on all that comes
 * into it, as one; what comes out of it goes to the next, and if that is news to them, they are run
 * again. Should that not come to rest, nothing is known.
 *
 * flow_value.c has what is computed with, flow_state.c what is known at one place and how two of
 * those are put together, flow_step.c what an instruction does.
 */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "launch/addrtable.h"
#include "launch/codemap.h"
#include "launch/flow_state.h"
#include "launch/flow_step.h"
#include "launch/flow_value.h"
#include "launch/noreturn.h"

#define STEPS_MAX  400000 /* instructions in all: twenty times the largest function of CPython */
#define BLOCKS_MAX 8000

/*
 * What comes into a block from one place. Only the latest counts: what an earlier visit left behind
 * would look like another way to get there.
 */
struct edge {
	uint64_t from;
	uint32_t next; /* edge into the same block, position + 1 */
	struct flow_state state;
};

struct block {
	uint64_t address;
	uint64_t end; /* how far the last visit went */
	uint32_t edges;
	bool pending;
};

struct runner {
	struct flow_machine m;
	struct noreturn *noreturn;
	struct flow *flow;
	uint64_t start, end; /* of the function entered */
	VEC(struct block) blocks;
	VEC(struct edge) edges;
	struct addrtable by_address;
	size_t pending;
	size_t steps;
};

static struct flow_call *call_at(struct flow *flow, uint64_t address)
{
	for (size_t i = 0; i < flow->calls.n; i++)
		if (flow->calls.v[i].address == address)
			return &flow->calls.v[i];
	*vec_push(&flow->calls) = (struct flow_call){ .address = address };
	return &flow->calls.v[flow->calls.n - 1];
}

/* The last visit counts: it has what is true on all ways that lead here. */
static void record_call(struct runner *r, struct flow_state *s, uint64_t target, const char *import)
{
	struct flow_call *call = call_at(r->flow, r->m.insn->address);

	call->next = r->m.insn->address + r->m.insn->size;
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
	uint32_t *slot = addrtable_slot(&r->by_address, address);

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

static void go_to(struct runner *r, uint64_t from, uint64_t address, const struct flow_state *state)
{
	struct block *block = block_at(r, address);

	for (uint32_t e = block ? block->edges : 0; e; e = r->edges.v[e - 1].next) {
		struct edge *edge = &r->edges.v[e - 1];

		if (edge->from != from)
			continue;
		if (!flow_state_same(&edge->state, state)) {
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
static void enter(struct runner *r, const struct block *block, struct flow_state *ret)
{
	uint32_t e = block->edges;

	*ret = r->edges.v[e - 1].state;
	while ((e = r->edges.v[e - 1].next))
		flow_state_merge(ret, r->m.values, block->address, &r->edges.v[e - 1].state);
}

/* A jump out of the function: to a part of it that the compiler moved away, or to another function
 * instead of calling it. Nobody jumps conditionally, or into the middle, of another function. */
static bool stays_inside(const struct runner *r, uint64_t target, bool conditional)
{
	uint64_t start, end;

	if (target >= r->start && target < r->end)
		return true;
	return conditional || !codemap_function(r->m.map, target, &start, &end) || start != target;
}

/* Do a branch; whether what follows it is reached. */
static bool branch(struct runner *r, struct flow_state *s)
{
	bool conditional = r->m.insn->id != X86_INS_JMP;
	const char *import;
	uint64_t target = flow_branch_target(&r->m, &import);

	if (r->m.insn->id == X86_INS_CALL) {
		record_call(r, s, target, import);
		flow_after_call(&r->m, s);
		if (import)
			return !noreturn_import(import);
		return !target || !noreturn_function(r->noreturn, target);
	}
	if (import || (target && !stays_inside(r, target, conditional)))
		record_call(r, s, target, import);
	else if (target)
		go_to(r, r->m.insn->address, target, s);
	return conditional;
}

static bool is_leader(struct runner *r, uint64_t address)
{
	return *addrtable_slot(&r->by_address, address) != 0;
}

static void end_way(struct runner *r, const struct flow_state *s)
{
	if (r->m.insn->id == X86_INS_RET && flow_on_stack(r->m.values, s->reg[FLOW_SP]))
		r->flow->unbalanced |= s->reg[FLOW_SP].off != 0;
}

/* From a block's beginning to its end, which is where another begins or the code goes elsewhere.
 * Returns the address there. */
static uint64_t run_block(struct runner *r, uint64_t address, struct flow_state *s)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(r->m.map, address, 1u << 20, &len);
	uint64_t first = address, start, end = UINT64_MAX;

	codemap_function(r->m.map, address, &start, &end);
	while (code && address < end && r->steps++ < STEPS_MAX &&
	       cs_disasm_iter(r->m.handle, &code, &len, &address, r->m.insn)) {
		if (flow_is_end(&r->m)) {
			end_way(r, s);
			return address;
		}
		if (!flow_is_branch(&r->m)) {
			flow_step(&r->m, s);
		} else if (!branch(r, s)) {
			return address;
		} else if (r->m.insn->id != X86_INS_CALL) {
			go_to(r, r->m.insn->address, address, s);
			return address;
		}
		if (address != first && is_leader(r, address)) {
			go_to(r, r->m.insn->address, address, s);
			return address;
		}
	}
	return address;
}

static void run_all(struct runner *r)
{
	struct flow_state *s = xcalloc(1, sizeof(*s));

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
	struct flow_state *s = xcalloc(1, sizeof(*s));

	for (int i = 0; i < FLOW_REGISTERS; i++)
		s->reg[i] = flow_value_of(r->m.values, FLOW_UNKNOWN, entry, i);
	s->reg[FLOW_SP] = flow_value_of(r->m.values, FLOW_STACK, 0, 0);
	for (unsigned i = 0; known && i < sizeof(arguments) / sizeof(*arguments); i++)
		s->reg[arguments[i]] = flow_value_of(r->m.values, FLOW_ARG, i + 1, 0);
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
	struct runner r = { .noreturn = noreturn, .flow = flow };

	flow->values = flow_values_new();
	if (flow_machine_open(&r.m, map, flow->values) &&
	    codemap_function(map, entry, &r.start, &r.end)) {
		begin(&r, entry, known);
		run_all(&r);
	}
	flow_machine_close(&r.m);
	vec_done(&r.blocks);
	vec_done(&r.edges);
	addrtable_done(&r.by_address);
	if (flow->calls.n)
		qsort(flow->calls.v, flow->calls.n, sizeof(*flow->calls.v), calls_by_address);
	return flow;
}

uint64_t flow_chunk(const struct codemap *map, uint64_t start, uint64_t address)
{
	uint64_t chunk = start, here = start;
	struct flow_machine m;
	size_t len = 0;
	const uint8_t *code = codemap_bytes(map, start, address - start, &len);

	if (flow_machine_open(&m, map, NULL))
		while (code && here < address &&
		       cs_disasm_iter(m.handle, &code, &len, &here, m.insn))
			if (flow_is_end(&m) || m.insn->id == X86_INS_JMP)
				chunk = here;
	flow_machine_close(&m);
	return chunk;
}

void flow_free(struct flow *flow)
{
	if (!flow)
		return;
	vec_done(&flow->calls);
	flow_values_free(flow->values);
	free(flow);
}

const struct flow_call *flow_at(const struct flow *flow, uint64_t address)
{
	for (size_t i = 0; i < flow->calls.n; i++)
		if (flow->calls.v[i].address == address)
			return &flow->calls.v[i];
	return NULL;
}
