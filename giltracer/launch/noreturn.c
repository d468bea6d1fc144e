/* SPDX-License-Identifier: MIT */
/*
 * A function returns if some way through it comes to a ret, to an indirect jump, or to a jump to a
 * function that returns. When in doubt it does: then a way is followed that does not exist, which
 * can hide a lock from us but never invent one.
 */
#include "noreturn.h"

#include <capstone.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "launch/codemap.h"

#define DEPTH_MAX 6    /* calls deep */
#define STEPS_MAX 2000 /* instructions of one function */

struct answer {
	uint64_t address;
	bool returns;
};

struct noreturn {
	const struct codemap *map;
	csh handle;
	bool open;
	VEC(struct answer) known;
};

/* The ways through one function that are still to be followed, where others began, and where they
 * are not followed further. */
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
	vec_done(&n->known);
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

static int64_t relative(const cs_insn *insn, unsigned at, unsigned size)
{
	int32_t wide = 0;

	if (size == 1)
		return (int8_t)insn->bytes[at];
	memcpy(&wide, insn->bytes + at, sizeof(wide));
	return wide;
}

static bool returns(struct noreturn *n, uint64_t address, unsigned depth);

/* Whether to go on behind a call, or to count a jump out of the function as coming back. */
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
	const uint8_t *b = insn->bytes;
	uint64_t next = insn->address + insn->size;

	if (insn->id == X86_INS_RET || insn->id == X86_INS_RETF)
		return NEXT_RETURNS;
	if (insn->id == X86_INS_UD2 || insn->id == X86_INS_HLT)
		return NEXT_STOP;
	if (b[0] == 0xe8)
		return target_returns(n, next + (uint64_t)relative(insn, 1, 4), depth) ? NEXT_ON
		                                                                       : NEXT_STOP;
	if (b[0] == 0xeb)
		return jump(n, w, next + (uint64_t)relative(insn, 1, 1), function, depth);
	if (b[0] == 0xe9)
		return jump(n, w, next + (uint64_t)relative(insn, 1, 4), function, depth);
	if (insn->id == X86_INS_JMP)
		return NEXT_RETURNS;
	if ((b[0] & 0xf0) == 0x70)
		follow(w, next + (uint64_t)relative(insn, 1, 1));
	else if (b[0] == 0x0f && (b[1] & 0xf0) == 0x80)
		follow(w, next + (uint64_t)relative(insn, 2, 4));
	return NEXT_ON;
}

static bool is_stop(const struct walk *w, uint64_t address)
{
	for (size_t i = 0; i < w->stop_count; i++)
		if (w->stops[i] == address)
			return true;
	return false;
}

/* One straight stretch; whether the function was seen to return. */
static bool walk_on(struct noreturn *n, struct walk *w, uint64_t address, uint64_t function,
                    unsigned depth, cs_insn *insn)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(n->map, address, 1u << 16, &len);
	uint64_t start, end = UINT64_MAX;
	enum next next;

	codemap_function(n->map, address, &start, &end);
	/* Where code ends behind a call, the compiler knew that the call does not return. */
	while (code && address < end && cs_disasm_iter(n->handle, &code, &len, &address, insn)) {
		if (is_stop(w, insn->address))
			return false;
		if (++w->steps > STEPS_MAX)
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
	size_t mine;
	bool found;

	for (size_t i = 0; i < n->known.n; i++)
		if (n->known.v[i].address == address)
			return n->known.v[i].returns;
	if (depth > DEPTH_MAX || !n->open)
		return true;
	/* A function that calls itself returns, if it does, on some other way. */
	mine = n->known.n;
	*vec_push(&n->known) = (struct answer){ address, true };
	found = walk_function(n, &w, address, depth);
	n->known.v[mine].returns = found;
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
