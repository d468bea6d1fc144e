/* SPDX-License-Identifier: MIT */
/*
 * Where the library took over from uprobes, the same program ran with and without them. If it did
 * the same kind of work, as many turns of the GIL as before would have taken as long as they took
 * after that.
 */
#include "analysis/slowdown.h"

#include "base/idmap.h"
#include "base/vec.h"

/* Fewer turns give no useful rate. */
#define ENOUGH 500

/* @calls_ns: sum over the threads of a process; @most_ns: the largest cost of one */
struct of_process {
	uint64_t calls_ns, most_ns;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The largest of a process; only calls: without probes. */
static uint64_t own_ns(const struct model *m, bool only_calls)
{
	VEC(struct of_process) all = { 0 };
	struct idmap by_pid = { 0 };
	uint64_t most = 0;

	for (size_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *t = &m->threads.v[i];
		struct of_process *p;
		uint32_t at;

		if (idmap_add(&by_pid, t->pid, (uint32_t)all.n, &at))
			*vec_push(&all) = (struct of_process){ 0 };
		p = &all.v[at];
		p->calls_ns += t->calls_cost_ns;
		if (!only_calls)
			p->most_ns = larger(p->most_ns, t->probe_cost_ns + t->calls_cost_ns);
		most = larger(most, larger(p->calls_ns, p->most_ns));
	}
	idmap_done(&by_pid);
	vec_done(&all);
	return most;
}

/* What uprobes cost with all waiting; 0: not known. */
static uint64_t by_rate_ns(const struct model *m)
{
	uint64_t before = 0, all = 0, with_ns, without_ns;
	double would_ns;

	/* When it was stopped is not examined. */
	if (m->suspended_ns || !m->probes_end_ns || m->probes_end_ns <= m->start_ns ||
	    m->probes_end_ns >= m->end_ns)
		return 0;
	for (size_t i = 0; i < m->threads.n; i++) {
		before += m->threads.v[i].probe_turns;
		all += m->threads.v[i].holds;
	}
	with_ns = m->probes_end_ns - m->start_ns;
	without_ns = m->end_ns - m->probes_end_ns;
	if (before < ENOUGH || all < before + ENOUGH)
		return 0;
	would_ns = (double)without_ns * (double)before / (double)(all - before);
	return would_ns < (double)with_ns ? with_ns - (uint64_t)would_ns : 0;
}

bool slowdown_find(struct slowdown *ret, const struct model *m)
{
	const uint64_t wall_ns = m->end_ns - m->start_ns - m->suspended_ns, rate_ns = by_rate_ns(m);
	uint64_t with_waiting = rate_ns ? rate_ns + own_ns(m, true) : 0;

	*ret = (struct slowdown){ .own_ns = own_ns(m, false) };
	ret->inferred = with_waiting > ret->own_ns;
	ret->lost_ns = larger(ret->own_ns, with_waiting);
	if (ret->lost_ns >= wall_ns)
		ret->lost_ns = wall_ns - wall_ns / 100;
	ret->ratio = wall_ns ? (double)wall_ns / (double)(wall_ns - ret->lost_ns) : 1;
	return ret->ratio >= 1 + SLOWDOWN_NOTE_PERCENT / 100.0;
}
