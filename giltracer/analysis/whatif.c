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
	struct replayed result;
	pthread_t thread;
	bool threaded;
};

static void *run(void *data)
{
	struct job *job = data;

	job->result = replay(job->model, job->hogs, job->groups, job->group, job->cpus,
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

static double lost(const struct replayed *r)
{
	return r->waited + r->shared;
}

/* Divides the gain of the job's group, whose number is that of its first row, among its rows. */
static void share_out(struct hogs *hogs, const struct stacks *frames, const struct job *job,
                      double gain)
{
	const struct hog *of = &hogs->v.v[job->group];
	double charged = 0;

	for (size_t i = job->group; i < hogs->v.n; i++)
		if (same_group(frames, of->thread, of->frame, hogs->v.v[i].thread,
		               hogs->v.v[i].frame))
			charged += (double)hogs->v.v[i].overdue_wait_ns;
	if (gain < 0)
		gain = 0;
	else if (gain > charged)
		gain = charged;
	for (size_t i = job->group; i < hogs->v.n; i++) {
		struct hog *hog = &hogs->v.v[i];

		if (!hog->overdue_wait_ns ||
		    !same_group(frames, of->thread, of->frame, hog->thread, hog->frame))
			continue;
		hog->no_gain = job->result.aborted ? NO_GAIN_TOO_LONG : GAIN_KNOWN;
		hog->gain_ns = (uint64_t)(gain * ((double)hog->overdue_wait_ns / charged));
	}
}

/* A thread without GIL events, such as one of OpenBLAS, did not wait for a GIL. */
static bool is_vague(const struct model *m)
{
	double unknown = 0, life = 0;

	for (size_t i = 0; i < m->threads.n; i++) {
		if (!m->threads.v[i].gil_events)
			continue;
		unknown += (double)m->threads.v[i].gil_ns[GIL_UNKNOWN];
		life += (double)(m->threads.v[i].end_ns - m->threads.v[i].start_ns);
	}
	return unknown * 100 > life * WHATIF_UNKNOWN;
}

/* Whether the replay without a change waits as long as the recording. */
static bool is_faithful(struct hogs *hogs, const struct model *m, double replayed)
{
	double handed_over = 0, waited = 0;

	for (size_t i = 0; i < m->blame.n; i++) {
		waited += (double)m->blame.v[i].wait_ns;
		if (m->blame.v[i].holder == MODEL_NONE)
			handed_over += (double)m->blame.v[i].wait_ns;
	}
	hogs->waited_ns = (uint64_t)waited;
	hogs->replayed_ns = (uint64_t)replayed;
	return replayed * 100 >= (waited - handed_over) * (100 - WHATIF_DIFFERENCE) &&
	       replayed * 100 <= waited * (100 + WHATIF_DIFFERENCE);
}

static void set_no_gain(struct hogs *hogs, enum no_gain why)
{
	for (size_t i = 0; i < hogs->v.n; i++)
		hogs->v.v[i].no_gain = hogs->v.v[i].overdue_wait_ns ? why : GAIN_KNOWN;
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

	set_no_gain(hogs, NO_GAIN_UNKNOWN);
	if (!hogs->v.n || !hogs->v.v[0].overdue_wait_ns || is_vague(model))
		return;
	set_no_gain(hogs, NO_GAIN_LITTLE);
	for (size_t i = 0; i < model->threads.n; i++)
		wait_ns += model->threads.v[i].gil_ns[GIL_WAIT];
	groups = group_overdue_holds(hogs, frames);
	jobs[0] = (struct job){ .model = model,
		                .hogs = hogs,
		                .groups = groups,
		                .group = REPLAY_NO_GROUP,
		                .cpus = cpus,
		                .interval_ns = interval_ns };
	for (uint32_t i = 0; i < hogs->v.n && n <= WHATIF_FUNCTIONS; i++) {
		const struct hog *hog = &hogs->v.v[i];

		if (!is_worth_it(hog, wait_ns) ||
		    group_of(hogs, frames, hog->thread, hog->frame) != i)
			continue;
		jobs[n] = jobs[0];
		jobs[n++].group = i;
	}
	if (n == 1)
		return;
	run_all(jobs, n);
	if (jobs[0].result.aborted) {
		set_no_gain(hogs, NO_GAIN_TOO_LONG);
		return;
	}
	if (!is_faithful(hogs, model, jobs[0].result.waited)) {
		set_no_gain(hogs, NO_GAIN_DIFFERENT);
		return;
	}
	for (unsigned i = 1; i < n; i++)
		share_out(hogs, frames, &jobs[i], lost(&jobs[0].result) - lost(&jobs[i].result));
}
