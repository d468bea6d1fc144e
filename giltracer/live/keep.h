/* SPDX-License-Identifier: MIT */
/* Keeps the samples of the last seconds in bounded memory, as parts of a file of samples. The
 * oldest part is dropped when the others go back far enough. */
#ifndef GILTRACER_LIVE_KEEP_H
#define GILTRACER_LIVE_KEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct keep;
struct snapshot;

/**
 * @hz: samples per second, for the file's header
 * @seconds: how much is kept; in fact up to a quarter more
 * @max_bytes: of memory for samples; if they need more, less than seconds is kept
 */
struct keep_plan {
	unsigned hz, seconds;
	uint64_t max_bytes;
};

struct keep *keep_new(const struct keep_plan *plan, uint64_t now_ns);
void keep_free(struct keep *keep);
DEFINE_CLEANUP(struct keep *, keep_free);

/* Snapshots must come in order of time. */
void keep_add(struct keep *keep, pid_t pid, const struct snapshot *snapshot);

/* The code objects of earlier snapshots are freed, and others may get their addresses. */
void keep_forget_codes(struct keep *keep);

/* This many samples were missed before the next one. */
void keep_missed(struct keep *keep, uint64_t count);

/* The time since which samples are kept, CLOCK_MONOTONIC. */
uint64_t keep_start_ns(const struct keep *keep);

/* Whether less is kept than planned because memory is bounded. */
bool keep_is_short(const struct keep *keep);

/* Write the kept samples to a file (trace/samples.h) that ends at end_ns. They remain kept. */
int keep_write(struct keep *keep, const char *path, uint64_t end_ns, struct error *err);

#endif
