/* SPDX-License-Identifier: MIT */
/* Samples into a file; trace/samples.h has the format. */
#ifndef GILTRACER_LIVE_SAMPLE_FILE_H
#define GILTRACER_LIVE_SAMPLE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "live/snapshot.h"

struct sample_file;

/**
 * @hz: samples per second; @gil_only: of the GIL's holder if there is one
 * @start_ns: CLOCK_MONOTONIC, before the first sample
 * @max_bytes: what the file may become
 */
struct sample_file_plan {
	const char *path;
	unsigned hz;
	bool gil_only;
	uint64_t start_ns, max_bytes;
};

/* Close with sample_file_close. */
int sample_file_open(struct sample_file **ret, const struct sample_file_plan *plan,
                     struct error *err);

/* A sample: its time, each thread that was read, its end. A thread that is not among them is gone.
 */
void sample_file_begin(struct sample_file *file, uint64_t time_ns);
void sample_file_thread(struct sample_file *file, pid_t pid, const struct snapshot_thread *thread);
void sample_file_end(struct sample_file *file);

/* So many samples before the next one were not taken. */
void sample_file_missed(struct sample_file *file, uint64_t count);

/* What was written is the kernel's from now on. */
void sample_file_flush(struct sample_file *file);

bool sample_file_is_full(const struct sample_file *file);

/* Sampling ended at that time. Errors are those of writing since open; the file is closed anyhow.
 */
int sample_file_finish(struct sample_file *file, uint64_t end_ns, struct error *err);
void sample_file_close(struct sample_file *file);

DEFINE_CLEANUP(struct sample_file *, sample_file_close);

#endif
