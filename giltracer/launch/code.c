/* SPDX-License-Identifier: MIT */
/* From the few calls of pthread_cond_*wait and _signal in the file back to what they are about:
 * code_take.c looks at the waits, code_release.c at the signals. */
#include "code.h"

#include <stdlib.h>
#include <string.h>

#include "launch/code_finder.h"

/* A run that leads to the call; NULL if it does not. known: from the entry of a function. */
static struct flow *run_from(struct code_finder *f, uint64_t entry, bool known, uint64_t address)
{
	struct flow *flow = flow_run(f->map, f->noreturn, entry, known);

	if (flow_at(flow, address) && (!known || !flow->unbalanced))
		return flow;
	flow_free(flow);
	return NULL;
}

/* The compiler moves unlikely parts of a function away. Nobody calls them: one comes to them by
 * jumps from the function that they are of. */
static struct flow *run_from_owner(struct code_finder *f, uint64_t start, uint64_t end,
                                   uint64_t address, uint64_t *ret_function)
{
	struct flow *flow = NULL;
	struct addresses owners;

	codemap_find_owners(f->map, start, end, &owners);
	for (size_t i = 0; i < owners.v.n && !flow; i++) {
		flow = run_from(f, owners.v.v[i], true, address);
		if (flow)
			*ret_function = owners.v.v[i];
	}
	vec_done(&owners.v);
	return flow;
}

/* The call itself: in a run from the entry of the function that it is in, or that it is a part of,
 * or where that does not lead to it (through a jump table), from the instruction behind the last
 * unconditional end of code before it. */
struct flow *code_run_to(struct code_finder *f, uint64_t address, uint64_t *ret_function)
{
	uint64_t start, end;
	struct flow *flow;

	if (!codemap_function(f->map, address, &start, &end))
		return NULL;
	*ret_function = start;
	flow = run_from(f, start, true, address);
	if (!flow && !codemap_count_calls(f->map, start))
		flow = run_from_owner(f, start, end, address, ret_function);
	if (!flow)
		flow = run_from(f, flow_chunk(f->map, start, address), false, address);
	return flow;
}

bool code_is_call_of(const struct flow_call *call, const char *import, struct flow_value argument)
{
	return call->import && !strcmp(call->import, import) &&
	       flow_same(call->reg[FLOW_DI], argument);
}

/* A timed wait of the GIL's form: on a condition variable and the mutex behind it; in 3.6 they are
 * variables of their own. */
bool code_waits_for_gil(const struct flow_call *call)
{
	if (call->reg[FLOW_DI].node == 0 && call->reg[FLOW_SI].node == 0)
		return true;
	return flow_same(call->reg[FLOW_SI], code_at(call->reg[FLOW_DI], GIL_MUTEX - GIL_COND));
}

struct code_gil *code_find_gil(const struct symbols *symbols)
{
	struct code_finder finder = { .symbols = symbols, .gil = xcalloc(1, sizeof(*finder.gil)) };

	finder.map = codemap_new(symbols);
	finder.noreturn = noreturn_new(finder.map);
	code_find_takes(&finder);
	code_find_releases(&finder);
	code_confirm_takes(&finder);
	noreturn_free(finder.noreturn);
	codemap_free(finder.map);
	return finder.gil;
}

void code_gil_free(struct code_gil *gil)
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

const struct code_take *code_gil_take(const struct code_gil *gil, uint64_t entry)
{
	for (size_t i = 0; i < gil->takes.n; i++)
		if (gil->takes.v[i].entry == entry)
			return &gil->takes.v[i];
	return NULL;
}
