/* SPDX-License-Identifier: MIT */
/*
 * take_gil is a function that waits for a condition variable with a timeout, and its mutex is where
 * the GIL's is. That alone is not enough to be sure: it has to be where a thread comes that wants
 * the GIL, by the names of the functions that it asks.
 */
#include "code_finder.h"

#include "launch/flow_step.h"

#define CALL_DEPTH \
	3 /* PyEval_RestoreThread, _PyThreadState_Attach, _PyEval_AcquireLock, take_gil */

/* What comes of a way through the code. */
enum way { WAY_RETURNS, WAY_ENDS, WAY_OTHER };

#define WAY_MAX                                                                                    \
	60          /* instructions of an epilogue, and of the ways out of it that end the program \
	             */
#define WAY_DEPTH 4 /* jumps with a condition */

static enum way way_from(struct code_finder *f, struct flow_machine *m, uint64_t address,
                         unsigned depth);

static enum way both_ways(enum way a, enum way b)
{
	if (a == WAY_OTHER || b == WAY_OTHER)
		return WAY_OTHER;
	return a == WAY_RETURNS ? a : b;
}

/* Behind a jump, or a call that ends the program. */
static enum way way_on(struct code_finder *f, struct flow_machine *m, unsigned depth)
{
	uint64_t next = m->insn->address + m->insn->size;
	bool call = m->insn->id == X86_INS_CALL, always = m->insn->id == X86_INS_JMP;
	const char *import;
	uint64_t target = flow_branch_target(m, &import);

	if (call &&
	    (import ? noreturn_import(import) : target && noreturn_function(f->noreturn, target)))
		return WAY_ENDS;
	if (call || import || !target || !depth)
		return WAY_OTHER;
	if (always)
		return way_from(f, m, target, depth - 1);
	return both_ways(way_from(f, m, target, depth - 1), way_from(f, m, next, depth - 1));
}

/* Whether code comes to the end of its function, or of the program, without calling anybody. */
static enum way way_from(struct code_finder *f, struct flow_machine *m, uint64_t address,
                         unsigned depth)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(f->map, address, 1u << 12, &len);

	for (unsigned i = 0; code && i < WAY_MAX; i++) {
		if (!cs_disasm_iter(m->handle, &code, &len, &address, m->insn))
			break;
		if (flow_is_branch(m))
			return way_on(f, m, depth);
		if (flow_is_end(m))
			return m->insn->id == X86_INS_RET ? WAY_RETURNS : WAY_ENDS;
	}
	return WAY_OTHER;
}

/* The jump that looks at what the unlocking at address said, if there is only the return behind it;
 * else 0. */
static uint64_t find_return_jump(struct code_finder *f, struct flow_machine *m, uint64_t address)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(f->map, address, 1u << 8, &len);
	uint64_t here = address;

	while (code && cs_disasm_iter(m->handle, &code, &len, &here, m->insn)) {
		address = m->insn->address;
		if (m->insn->id == X86_INS_CALL || m->insn->id == X86_INS_JMP || flow_is_end(m))
			return 0;
		if (flow_is_branch(m))
			return way_on(f, m, WAY_DEPTH) == WAY_RETURNS ? address : 0;
	}
	return 0;
}

/* The last thing that take_gil does is to unlock the GIL's mutex. */
static void find_returned(struct code_finder *f, const struct flow *flow, struct code_take *take,
                          struct flow_value mutex)
{
	struct flow_machine m;
	bool open = flow_machine_open(&m, f->map, NULL);

	for (size_t i = 0; open && i < flow->calls.n; i++) {
		const struct flow_call *call = &flow->calls.v[i];
		uint64_t jump = code_is_call_of(call, "pthread_mutex_unlock", mutex)
		                        ? find_return_jump(f, &m, call->next)
		                        : 0;

		if (jump)
			*vec_push(&take->returned) = jump;
	}
	flow_machine_close(&m);
	if (!noreturn_passes(f->noreturn, take->entry, take->returned.v, take->returned.n))
		vec_done(&take->returned);
}

static void add_take(struct code_finder *f, const struct flow *flow, uint64_t entry,
                     const struct flow_call *wait)
{
	struct code_take *take;

	if (code_gil_take(f->gil, entry))
		return;
	take = vec_push(&f->gil->takes);
	*take = (struct code_take){
		.entry = entry, .gil = flow_expression(flow, code_at(wait->reg[FLOW_DI], -GIL_COND))
	};
	find_returned(f, flow, take, wait->reg[FLOW_SI]);
	if (wait->reg[FLOW_DI].node == 0) {
		f->fixed = true;
		f->cond = wait->reg[FLOW_DI].off;
		f->mutex = wait->reg[FLOW_SI].off;
	}
}

/* A function is something that is called; a part of one that was moved away is not. */
void code_find_takes(struct code_finder *f)
{
	struct addresses waits;

	codemap_find_calls(f->map, "pthread_cond_timedwait", &waits);
	for (size_t i = 0; i < waits.v.n; i++) {
		uint64_t function = 0;
		CLEANUP(flow_free) struct flow *flow = code_run_to(f, waits.v.v[i], &function);
		const struct flow_call *call = flow ? flow_at(flow, waits.v.v[i]) : NULL;

		if (call && code_waits_for_gil(call) && codemap_count_calls(f->map, function))
			add_take(f, flow, function, call);
	}
	vec_done(&waits.v);
}

/* Whether a function comes to entry by direct calls, at most depth deep. */
static bool comes_to(struct code_finder *f, uint64_t function, uint64_t entry, unsigned depth)
{
	CLEANUP(flow_free) struct flow *flow = flow_run(f->map, f->noreturn, function, true);

	for (size_t i = 0; i < flow->calls.n; i++)
		if (flow->calls.v[i].target == entry)
			return true;
	for (size_t i = 0; i < flow->calls.n && depth > 1; i++) {
		uint64_t target = flow->calls.v[i].target;

		if (target && !flow->calls.v[i].import && comes_to(f, target, entry, depth - 1))
			return true;
	}
	return false;
}

static bool comes_from(struct code_finder *f, const char *name, uint64_t entry)
{
	uint64_t address;

	if (!symbols_address(f->symbols, name, &address))
		return false;
	for (unsigned depth = 1; depth <= CALL_DEPTH; depth++)
		if (comes_to(f, address, entry, depth))
			return true;
	return false;
}

static bool is_release(const struct code_finder *f, uint64_t function)
{
	for (size_t i = 0; i < f->gil->releases.n; i++)
		if (f->gil->releases.v[i].is_drop && f->gil->releases.v[i].function == function)
			return true;
	return false;
}

/* A known release, and then this with the same arguments: how the evaluation loop lets others in.
 */
static bool follows_release(const struct code_finder *f, const struct flow *flow, uint64_t address)
{
	for (size_t i = 1; i < flow->calls.n; i++) {
		const struct flow_call *call = &flow->calls.v[i], *before = call - 1;

		if (call->address == address)
			return before->target && is_release(f, before->target) &&
			       flow_same(before->reg[FLOW_DI], call->reg[FLOW_DI]) &&
			       flow_same(before->reg[FLOW_SI], call->reg[FLOW_SI]);
	}
	return false;
}

static bool is_taken_back(struct code_finder *f, uint64_t entry)
{
	struct addresses callers;
	bool found = false;

	codemap_find_callers(f->map, entry, &callers);
	for (size_t i = 0; i < callers.v.n && !found; i++) {
		uint64_t function;
		CLEANUP(flow_free)
		struct flow *flow = code_run_to(f, callers.v.v[i], &function);

		found = flow && follows_release(f, flow, callers.v.v[i]);
	}
	vec_done(&callers.v);
	return found;
}

/* Who waits like take_gil is not yet it; who is asked for the GIL by these is. */
void code_confirm_takes(struct code_finder *f)
{
	for (size_t i = 0; i < f->gil->takes.n; i++) {
		struct code_take *take = &f->gil->takes.v[i];

		if (comes_from(f, "PyEval_RestoreThread", take->entry) &&
		    comes_from(f, "PyEval_AcquireThread", take->entry))
			take->confirmed = "RestoreThread and AcquireThread come to it";
		else if (comes_from(f, "PyOS_AfterFork_Child", take->entry) &&
		         is_taken_back(f, take->entry))
			take->confirmed = "a forked child and the evaluation loop come to it";
	}
}
