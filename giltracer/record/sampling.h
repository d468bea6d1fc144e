/* SPDX-License-Identifier: MIT */
/* Samples the stacks of a program that is being recorded. */
#ifndef GILTRACER_RECORD_SAMPLING_H
#define GILTRACER_RECORD_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "live/sampler.h"

/* Samples per second by default, if nothing else is recorded. */
#define SAMPLE_HZ 200

/* The size of the samples is limited to this fraction of --max-size. */
#define SAMPLING_SHARE 4

/**
 * @plan: path NULL: no samples are wanted; its pid is filled in
 * @must: nothing but samples is recorded
 * @sampler: set while samples are taken
 * @taken: the file exists
 * @note: why samples are missing or incomplete; or NULL. Owned
 */
struct sampling {
	struct sampler_plan plan;
	bool must;
	struct sampler *sampler;
	bool taken;
	char *note;
};

/* Fails only if nothing but samples is recorded. */
int sampling_start(struct sampling *sampling, pid_t pid, struct error *err);

/* Does nothing if no samples are being taken. */
void sampling_stop(struct sampling *sampling);

/* Call it after sampling_stop(). */
void sampling_done(struct sampling *sampling);

static inline void cleanup_sampling_done(struct sampling *sampling)
{
	sampling_done(sampling);
}

#endif
