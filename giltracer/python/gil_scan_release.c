/* SPDX-License-Identifier: MIT */
/*
 * A release locks the GIL's mutex, stores 0 to its locked word, and signals its condition variable.
 * Every call of pthread_cond_signal in the file is either a release, or take_gil signalling that
 * the switch is done, or one of another lock, as in libraries linked into the interpreter; if it is
 * neither, not every release is known.
 */
#include "python/gil_scan_internal.h"

#include <string.h>

#include "base/alloc.h"

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
	return symexec_same(call->lock, symexec_plus(cond, GIL_MUTEX - GIL_COND)) &&
	       stored_zero(call, symexec_plus(cond, GIL_LOCKED - GIL_COND));
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
		                 symexec_plus(wait->reg[SYMEXEC_DI], GIL_SWITCH_COND - GIL_COND)))
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
	       !symexec_same(call->lock, symexec_plus(cond, GIL_MUTEX - GIL_COND));
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
		                        symexec_plus(gil, GIL_SWITCH_COND)))
			waits = true;
	for (size_t i = 0; waits && i < run->calls.n; i++)
		if (gil_scan_is_call_of(&run->calls.v[i], "pthread_mutex_unlock",
		                        symexec_plus(gil, GIL_SWITCH_MUTEX)))
			*vec_push(&release->waited) = run->calls.v[i].address;
	for (size_t i = 0; waits && !release->waited.n && i < run->calls.n; i++)
		if (gil_scan_is_call_of(&run->calls.v[i], "pthread_cond_wait",
		                        symexec_plus(gil, GIL_SWITCH_COND)))
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
	struct symexec_value gil = symexec_plus(call->reg[SYMEXEC_DI], -GIL_COND);

	struct gil_scan_release *release = vec_push(&scanner->gil->releases);

	*release = (struct gil_scan_release){ .function = function,
		                              .signal = call->address,
		                              .is_drop = is_drop(scanner, run, function, gil),
		                              .gil = symexec_expression(run, gil),
		                              .gil_register = find_register(call, gil) };
	find_waited(release, run, gil);
}

void gil_scan_find_releases(struct gil_scanner *scanner)
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
