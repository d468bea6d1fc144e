/* SPDX-License-Identifier: MIT */
/* Groups tasks of event loops and adds up what the tasks of each group waited for. */
#include "analysis/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/patterns.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/source.h"

/* The model's index of a thread of the slices; MODEL_NONE if the model does not have it. */
static uint32_t task_thread(const struct recording_pass *pass, uint32_t thread)
{
	const struct slice_thread *st = &pass->slices->threads[thread];

	for (size_t i = pass->model->threads.n; i--;)
		if (pass->model->threads.v[i].pid == st->pid &&
		    pass->model->threads.v[i].tid == st->tid)
			return (uint32_t)i;
	return MODEL_NONE;
}

/* Determines what an event loop's thread did while a task was ready. */

/* The search goes on to a callee if it took at least this percentage of the time. */
#define CALLEE_PERCENT 50

/* Above Python's default recursion limit. Deeper calls count as their caller's. */
#define DEPTH_MAX 1024

static uint64_t end_of(const struct slice *s)
{
	return s->start_ns + s->dur_ns;
}

static uint64_t overlap(const struct slice *s, uint64_t from_ns, uint64_t to_ns)
{
	return overlap_ns(s->start_ns, end_of(s), from_ns, to_ns);
}

/* Index of the first call that starts no earlier than time_ns. */
static size_t first_from(const struct slice_thread *t, uint64_t time_ns)
{
	return SEARCH(t->n, i, t->v[i].start_ns < time_ns);
}

/* Sets ret[depth], for each depth, to the last call that began before call number until; it may
 * have ended. Returns the number of depths. */
static size_t find_open(const struct slice_thread *t, size_t until, const struct slice **ret)
{
	size_t depths = 0;

	for (size_t i = 0; i < until; i++) {
		size_t depth = t->v[i].depth;

		if (depth >= DEPTH_MAX)
			continue;
		while (depths <= depth)
			ret[depths++] = NULL;
		ret[depth] = &t->v[i];
		depths = depth + 1;
	}
	return depths;
}

/* The call at that depth that took most of the time between from_ns and to_ns. */
static const struct slice *find_longest(const struct slice_thread *t, const struct slice *open,
                                        unsigned depth, uint64_t from_ns, uint64_t to_ns)
{
	const struct slice *best = open && overlap(open, from_ns, to_ns) ? open : NULL;

	for (size_t i = first_from(t, from_ns); i < t->n && t->v[i].start_ns < to_ns; i++)
		if (t->v[i].depth == depth &&
		    (!best || overlap(&t->v[i], from_ns, to_ns) > overlap(best, from_ns, to_ns)))
			best = &t->v[i];
	return best;
}

static bool is_of(const struct names *names, const struct slice *s, const char *file)
{
	return s && strstr(names_get(names, s->name), file);
}

static bool is_loop(const struct names *names, const struct slice *s)
{
	return is_of(names, s, "/asyncio/base_events.py:") ||
	       is_of(names, s, "/trio/_core/_run.py:");
}

static bool is_selector(const struct names *names, const struct slice *s)
{
	return is_of(names, s, "/selectors.py:") || is_of(names, s, "/trio/_core/_io_epoll.py:");
}

/* Whether the call runs the loop: it began before the delay and ended after it. uvloop's
 * own calls are not recorded. */
static bool runs_loop(const struct task_delay *d, const struct slice *s)
{
	return d->step != AIO_NONE && s->start_ns < d->start_ns && end_of(s) > d->end_ns;
}

/* Descends from the outermost call as long as one callee took most of its caller's time. If the
 * loop itself called a selector, the loop slept. */
static void find_busy(struct task_delay *d, const struct recording_pass *pass,
                      const struct slice_thread *t)
{
	const struct names *names = pass->slices->names;
	const struct slice *open[DEPTH_MAX], *found = NULL;
	size_t depths = find_open(t, first_from(t, d->start_ns), open);
	uint64_t from_ns = d->start_ns, to_ns = d->end_ns;

	for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
		const struct slice *s = find_longest(t, depth < depths ? open[depth] : NULL, depth,
		                                     from_ns, to_ns);

		if (!s || overlap(s, from_ns, to_ns) * 100 < (to_ns - from_ns) * CALLEE_PERCENT)
			break;
		if (is_loop(names, found) && is_selector(names, s)) {
			d->slept_ns = overlap(s, from_ns, to_ns);
			return;
		}
		from_ns = s->start_ns > from_ns ? s->start_ns : from_ns;
		to_ns = end_of(s) < to_ns ? end_of(s) : to_ns;
		found = s;
	}
	if (!found || is_loop(names, found) || runs_loop(d, found))
		return;
	d->function = found->name;
	d->busy_ns = to_ns - from_ns;
}

static uint64_t count_others(const struct aio *aio, const struct task_delay *d, uint32_t thread)
{
	uint64_t n = 0;

	for (size_t i = 0; i < aio->steps.n; i++) {
		const struct aio_step *s = &aio->steps.v[i];

		n += s->thread == thread && s->start_ns >= d->start_ns && s->start_ns < d->end_ns;
	}
	return n;
}

void task_delay_explain(struct task_delay *d, const struct recording_pass *pass, uint32_t thread)
{
	const struct stacks *frames = pass->source ? pass->source->frames : NULL;

	d->thread = task_thread(pass, thread);
	d->others = count_others(pass->slices->tasks, d, thread);
	find_busy(d, pass, &pass->slices->threads[thread]);
	if (d->thread != MODEL_NONE) {
		struct loops_wait w = loops_waited(pass->model, frames, d->thread, d->start_ns,
		                                   d->end_ns);

		d->gil_ns = w.ns;
		d->holder = w.holder;
		d->holder_frame = w.frame;
	}
}

/* The groups. */

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

/* ---- tasks as requests: why the slowest take longer than the fast half */

enum request_class { REQUEST_NEITHER, REQUEST_FAST, REQUEST_SLOW };

struct group_cause {
	uint32_t group;
	struct request_cause cause;
};

/* @class: by task; @known_ns: the part of its life that was added to causes; @ids: index of a cause */
struct request_maker {
	struct maker *m;
	uint8_t *class;
	uint64_t *known_ns;
	VEC(struct group_cause) causes;
	struct idmap ids;
};

static uint64_t life(const struct aio *aio, uint32_t task)
{
	return aio->v.v[task].last_ns - aio->v.v[task].first_ns;
}

/* For qsort_r. */
static int by_life(const void *va, const void *vb, void *data)
{
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;
	uint64_t a_ns = life(data, a), b_ns = life(data, b);

	return a_ns != b_ns ? (a_ns > b_ns ? 1 : -1) : (a > b) - (a < b);
}

static void add_cause(struct request_maker *r, uint32_t task, enum request_state state,
                      uint32_t function, uint32_t line, uint64_t ns)
{
	uint32_t group = r->m->ret->of[task], at;
	/* As in add_row, with the state. */
	uint64_t key = (uint64_t)group << 47 ^ (uint64_t)state << 44 ^ (uint64_t)function << 20 ^
	               line;
	struct request_cause *cause;

	r->known_ns[task] += ns;
	if (!ns)
		return;
	if (idmap_add(&r->ids, key, (uint32_t)r->causes.n, &at))
		*vec_push(&r->causes) = (struct group_cause){ group,
			                                      { state, function, line, 1, 0, 0 } };
	cause = &r->causes.v[at].cause;
	*(r->class[task] == REQUEST_FAST ? &cause->fast_ns : &cause->slow_ns) += ns;
}

static void add_request_step(struct request_maker *r, const struct aio_step *s)
{
	uint64_t late_ns = gil_wait(r->m, s->thread, s->ready_ns, s->start_ns);
	uint64_t run_ns = gil_wait(r->m, s->thread, s->start_ns, s->end_ns);

	add_cause(r, s->task, s->unknown ? REQUEST_UNKNOWN : REQUEST_WAITING,
	          s->unknown ? 0 : s->place, s->unknown ? 0 : s->line, s->ready_ns - s->from_ns);
	add_cause(r, s->task, REQUEST_LATE_GIL, 0, 0, late_ns);
	add_cause(r, s->task, REQUEST_LATE, 0, 0, s->start_ns - s->ready_ns - late_ns);
	add_cause(r, s->task, REQUEST_GIL, 0, 0, run_ns);
	add_cause(r, s->task, REQUEST_RUNNING, 0, 0, s->end_ns - s->start_ns - run_ns);
}

/* Sorts the tasks of a group, n of them, and divides them into classes. */
static void classify(struct request_maker *r, struct task_requests *of, uint32_t *tasks, size_t n)
{
	const struct aio *aio = r->m->aio;

	if (n < REQUESTS_LEAST)
		return;
	qsort_r(tasks, n, sizeof(*tasks), by_life, (void *)(uintptr_t)aio);
	of->count = n;
	of->fast = n / 2;
	of->slow = (n + 19) / 20;
	of->p50_ns = life(aio, tasks[n / 2]);
	of->p95_ns = life(aio, tasks[n * 95 / 100]);
	of->p99_ns = life(aio, tasks[n * 99 / 100]);
	of->longest_ns = life(aio, tasks[n - 1]);
	for (size_t i = 0; i < of->fast; i++)
		r->class[tasks[i]] = REQUEST_FAST;
	for (size_t i = n - of->slow; i < n; i++)
		r->class[tasks[i]] = REQUEST_SLOW;
	for (size_t i = n; i-- && of->slowest.n < REQUESTS_SLOWEST;)
		*vec_push(&of->slowest) = tasks[i];
}

/* By the difference of the means, which is that of these products. */
static int by_difference(const void *va, const void *vb, void *data)
{
	const struct request_cause *a = va, *b = vb;
	const struct task_requests *of = data;
	double difference = ((double)a->slow_ns - (double)b->slow_ns) / (double)of->slow -
	                    ((double)a->fast_ns - (double)b->fast_ns) / (double)of->fast;

	if (difference != 0)
		return difference < 0 ? 1 : -1;
	return a->state != b->state ? (int)a->state - (int)b->state
	                            : (a->line > b->line) - (a->line < b->line);
}

static void sort_causes(struct task_requests *of)
{
	struct request_cause *rest;

	if (!of->causes.n)
		return;
	qsort_r(of->causes.v, of->causes.n, sizeof(*of->causes.v), by_difference, of);
	if (of->causes.n <= REQUESTS_CAUSES)
		return;
	rest = &of->causes.v[REQUESTS_CAUSES - 1];
	rest->state = REQUEST_OTHERS;
	rest->function = rest->line = 0;
	for (size_t i = REQUESTS_CAUSES; i < of->causes.n; i++) {
		rest->causes++;
		rest->fast_ns += of->causes.v[i].fast_ns;
		rest->slow_ns += of->causes.v[i].slow_ns;
	}
	of->causes.n = REQUESTS_CAUSES;
}

/* Only tasks of which all of the life is known are requests. */
static void find_requests(struct maker *m)
{
	const struct aio *aio = m->aio;
	struct task_groups *ret = m->ret;
	CLEANUP(free) uint8_t *class = xcalloc(aio->v.n, sizeof(*class));
	CLEANUP(free) uint64_t *known_ns = xcalloc(aio->v.n, sizeof(*known_ns));
	CLEANUP(free) size_t *ends = xcalloc(ret->v.n + 1, sizeof(*ends));
	CLEANUP(free) uint32_t *tasks = xcalloc(aio->v.n, sizeof(*tasks));
	struct request_maker r = { .m = m, .class = class, .known_ns = known_ns };

	for (size_t i = 0, at = 0; i < ret->v.n; i++) {
		ends[i] = at;
		at += ret->v.v[i].tasks;
	}
	for (uint32_t i = 0; i < aio->v.n; i++) {
		const struct aio_task *t = &aio->v.v[i];

		if (t->created && (t->end == AIO_DONE || t->end == AIO_RAISED))
			tasks[ends[ret->of[i]]++] = i;
	}
	for (size_t i = 0, at = 0; i < ret->v.n; i++) {
		classify(&r, &ret->v.v[i].requests, &tasks[at], ends[i] - at);
		at += ret->v.v[i].tasks;
	}
	for (size_t i = 0; i < aio->steps.n; i++)
		if (class[aio->steps.v[i].task] != REQUEST_NEITHER)
			add_request_step(&r, &aio->steps.v[i]);
	for (uint32_t i = 0; i < aio->v.n; i++)
		if (class[i] != REQUEST_NEITHER && life(aio, i) > known_ns[i])
			add_cause(&r, i, REQUEST_UNKNOWN, 0, 0, life(aio, i) - known_ns[i]);
	for (size_t i = 0; i < r.causes.n; i++)
		*vec_push(&ret->v.v[r.causes.v[i].group].requests.causes) = r.causes.v[i].cause;
	for (size_t i = 0; i < ret->v.n; i++)
		sort_causes(&ret->v.v[i].requests);
	vec_done(&r.causes);
	idmap_done(&r.ids);
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
	vec_sort(&rows->v, compare_rows);
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
	find_requests(&m);
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
	for (size_t i = 0; i < groups->v.n; i++) {
		str_done(&groups->v.v[i].name);
		vec_done(&groups->v.v[i].requests.causes);
		vec_done(&groups->v.v[i].requests.slowest);
	}
	vec_done(&groups->v);
	vec_done(&groups->waits.v);
	vec_done(&groups->wakers.v);
	vec_done(&groups->creators.v);
	free(groups->of);
}

/* Counts how many tasks of a group are in each state over time. */

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
struct level_maker {
	uint64_t start_ns, dur_ns, width_ns;
	uint64_t sums[TASK_LEVELS][TASK_STATES];
	uint64_t more[TASK_LEVELS][TASK_STATES], fewer[TASK_LEVELS][TASK_STATES];
	struct change changes[CHANGES_MAX];
	size_t change_count;
	bool many;
};

static uint64_t clip(const struct level_maker *m, uint64_t time_ns)
{
	if (time_ns <= m->start_ns)
		return 0;
	return time_ns - m->start_ns < m->dur_ns ? time_ns - m->start_ns : m->dur_ns;
}

static void add_to_levels(struct level_maker *m, enum task_state state, uint64_t from_ns,
                          uint64_t to_ns)
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
static void add_level_tail(struct level_maker *m, const struct aio_task *t, uint64_t from_ns)
{
	uint64_t ready_ns = t->ready_ns ? t->ready_ns : t->last_ns;

	add_to_levels(m, aio_shows_ready(t->loop) || t->ready_ns ? TASK_WAITING : TASK_UNKNOWN,
	              from_ns, ready_ns);
	add_to_levels(m, TASK_LATE, ready_ns, t->last_ns);
}

static void add_tasks(struct level_maker *m, const struct task_groups *groups,
                      const struct aio *aio, uint32_t group)
{
	CLEANUP(free) uint64_t *from_ns = xcalloc(aio->v.n, sizeof(*from_ns));

	for (size_t i = 0; i < aio->v.n; i++)
		from_ns[i] = aio->v.v[i].first_ns;
	for (size_t i = 0; i < aio->steps.n; i++) {
		const struct aio_step *s = &aio->steps.v[i];

		if (groups->of[s->task] != group)
			continue;
		add_to_levels(m, s->unknown ? TASK_UNKNOWN : TASK_WAITING, s->from_ns, s->ready_ns);
		add_to_levels(m, TASK_LATE, s->ready_ns, s->start_ns);
		add_to_levels(m, TASK_RUNNING, s->start_ns, s->end_ns);
		from_ns[s->task] = s->end_ns;
	}
	for (size_t i = 0; i < aio->v.n; i++)
		if (groups->of[i] == group)
			add_level_tail(m, &aio->v.v[i], from_ns[i]);
}

static int compare(const void *va, const void *vb)
{
	const struct change *a = va, *b = vb;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Returns false if there would be too many levels. */
static bool make_exact(struct task_levels *ret, struct level_maker *m)
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

static void make_equal(struct task_levels *ret, const struct level_maker *m)
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
	CLEANUP(free) struct level_maker *m = xcalloc(1, sizeof(*m));

	*ret = (struct task_levels){ 0 };
	m->start_ns = model->start_ns;
	m->dur_ns = model->end_ns - model->start_ns;
	m->width_ns = m->dur_ns / TASK_LEVELS + 1;
	add_tasks(m, groups, pass->slices->tasks, group);
	ret->exact = !m->many && make_exact(ret, m);
	if (!ret->exact)
		make_equal(ret, m);
}

void task_levels_done(struct task_levels *levels)
{
	vec_done(&levels->v);
}
