/* SPDX-License-Identifier: MIT */
/*
 * A release locks the GIL's mutex, stores 0 to its locked word, and signals its condition variable.
 * Every signal in the file is either that, or take_gil's telling that the switch is done; where one
 * is neither, not every release is known.
 */
#include "code_finder.h"

#include <string.h>

#include "base/alloc.h"

static bool stored_zero(const struct flow_call *call, struct flow_value address)
{
	for (unsigned i = 0; i < call->zero_count; i++)
		if (flow_same(call->zeros[i], address))
			return true;
	return false;
}

/* The GIL's mutex is held, its locked word was set to 0, and now others are told. */
static bool releases_gil(const struct code_finder *f, const struct flow_call *call)
{
	struct flow_value cond = call->reg[FLOW_DI];

	if (!call->has_lock || !call->zero_count)
		return false;
	if (f->fixed && cond.node == 0)
		return cond.off == f->cond && call->lock.node == 0 && call->lock.off == f->mutex;
	return flow_same(call->lock, code_at(cond, GIL_MUTEX - GIL_COND)) &&
	       stored_zero(call, code_at(cond, GIL_LOCKED - GIL_COND));
}

/*
 * take_gil tells the thread that let it in: on switch_cond of the GIL that it waits for. A GIL that
 * is not a struct has it elsewhere: there it is whatever else take_gil signals.
 */
static bool tells_of_switch(const struct code_finder *f, const struct flow *flow,
                            const struct flow_call *call, uint64_t function)
{
	for (size_t i = 0; i < flow->calls.n; i++) {
		const struct flow_call *wait = &flow->calls.v[i];

		if (wait->import && !strcmp(wait->import, "pthread_cond_timedwait") &&
		    code_waits_for_gil(wait) &&
		    flow_same(call->reg[FLOW_DI],
		              code_at(wait->reg[FLOW_DI], GIL_SWITCH_COND - GIL_COND)))
			return true;
	}
	return f->fixed && code_gil_take(f->gil, function) && call->reg[FLOW_DI].node == 0 &&
	       call->reg[FLOW_DI].off != f->cond;
}

/*
 * A forced release locks switch_mutex, waits unless the switch is over by then, and unlocks it:
 * that is where it is done. Where the unlocking cannot be told, what lies behind the wait is known.
 */
static void find_waited(struct code_release *release, const struct flow *flow,
                        struct flow_value gil)
{
	bool waits = false;

	for (size_t i = 0; i < flow->calls.n; i++)
		if (code_is_call_of(&flow->calls.v[i], "pthread_cond_wait",
		                    code_at(gil, GIL_SWITCH_COND)))
			waits = true;
	for (size_t i = 0; waits && i < flow->calls.n; i++)
		if (code_is_call_of(&flow->calls.v[i], "pthread_mutex_unlock",
		                    code_at(gil, GIL_SWITCH_MUTEX)))
			*vec_push(&release->waited) = flow->calls.v[i].address;
	for (size_t i = 0; waits && !release->waited.n && i < flow->calls.n; i++)
		if (code_is_call_of(&flow->calls.v[i], "pthread_cond_wait",
		                    code_at(gil, GIL_SWITCH_COND)))
			*vec_push(&release->waited) = flow->calls.v[i].next;
}

static int find_register(const struct flow_call *call, struct flow_value value)
{
	for (int i = 0; i < FLOW_REGISTERS; i++)
		if (flow_same(call->reg[i], value))
			return i;
	return -1;
}

/* Nothing is called but locks and what ends the program. */
static bool calls_only_locks(struct code_finder *f, const struct flow *flow)
{
	for (size_t i = 0; i < flow->calls.n; i++) {
		const struct flow_call *call = &flow->calls.v[i];

		if (call->import ? strncmp(call->import, "pthread_", strlen("pthread_")) != 0 &&
		                           !noreturn_import(call->import)
		                 : !call->target || !noreturn_function(f->noreturn, call->target))
			return false;
	}
	return true;
}

/*
 * drop_gil is handed the GIL, or what has a pointer to it; others have to look for it. Where it is
 * at a fixed address, nobody needs to be handed it: there, drop_gil does nothing else.
 */
static bool is_drop(struct code_finder *f, const struct flow *flow, uint64_t function,
                    struct flow_value gil)
{
	int depth = flow_depth(flow, gil);

	if (codemap_count_calls(f->map, function) == 0)
		return false;
	return (depth >= 0 && depth <= 1) ||
	       (f->fixed && gil.node == 0 && calls_only_locks(f, flow));
}

static void add_release(struct code_finder *f, const struct flow *flow,
                        const struct flow_call *call, uint64_t function)
{
	struct flow_value gil = code_at(call->reg[FLOW_DI], -GIL_COND);

	struct code_release *release = vec_push(&f->gil->releases);

	*release = (struct code_release){ .function = function,
		                          .signal = call->address,
		                          .is_drop = is_drop(f, flow, function, gil),
		                          .gil = flow_expression(flow, gil),
		                          .gil_register = find_register(call, gil) };
	find_waited(release, flow, gil);
}

void code_find_releases(struct code_finder *f)
{
	struct addresses signals;

	codemap_find_calls(f->map, "pthread_cond_signal", &signals);
	for (size_t i = 0; i < signals.v.n; i++) {
		uint64_t function = 0;
		CLEANUP(flow_free) struct flow *flow = code_run_to(f, signals.v.v[i], &function);
		const struct flow_call *call = flow ? flow_at(flow, signals.v.v[i]) : NULL;

		if (call && releases_gil(f, call))
			add_release(f, flow, call, function);
		else if (!call || !tells_of_switch(f, flow, call, function))
			*vec_push(&f->gil->unknown) = signals.v.v[i];
	}
	f->gil->complete = signals.v.n && !f->gil->unknown.n;
	vec_done(&signals.v);
}
