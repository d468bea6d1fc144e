/* SPDX-License-Identifier: MIT */
/* Counts how many tasks of a group are in each state over time. */
#include "analysis/task_levels.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/* Largest number of changes for exact levels; a group with more changes has too many levels, or
 * nearly so. */
#define CHANGES_MAX (4 * TASK_LEVELS)

/* From time_ns on, one task more or less is in that state. */
struct change {
	uint64_t time_ns;
	enum task_state state;
	bool less;
};

/**
 * Times are relative to the start of the recording.
 * @width_ns: width of the equal parts; @sums: per part, the time of states that fill it only
 * partly; @more, @fewer: per part, the number of states that begin or cease there to fill whole
 * parts
 */
struct maker {
	uint64_t start_ns, dur_ns, width_ns;
	uint64_t sums[TASK_LEVELS][TASK_STATES];
	uint64_t more[TASK_LEVELS][TASK_STATES], fewer[TASK_LEVELS][TASK_STATES];
	struct change changes[CHANGES_MAX];
	size_t change_count;
	bool many;
};

static uint64_t clip(const struct maker *m, uint64_t time_ns)
{
	if (time_ns <= m->start_ns)
		return 0;
	return time_ns - m->start_ns < m->dur_ns ? time_ns - m->start_ns : m->dur_ns;
}

static void add(struct maker *m, enum task_state state, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t from = clip(m, from_ns), to = clip(m, to_ns);
	size_t first, last;

	if (from >= to)
		return;
	first = from / m->width_ns;
	last = (to - 1) / m->width_ns;
	if (first == last) {
		m->sums[first][state] += to - from;
	} else {
		m->sums[first][state] += (first + 1) * m->width_ns - from;
		m->sums[last][state] += to - last * m->width_ns;
		m->more[first + 1][state]++;
		m->fewer[last][state]++;
	}
	if (m->change_count + 2 > CHANGES_MAX) {
		m->many = true;
		return;
	}
	m->changes[m->change_count++] = (struct change){ from, state, false };
	m->changes[m->change_count++] = (struct change){ to, state, true };
}

/* Adds the task's state after its last step or, without steps, since its start. */
static void add_tail(struct maker *m, const struct aio_task *t, uint64_t from_ns)
{
	uint64_t ready_ns = t->ready_ns ? t->ready_ns : t->last_ns;

	add(m, aio_shows_ready(t->loop) || t->ready_ns ? TASK_WAITING : TASK_UNKNOWN, from_ns,
	    ready_ns);
	add(m, TASK_LATE, ready_ns, t->last_ns);
}

static void add_all(struct maker *m, const struct task_groups *groups, const struct aio *aio,
                    uint32_t group)
{
	CLEANUP(free) uint64_t *from_ns = xcalloc(aio->v.n, sizeof(*from_ns));

	for (size_t i = 0; i < aio->v.n; i++)
		from_ns[i] = aio->v.v[i].first_ns;
	for (size_t i = 0; i < aio->steps.n; i++) {
		const struct aio_step *s = &aio->steps.v[i];

		if (groups->of[s->task] != group)
			continue;
		add(m, s->unknown ? TASK_UNKNOWN : TASK_WAITING, s->from_ns, s->ready_ns);
		add(m, TASK_LATE, s->ready_ns, s->start_ns);
		add(m, TASK_RUNNING, s->start_ns, s->end_ns);
		from_ns[s->task] = s->end_ns;
	}
	for (size_t i = 0; i < aio->v.n; i++)
		if (groups->of[i] == group)
			add_tail(m, &aio->v.v[i], from_ns[i]);
}

static int compare(const void *va, const void *vb)
{
	const struct change *a = va, *b = vb;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Returns false if there would be too many levels. */
static bool make_exact(struct task_levels *ret, struct maker *m)
{
	uint64_t count[TASK_STATES] = { 0 }, now = 0;

	qsort(m->changes, m->change_count, sizeof(*m->changes), compare);
	for (size_t i = 0; now < m->dur_ns;) {
		uint64_t next = i < m->change_count ? m->changes[i].time_ns : m->dur_ns;

		if (next > now) {
			struct task_level level = { .dur_ns = next - now };

			if (ret->v.n == TASK_LEVELS)
				return false;
			for (unsigned s = 0; s < TASK_STATES; s++)
				level.ns[s] = count[s] * level.dur_ns;
			*vec_push(&ret->v) = level;
			now = next;
		}
		for (; i < m->change_count && m->changes[i].time_ns == now; i++)
			m->changes[i].less ? count[m->changes[i].state]--
					   : count[m->changes[i].state]++;
	}
	return true;
}

static void make_equal(struct task_levels *ret, const struct maker *m)
{
	uint64_t count[TASK_STATES] = { 0 };

	ret->v.n = 0;
	for (size_t i = 0; i * m->width_ns < m->dur_ns; i++) {
		uint64_t left_ns = m->dur_ns - i * m->width_ns;
		struct task_level level = { .dur_ns = left_ns < m->width_ns ? left_ns
			                                                    : m->width_ns };

		for (unsigned s = 0; s < TASK_STATES; s++) {
			count[s] += m->more[i][s] - m->fewer[i][s];
			level.ns[s] = m->sums[i][s] + count[s] * level.dur_ns;
		}
		*vec_push(&ret->v) = level;
	}
}

void task_levels_init(struct task_levels *ret, const struct task_groups *groups,
                      const struct recording_pass *pass, uint32_t group)
{
	const struct model *model = pass->model;
	CLEANUP(free) struct maker *m = xcalloc(1, sizeof(*m));

	*ret = (struct task_levels){ 0 };
	m->start_ns = model->start_ns;
	m->dur_ns = model->end_ns - model->start_ns;
	m->width_ns = m->dur_ns / TASK_LEVELS + 1;
	add_all(m, groups, pass->slices->tasks, group);
	ret->exact = !m->many && make_exact(ret, m);
	if (!ret->exact)
		make_equal(ret, m);
}

void task_levels_done(struct task_levels *levels)
{
	vec_done(&levels->v);
}
