/* SPDX-License-Identifier: MIT */
/* Computes all facts: of each pass alone, and of the recording. The verdict uses all the others, and
 * the findings the verdict. */
#include "analysis/analysis.h"

#include <stdlib.h>

#include "analysis/whatif.h"
#include "base/alloc.h"

void holds_find(struct holds *ret, const struct model *model, struct source *source, unsigned cpus)
{
	*ret = (struct holds){ 0 };
	if (!model->gil_events)
		return;
	hogs_find(&ret->hogs, model, source->frames, HOGS_INTERVAL_NS);
	hogs_find_native(&ret->hogs, source);
	whatif_find(&ret->hogs, model, source->frames, cpus, HOGS_INTERVAL_NS);
	patterns_find(&ret->patterns, model, source->frames, HOGS_INTERVAL_NS);
}

void holds_done(struct holds *holds)
{
	hogs_done(&holds->hogs);
	patterns_done(&holds->patterns);
}

bool analysis_without_gil(struct whatif_free *ret, const struct analysis *a)
{
	static const struct whatif_options defaults = WHATIF_OPTIONS_DEFAULT;
	const struct hogs none = { 0 };

	if (a->locks || !a->model->gil_events || a->pass->attached)
		return false;
	whatif_free_find(ret, a->pass->hogs ? a->pass->hogs : &none, a->model,
	                 functions_frames(a->pass), a->recording->cpus, HOGS_INTERVAL_NS,
	                 a->recording->without_gil ? a->recording->without_gil : &defaults);
	return true;
}

struct analysis *analysis_new(const struct recording *recording)
{
	struct analysis *a = xcalloc(1, sizeof(*a));

	a->recording = recording;
	a->pass = recording_main_pass(recording);
	a->model = a->pass->model;
	a->locks = locks_of_pass(a->pass);
	thread_groups_init(&a->groups, a->pass);
	thread_groups_init_table(&a->rows, a->pass);
	a->gil_waits = group_blames_find(&a->rows, a->model, WAIT_FOR_GIL);
	a->lock_waits = group_blames_find(&a->rows, a->model, WAIT_FOR_LOCK);
	a->cpu_waits = group_blames_find(&a->rows, a->model, WAIT_FOR_CPU);
	a->overdue = functions_rows(a->pass, true);
	a->holders = functions_rows(a->pass, false);
	a->places = locks_places(a->pass, MODEL_NONE);
	a->chains = chains_find(a->pass);
	a->path = path_find(a->pass, NULL);
	a->cpu_users = cpu_users_find(a->pass);
	a->sampled = sampled_find(a->pass);
	task_groups_init(&a->tasks, a->pass);
	a->thread_order = facts_thread_order(a->model);
	a->blame_order = facts_blame_order(a->model);
	a->lock_blame_order = facts_lock_blame_order(a->model);
	a->counters = counters_find(a->pass, a->thread_order);
	a->caveats = facts_caveats(recording);
	verdict_find(&a->verdict, a);
	findings_find(&a->findings, a);
	a->lines = lines_find(a->pass, &a->chains);
	return a;
}

void analysis_free(struct analysis *a)
{
	if (!a)
		return;
	thread_groups_done(&a->groups);
	thread_groups_done(&a->rows);
	vec_done(&a->gil_waits.v);
	vec_done(&a->lock_waits.v);
	vec_done(&a->cpu_waits.v);
	vec_done(&a->overdue.v);
	vec_done(&a->holders.v);
	vec_done(&a->places.v);
	vec_done(&a->chains.v);
	vec_done(&a->path.rows);
	vec_done(&a->cpu_users.list);
	vec_done(&a->counters.v);
	sampled_done(&a->sampled);
	task_groups_done(&a->tasks);
	free(a->thread_order);
	free(a->blame_order);
	free(a->lock_blame_order);
	vec_done(&a->caveats);
	verdict_done(&a->verdict);
	findings_done(&a->findings);
	vec_done(&a->lines.v);
	free(a);
}
