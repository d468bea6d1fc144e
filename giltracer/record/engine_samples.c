/* SPDX-License-Identifier: MIT */
/* No events: the stacks of all threads are read from outside, again and again (live/sampler.h). */
#include "record/engine.h"
#include "record/job.h"
#include "record/notes.h"

static int check(struct job *job, struct error *err)
{
	(void)job;
	(void)err;
	return 0;
}

const struct engine engine_samples = {
	.name = "samples",
	.instead = "samples of the stacks instead of GIL events: ",
	.failed = "",
	.no_states = NOTE_STATES_SAMPLED,
	.perf = ENGINE_WITHOUT_PERF,
	.knows_releases = true,
	.samples = true,
	.check = check,
};
