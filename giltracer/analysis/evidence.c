/* SPDX-License-Identifier: MIT */
/* Gathers the numbers for the verdict and applies its rules. */
#include "analysis/evidence.h"

#include "model/span.h"

/* How long the thread ran on a CPU without the GIL. Walks both lanes in parallel. */
static uint64_t running_off_gil(const struct model_thread *t)
{
	uint64_t sum = 0;
	size_t g = 0, c = 0;

	while (g < t->gil.spans.n && c < t->cpu.spans.n) {
		const struct span *gil = &t->gil.spans.v[g], *cpu = &t->cpu.spans.v[c];
		uint64_t gil_end = lane_span_end(&t->gil, g), cpu_end = lane_span_end(&t->cpu, c);
		uint64_t from = gil->start_ns > cpu->start_ns ? gil->start_ns : cpu->start_ns;
		uint64_t to = gil_end < cpu_end ? gil_end : cpu_end;

		if (gil_state_is_without(gil->state) && cpu->state == CPU_RUNNING && to > from)
			sum += to - from;
		if (gil_end <= cpu_end)
			g++;
		if (cpu_end <= gil_end)
			c++;
	}
	return sum;
}

uint64_t evidence_gil_wait(const struct evidence *e, const struct model_thread *t)
{
	return e->recording->gil_detect ? model_thread_wait_ns(t) : t->cpu_ns[CPU_GIL_SLEEP];
}

static uint64_t known_of(const struct evidence *e, const struct model_thread *t)
{
	uint64_t unknown = e->recording->gil_detect ? t->gil_ns[GIL_UNKNOWN]
	                                            : t->cpu_ns[CPU_UNKNOWN];

	return t->end_ns - t->start_ns - unknown;
}

static void look_at_thread(struct evidence *e, uint32_t i)
{
	const struct model_thread *t = &e->model->threads.v[i];
	double runnable = facts_percent(t->cpu_ns[CPU_RUNNABLE], t->end_ns - t->start_ns);

	e->wait_ns += evidence_gil_wait(e, t);
	e->known_ns += known_of(e, t);
	e->holders += t->gil_ns[GIL_HOLD] > 0;
	if (t->cpu_ns[CPU_RUNNING] > e->busiest_ns) {
		e->busiest = i;
		e->busiest_ns = t->cpu_ns[CPU_RUNNING];
	}
	if (t->end_ns - t->start_ns >= e->wall_ns / 100 * VERDICT_LIFE &&
	    runnable > e->runnable_percent)
		e->runnable_percent = runnable;
}

/* The number of rules of the verdict that a share of a thread's life satisfies. */
static int victim_rank(double percent)
{
	return (percent >= VERDICT_VICTIM) + (percent >= VERDICT_VICTIM_SOME);
}

/* Makes t the victim if it satisfies a stricter rule than the victim so far, or if it satisfies the
 * same rule and waited longer. t: a thread, or the sum of a group. */
static void look_for_victim(struct evidence *e, const struct model_thread *t, uint32_t thread,
                            uint32_t group)
{
	uint64_t known = known_of(e, t), wait = evidence_gil_wait(e, t);
	double percent = facts_percent(wait, known);
	int rank = victim_rank(percent) - victim_rank(e->victim_percent);

	if (!wait || known < e->wall_ns / 100 * VERDICT_LIFE || rank < 0 ||
	    (!rank && wait <= e->victim_ns))
		return;
	e->victim = thread;
	e->victim_group = group;
	e->victim_percent = percent;
	e->victim_ns = wait;
}

static void find_victim(struct evidence *e, const struct thread_groups *groups)
{
	for (uint32_t i = 0; i < groups->v.n; i++)
		if (groups->v.v[i].threads >= GROUP_MIN_THREADS)
			look_for_victim(e, &groups->v.v[i].sum, MODEL_NONE, i);
	for (uint32_t i = 0; i < e->model->threads.n; i++)
		if (groups->v.v[groups->of[i]].threads < GROUP_MIN_THREADS)
			look_for_victim(e, &e->model->threads.v[i], i, MODEL_NONE);
}

struct evidence evidence_gather(const struct recording *recording,
                                const struct thread_groups *groups)
{
	struct evidence e = {
		.recording = recording,
		.pass = recording_main_pass(recording),
		.busiest = MODEL_NONE,
		.victim = MODEL_NONE,
		.victim_group = MODEL_NONE,
	};

	e.model = e.pass->model;
	e.totals = facts_totals(e.model);
	e.wall_ns = e.model->end_ns - e.model->start_ns;
	for (uint32_t i = 0; i < e.model->threads.n; i++)
		look_at_thread(&e, i);
	find_victim(&e, groups);
	e.waiters_percent = facts_percent(e.wait_ns, e.wall_ns);
	return e;
}

uint64_t evidence_asleep(const struct evidence *e)
{
	return e->totals.cpu_ns[CPU_SLEEPING] + e->totals.cpu_ns[CPU_UNINTERRUPTIBLE];
}

uint64_t evidence_cpu_known(const struct evidence *e)
{
	return e->totals.life_ns - e->totals.cpu_ns[CPU_UNKNOWN];
}

bool evidence_is_starved(const struct evidence *e)
{
	uint64_t runnable = e->totals.cpu_ns[CPU_RUNNABLE];

	return facts_percent(runnable, runnable + e->totals.cpu_ns[CPU_RUNNING]) >=
	               VERDICT_STARVED &&
	       e->runnable_percent >= VERDICT_LINE;
}

bool evidence_is_blind(const struct evidence *e)
{
	return !e->recording->gil_detect && e->model->caveats[CAVEAT_NO_TRACEPOINTS];
}

bool evidence_is_single(const struct evidence *e)
{
	return facts_percent(e->busiest_ns, e->totals.cpu_ns[CPU_RUNNING]) >= VERDICT_SINGLE;
}

enum verdict_kind evidence_gil(const struct evidence *e)
{
	if (e->waiters_percent >= VERDICT_WAITERS || e->victim_percent >= VERDICT_VICTIM)
		return VERDICT_GIL_BOUND;
	if (e->waiters_percent >= VERDICT_WAITERS_SOME || e->victim_percent >= VERDICT_VICTIM_SOME)
		return VERDICT_GIL_SOME;
	return VERDICT_GIL_NONE;
}

/* Called only if no simpler rule decides, because it walks all spans. */
static bool is_native(struct evidence *e)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING];

	if (!e->recording->gil_detect || running <= e->wall_ns / 10)
		return false;
	for (size_t i = 0; i < e->model->threads.n; i++)
		e->off_gil_running_ns += running_off_gil(&e->model->threads.v[i]);
	return facts_percent(e->off_gil_running_ns, running) >= VERDICT_NATIVE;
}

static bool is_nothing(const struct evidence *e)
{
	return !e->model->threads.n || (!e->model->gil_events && !evidence_cpu_known(e)) ||
	       (!e->model->gil_events && e->recording->gil_detect);
}

enum verdict_kind evidence_judge(struct evidence *e)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING], cpu_known = evidence_cpu_known(e);

	if (e->recording->python.free_threaded && !e->model->gil_events)
		return VERDICT_FREE_THREADED;
	if (is_nothing(e))
		return e->pass->samples && e->pass->samples->times.n ? VERDICT_SAMPLED
		                                                     : VERDICT_NOTHING;
	if (e->wall_ns < VERDICT_SHORT_NS)
		return VERDICT_TOO_SHORT;
	if (evidence_is_starved(e) &&
	    (e->totals.cpu_ns[CPU_RUNNABLE] > e->wait_ns || evidence_gil(e) == VERDICT_GIL_NONE))
		return VERDICT_CPU_STARVED;
	if (evidence_is_blind(e))
		return VERDICT_GIL_UNKNOWN;
	if (evidence_gil(e) != VERDICT_GIL_NONE)
		return evidence_gil(e);
	if (evidence_is_single(e) && facts_percent(running, e->wall_ns) >= VERDICT_BUSY)
		return VERDICT_SINGLE_THREADED;
	if (is_native(e))
		return VERDICT_NATIVE_WORK;
	if (cpu_known && facts_percent(evidence_asleep(e), cpu_known) >= VERDICT_ASLEEP)
		return VERDICT_IO_BOUND;
	if (e->recording->gil_detect && e->holders <= 1)
		return VERDICT_SINGLE_THREADED;
	return VERDICT_GIL_NONE;
}
