/* SPDX-License-Identifier: MIT */
/* What-if estimates: which overdue holds release the GIL together, and how a gain is divided among
 * rows. */
#include "analysis/whatif.h"

#include <stdlib.h>

#include "analysis/replay.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/thread.h"

/* One replay, in a thread of its own if one can be created. */
struct job {
	const struct model *model;
	const struct hogs *hogs;
	const uint32_t *groups;
	uint32_t group;
	unsigned cpus;
	uint64_t interval_ns;
	double lost;
	pthread_t thread;
	bool threaded;
};

static void *run(void *data)
{
	struct job *job = data;

	job->lost = replay(job->model, job->hogs, job->groups, job->group, job->cpus,
	                   job->interval_ns);
	return NULL;
}

static void run_all(struct job *jobs, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		jobs[i].threaded = thread_start(&jobs[i].thread, run, &jobs[i]) == 0;
	for (unsigned i = 0; i < n; i++) {
		if (jobs[i].threaded)
			pthread_join(jobs[i].thread, NULL);
		else
			run(&jobs[i]);
	}
}

/* A group is one function or, if the function is unknown, one thread. */
static bool same_group(const struct stacks *frames, uint32_t thread_a, uint32_t frame_a,
                       uint32_t thread_b, uint32_t frame_b)
{
	if (!frame_a && !frame_b)
		return thread_a == thread_b;
	return hogs_same_function(frames, frame_a, frame_b);
}

/* A group's number is the index of its first row. */
static uint32_t group_of(const struct hogs *hogs, const struct stacks *frames, uint32_t thread,
                         uint32_t frame)
{
	for (uint32_t i = 0; i < hogs->v.n; i++)
		if (same_group(frames, hogs->v.v[i].thread, hogs->v.v[i].frame, thread, frame))
			return i;
	return REPLAY_NO_GROUP;
}

static uint32_t *group_overdue_holds(const struct hogs *hogs, const struct stacks *frames)
{
	uint32_t *groups = xcalloc(hogs->overdue.n + 1, sizeof(*groups));

	for (size_t i = 0; i < hogs->overdue.n; i++) {
		const struct hog_overdue *hold = &hogs->overdue.v[i];

		if (i &&
		    same_group(frames, hold->thread, hold->frame, hold[-1].thread, hold[-1].frame))
			groups[i] = groups[i - 1];
		else
			groups[i] = group_of(hogs, frames, hold->thread, hold->frame);
	}
	return groups;
}

/* Divides the gain of the group whose first row is group among its rows. */
static void share_out(struct hogs *hogs, const struct stacks *frames, uint32_t group, double gain)
{
	const struct hog *of = &hogs->v.v[group];
	double charged = 0;

	for (size_t i = group; i < hogs->v.n; i++)
		if (same_group(frames, of->thread, of->frame, hogs->v.v[i].thread,
		               hogs->v.v[i].frame))
			charged += (double)hogs->v.v[i].overdue_wait_ns;
	if (gain < 0)
		gain = 0;
	else if (gain > charged)
		gain = charged;
	for (size_t i = group; i < hogs->v.n; i++) {
		struct hog *hog = &hogs->v.v[i];

		if (hog->overdue_wait_ns &&
		    same_group(frames, of->thread, of->frame, hog->thread, hog->frame))
			hog->gain_ns = (uint64_t)(gain * ((double)hog->overdue_wait_ns / charged));
	}
}

static bool is_vague(const struct model *m)
{
	double unknown = 0, life = 0;

	for (size_t i = 0; i < m->threads.n; i++) {
		unknown += (double)m->threads.v[i].gil_ns[GIL_UNKNOWN];
		life += (double)(m->threads.v[i].end_ns - m->threads.v[i].start_ns);
	}
	return unknown * 100 > life * WHATIF_UNKNOWN;
}

static bool is_worth_it(const struct hog *hog, uint64_t wait_ns)
{
	return hog->overdue_wait_ns && hog->overdue_wait_ns >= wait_ns / 100 * WHATIF_PERCENT;
}

void whatif_find(struct hogs *hogs, const struct model *model, const struct stacks *frames,
                 unsigned cpus, uint64_t interval_ns)
{
	CLEANUP(free) uint32_t *groups = NULL;
	struct job jobs[1 + WHATIF_FUNCTIONS];
	uint64_t wait_ns = 0;
	unsigned n = 1;

	for (size_t i = 0; i < hogs->v.n; i++)
		hogs->v.v[i].gain_ns = hogs->v.v[i].overdue_wait_ns ? HOGS_NO_GAIN : 0;
	if (!hogs->v.n || !hogs->v.v[0].overdue_wait_ns || is_vague(model))
		return;
	for (size_t i = 0; i < model->threads.n; i++)
		wait_ns += model->threads.v[i].gil_ns[GIL_WAIT];
	groups = group_overdue_holds(hogs, frames);
	jobs[0] = (struct job){
		model, hogs, groups, REPLAY_NO_GROUP, cpus, interval_ns, 0, 0, false
	};
	for (uint32_t i = 0; i < hogs->v.n && n <= WHATIF_FUNCTIONS; i++) {
		const struct hog *hog = &hogs->v.v[i];

		if (!is_worth_it(hog, wait_ns) ||
		    group_of(hogs, frames, hog->thread, hog->frame) != i)
			continue;
		jobs[n] = jobs[0];
		jobs[n++].group = i;
	}
	if (n > 1)
		run_all(jobs, n);
	for (unsigned i = 1; i < n && jobs[0].lost >= 0; i++)
		if (jobs[i].lost >= 0)
			share_out(hogs, frames, jobs[i].group, jobs[0].lost - jobs[i].lost);
}
