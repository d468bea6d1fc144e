/* SPDX-License-Identifier: MIT */
/*
 * A function returns if one of the paths through it reaches a ret, an indirect jump, or a jump to a
 * function that returns. When in doubt it returns: then a path is followed that does not exist,
 * which can hide a lock but not invent one.
 */
#include "binary/noreturn.h"

#include <capstone.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "binary/codemap.h"
#include "binary/x86.h"

#define DEPTH_MAX 6    /* nested calls */
#define STEPS_MAX 2000 /* instructions per function */
#define COST_STEP 200  /* per instruction, see codemap_spend */
#define COST_WALK 5000 /* per function */

struct noreturn {
	const struct codemap *map;
	csh handle;
	bool open;
	struct idmap known; /* address -> whether it returns */
};

/* A walk through one function: the paths still to follow, the addresses where paths began, and the
 * addresses at which they end. */
struct walk {
	VEC(uint64_t) todo;
	VEC(uint64_t) seen;
	const uint64_t *stops;
	size_t stop_count;
	unsigned steps;
};

bool noreturn_import(const char *name)
{
	static const char *const names[] = { "abort",        "exit",          "_exit",
		                             "pthread_exit", "__assert_fail", "__stack_chk_fail",
		                             "_Exit",        "quick_exit",    "__fortify_fail",
		                             "longjmp",      "siglongjmp",    "__longjmp_chk" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

struct noreturn *noreturn_new(const struct codemap *map)
{
	struct noreturn *n = xcalloc(1, sizeof(*n));

	n->map = map;
	n->open = cs_open(CS_ARCH_X86, CS_MODE_64, &n->handle) == CS_ERR_OK;
	return n;
}

void noreturn_free(struct noreturn *n)
{
	if (!n)
		return;
	if (n->open)
		cs_close(&n->handle);
	idmap_done(&n->known);
	free(n);
}

static void follow(struct walk *w, uint64_t address)
{
	for (size_t i = 0; i < w->seen.n; i++)
		if (w->seen.v[i] == address)
			return;
	*vec_push(&w->seen) = address;
	*vec_push(&w->todo) = address;
}

static bool returns(struct noreturn *n, uint64_t address, unsigned depth);

/* Whether a call of target returns; a jump out of the function is handled likewise. */
static bool target_returns(struct noreturn *n, uint64_t target, unsigned depth)
{
	const char *import = codemap_import(n->map, target);

	target = codemap_resolve(n->map, target);
	return import ? !noreturn_import(import) : returns(n, target, depth + 1);
}

enum next { NEXT_ON, NEXT_STOP, NEXT_RETURNS };

static enum next jump(struct noreturn *n, struct walk *w, uint64_t target, uint64_t function,
                      unsigned depth)
{
	uint64_t start, end;

	target = codemap_resolve(n->map, target);
	if (codemap_import(n->map, target))
		return target_returns(n, target, depth) ? NEXT_RETURNS : NEXT_STOP;
	if (!codemap_function(n->map, target, &start, &end))
		return NEXT_RETURNS;
	if (start == target && start != function)
		return target_returns(n, target, depth) ? NEXT_RETURNS : NEXT_STOP;
	follow(w, target);
	return NEXT_STOP;
}

static enum next one(struct noreturn *n, struct walk *w, const cs_insn *insn, uint64_t function,
                     unsigned depth)
{
	struct x86_branch b;
	bool direct = x86_branch_of(insn->bytes, insn->size, insn->address, &b) && !b.slot;

	if (insn->id == X86_INS_RET || insn->id == X86_INS_RETF)
		return NEXT_RETURNS;
	if (insn->id == X86_INS_UD2 || insn->id == X86_INS_HLT)
		return NEXT_STOP;
	if (direct && b.kind == X86_CALL)
		return target_returns(n, b.target, depth) ? NEXT_ON : NEXT_STOP;
	if (direct && b.kind == X86_JUMP)
		return jump(n, w, b.target, function, depth);
	if (insn->id == X86_INS_JMP)
		return NEXT_RETURNS;
	if (direct)
		follow(w, b.target);
	return NEXT_ON;
}

static bool is_stop(const struct walk *w, uint64_t address)
{
	for (size_t i = 0; i < w->stop_count; i++)
		if (w->stops[i] == address)
			return true;
	return false;
}

/* Follows one path to its end. Returns whether the function returns there. */
static bool walk_on(struct noreturn *n, struct walk *w, uint64_t address, uint64_t function,
                    unsigned depth, cs_insn *insn)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(n->map, address, 1u << 16, &len);
	uint64_t start, end = UINT64_MAX;
	enum next next;

	codemap_function(n->map, address, &start, &end);
	/* If code ends after a call, the compiler knew that the call does not return. */
	while (code && address < end && cs_disasm_iter(n->handle, &code, &len, &address, insn)) {
		if (is_stop(w, insn->address))
			return false;
		if (++w->steps > STEPS_MAX || !codemap_spend(n->map, COST_STEP))
			return true;
		next = one(n, w, insn, function, depth);
		if (next != NEXT_ON)
			return next == NEXT_RETURNS;
	}
	return address < end;
}

static bool walk_function(struct noreturn *n, struct walk *w, uint64_t address, unsigned depth)
{
	cs_insn *insn = cs_malloc(n->handle);
	bool found = !insn;

	follow(w, address);
	while (!found && w->todo.n)
		found = walk_on(n, w, w->todo.v[--w->todo.n], address, depth, insn);
	if (insn)
		cs_free(insn, 1);
	vec_done(&w->todo);
	vec_done(&w->seen);
	return found;
}

static bool returns(struct noreturn *n, uint64_t address, unsigned depth)
{
	struct walk w = { .steps = 0 };
	uint32_t at;
	bool found;

	at = idmap_get(&n->known, address);
	if (at != IDMAP_NONE)
		return at;
	if (depth > DEPTH_MAX || !n->open || !codemap_spend(n->map, COST_WALK))
		return true;
	/* A preliminary answer: a recursive function can only return on another path. */
	idmap_set(&n->known, address, true);
	found = walk_function(n, &w, address, depth);
	idmap_set(&n->known, address, found);
	return found;
}

bool noreturn_function(struct noreturn *n, uint64_t address)
{
	return !returns(n, address, 0);
}

bool noreturn_passes(struct noreturn *n, uint64_t function, const uint64_t *stops, size_t count)
{
	struct walk w = { .stops = stops, .stop_count = count };

	return n->open && count && !walk_function(n, &w, function, 0);
}
