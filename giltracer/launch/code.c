/* SPDX-License-Identifier: MIT */
/* From the few calls of pthread_cond_*wait and _signal in the file back to what they are about. */
#include "code.h"

#include <stdlib.h>
#include <string.h>

#include "launch/codemap.h"
#include "launch/flow.h"
#include "launch/noreturn.h"
#include "launch/symbols.h"

/* Offsets in struct _gil_runtime_state. */
#define GIL_LOCKED       0x10
#define GIL_COND         0x20
#define GIL_MUTEX        0x50
#define GIL_SWITCH_COND  0x78
#define GIL_SWITCH_MUTEX 0xa8

#define CALL_DEPTH \
	3 /* PyEval_RestoreThread, _PyThreadState_Attach, _PyEval_AcquireLock, take_gil */

struct finder {
	const struct symbols *symbols;
	struct codemap *map;
	struct noreturn *noreturn;
	struct code_gil *gil;
	bool fixed; /* the one GIL of the process is at a fixed address: */
	int64_t cond, mutex;
};

static struct flow_value at(struct flow_value base, int64_t off)
{
	return (struct flow_value){ base.node, base.off + off };
}

/* The call itself, in a run from its function's entry or, where that does not lead to it (through
 * a jump table), from the instruction behind the last unconditional end of code before it. */
static struct flow *run_to(struct finder *f, uint64_t address, uint64_t *ret_function)
{
	uint64_t start, end;
	struct flow *flow;

	if (!codemap_function(f->map, address, &start, &end))
		return NULL;
	*ret_function = start;
	flow = flow_run(f->map, f->noreturn, start, true);
	if (flow_at(flow, address))
		return flow;
	flow_free(flow);
	flow = flow_run(f->map, f->noreturn, flow_chunk(f->map, start, address), false);
	if (flow_at(flow, address))
		return flow;
	flow_free(flow);
	return NULL;
}

/* A timed wait of the GIL's form: on a condition variable and the mutex behind it; in 3.6 they are
 * variables of their own. */
static bool waits_for_gil(const struct flow_call *call)
{
	if (call->reg[FLOW_DI].node == 0 && call->reg[FLOW_SI].node == 0)
		return true;
	return flow_same(call->reg[FLOW_SI], at(call->reg[FLOW_DI], GIL_MUTEX - GIL_COND));
}

static void add_take(struct finder *f, const struct flow *flow, uint64_t entry,
                     const struct flow_call *wait)
{
	struct code_take *take;

	if (code_gil_take(f->gil, entry))
		return;
	take = vec_push(&f->gil->takes);
	*take = (struct code_take){
		.entry = entry, .gil = flow_expression(flow, at(wait->reg[FLOW_DI], -GIL_COND))
	};
	if (wait->reg[FLOW_DI].node == 0) {
		f->fixed = true;
		f->cond = wait->reg[FLOW_DI].off;
		f->mutex = wait->reg[FLOW_SI].off;
	}
}

/* A function is something that is called; a part of one that was moved away is not. */
static void find_takes(struct finder *f)
{
	struct addresses waits;

	codemap_find_calls(f->map, "pthread_cond_timedwait", &waits);
	for (size_t i = 0; i < waits.v.n; i++) {
		uint64_t function = 0;
		CLEANUP(flow_free) struct flow *flow = run_to(f, waits.v.v[i], &function);
		const struct flow_call *call = flow ? flow_at(flow, waits.v.v[i]) : NULL;

		if (call && waits_for_gil(call) && codemap_count_calls(f->map, function))
			add_take(f, flow, function, call);
	}
	vec_done(&waits.v);
}

/* Whether a function comes to entry by direct calls, at most depth deep. */
static bool comes_to(struct finder *f, uint64_t function, uint64_t entry, unsigned depth)
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

static bool comes_from(struct finder *f, const char *name, uint64_t entry)
{
	uint64_t address;

	if (!symbols_address(f->symbols, name, &address))
		return false;
	for (unsigned depth = 1; depth <= CALL_DEPTH; depth++)
		if (comes_to(f, address, entry, depth))
			return true;
	return false;
}

static void confirm_takes(struct finder *f)
{
	for (size_t i = 0; i < f->gil->takes.n; i++) {
		struct code_take *take = &f->gil->takes.v[i];

		take->confirmed = comes_from(f, "PyEval_RestoreThread", take->entry) &&
		                  comes_from(f, "PyEval_AcquireThread", take->entry);
	}
}

static bool stored_zero(const struct flow_call *call, struct flow_value address)
{
	for (unsigned i = 0; i < call->zero_count; i++)
		if (flow_same(call->zeros[i], address))
			return true;
	return false;
}

/* The GIL's mutex is held, its locked word was set to 0, and now others are told. */
static bool releases_gil(const struct finder *f, const struct flow_call *call)
{
	struct flow_value cond = call->reg[FLOW_DI];

	if (!call->has_lock || !call->zero_count)
		return false;
	if (f->fixed && cond.node == 0)
		return cond.off == f->cond && call->lock.node == 0 && call->lock.off == f->mutex;
	return flow_same(call->lock, at(cond, GIL_MUTEX - GIL_COND)) &&
	       stored_zero(call, at(cond, GIL_LOCKED - GIL_COND));
}

/*
 * take_gil tells the thread that let it in: on switch_cond of the GIL that it waits for. A GIL that
 * is not a struct has it elsewhere: there it is whatever else take_gil signals.
 */
static bool tells_of_switch(const struct finder *f, const struct flow *flow,
                            const struct flow_call *call, uint64_t function)
{
	for (size_t i = 0; i < flow->calls.n; i++) {
		const struct flow_call *wait = &flow->calls.v[i];

		if (wait->import && !strcmp(wait->import, "pthread_cond_timedwait") &&
		    waits_for_gil(wait) &&
		    flow_same(call->reg[FLOW_DI],
		              at(wait->reg[FLOW_DI], GIL_SWITCH_COND - GIL_COND)))
			return true;
	}
	return f->fixed && code_gil_take(f->gil, function) && call->reg[FLOW_DI].node == 0 &&
	       call->reg[FLOW_DI].off != f->cond;
}

static bool is_call_of(const struct flow_call *call, const char *import, struct flow_value argument)
{
	return call->import && !strcmp(call->import, import) &&
	       flow_same(call->reg[FLOW_DI], argument);
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
		if (is_call_of(&flow->calls.v[i], "pthread_cond_wait", at(gil, GIL_SWITCH_COND)))
			waits = true;
	for (size_t i = 0; waits && i < flow->calls.n; i++)
		if (is_call_of(&flow->calls.v[i], "pthread_mutex_unlock",
		               at(gil, GIL_SWITCH_MUTEX)))
			*vec_push(&release->waited) = flow->calls.v[i].address;
	for (size_t i = 0; waits && !release->waited.n && i < flow->calls.n; i++)
		if (is_call_of(&flow->calls.v[i], "pthread_cond_wait", at(gil, GIL_SWITCH_COND)))
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
static bool calls_only_locks(struct finder *f, const struct flow *flow)
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
static bool is_drop(struct finder *f, const struct flow *flow, uint64_t function,
                    struct flow_value gil)
{
	int depth = flow_depth(flow, gil);

	if (codemap_count_calls(f->map, function) == 0)
		return false;
	return (depth >= 0 && depth <= 1) ||
	       (f->fixed && gil.node == 0 && calls_only_locks(f, flow));
}

static void add_release(struct finder *f, const struct flow *flow, const struct flow_call *call,
                        uint64_t function)
{
	struct flow_value gil = at(call->reg[FLOW_DI], -GIL_COND);

	struct code_release *release = vec_push(&f->gil->releases);

	*release = (struct code_release){ .function = function,
		                          .signal = call->address,
		                          .is_drop = is_drop(f, flow, function, gil),
		                          .gil = flow_expression(flow, gil),
		                          .gil_register = find_register(call, gil) };
	find_waited(release, flow, gil);
}

static void find_releases(struct finder *f)
{
	struct addresses signals;

	codemap_find_calls(f->map, "pthread_cond_signal", &signals);
	f->gil->complete = signals.v.n > 0;
	for (size_t i = 0; i < signals.v.n; i++) {
		uint64_t function = 0;
		CLEANUP(flow_free) struct flow *flow = run_to(f, signals.v.v[i], &function);
		const struct flow_call *call = flow ? flow_at(flow, signals.v.v[i]) : NULL;

		if (call && releases_gil(f, call))
			add_release(f, flow, call, function);
		else if (!call || !tells_of_switch(f, flow, call, function))
			f->gil->complete = false;
	}
	vec_done(&signals.v);
}

struct code_gil *code_find_gil(const struct symbols *symbols)
{
	struct finder finder = { .symbols = symbols, .gil = xcalloc(1, sizeof(*finder.gil)) };

	finder.map = codemap_new(symbols);
	finder.noreturn = noreturn_new(finder.map);
	find_takes(&finder);
	confirm_takes(&finder);
	find_releases(&finder);
	noreturn_free(finder.noreturn);
	codemap_free(finder.map);
	return finder.gil;
}

void code_gil_free(struct code_gil *gil)
{
	if (!gil)
		return;
	for (size_t i = 0; i < gil->takes.n; i++)
		free(gil->takes.v[i].gil);
	for (size_t i = 0; i < gil->releases.n; i++) {
		free(gil->releases.v[i].gil);
		vec_done(&gil->releases.v[i].waited);
	}
	vec_done(&gil->takes);
	vec_done(&gil->releases);
	free(gil);
}

const struct code_take *code_gil_take(const struct code_gil *gil, uint64_t entry)
{
	for (size_t i = 0; i < gil->takes.n; i++)
		if (gil->takes.v[i].entry == entry)
			return &gil->takes.v[i];
	return NULL;
}
