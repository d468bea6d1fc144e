/* SPDX-License-Identifier: MIT */
/* Determines what an event loop's thread did while a task was ready. */
#include <string.h>

#include "analysis/loops.h"
#include "analysis/task_groups.h"
#include "base/vec.h"
#include "trace/names.h"
#include "trace/source.h"

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
	uint64_t from = s->start_ns > from_ns ? s->start_ns : from_ns;
	uint64_t to = end_of(s) < to_ns ? end_of(s) : to_ns;

	return to > from ? to - from : 0;
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
