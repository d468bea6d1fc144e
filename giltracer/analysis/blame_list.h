/* SPDX-License-Identifier: MIT */
/* Which threads waited for which, in a limited number of rows: all pairs of threads or, if there
 * are too many, pairs of groups. */
#ifndef GILTRACER_ANALYSIS_BLAME_LIST_H
#define GILTRACER_ANALYSIS_BLAME_LIST_H

#include "analysis/groups.h"

/**
 * @v: rows: pairs of threads in the model's order, or pairs of groups, the largest first;
 *	longest_waiter and longest_holder are the threads to name
 * @grouped: rows are pairs of groups
 * @others: for each group with further rows: their number (pairs) and sum (wait_ns);
 *	longest_waiter is a thread of the group
 * @caused_ns: if grouped: for each thread, how long others waited for it
 */
struct blame_list {
	VEC(struct group_blame) v, others;
	bool grouped;
	uint64_t *caused_ns;
};

/* Free with blame_list_done. */
void blame_list_init(struct blame_list *ret, const struct recording_pass *pass, enum wait_kind kind,
                     size_t most);
void blame_list_done(struct blame_list *list);

static inline void cleanup_blame_list_done(struct blame_list *list)
{
	blame_list_done(list);
}

#endif
