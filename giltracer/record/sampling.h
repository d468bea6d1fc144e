/* SPDX-License-Identifier: MIT */
/* Samples of the stacks of a program that is being recorded. */
#ifndef GILTRACER_RECORD_SAMPLING_H
#define GILTRACER_RECORD_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "live/sampler.h"

/* Per second, where none were asked for and there is nothing else. */
#define SAMPLE_HZ 200

/* Samples of at most this part of what may be recorded. */
#define SAMPLING_SHARE 4

/**
 * @plan: path NULL: no samples are wanted; its pid is filled in
 * @must: they are all that is recorded
 * @sampler: while they are taken
 * @taken: there is a file
 * @note: why there is none, or not all of it; or NULL. Owned
 */
struct sampling {
	struct sampler_plan plan;
	bool must;
	struct sampler *sampler;
	bool taken;
	char *note;
};

/* Errors: only if there must be samples. */
int sampling_start(struct sampling *sampling, pid_t pid, struct error *err);

/* Does nothing if they are not being taken. */
void sampling_stop(struct sampling *sampling);

/* It is stopped. */
void sampling_done(struct sampling *sampling);

static inline void cleanup_sampling_done(struct sampling *sampling)
{
	sampling_done(sampling);
}

#endif
