/* SPDX-License-Identifier: MIT */
/* Groups threads by name. */
#include "analysis/thread_groups.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"
#include "base/alloc.h"
#include "base/cleanup.h"

static uint32_t add_group(struct thread_groups *groups, const char *name, uint32_t thread)
{
	struct thread_group *group = vec_push(&groups->v);

	*group = (struct thread_group){ .first = thread, .threads = 1 };
	str_adds(&group->name, name);
	return (uint32_t)groups->v.n - 1;
}

static uint32_t find_group(struct thread_groups *groups, const struct recording_pass *pass,
                           const char *name, uint32_t thread)
{
	for (uint32_t i = 0; i < groups->v.n; i++) {
		struct thread_group *group = &groups->v.v[i];

		if (pass->model->threads.v[group->first].main ||
		    strcmp(str_get(&group->name), name) != 0)
			continue;
		group->threads++;
		return i;
	}
	return add_group(groups, name, thread);
}

static void find_groups(struct thread_groups *groups, const struct recording_pass *pass)
{
	size_t n = pass->model->threads.n;

	*groups = (struct thread_groups){ .of = xcalloc(n + 1, sizeof(*groups->of)) };
	for (uint32_t i = 0; i < n; i++) {
		CLEANUP(str_done) struct str name = { 0 };

		if (pass->model->threads.v[i].main) {
			groups->of[i] = add_group(groups, facts_thread_name(pass, i), i);
			continue;
		}
		str_add_pattern(&name, facts_thread_name(pass, i));
		groups->of[i] = find_group(groups, pass, str_get(&name), i);
	}
}

static void add_thread(struct model_thread *sum, const struct model_thread *t)
{
	sum->end_ns += t->end_ns - t->start_ns;
	for (unsigned s = 0; s < GIL_STATES; s++)
		sum->gil_ns[s] += t->gil_ns[s];
	for (unsigned s = 0; s < CPU_STATES; s++)
		sum->cpu_ns[s] += t->cpu_ns[s];
	sum->probe_cost_ns += t->probe_cost_ns;
	sum->calls_cost_ns += t->calls_cost_ns;
	sum->suspended_ns += t->suspended_ns;
	if (t->longest_wait_ns > sum->longest_wait_ns)
		sum->longest_wait_ns = t->longest_wait_ns;
	if (t->longest_hold_ns > sum->longest_hold_ns)
		sum->longest_hold_ns = t->longest_hold_ns;
	if (t->longest_lock_wait_ns > sum->longest_lock_wait_ns)
		sum->longest_lock_wait_ns = t->longest_lock_wait_ns;
	if (t->longest_stop_ns > sum->longest_stop_ns)
		sum->longest_stop_ns = t->longest_stop_ns;
}

static int compare_groups(const void *a, const void *b)
{
	const struct thread_group *x = a, *y = b;
	int order = facts_compare_threads(&x->sum, &y->sum);

	return order ? order : (x->first > y->first) - (x->first < y->first);
}

/* Removes groups without threads and sorts the others. */
static void settle(struct thread_groups *groups, const struct recording_pass *pass)
{
	size_t threads = pass->model->threads.n, kept = 0;
	CLEANUP(free) uint32_t *by_first = xcalloc(threads + 1, sizeof(*by_first));

	for (uint32_t i = 0; i < threads; i++)
		add_thread(&groups->v.v[groups->of[i]].sum, &pass->model->threads.v[i]);
	for (uint32_t i = 0; i < threads; i++)
		groups->of[i] = groups->v.v[groups->of[i]].first;
	for (size_t i = 0; i < groups->v.n; i++) {
		if (groups->v.v[i].threads)
			groups->v.v[kept++] = groups->v.v[i];
		else
			str_done(&groups->v.v[i].name);
	}
	groups->v.n = kept;
	if (kept)
		qsort(groups->v.v, kept, sizeof(*groups->v.v), compare_groups);
	for (uint32_t i = 0; i < kept; i++)
		by_first[groups->v.v[i].first] = i;
	for (uint32_t i = 0; i < threads; i++)
		groups->of[i] = by_first[groups->of[i]];
}

void thread_groups_init(struct thread_groups *groups, const struct recording_pass *pass)
{
	find_groups(groups, pass);
	settle(groups, pass);
}

void thread_groups_init_table(struct thread_groups *groups, const struct recording_pass *pass)
{
	size_t n = pass->model->threads.n, before;

	find_groups(groups, pass);
	before = groups->v.n;
	for (size_t i = 0; i < before; i++)
		if (groups->v.v[i].threads > 1 &&
		    (n <= GROUPS_FROM || groups->v.v[i].threads < GROUP_MIN_THREADS))
			groups->v.v[i].threads = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!groups->v.v[groups->of[i]].threads)
			groups->of[i] = add_group(groups, facts_thread_name(pass, i), i);
	settle(groups, pass);
}

void thread_groups_done(struct thread_groups *groups)
{
	for (size_t i = 0; i < groups->v.n; i++)
		str_done(&groups->v.v[i].name);
	vec_done(&groups->v);
	free(groups->of);
}
