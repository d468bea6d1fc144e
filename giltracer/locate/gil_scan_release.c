/* SPDX-License-Identifier: MIT */
/*
 * A release locks the GIL's mutex, stores 0 to its locked word, and signals its condition variable.
 * Every call of pthread_cond_signal in the file is either a release, or take_gil signalling that
 * the switch is done; if one is neither, not every release is known.
 */
#include "locate/gil_scan_internal.h"

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
static bool releases_gil(const struct gil_scanner *f, const struct symexec_call *call)
{
	struct symexec_value cond = call->reg[SYMEXEC_DI];

	if (!call->has_lock || !call->zero_count)
		return false;
	if (f->fixed && cond.node == 0)
		return cond.off == f->cond && call->lock.node == 0 && call->lock.off == f->mutex;
	return symexec_same(call->lock, symexec_plus(cond, GIL_MUTEX - GIL_COND)) &&
	       stored_zero(call, symexec_plus(cond, GIL_LOCKED - GIL_COND));
}

/*
 * Whether the call is take_gil signalling switch_cond, for which the releasing thread waits. Where
 * the GIL is no struct (3.6), switch_cond is elsewhere: any other variable that take_gil signals.
 */
static bool tells_of_switch(const struct gil_scanner *f, const struct symexec *flow,
                            const struct symexec_call *call, uint64_t function)
{
	for (size_t i = 0; i < flow->calls.n; i++) {
		const struct symexec_call *wait = &flow->calls.v[i];

		if (wait->import && !strcmp(wait->import, "pthread_cond_timedwait") &&
		    gil_scan_waits_for_gil(wait) &&
		    symexec_same(call->reg[SYMEXEC_DI],
		                 symexec_plus(wait->reg[SYMEXEC_DI], GIL_SWITCH_COND - GIL_COND)))
			return true;
	}
	return f->fixed && gil_scan_take_at(f->gil, function) && call->reg[SYMEXEC_DI].node == 0 &&
	       call->reg[SYMEXEC_DI].off != f->cond;
}

/*
 * A forced release locks switch_mutex, waits unless the switch is over by then, and unlocks it:
 * that is where it is done. Where the unlocking cannot be told, what lies behind the wait is known.
 */
static void find_waited(struct gil_scan_release *release, const struct symexec *flow,
                        struct symexec_value gil)
{
	bool waits = false;

	for (size_t i = 0; i < flow->calls.n; i++)
		if (gil_scan_is_call_of(&flow->calls.v[i], "pthread_cond_wait",
		                        symexec_plus(gil, GIL_SWITCH_COND)))
			waits = true;
	for (size_t i = 0; waits && i < flow->calls.n; i++)
		if (gil_scan_is_call_of(&flow->calls.v[i], "pthread_mutex_unlock",
		                        symexec_plus(gil, GIL_SWITCH_MUTEX)))
			*vec_push(&release->waited) = flow->calls.v[i].address;
	for (size_t i = 0; waits && !release->waited.n && i < flow->calls.n; i++)
		if (gil_scan_is_call_of(&flow->calls.v[i], "pthread_cond_wait",
		                        symexec_plus(gil, GIL_SWITCH_COND)))
			*vec_push(&release->waited) = flow->calls.v[i].next;
}

static int find_register(const struct symexec_call *call, struct symexec_value value)
{
	for (int i = 0; i < SYMEXEC_REGISTERS; i++)
		if (symexec_same(call->reg[i], value))
			return i;
	return -1;
}

/* Whether the function calls nothing but lock functions and functions that end the program. */
static bool calls_only_locks(struct gil_scanner *f, const struct symexec *flow)
{
	for (size_t i = 0; i < flow->calls.n; i++) {
		const struct symexec_call *call = &flow->calls.v[i];

		if (call->import ? strncmp(call->import, "pthread_", strlen("pthread_")) != 0 &&
		                           !noreturn_import(call->import)
		                 : !call->target || !noreturn_function(f->noreturn, call->target))
			return false;
	}
	return true;
}

/*
 * drop_gil gets the GIL, or a pointer to what contains it, as an argument; other functions load it.
 * A GIL at a fixed address is nobody's argument: there, drop_gil is the function that does nothing
 * but release.
 */
static bool is_drop(struct gil_scanner *f, const struct symexec *flow, uint64_t function,
                    struct symexec_value gil)
{
	int depth = symexec_depth(flow, gil);

	if (codemap_count_calls(f->map, function) == 0)
		return false;
	return (depth >= 0 && depth <= 1) ||
	       (f->fixed && gil.node == 0 && calls_only_locks(f, flow));
}

static void add_release(struct gil_scanner *f, const struct symexec *flow,
                        const struct symexec_call *call, uint64_t function)
{
	struct symexec_value gil = symexec_plus(call->reg[SYMEXEC_DI], -GIL_COND);

	struct gil_scan_release *release = vec_push(&f->gil->releases);

	*release = (struct gil_scan_release){ .function = function,
		                              .signal = call->address,
		                              .is_drop = is_drop(f, flow, function, gil),
		                              .gil = symexec_expression(flow, gil),
		                              .gil_register = find_register(call, gil) };
	find_waited(release, flow, gil);
}

void gil_scan_find_releases(struct gil_scanner *f)
{
	struct addresses signals;

	codemap_find_calls(f->map, "pthread_cond_signal", &signals);
	for (size_t i = 0; i < signals.v.n; i++) {
		uint64_t function = 0;
		CLEANUP(symexec_free)
		struct symexec *flow = gil_scan_run_to(f, signals.v.v[i], &function);
		const struct symexec_call *call = flow ? symexec_at(flow, signals.v.v[i]) : NULL;

		if (call && releases_gil(f, call))
			add_release(f, flow, call, function);
		else if (!call || !tells_of_switch(f, flow, call, function))
			*vec_push(&f->gil->unknown) = signals.v.v[i];
	}
	f->gil->complete = signals.v.n && !f->gil->unknown.n;
	vec_done(&signals.v);
}
