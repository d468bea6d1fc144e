/* SPDX-License-Identifier: MIT */
/* Writes samples to a file; trace/samples.h has the format. */
#ifndef GILTRACER_LIVE_SAMPLE_FILE_H
#define GILTRACER_LIVE_SAMPLE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "live/snapshot.h"

struct sample_file;

/**
 * @hz: samples per second; @gil_only: only the GIL's holder is sampled, if there is one
 * @start_ns: CLOCK_MONOTONIC, before the first sample
 * @max_bytes: limit of the file's size
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

/* Writes records without a header or an end, for a caller that assembles files (live/keep.h);
 * out is borrowed. last_ns: the time of the sample before the first one. */
struct sample_file *sample_file_part(FILE *out, uint64_t last_ns);

void sample_file_header(FILE *out, const struct sample_file_plan *plan);
void sample_file_put_end(struct sample_file *file, uint64_t end_ns);

/* The number of bytes written; the time of the last sample, or last_ns. */
uint64_t sample_file_bytes(const struct sample_file *file);
uint64_t sample_file_last_ns(const struct sample_file *file);

/* Write a sample: its time, each thread that was read, its end. A thread without a call no
 * longer exists. */
void sample_file_begin(struct sample_file *file, uint64_t time_ns);
void sample_file_thread(struct sample_file *file, pid_t pid, const struct snapshot_thread *thread);
void sample_file_end(struct sample_file *file);

/* The code objects of earlier samples are freed, and others may get their addresses. */
void sample_file_forget_codes(struct sample_file *file);

/* This many samples were missed before the next one. */
void sample_file_missed(struct sample_file *file, uint64_t count);

/* Flush, so that the kernel has everything that was written even if this process dies. */
void sample_file_flush(struct sample_file *file);

bool sample_file_is_full(const struct sample_file *file);

/* Write the end of sampling, and close the file in any case. Reports errors of all writes since
 * open. */
int sample_file_finish(struct sample_file *file, uint64_t end_ns, struct error *err);
void sample_file_close(struct sample_file *file);

DEFINE_CLEANUP(struct sample_file *, sample_file_close);

#endif
