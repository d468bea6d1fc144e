/* SPDX-License-Identifier: MIT */
/* Starts from the few calls of pthread_cond_*wait and _signal in the file, and finds out which lock
 * each is about: first the waits, then the signals. */
#include "python/gil_scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "binary/codemap.h"
#include "binary/noreturn.h"
#include "binary/symbols.h"
#include "binary/symexec.h"
#include "binary/symexec_step.h"
#include "binary/x86.h"
#include "python/layout.h"

struct gil_scanner {
	const struct symbols *symbols;
	struct codemap *map;
	struct noreturn *noreturn;
	struct gil_scan *gil;
	/* The process has one GIL at a fixed address; its cond and mutex are at these addresses. */
	bool fixed;
	int64_t cond, mutex;
};

/* ---- runs the functions that call pthread functions, to know the registers at these calls */

/* Whether the function around the call begins with a jump out of it. */
static bool is_left_behind(const struct gil_scanner *scanner, uint64_t address)
{
	uint64_t start, end;
	struct x86_branch b;
	size_t len = 0;
	const uint8_t *code;

	if (!codemap_function(scanner->map, address, &start, &end))
		return false;
	code = codemap_bytes(scanner->map, start, end - start, &len);
	return code && x86_wide_branch(code, len, start, &b) && b.kind == X86_JUMP && !b.slot &&
	       address > start && (b.target < start || b.target >= end);
}

/* As codemap_find_calls, without calls in code that is never executed, because BOLT moved its
 * function elsewhere and left the old code behind. */
static void gil_scan_find_calls(const struct gil_scanner *scanner, const char *import,
                                struct addresses *ret)
{
	struct addresses all;

	*ret = (struct addresses){ 0 };
	codemap_find_calls(scanner->map, import, &all);
	for (size_t i = 0; i < all.v.n; i++)
		if (!is_left_behind(scanner, all.v.v[i]))
			*vec_push(&ret->v) = all.v.v[i];
	vec_done(&all.v);
}

/* A symbolic run from entry that reaches the call at address; NULL if it does not reach it. known:
 * entry is the entry of a function. */
static struct symexec *run_from(struct gil_scanner *scanner, uint64_t entry, bool known,
                                uint64_t address)
{
	struct symexec *run = symexec_run(scanner->map, scanner->noreturn, entry, known);

	if (symexec_at(run, address) && (!known || !run->unbalanced))
		return run;
	symexec_free(run);
	return NULL;
}

/* The compiler moves unlikely parts of a function elsewhere. They are not called; the function
 * jumps to them. */
static struct symexec *run_from_owner(struct gil_scanner *scanner, uint64_t start, uint64_t end,
                                      uint64_t address, uint64_t *ret_function)
{
	struct symexec *run = NULL;
	struct addresses owners;

	codemap_find_owners(scanner->map, start, end, &owners);
	for (size_t i = 0; i < owners.v.n && !run; i++) {
		run = run_from(scanner, owners.v.v[i], true, address);
		if (run)
			*ret_function = owners.v.v[i];
	}
	vec_done(&owners.v);
	return run;
}

/*
 * Finds a run that reaches the call: from the entry of its function, or of the function that this
 * is a part of. If there is none (because the path uses a jump table), the run starts at the
 * instruction after the last unconditional jump or return before the call.
 */
static struct symexec *gil_scan_run_to(struct gil_scanner *scanner, uint64_t address,
                                       uint64_t *ret_function)
{
	uint64_t start, end;
	struct symexec *run;

	if (!codemap_function(scanner->map, address, &start, &end))
		return NULL;
	*ret_function = start;
	run = run_from(scanner, start, true, address);
	if (!run && !codemap_count_calls(scanner->map, start))
		run = run_from_owner(scanner, start, end, address, ret_function);
	if (!run)
		run = run_from(scanner, symexec_chunk(scanner->map, start, address), false,
		               address);
	return run;
}

/* Whether a call is of this import, with this value as its first argument. */
static bool gil_scan_is_call_of(const struct symexec_call *call, const char *import,
                                struct symexec_value argument)
{
	return call->import && !strcmp(call->import, import) &&
	       symexec_same(call->reg[SYMEXEC_DI], argument);
}

/* Whether the call is a timed wait of the GIL's form: on a condition variable and the mutex that
 * follows it. In 3.6 the two are separate variables. */
static bool gil_scan_waits_for_gil(const struct symexec_call *call)
{
	if (call->reg[SYMEXEC_DI].node == 0 && call->reg[SYMEXEC_SI].node == 0)
		return true;
	return symexec_same(
		call->reg[SYMEXEC_SI],
		symexec_plus(call->reg[SYMEXEC_DI], PYTHON_GIL_MUTEX - PYTHON_GIL_COND));
}

/*
 * ---- take_gil waits with a timeout on a condition variable and a mutex at the same distance as in the
 * GIL. To be certain, exported functions that request the GIL must also lead to it.
 */

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
	*take = (struct gil_scan_take){ .entry = entry,
		                        .gil = symexec_expression(
						run, symexec_plus(wait->reg[SYMEXEC_DI],
		                                                  -PYTHON_GIL_COND)) };
	find_returned(scanner, run, take, wait->reg[SYMEXEC_SI]);
	if (wait->reg[SYMEXEC_DI].node == 0) {
		scanner->fixed = true;
		scanner->cond = wait->reg[SYMEXEC_DI].off;
		scanner->mutex = wait->reg[SYMEXEC_SI].off;
	}
}

/* A function is called; a part of a function that the compiler moved elsewhere is not. */
static void gil_scan_find_takes(struct gil_scanner *scanner)
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
static void gil_scan_confirm_takes(struct gil_scanner *scanner)
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

/*
 * ---- A release locks the GIL's mutex, stores 0 to its locked word, and signals its condition variable.
 * Every call of pthread_cond_signal in the file is either a release, or take_gil signalling that
 * the switch is done, or one of another lock, as in libraries linked into the interpreter; if it is
 * neither, not every release is known.
 */

static bool stored_zero(const struct symexec_call *call, struct symexec_value address)
{
	for (unsigned i = 0; i < call->zero_count; i++)
		if (symexec_same(call->zeros[i], address))
			return true;
	return false;
}

/* Whether the call is a release: the GIL's mutex is held, its locked word was set to 0, and its
 * condition variable is signalled. */
static bool releases_gil(const struct gil_scanner *scanner, const struct symexec_call *call)
{
	struct symexec_value cond = call->reg[SYMEXEC_DI];

	if (!call->has_lock || !call->zero_count)
		return false;
	if (scanner->fixed && cond.node == 0)
		return cond.off == scanner->cond && call->lock.node == 0 &&
		       call->lock.off == scanner->mutex;
	return symexec_same(call->lock, symexec_plus(cond, PYTHON_GIL_MUTEX - PYTHON_GIL_COND)) &&
	       stored_zero(call, symexec_plus(cond, PYTHON_GIL_LOCKED - PYTHON_GIL_COND));
}

/*
 * Whether the call is take_gil signalling switch_cond, for which the releasing thread waits. If the
 * GIL is not a struct (3.6), switch_cond is any other variable that take_gil signals.
 */
static bool tells_of_switch(const struct gil_scanner *scanner, const struct symexec *run,
                            const struct symexec_call *call, uint64_t function)
{
	for (size_t i = 0; i < run->calls.n; i++) {
		const struct symexec_call *wait = &run->calls.v[i];

		if (wait->import && !strcmp(wait->import, "pthread_cond_timedwait") &&
		    gil_scan_waits_for_gil(wait) &&
		    symexec_same(call->reg[SYMEXEC_DI],
		                 symexec_plus(wait->reg[SYMEXEC_DI],
		                              PYTHON_GIL_SWITCH_COND - PYTHON_GIL_COND)))
			return true;
	}
	return scanner->fixed && gil_scan_take_at(scanner->gil, function) &&
	       call->reg[SYMEXEC_DI].node == 0 && call->reg[SYMEXEC_DI].off != scanner->cond;
}

/* Whether the call signals under a mutex that is elsewhere in its structure than the GIL's. */
static bool is_of_other_lock(const struct gil_scanner *scanner, const struct symexec_call *call)
{
	struct symexec_value cond = call->reg[SYMEXEC_DI];

	return !scanner->fixed && call->has_lock && cond.node && call->lock.node == cond.node &&
	       !symexec_same(call->lock, symexec_plus(cond, PYTHON_GIL_MUTEX - PYTHON_GIL_COND));
}

/*
 * Whether all that the function does is to signal its argument. If releases signal directly, none
 * calls such a function, because the compiler inlined CPython's own.
 */
static bool only_signals_argument(const struct symexec *run)
{
	CLEANUP(free)
	char *argument = run->calls.n == 1
	                         ? symexec_expression(run, run->calls.v[0].reg[SYMEXEC_DI])
	                         : NULL;

	return argument && !strcmp(argument, "arg1");
}

/*
 * A forced release locks switch_mutex, waits unless the switch is already over, and unlocks the
 * mutex: the release ends there. If the unlock is not found, the address after the wait is used.
 */
static void find_waited(struct gil_scan_release *release, const struct symexec *run,
                        struct symexec_value gil)
{
	bool waits = false;

	for (size_t i = 0; i < run->calls.n; i++)
		if (gil_scan_is_call_of(&run->calls.v[i], "pthread_cond_wait",
		                        symexec_plus(gil, PYTHON_GIL_SWITCH_COND)))
			waits = true;
	for (size_t i = 0; waits && i < run->calls.n; i++)
		if (gil_scan_is_call_of(&run->calls.v[i], "pthread_mutex_unlock",
		                        symexec_plus(gil, PYTHON_GIL_SWITCH_MUTEX)))
			*vec_push(&release->waited) = run->calls.v[i].address;
	for (size_t i = 0; waits && !release->waited.n && i < run->calls.n; i++)
		if (gil_scan_is_call_of(&run->calls.v[i], "pthread_cond_wait",
		                        symexec_plus(gil, PYTHON_GIL_SWITCH_COND)))
			*vec_push(&release->waited) = run->calls.v[i].next;
}

static int find_register(const struct symexec_call *call, struct symexec_value value)
{
	for (int i = 0; i < SYMEXEC_REGISTERS; i++)
		if (symexec_same(call->reg[i], value))
			return i;
	return -1;
}

/* Whether the function calls only lock functions and functions that end the program. */
static bool calls_only_locks(struct gil_scanner *scanner, const struct symexec *run)
{
	for (size_t i = 0; i < run->calls.n; i++) {
		const struct symexec_call *call = &run->calls.v[i];

		if (call->import
		            ? strncmp(call->import, "pthread_", strlen("pthread_")) != 0 &&
		                      !noreturn_import(call->import)
		            : !call->target || !noreturn_function(scanner->noreturn, call->target))
			return false;
	}
	return true;
}

/*
 * drop_gil gets the GIL, or a pointer to what contains it, as an argument; other functions load it.
 * A GIL at a fixed address is not passed as an argument; then drop_gil is the function that only
 * releases.
 */
static bool is_drop(struct gil_scanner *scanner, const struct symexec *run, uint64_t function,
                    struct symexec_value gil)
{
	int depth = symexec_depth(run, gil);

	if (codemap_count_calls(scanner->map, function) == 0)
		return false;
	return (depth >= 0 && depth <= 1) ||
	       (scanner->fixed && gil.node == 0 && calls_only_locks(scanner, run));
}

static void add_release(struct gil_scanner *scanner, const struct symexec *run,
                        const struct symexec_call *call, uint64_t function)
{
	struct symexec_value gil = symexec_plus(call->reg[SYMEXEC_DI], -PYTHON_GIL_COND);

	struct gil_scan_release *release = vec_push(&scanner->gil->releases);

	*release = (struct gil_scan_release){ .function = function,
		                              .signal = call->address,
		                              .is_drop = is_drop(scanner, run, function, gil),
		                              .gil = symexec_expression(run, gil),
		                              .gil_register = find_register(call, gil) };
	find_waited(release, run, gil);
}

static void gil_scan_find_releases(struct gil_scanner *scanner)
{
	struct addresses signals, only = { 0 };

	gil_scan_find_calls(scanner, "pthread_cond_signal", &signals);
	for (size_t i = 0; i < signals.v.n; i++) {
		uint64_t function = 0;
		CLEANUP(symexec_free)
		struct symexec *run = gil_scan_run_to(scanner, signals.v.v[i], &function);
		const struct symexec_call *call = run ? symexec_at(run, signals.v.v[i]) : NULL;

		if (call && releases_gil(scanner, call))
			add_release(scanner, run, call, function);
		else if (call && only_signals_argument(run))
			*vec_push(&only.v) = signals.v.v[i];
		else if (!call || (!tells_of_switch(scanner, run, call, function) &&
		                   !is_of_other_lock(scanner, call)))
			*vec_push(&scanner->gil->unknown) = signals.v.v[i];
	}
	for (size_t i = 0; i < only.v.n && !scanner->gil->releases.n; i++)
		*vec_push(&scanner->gil->unknown) = only.v.v[i];
	scanner->gil->complete = signals.v.n && !scanner->gil->unknown.n;
	vec_done(&signals.v);
	vec_done(&only.v);
}

struct gil_scan *gil_scan_new(const struct symbols *symbols)
{
	struct gil_scanner scanner = { .symbols = symbols,
		                       .gil = xcalloc(1, sizeof(*scanner.gil)) };

	scanner.map = codemap_new(symbols);
	scanner.noreturn = noreturn_new(scanner.map);
	gil_scan_find_takes(&scanner);
	gil_scan_find_releases(&scanner);
	gil_scan_confirm_takes(&scanner);
	scanner.gil->gave_up = codemap_is_spent(scanner.map);
	scanner.gil->complete &= !scanner.gil->gave_up;
	noreturn_free(scanner.noreturn);
	codemap_free(scanner.map);
	return scanner.gil;
}

void gil_scan_free(struct gil_scan *gil)
{
	if (!gil)
		return;
	for (size_t i = 0; i < gil->takes.n; i++) {
		free(gil->takes.v[i].gil);
		vec_done(&gil->takes.v[i].returned);
	}
	for (size_t i = 0; i < gil->releases.n; i++) {
		free(gil->releases.v[i].gil);
		vec_done(&gil->releases.v[i].waited);
	}
	vec_done(&gil->takes);
	vec_done(&gil->releases);
	vec_done(&gil->unknown);
	free(gil);
}
