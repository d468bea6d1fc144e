/* SPDX-License-Identifier: MIT */
/*
 * Samples the Python stacks of a process and its descendants in a thread of ours, while the process
 * runs. It is neither stopped nor changed. There is one sample per period, at a random time in it:
 * samples at equal intervals would be biased if the program does something at equal intervals, such
 * as requesting the GIL after 5 ms.
 */
#ifndef GILTRACER_LIVE_SAMPLER_H
#define GILTRACER_LIVE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/**
 * @path: of the file, in the format of trace/samples.h
 * @hz: samples per second
 * @gil_only: sample only the GIL's holder, if there is one
 * @children: sample its descendants, too
 * @max_bytes: limit of the file's size, at which sampling ends
 */
struct sampler_plan {
	pid_t pid;
	const char *path;
	unsigned hz;
	bool gil_only, children;
	uint64_t max_bytes;
};

/**
 * @samples: how many were taken; @missed: how many were missed for lack of time
 * @full: the file has reached its limit
 * @cpu_ns: CPU time spent on sampling
 */
struct sampler_totals {
	uint64_t samples, missed, cpu_ns;
	bool full;
};

struct sampler;

/* Errors: those of target_open for pid, and of creating the file. End with sampler_stop. */
int sampler_start(struct sampler **ret, const struct sampler_plan *plan, struct error *err);

/* Reports errors of writing; the sampler is freed in any case. ret and sampler may be NULL. */
int sampler_stop(struct sampler *sampler, struct sampler_totals *ret, struct error *err);

#endif
