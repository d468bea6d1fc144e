/* SPDX-License-Identifier: MIT */
/* Groups threads by name. */
#include "analysis/groups.h"

#include <stddef.h>
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

/* Adds all numbers of a thread, by their place in struct model_thread. */
static void add_thread(struct model_thread *sum, const struct model_thread *t)
{
	const size_t sums = offsetof(struct model_thread, gil_ns);
	const size_t longest = offsetof(struct model_thread, longest_hold_ns);
	const size_t end = offsetof(struct model_thread, gil);
	uint64_t *to = (uint64_t *)((char *)sum + sums);
	const uint64_t *from = (const uint64_t *)((const char *)t + sums);

	sum->end_ns += t->end_ns - t->start_ns;
	for (size_t i = 0; i < (longest - sums) / sizeof(*to); i++)
		to[i] += from[i];
	to = (uint64_t *)((char *)sum + longest);
	from = (const uint64_t *)((const char *)t + longest);
	for (size_t i = 0; i < (end - longest) / sizeof(*to); i += 2) {
		if (from[i] <= to[i])
			continue;
		to[i] = from[i];
		to[i + 1] = from[i + 1];
	}
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

/* Adds up the model's rows by groups, waiter by waiter, in time proportional to the number of
 * rows. */

/**
 * State while rows are added up.
 * @slots: by holder: 1 + index of its row in ret, valid if that row is the current waiter's
 */
struct adding {
	const struct thread_groups *groups;
	const struct model *model;
	enum wait_kind kind;
	size_t *slots;
	struct group_blames *ret;
};

size_t blame_pair_count(const struct model *model, enum wait_kind kind)
{
	switch (kind) {
	case WAIT_FOR_GIL:
		return model->blame.n;
	case WAIT_FOR_LOCK:
	case WAIT_STOPPED:
		return model->lock_blame.n;
	case WAIT_FOR_CPU:
		return model->cpu_blame.n;
	}
	return 0;
}

static struct group_blame gil_pair(const struct model_blame *b)
{
	return (struct group_blame){
		.kind = WAIT_FOR_GIL,
		.waiter = b->waiter,
		.holder = b->holder,
		.wait_ns = b->wait_ns,
		.longest_ns = b->longest_ns,
		.longest_at_ns = b->longest_at_ns,
	};
}

static struct group_blame lock_pair(const struct model_lock_blame *b)
{
	return (struct group_blame){
		.kind = b->state == GIL_STOPPED ? WAIT_STOPPED : WAIT_FOR_LOCK,
		.waiter = b->waiter,
		.holder = b->by,
		.wait_ns = b->wait_ns,
		.longest_ns = b->longest_ns,
		.longest_at_ns = b->longest_at_ns,
	};
}

static struct group_blame cpu_pair(const struct model_cpu_blame *b)
{
	return (struct group_blame){
		.kind = WAIT_FOR_CPU,
		.waiter = b->thread,
		.holder = b->by,
		.name = b->by == MODEL_NONE ? b->name : 0,
		.wait_ns = b->runnable_ns,
		.longest_ns = b->runnable_ns,
	};
}

struct group_blame blame_pair(const struct model *model, enum wait_kind kind, size_t i)
{
	struct group_blame pair = kind == WAIT_FOR_GIL   ? gil_pair(&model->blame.v[i])
	                          : kind == WAIT_FOR_CPU ? cpu_pair(&model->cpu_blame.v[i])
	                                                 : lock_pair(&model->lock_blame.v[i]);

	pair.pairs = 1;
	pair.longest_waiter = pair.waiter;
	pair.longest_holder = pair.holder;
	return pair;
}

/* Indices of the rows, grouped by waiting group; caller frees. */
static size_t *order_rows(const struct adding *a, size_t n)
{
	CLEANUP(free) size_t *at = xcalloc(a->groups->v.n + 1, sizeof(*at));
	size_t *order = xcalloc(n + 1, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		at[a->groups->of[blame_pair(a->model, a->kind, i).waiter] + 1]++;
	for (size_t c = 0; c < a->groups->v.n; c++)
		at[c + 1] += at[c];
	for (size_t i = 0; i < n; i++)
		order[at[a->groups->of[blame_pair(a->model, a->kind, i).waiter]]++] = i;
	return order;
}

/* Slots of one waiter: groups, unknown, none, programs; then the same again for WAIT_STOPPED. */
static size_t slot_of(const struct adding *a, const struct group_blame *row)
{
	size_t first = row->kind == WAIT_STOPPED ? a->groups->v.n + 2 : 0;

	if (row->holder < MODEL_UNKNOWN)
		return first + a->groups->of[row->holder];
	return first + a->groups->v.n + (row->holder == MODEL_NONE) + row->name;
}

static void add_row(struct adding *a, const struct group_blame *row)
{
	uint32_t waiter = a->groups->of[row->waiter];
	size_t *slot = &a->slots[slot_of(a, row)];
	struct group_blame *sum;

	if (!*slot || a->ret->v.v[*slot - 1].waiter != waiter) {
		*vec_push(&a->ret->v) = (struct group_blame){
			.kind = row->kind,
			.waiter = waiter,
			.holder = row->holder < MODEL_UNKNOWN ? a->groups->of[row->holder]
			                                      : row->holder,
			.name = row->name,
		};
		*slot = a->ret->v.n;
	}
	sum = &a->ret->v.v[*slot - 1];
	sum->wait_ns += row->wait_ns;
	if (!sum->pairs++ || row->longest_ns > sum->longest_ns) {
		sum->longest_ns = row->longest_ns;
		sum->longest_at_ns = row->longest_at_ns;
		sum->longest_waiter = row->waiter;
		sum->longest_holder = row->holder;
	}
}

static int compare_blames(const void *a, const void *b)
{
	const struct group_blame *x = a, *y = b;

	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->waiter != y->waiter)
		return x->waiter < y->waiter ? -1 : 1;
	if (x->holder != y->holder)
		return x->holder < y->holder ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

struct group_blames group_blames_find(const struct thread_groups *groups, const struct model *model,
                                      enum wait_kind kind)
{
	struct group_blames ret = { 0 };
	struct adding a = { groups, model, kind, NULL, &ret };
	size_t n = blame_pair_count(model, kind), names = 0;
	CLEANUP(free) size_t *order = order_rows(&a, n);

	for (size_t i = 0; kind == WAIT_FOR_CPU && i < n; i++)
		if (model->cpu_blame.v[i].name > names)
			names = model->cpu_blame.v[i].name;
	a.slots = xcalloc(2 * (groups->v.n + 2) + names, sizeof(*a.slots));
	for (size_t i = 0; i < n; i++) {
		struct group_blame row = blame_pair(model, kind, order[i]);

		add_row(&a, &row);
		ret.wait_ns += row.wait_ns;
	}
	free(a.slots);
	vec_sort(&ret.v, compare_blames);
	return ret;
}
