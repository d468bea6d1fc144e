/* SPDX-License-Identifier: MIT */
/* take_gil waits with a timeout on a condition variable and a mutex at the same distance as in the
 * GIL. To be certain, exported functions that request the GIL must also lead to it. */
#include "python/gil_scan_internal.h"

#include "binary/symexec_step.h"

/* PyEval_RestoreThread, _PyThreadState_Attach, _PyEval_AcquireLock, take_gil: three calls. */
#define CALL_DEPTH 3

/* Where a path through the code leads. */
enum way { WAY_RETURNS, WAY_ENDS, WAY_OTHER };

/* Instructions of an epilogue, and of the paths out of it that end the program. */
#define WAY_MAX   60
#define WAY_DEPTH 4 /* conditional jumps */

static enum way way_from(struct gil_scanner *scanner, struct symexec_machine *m, uint64_t address,
                         unsigned depth);

static enum way both_ways(enum way a, enum way b)
{
	if (a == WAY_OTHER || b == WAY_OTHER)
		return WAY_OTHER;
	return a == WAY_RETURNS ? a : b;
}

/* Continues after a jump, or after a call that may end the program. */
static enum way way_on(struct gil_scanner *scanner, struct symexec_machine *m, unsigned depth)
{
	uint64_t next = m->insn->address + m->insn->size;
	bool call = m->insn->id == X86_INS_CALL, always = m->insn->id == X86_INS_JMP;
	const char *import;
	uint64_t target = symexec_branch_target(m, &import);

	if (call && (import ? noreturn_import(import)
	                    : target && noreturn_function(scanner->noreturn, target)))
		return WAY_ENDS;
	if (call || import || !target || !depth)
		return WAY_OTHER;
	if (always)
		return way_from(scanner, m, target, depth - 1);
	return both_ways(way_from(scanner, m, target, depth - 1),
	                 way_from(scanner, m, next, depth - 1));
}

/* Follows the code to the end of its function, or of the program, as long as it calls no other
 * function. */
static enum way way_from(struct gil_scanner *scanner, struct symexec_machine *m, uint64_t address,
                         unsigned depth)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(scanner->map, address, 1u << 12, &len);

	for (unsigned i = 0; code && i < WAY_MAX; i++) {
		if (!cs_disasm_iter(m->handle, &code, &len, &address, m->insn))
			break;
		if (symexec_is_branch(m))
			return way_on(scanner, m, depth);
		if (symexec_is_end(m))
			return m->insn->id == X86_INS_RET ? WAY_RETURNS : WAY_ENDS;
	}
	return WAY_OTHER;
}

/* The conditional jump on the result of the unlock at address, if only the return follows it;
 * otherwise 0. */
static uint64_t find_return_jump(struct gil_scanner *scanner, struct symexec_machine *m,
                                 uint64_t address)
{
	size_t len = 0;
	const uint8_t *code = codemap_bytes(scanner->map, address, 1u << 8, &len);
	uint64_t here = address;

	while (code && cs_disasm_iter(m->handle, &code, &len, &here, m->insn)) {
		address = m->insn->address;
		if (m->insn->id == X86_INS_CALL || m->insn->id == X86_INS_JMP || symexec_is_end(m))
			return 0;
		if (symexec_is_branch(m))
			return way_on(scanner, m, WAY_DEPTH) == WAY_RETURNS ? address : 0;
	}
	return 0;
}

/* Finds take_gil's last action before it returns: it unlocks the GIL's mutex. */
static void find_returned(struct gil_scanner *scanner, const struct symexec *run,
                          struct gil_scan_take *take, struct symexec_value mutex)
{
	struct symexec_machine m;
	bool open = symexec_machine_open(&m, scanner->map, NULL);

	for (size_t i = 0; open && i < run->calls.n; i++) {
		const struct symexec_call *call = &run->calls.v[i];
		uint64_t jump = gil_scan_is_call_of(call, "pthread_mutex_unlock", mutex)
		                        ? find_return_jump(scanner, &m, call->next)
		                        : 0;

		if (jump)
			*vec_push(&take->returned) = jump;
	}
	symexec_machine_close(&m);
	if (!noreturn_passes(scanner->noreturn, take->entry, take->returned.v, take->returned.n))
		vec_done(&take->returned);
}

static void add_take(struct gil_scanner *scanner, const struct symexec *run, uint64_t entry,
                     const struct symexec_call *wait)
{
	struct gil_scan_take *take;

	if (gil_scan_take_at(scanner->gil, entry))
		return;
	take = vec_push(&scanner->gil->takes);
	*take = (struct gil_scan_take){
		.entry = entry,
		.gil = symexec_expression(run, symexec_plus(wait->reg[SYMEXEC_DI], -GIL_COND))
	};
	find_returned(scanner, run, take, wait->reg[SYMEXEC_SI]);
	if (wait->reg[SYMEXEC_DI].node == 0) {
		scanner->fixed = true;
		scanner->cond = wait->reg[SYMEXEC_DI].off;
		scanner->mutex = wait->reg[SYMEXEC_SI].off;
	}
}

/* A function is called; a part of a function that the compiler moved elsewhere is not. */
void gil_scan_find_takes(struct gil_scanner *scanner)
{
	struct addresses waits;

	gil_scan_find_calls(scanner, "pthread_cond_timedwait", &waits);
	for (size_t i = 0; i < waits.v.n; i++) {
		uint64_t function = 0;
		CLEANUP(symexec_free)
		struct symexec *run = gil_scan_run_to(scanner, waits.v.v[i], &function);
		const struct symexec_call *call = run ? symexec_at(run, waits.v.v[i]) : NULL;

		if (call && gil_scan_waits_for_gil(call) &&
		    codemap_count_calls(scanner->map, function))
			add_take(scanner, run, function, call);
	}
	vec_done(&waits.v);
}

/* Whether a chain of at most depth direct calls leads from a function to entry. */
static bool comes_to(struct gil_scanner *scanner, uint64_t function, uint64_t entry, unsigned depth)
{
	CLEANUP(symexec_free)
	struct symexec *run = symexec_run(scanner->map, scanner->noreturn, function, true);

	for (size_t i = 0; i < run->calls.n; i++)
		if (run->calls.v[i].target == entry)
			return true;
	for (size_t i = 0; i < run->calls.n && depth > 1; i++) {
		uint64_t target = run->calls.v[i].target;

		if (target && !run->calls.v[i].import &&
		    comes_to(scanner, target, entry, depth - 1))
			return true;
	}
	return false;
}

static bool comes_from(struct gil_scanner *scanner, const char *name, uint64_t entry)
{
	uint64_t address;

	if (!symbols_address(scanner->symbols, name, &address))
		return false;
	for (unsigned depth = 1; depth <= CALL_DEPTH; depth++)
		if (comes_to(scanner, address, entry, depth))
			return true;
	return false;
}

static bool is_release(const struct gil_scanner *scanner, uint64_t function)
{
	for (size_t i = 0; i < scanner->gil->releases.n; i++)
		if (scanner->gil->releases.v[i].is_drop &&
		    scanner->gil->releases.v[i].function == function)
			return true;
	return false;
}

/* Whether the call follows a known release with the same arguments, as in the evaluation loop after
 * a release request. */
static bool follows_release(const struct gil_scanner *scanner, const struct symexec *run,
                            uint64_t address)
{
	for (size_t i = 1; i < run->calls.n; i++) {
		const struct symexec_call *call = &run->calls.v[i], *before = call - 1;

		if (call->address == address)
			return before->target && is_release(scanner, before->target) &&
			       symexec_same(before->reg[SYMEXEC_DI], call->reg[SYMEXEC_DI]) &&
			       symexec_same(before->reg[SYMEXEC_SI], call->reg[SYMEXEC_SI]);
	}
	return false;
}

static bool is_taken_back(struct gil_scanner *scanner, uint64_t entry)
{
	struct addresses callers;
	bool found = false;

	codemap_find_callers(scanner->map, entry, &callers);
	for (size_t i = 0; i < callers.v.n && !found; i++) {
		uint64_t function;
		CLEANUP(symexec_free)
		struct symexec *run = gil_scan_run_to(scanner, callers.v.v[i], &function);

		found = run && follows_release(scanner, run, callers.v.v[i]);
	}
	vec_done(&callers.v);
	return found;
}

/* A function that waits like take_gil need not be take_gil, but one that these functions call for
 * the GIL is. */
void gil_scan_confirm_takes(struct gil_scanner *scanner)
{
	for (size_t i = 0; i < scanner->gil->takes.n; i++) {
		struct gil_scan_take *take = &scanner->gil->takes.v[i];

		if (comes_from(scanner, "PyEval_RestoreThread", take->entry) &&
		    comes_from(scanner, "PyEval_AcquireThread", take->entry))
			take->confirmed =
				"PyEval_RestoreThread and PyEval_AcquireThread lead to it";
		else if (comes_from(scanner, "PyOS_AfterFork_Child", take->entry) &&
		         is_taken_back(scanner, take->entry))
			take->confirmed = "PyOS_AfterFork_Child and the evaluation loop lead to it";
	}
}

const struct gil_scan_take *gil_scan_take_at(const struct gil_scan *gil, uint64_t entry)
{
	for (size_t i = 0; i < gil->takes.n; i++)
		if (gil->takes.v[i].entry == entry)
			return &gil->takes.v[i];
	return NULL;
}
