/* SPDX-License-Identifier: MIT */
#include "metrics/trigger.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

#define MAX_SECONDS 86400

static const char *const measures[] = {
	[TRIGGER_WAIT] = "gil_wait",
	[TRIGGER_HOLD] = "gil_hold",
	[TRIGGER_KEPT] = "gil_kept",
};

/* ---- parsing */

static void skip_space(const char **at)
{
	while (**at == ' ' || **at == '\t')
		++*at;
}

static bool accept(const char **at, const char *word)
{
	skip_space(at);
	if (!str_has_prefix(*at, word))
		return false;
	*at += strlen(word);
	return true;
}

static bool accept_number(const char **at, unsigned *ret)
{
	unsigned number = 0;

	skip_space(at);
	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); ++*at)
		if (number <= MAX_SECONDS)
			number = number * 10 + (unsigned)(**at - '0');
	*ret = number;
	return true;
}

static int parse_measure(enum trigger_measure *ret, const char **at)
{
	for (unsigned i = 0; i < sizeof(measures) / sizeof(*measures); i++) {
		if (!accept(at, measures[i]))
			continue;
		*ret = (enum trigger_measure)i;
		return 0;
	}
	return -1;
}

int trigger_parse(struct trigger *ret, const char *text, struct error *err)
{
	unsigned percent = 0, number = 0, unit = 0;
	const char *at = text, *problem = NULL;

	if (parse_measure(&ret->measure, &at) < 0)
		problem = "begins with gil_wait, gil_hold or gil_kept";
	else if (!accept(&at, ">"))
		problem = "has '>' after that";
	else if (!accept_number(&at, &percent) || !accept(&at, "%") || percent >= 100)
		problem = "has 0% to 99% after '>'";
	else if (!accept(&at, "for") || !accept_number(&at, &number))
		problem = "contains a duration: for 10s";
	else if (!(unit = *at == 's'   ? 1
	                  : *at == 'm' ? 60
	                               : 0) ||
	         !number || number > MAX_SECONDS / unit)
		problem = "lasts 1s to 86400s, or 1m to 1440m";
	else
		at++;
	skip_space(&at);
	if (!problem && *at)
		problem = "ends with the duration";
	if (problem)
		return error_set(err, EINVAL,
		                 "'%s': a condition %s; for example gil_wait>50%% for 10s", text,
		                 problem);
	ret->percent = percent;
	ret->for_ns = (uint64_t)number * unit * NS_PER_SECOND;
	return 0;
}

/* ---- evaluation */

/* The number of values: of the threads, in the page's order, or of the GILs. None of the totals
 * ever decreases. */
static size_t count_values(const struct trigger *trigger, const struct totals_snapshot *snapshot)
{
	return trigger->measure == TRIGGER_WAIT ? snapshot->threads.n : TOTALS_GILS;
}

static void add_values(const struct trigger *trigger, const struct totals_snapshot *snapshot,
                       uint64_t *values)
{
	for (size_t i = 0; i < snapshot->threads.n; i++) {
		const struct totals_thread *t = &snapshot->threads.v[i];

		if (trigger->measure == TRIGGER_WAIT)
			values[i] = t->wait_ns + t->switch_ns;
		else if (t->gil < TOTALS_GILS)
			values[t->gil] += trigger->measure == TRIGGER_HOLD ? t->hold_ns
			                                                   : t->kept_ns;
	}
}

/* The largest increase of any value; new ones begin at 0. */
static uint64_t largest_increase(struct trigger_state *state, const uint64_t *values, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t before = i < state->values.n ? state->values.v[i] : 0;

		if (values[i] > before && values[i] - before > most)
			most = values[i] - before;
	}
	state->values.n = 0;
	for (size_t i = 0; i < n; i++)
		*vec_push(&state->values) = values[i];
	return most;
}

bool trigger_feed(const struct trigger *trigger, struct trigger_state *state,
                  const struct totals_snapshot *snapshot)
{
	size_t n = count_values(trigger, snapshot);
	CLEANUP(free) uint64_t *values = xcalloc(n + 1, sizeof(*values));
	uint64_t from = state->at_ns, to = snapshot->at_ns, grown;

	add_values(trigger, snapshot, values);
	grown = largest_increase(state, values, n);
	state->at_ns = to;
	if (!from || to <= from)
		return false;
	if ((unsigned __int128)grown * 100 <= (unsigned __int128)(to - from) * trigger->percent) {
		state->holds = false;
		return false;
	}
	if (!state->holds)
		state->since_ns = from;
	state->holds = true;
	return to - state->since_ns >= trigger->for_ns;
}

bool trigger_fire(uint64_t now_ns, uint64_t *last_ns)
{
	if (*last_ns && now_ns - *last_ns < TRIGGER_PAUSE_NS)
		return false;
	*last_ns = now_ns;
	return true;
}

void trigger_state_done(struct trigger_state *state)
{
	vec_done(&state->values);
}
