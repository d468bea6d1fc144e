/* SPDX-License-Identifier: MIT */
/* Lists who waited for whom: pairs of threads or, if there are too many, pairs of groups. */
#include "analysis/blame_list.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/* Adds up the rows from index from on, which are not listed, by waiting group. */
static void add_others(struct blame_list *ret, const struct thread_groups *groups,
                       const struct group_blames *rows, size_t from)
{
	CLEANUP(free) struct group_blame *sums = xcalloc(groups->v.n + 1, sizeof(*sums));

	for (size_t i = from; i < rows->v.n; i++) {
		sums[rows->v.v[i].waiter].pairs += rows->v.v[i].pairs;
		sums[rows->v.v[i].waiter].wait_ns += rows->v.v[i].wait_ns;
	}
	for (size_t i = 0; i < groups->v.n; i++) {
		sums[i].longest_waiter = groups->v.v[i].first;
		if (sums[i].pairs)
			*vec_push(&ret->others) = sums[i];
	}
}

static void add_groups(struct blame_list *ret, const struct recording_pass *pass,
                       enum wait_kind kind, size_t most)
{
	struct thread_groups groups;
	struct group_blames rows;

	thread_groups_init_table(&groups, pass);
	rows = group_blames_find(&groups, pass->model, kind);
	for (size_t i = 0; i < rows.v.n && i < most; i++)
		*vec_push(&ret->v) = rows.v.v[i];
	add_others(ret, &groups, &rows, most);
	vec_done(&rows.v);
	thread_groups_done(&groups);
}

void blame_list_init(struct blame_list *ret, const struct recording_pass *pass, enum wait_kind kind,
                     size_t most)
{
	size_t n = blame_pair_count(pass->model, kind);

	*ret = (struct blame_list){ .grouped = n > most };
	if (ret->grouped) {
		ret->caused_ns = xcalloc(pass->model->threads.n + 1, sizeof(*ret->caused_ns));
		add_groups(ret, pass, kind, most);
	}
	for (size_t i = 0; i < n; i++) {
		struct group_blame pair = blame_pair(pass->model, kind, i);

		if (!ret->grouped)
			*vec_push(&ret->v) = pair;
		else if (pair.holder < MODEL_UNKNOWN)
			ret->caused_ns[pair.holder] += pair.wait_ns;
	}
}

void blame_list_done(struct blame_list *list)
{
	vec_done(&list->v);
	vec_done(&list->others);
	free(list->caused_ns);
}
