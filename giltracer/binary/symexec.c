/* SPDX-License-Identifier: MIT */
/*
 * A worklist over basic blocks. A block begins at the target of a jump. It is run on the merged
 * state of all edges into it; its result goes to the next blocks, which are run again if that
 * changes their state. If the states do not converge, nothing is known.
 *
 * symexec_value.c has the values, symexec_state.c the state at one place and the merging of two
 * states, symexec_step.c the effect of an instruction.
 */
#include "binary/symexec.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "binary/codemap.h"
#include "binary/symexec_state.h"
#include "binary/symexec_step.h"
#include "binary/symexec_value.h"
#include "binary/noreturn.h"

#define STEPS_MAX  400000 /* instructions in all: twenty times the largest function of CPython */
#define BLOCKS_MAX 8000

/* See codemap_spend. A run opens a disassembler, a step disassembles an instruction, an edge is a
 * state to be merged. */
#define COST_RUN  50000
#define COST_STEP 300
#define COST_EDGE 1000

/* The state that enters a block from one place: only the latest, because that of an earlier visit
 * would count as another path to the block. */
struct edge {
	uint64_t from;
	uint32_t next; /* edge into the same block, position + 1 */
	struct symexec_state state;
};

struct block {
	uint64_t address;
	uint64_t end; /* the address at which the last visit ended */
	uint32_t edges;
	bool pending;
};

struct runner {
	struct symexec_machine m;
	struct noreturn *noreturn;
	struct symexec *run;
	uint64_t start, end; /* of the function entered */
	VEC(struct block) blocks;
	VEC(struct edge) edges;
	struct idmap by_address, call_index;
	size_t pending;
	size_t steps;
};

static struct symexec_call *call_at(struct runner *r, uint64_t address)
{
	uint32_t at;

	if (idmap_add(&r->call_index, address, (uint32_t)r->run->calls.n, &at))
		*vec_push(&r->run->calls) = (struct symexec_call){ .address = address };
	return &r->run->calls.v[at];
}

/* The last visit counts, because its state is true on all paths to the call. */
static void record_call(struct runner *r, struct symexec_state *s, uint64_t target,
                        const char *import)
{
	struct symexec_call *call = call_at(r, r->m.insn->address);

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
		s->lock = s->reg[SYMEXEC_DI];
		s->zero_count = 0;
	}
}

static void wake(struct runner *r, struct block *block)
{
	r->pending += !block->pending;
	block->pending = true;
}

/* Blocks that contain this address now end here, so they must be run again. */
static void split_blocks(struct runner *r, uint64_t address)
{
	codemap_spend(r->m.map, r->blocks.n);
	for (size_t i = 0; i < r->blocks.n; i++)
		if (r->blocks.v[i].address < address && r->blocks.v[i].end > address)
			wake(r, &r->blocks.v[i]);
}

static struct block *block_at(struct runner *r, uint64_t address)
{
	uint32_t known = idmap_get(&r->by_address, address);

	if (known != IDMAP_NONE)
		return &r->blocks.v[known];
	if (r->blocks.n == BLOCKS_MAX)
		return NULL;
	idmap_set(&r->by_address, address, (uint32_t)r->blocks.n);
	split_blocks(r, address);
	*vec_push(&r->blocks) = (struct block){ .address = address };
	return &r->blocks.v[r->blocks.n - 1];
}

static void go_to(struct runner *r, uint64_t from, uint64_t address,
                  const struct symexec_state *state)
{
	struct block *block = block_at(r, address);

	for (uint32_t e = block ? block->edges : 0; e; e = r->edges.v[e - 1].next) {
		struct edge *edge = &r->edges.v[e - 1];

		codemap_spend(r->m.map, 1);
		if (edge->from != from)
			continue;
		if (!symexec_state_same(&edge->state, state)) {
			edge->state = *state;
			wake(r, block);
		}
		return;
	}
	if (!block)
		return;
	codemap_spend(r->m.map, COST_EDGE);
	*vec_push(&r->edges) = (struct edge){ .from = from, .next = block->edges, .state = *state };
	block->edges = (uint32_t)r->edges.n;
	wake(r, block);
}

/* The merged state of all edges into a block. */
static void enter(struct runner *r, const struct block *block, struct symexec_state *ret)
{
	uint32_t e = block->edges;

	*ret = r->edges.v[e - 1].state;
	while ((e = r->edges.v[e - 1].next) && codemap_spend(r->m.map, COST_EDGE))
		symexec_state_merge(ret, r->m.values, block->address, &r->edges.v[e - 1].state);
}

/*
 * Whether a jump stays in the function or in a part of it that the compiler moved elsewhere; else
 * it is a tail call. Compilers emit no conditional tail calls, and none into the middle of a
 * function.
 */
static bool stays_inside(const struct runner *r, uint64_t target, bool conditional)
{
	uint64_t start, end;

	if (target >= r->start && target < r->end)
		return true;
	return conditional || !codemap_function(r->m.map, target, &start, &end) || start != target;
}

/* Executes a branch; returns whether the next instruction is reached. */
static bool branch(struct runner *r, struct symexec_state *s)
{
	bool conditional = r->m.insn->id != X86_INS_JMP;
	const char *import;
	uint64_t target = symexec_branch_target(&r->m, &import);

	if (r->m.insn->id == X86_INS_CALL) {
		record_call(r, s, target, import);
		symexec_after_call(&r->m, s);
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
	return idmap_get(&r->by_address, address) != IDMAP_NONE;
}

static void end_way(struct runner *r, const struct symexec_state *s)
{
	if (r->m.insn->id == X86_INS_RET && symexec_on_stack(r->m.values, s->reg[SYMEXEC_SP]))
		r->run->unbalanced |= s->reg[SYMEXEC_SP].off != 0;
}

/*
 * Runs a block to its end, where another block begins or the code branches. Returns that address.
 */
static uint64_t run_block(struct runner *r, uint64_t address, struct symexec_state *s)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(r->m.map, address, 1u << 20, &len);
	uint64_t first = address, start, end = UINT64_MAX;

	codemap_function(r->m.map, address, &start, &end);
	while (code && address < end && r->steps++ < STEPS_MAX &&
	       codemap_spend(r->m.map, COST_STEP) &&
	       cs_disasm_iter(r->m.handle, &code, &len, &address, r->m.insn)) {
		if (symexec_is_end(&r->m)) {
			end_way(r, s);
			return address;
		}
		if (!symexec_is_branch(&r->m)) {
			symexec_step(&r->m, s);
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

static bool is_over(const struct runner *r)
{
	return r->steps >= STEPS_MAX || codemap_is_spent(r->m.map);
}

static void run_all(struct runner *r)
{
	struct symexec_state *s = xcalloc(1, sizeof(*s));

	while (r->pending && !is_over(r))
		for (size_t i = 0; i < r->blocks.n && !is_over(r); i++) {
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
	/* The states have not converged: nothing is known. */
	if (r->pending)
		vec_done(&r->run->calls);
}

static void begin(struct runner *r, uint64_t entry, bool known)
{
	static const int arguments[] = { 7, 6, 2, 1, 8, 9 };
	struct symexec_state *s = xcalloc(1, sizeof(*s));

	for (int i = 0; i < SYMEXEC_REGISTERS; i++)
		s->reg[i] = symexec_value_of(r->m.values, SYMEXEC_UNKNOWN, entry, i);
	s->reg[SYMEXEC_SP] = symexec_value_of(r->m.values, SYMEXEC_STACK, 0, 0);
	for (unsigned i = 0; known && i < sizeof(arguments) / sizeof(*arguments); i++)
		s->reg[arguments[i]] = symexec_value_of(r->m.values, SYMEXEC_ARG, i + 1, 0);
	go_to(r, 0, entry, s);
	free(s);
}

static int call_is_at(const void *key, const void *element)
{
	const uint64_t *address = key;
	const struct symexec_call *call = element;

	return (*address > call->address) - (*address < call->address);
}

static int calls_by_address(const void *a, const void *b)
{
	const struct symexec_call *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

struct symexec *symexec_run(const struct codemap *map, struct noreturn *noreturn, uint64_t entry,
                            bool known)
{
	struct symexec *run = xcalloc(1, sizeof(*run));
	struct runner r = { .noreturn = noreturn, .run = run };

	run->values = symexec_values_new();
	if (codemap_spend(map, COST_RUN) && symexec_machine_open(&r.m, map, run->values) &&
	    codemap_function(map, entry, &r.start, &r.end)) {
		begin(&r, entry, known);
		run_all(&r);
	}
	symexec_machine_close(&r.m);
	vec_done(&r.blocks);
	vec_done(&r.edges);
	idmap_done(&r.by_address);
	idmap_done(&r.call_index);
	vec_sort(&run->calls, calls_by_address);
	return run;
}

uint64_t symexec_chunk(const struct codemap *map, uint64_t start, uint64_t address)
{
	uint64_t chunk = start, here = start;
	struct symexec_machine m;
	size_t len = 0;
	const uint8_t *code = codemap_bytes(map, start, address - start, &len);

	if (symexec_machine_open(&m, map, NULL))
		while (code && here < address && codemap_spend(map, COST_STEP) &&
		       cs_disasm_iter(m.handle, &code, &len, &here, m.insn))
			if (symexec_is_end(&m) || m.insn->id == X86_INS_JMP)
				chunk = here;
	symexec_machine_close(&m);
	return chunk;
}

void symexec_free(struct symexec *run)
{
	if (!run)
		return;
	vec_done(&run->calls);
	symexec_values_free(run->values);
	free(run);
}

const struct symexec_call *symexec_at(const struct symexec *run, uint64_t address)
{
	return run->calls.n ? bsearch(&address, run->calls.v, run->calls.n, sizeof(*run->calls.v),
	                              call_is_at)
	                    : NULL;
}
