/* SPDX-License-Identifier: MIT */
/*
 * Samples the Python stacks of a process and its descendants by a thread of ours while the process
 * runs. It is neither stopped nor changed.
 * There is one sample per period, at a random moment of it: samples at equal distances would be
 * biased if the program does something at equal distances, such as requesting the GIL after 5 ms.
 */
#ifndef GILTRACER_LIVE_SAMPLER_H
#define GILTRACER_LIVE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/**
 * @path: of the file, which trace/samples.h describes
 * @hz: samples per second
 * @gil_only: of the GIL's holder alone, if there is one
 * @children: of its descendants, too
 * @max_bytes: of the file; then sampling ends
 */
struct sampler_plan {
	pid_t pid;
	const char *path;
	unsigned hz;
	bool gil_only, children;
	uint64_t max_bytes;
};

/**
 * @samples: how many were taken; @missed: how many were not, in time
 * @full: the file became as large as it may
 * @cpu_ns: what it cost
 */
struct sampler_totals {
	uint64_t samples, missed, cpu_ns;
	bool full;
};

struct sampler;

/* Errors: those of target_open of pid, and of making the file. End with sampler_stop. */
int sampler_start(struct sampler **ret, const struct sampler_plan *plan, struct error *err);

/* Reports errors of writing; the sampler is freed in any case. ret may be NULL. Does nothing for
 * NULL. */
int sampler_stop(struct sampler *sampler, struct sampler_totals *ret, struct error *err);

#endif
