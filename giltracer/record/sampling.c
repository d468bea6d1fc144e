/* SPDX-License-Identifier: MIT */
#include "record/sampling.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "record/notes.h"

static void set_note(struct sampling *sampling, char *note)
{
	free(sampling->note);
	sampling->note = note;
}

int sampling_start(struct sampling *sampling, pid_t pid, struct error *err)
{
	struct error why;

	if (!sampling->plan.path || sampling->sampler)
		return 0;
	sampling->plan.pid = pid;
	if (sampler_start(&sampling->sampler, &sampling->plan, &why) == 0) {
		sampling->taken = true;
		return 0;
	}
	if (sampling->must) {
		*err = why;
		return -1;
	}
	set_note(sampling, xasprintf(NOTE_NO_SAMPLES, why.text));
	return 0;
}

void sampling_stop(struct sampling *sampling)
{
	struct sampler_totals totals = { 0 };
	struct error err;

	if (!sampling->sampler)
		return;
	if (sampler_stop(take(sampling->sampler), &totals, &err) < 0)
		set_note(sampling, xasprintf(NOTE_SAMPLES_MISSING, err.text));
	else if (totals.full)
		set_note(sampling, xstrdup(NOTE_SAMPLES_FULL));
	log_debug("%llu samples, %llu missed, %.3f s of CPU time",
	          (unsigned long long)totals.samples, (unsigned long long)totals.missed,
	          (double)totals.cpu_ns / 1e9);
}

void sampling_done(struct sampling *sampling)
{
	sampling_stop(sampling);
	free(sampling->note);
	sampling->note = NULL;
}
