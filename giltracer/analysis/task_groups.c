/* SPDX-License-Identifier: MIT */
/* Groups tasks of event loops and adds up what the tasks of each group waited for. */
#include "analysis/task_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/names.h"

/* How long a thread had waited for the GIL before each span of its lane. */
struct gil_waits {
	uint64_t *before;
};

/**
 * @by_name: id of a pattern in patterns -> group
 * @threads: thread's index in the slices -> index in the model
 * @gil: by thread of the model
 */
struct maker {
	struct task_groups *ret;
	const struct recording_pass *pass;
	const struct aio *aio;
	struct names *patterns;
	struct idmap by_name, waits, wakers, creators;
	uint32_t *threads;
	struct gil_waits *gil;
};

uint32_t task_thread(const struct recording_pass *pass, uint32_t thread)
{
	const struct slice_thread *st = &pass->slices->threads[thread];

	for (size_t i = pass->model->threads.n; i--;)
		if (pass->model->threads.v[i].pid == st->pid &&
		    pass->model->threads.v[i].tid == st->tid)
			return (uint32_t)i;
	return MODEL_NONE;
}

/* ---- groups */

static uint32_t find_group(struct maker *m, uint32_t i)
{
	const struct aio_task *t = &m->aio->v.v[i];
	const char *text = names_get(m->pass->slices->names, t->name ? t->name : t->function);
	CLEANUP(str_done) struct str pattern = { 0 };
	struct task_group *g;
	uint32_t name, at;

	/* The prefix separates loops, and named tasks from groups of functions, in case the names
	 * are equal. */
	str_addc(&pattern, (char)('0' + t->loop));
	str_addc(&pattern, t->name ? 'n' : 'f');
	if (t->name)
		str_add_pattern(&pattern, text);
	else
		str_adds(&pattern, text);
	name = names_id(m->patterns, str_get(&pattern), pattern.len);
	if (!idmap_add(&m->by_name, name, (uint32_t)m->ret->v.n, &at))
		return at;
	g = vec_push(&m->ret->v);
	*g = (struct task_group){ .named = t->name, .loop = t->loop, .first = i };
	str_adds(&g->name, str_get(&pattern) + 2);
	return at;
}

static void add_task(struct task_group *g, const struct aio_task *t, uint32_t i)
{
	g->tasks++;
	g->done += t->end == AIO_DONE || t->end == AIO_RAISED;
	g->raised += t->end == AIO_RAISED;
	g->steps += t->steps;
	g->life_ns += t->last_ns - t->first_ns;
	g->running_ns += t->running_ns;
	g->waiting_ns += t->waiting_ns;
	g->late_ns += t->late_ns;
	g->unknown_ns += t->unknown_ns;
	g->inferred_ns += t->inferred_ns;
	if (t->ready_ns && t->last_ns - t->ready_ns > g->delay.end_ns - g->delay.start_ns)
		g->delay = (struct task_delay){ .task = i,
			                        .step = AIO_NONE,
			                        .start_ns = t->ready_ns,
			                        .end_ns = t->last_ns,
			                        .inferred = t->known_ns > t->ready_ns };
}

/* ---- rows */

static void add_row(struct task_rows *rows, struct idmap *ids, const struct task_row *row)
{
	/* Group, function and line have disjoint bits unless a line is 2^20 or more. */
	uint64_t key = (uint64_t)row->group << 44 ^ (uint64_t)row->function << 20 ^ row->line;
	uint32_t at;

	if (idmap_add(ids, key, (uint32_t)rows->v.n, &at)) {
		*vec_push(&rows->v) = *row;
		return;
	}
	rows->v.v[at].count += row->count;
	rows->v.v[at].ns += row->ns;
}

static int compare_rows(const void *va, const void *vb)
{
	const struct task_row *a = va, *b = vb;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

const struct task_row *task_rows_of(const struct task_rows *rows, uint32_t group, size_t *count)
{
	size_t first = SEARCH(rows->v.n, i, rows->v.v[i].group < group), n = 0;

	while (n < TASK_ROWS && first + n < rows->v.n && rows->v.v[first + n].group == group)
		n++;
	*count = n;
	return n ? &rows->v.v[first] : NULL;
}

/* ---- waits for the GIL of the loop's thread */

static const uint32_t gil_mask = 1u << GIL_WAIT | 1u << GIL_SWITCH_WAIT;

static void sum_up(struct gil_waits *w, const struct lane *lane)
{
	w->before = xcalloc(lane->spans.n + 1, sizeof(*w->before));
	for (size_t i = 0; i < lane->spans.n; i++) {
		bool waits = gil_mask >> lane->spans.v[i].state & 1;

		w->before[i + 1] = w->before[i] +
		                   (waits ? lane_span_end(lane, i) - lane->spans.v[i].start_ns : 0);
	}
}

/* How long the thread had waited for the GIL until time_ns. */
static uint64_t waited(const struct gil_waits *w, const struct lane *lane, uint64_t time_ns)
{
	size_t i = lane_at(lane, time_ns);
	uint64_t start_ns = lane->spans.v[i].start_ns, end_ns = lane_span_end(lane, i);

	if (time_ns <= start_ns || !(gil_mask >> lane->spans.v[i].state & 1))
		return w->before[i];
	return w->before[i] + (time_ns < end_ns ? time_ns : end_ns) - start_ns;
}

static uint64_t gil_wait(struct maker *m, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t i = m->threads[thread];
	const struct lane *lane;

	if (i == MODEL_NONE || from_ns >= to_ns)
		return 0;
	lane = &m->pass->model->threads.v[i].gil;
	if (!lane->spans.n)
		return 0;
	if (!m->gil[i].before)
		sum_up(&m->gil[i], lane);
	return waited(&m->gil[i], lane, to_ns) - waited(&m->gil[i], lane, from_ns);
}

/* ---- steps */

static void add_step(struct maker *m, uint32_t i)
{
	const struct aio_step *s = &m->aio->steps.v[i];
	uint32_t group = m->ret->of[s->task];
	struct task_group *g = &m->ret->v.v[group];
	uint64_t late_ns = s->start_ns - s->ready_ns;

	g->gil_ns += gil_wait(m, s->thread, s->ready_ns, s->start_ns);
	if (late_ns > g->delay.end_ns - g->delay.start_ns)
		g->delay = (struct task_delay){ .task = s->task,
			                        .step = i,
			                        .start_ns = s->ready_ns,
			                        .end_ns = s->start_ns,
			                        .inferred = s->known_ns > s->ready_ns };
	if (s->end_ns - s->start_ns > g->step.end_ns - g->step.start_ns)
		g->step = (struct task_delay){
			.task = s->task, .step = i, .start_ns = s->start_ns, .end_ns = s->end_ns
		};
	if (s->place)
		add_row(&m->ret->waits, &m->waits,
		        &(struct task_row){ group, s->place, s->line, 1,
		                            s->ready_ns - s->from_ns });
	if (s->waker.function)
		add_row(&m->ret->wakers, &m->wakers,
		        &(struct task_row){ group, s->waker.function, 0, 1, 0 });
}

static void add_tail(struct maker *m, uint32_t i)
{
	const struct aio_task *t = &m->aio->v.v[i];

	if (t->ready_ns)
		m->ret->v.v[m->ret->of[i]].gil_ns += gil_wait(m, t->thread, t->ready_ns,
		                                              t->last_ns);
	if (t->created && t->creator.function)
		add_row(&m->ret->creators, &m->creators,
		        &(struct task_row){ m->ret->of[i], t->creator.function, 0, 1, 0 });
}

/* ---- all */

/* A group with its old index, for sorting. */
struct ordered {
	struct task_group group;
	uint32_t old;
};

static int compare_groups(const void *va, const void *vb)
{
	const struct ordered *a = va, *b = vb;

	if (a->group.late_ns != b->group.late_ns)
		return a->group.late_ns > b->group.late_ns ? -1 : 1;
	if (a->group.running_ns != b->group.running_ns)
		return a->group.running_ns > b->group.running_ns ? -1 : 1;
	return a->old < b->old ? -1 : a->old > b->old;
}

static void renumber(struct task_rows *rows, const uint32_t *now)
{
	for (size_t i = 0; i < rows->v.n; i++)
		rows->v.v[i].group = now[rows->v.v[i].group];
	if (rows->v.n)
		qsort(rows->v.v, rows->v.n, sizeof(*rows->v.v), compare_rows);
}

static void sort(struct task_groups *groups, size_t tasks)
{
	size_t n = groups->v.n;
	CLEANUP(free) struct ordered *order = xcalloc(n + 1, sizeof(*order));
	CLEANUP(free) uint32_t *now = xcalloc(n + 1, sizeof(*now));

	for (size_t i = 0; i < n; i++)
		order[i] = (struct ordered){ groups->v.v[i], (uint32_t)i };
	qsort(order, n, sizeof(*order), compare_groups);
	for (size_t i = 0; i < n; i++) {
		groups->v.v[i] = order[i].group;
		now[order[i].old] = (uint32_t)i;
	}
	for (size_t i = 0; i < tasks; i++)
		groups->of[i] = now[groups->of[i]];
	renumber(&groups->waits, now);
	renumber(&groups->wakers, now);
	renumber(&groups->creators, now);
}

static int by_delay(const void *va, const void *vb)
{
	const struct task_delay *a = *(struct task_delay *const *)va;
	const struct task_delay *b = *(struct task_delay *const *)vb;
	uint64_t an = a->end_ns - a->start_ns, bn = b->end_ns - b->start_ns;

	if (an != bn)
		return an > bn ? -1 : 1;
	return a->task < b->task ? -1 : a->task > b->task;
}

/* Explains the longest of the groups' delays, or of their steps. */
static void explain(struct task_groups *groups, const struct recording_pass *pass, bool steps)
{
	const struct aio *aio = pass->slices->tasks;
	CLEANUP(free)
	struct task_delay **longest = xcalloc(groups->v.n + 1, sizeof(*longest));

	for (size_t i = 0; i < groups->v.n; i++) {
		struct task_group *g = &groups->v.v[i];
		struct task_delay *d = longest[i] = steps ? &g->step : &g->delay;

		d->thread = d->holder = MODEL_NONE;
	}
	qsort(longest, groups->v.n, sizeof(struct task_delay *), by_delay);
	for (size_t i = 0; i < groups->v.n && i < TASK_CAUSES; i++) {
		struct task_delay *d = longest[i];

		if (d->end_ns > d->start_ns)
			task_delay_explain(d, pass,
			                   d->step == AIO_NONE ? aio->v.v[d->task].thread
			                                       : aio->steps.v[d->step].thread);
	}
}

static void make(struct maker *m)
{
	const struct aio *aio = m->aio;

	for (uint32_t i = 0; i < m->pass->slices->thread_count; i++)
		m->threads[i] = task_thread(m->pass, i);
	for (uint32_t i = 0; i < aio->v.n; i++) {
		m->ret->of[i] = find_group(m, i);
		add_task(&m->ret->v.v[m->ret->of[i]], &aio->v.v[i], i);
	}
	for (uint32_t i = 0; i < aio->steps.n; i++)
		add_step(m, i);
	for (uint32_t i = 0; i < aio->v.n; i++)
		add_tail(m, i);
}

void task_groups_init(struct task_groups *ret, const struct recording_pass *pass)
{
	const struct aio *aio = pass->slices ? pass->slices->tasks : NULL;
	struct maker m = { .ret = ret, .pass = pass, .aio = aio };
	size_t threads = pass->model->threads.n;

	*ret = (struct task_groups){ 0 };
	if (!aio || !aio->v.n)
		return;
	ret->of = xcalloc(aio->v.n, sizeof(*ret->of));
	m.patterns = names_new();
	m.threads = xcalloc(pass->slices->thread_count + 1, sizeof(*m.threads));
	m.gil = xcalloc(threads + 1, sizeof(*m.gil));
	make(&m);
	sort(ret, aio->v.n);
	explain(ret, pass, false);
	explain(ret, pass, true);
	for (size_t i = 0; i < threads; i++)
		free(m.gil[i].before);
	free(m.gil);
	free(m.threads);
	names_free(m.patterns);
	idmap_done(&m.by_name);
	idmap_done(&m.waits);
	idmap_done(&m.wakers);
	idmap_done(&m.creators);
}

void task_groups_done(struct task_groups *groups)
{
	for (size_t i = 0; i < groups->v.n; i++)
		str_done(&groups->v.v[i].name);
	vec_done(&groups->v);
	vec_done(&groups->waits.v);
	vec_done(&groups->wakers.v);
	vec_done(&groups->creators.v);
	free(groups->of);
}
