/* SPDX-License-Identifier: MIT */
/*
 * Python stacks of a program's threads over time, as they were read from outside while it ran
 * (live/sampler.h).
 *
 * The file, little-endian, no padding:
 *
 *	"GTSAMPL1"  u32 rate in Hz  u8 flags (1: --gil-only)  u8 0  u16 0  u64 first time in ns
 *	records: u8 kind, then unsigned LEB128 numbers
 *		'N' length, bytes: a name; numbered from 1
 *		'F' caller, name, file, line: a frame of a stack; numbered from 1, a caller before
 *		    its callees, 0: none; line 0: unknown
 *		'T' pid, tid, name: a thread; numbered from 0
 *		'S' ns since the previous sample, n, n times { thread, how, frame }: a sample of all
 *		    threads, with those that differ from the previous sample
 *		'A' thread, name: the thread has another name from now on
 *		'G' thread, n: from the next sample on, the GIL that it holds or waits for is that
 *		    of interpreter n; before the first 'G' it is that of the main one, 0
 *		'M' n: this many samples before the next one could not be taken in time
 *		'R': names, frames and threads are numbered anew. A thread that the next sample
 *		    lacks has ended; one with the pid and tid of an earlier one is the same thread
 *		'E' ns since the last sample: the end
 *
 * how: bits 0 and 1 enum sample_gil, bit 2 SAMPLE_TORN, bit 3 SAMPLE_GONE, bits 4 to 7 enum
 * sample_activity. The state of a thread is that of its last record, SAMPLE_GONE before the first.
 * A file without 'E' is truncated, and its contents are valid up to there. Times are
 * CLOCK_MONOTONIC.
 */
#ifndef GILTRACER_TRACE_SAMPLES_H
#define GILTRACER_TRACE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

#define SAMPLES_MAGIC "GTSAMPL1"

struct names;
struct privacy;
struct stacks;

/* The relation of the thread to the GIL of its interpreter. */
enum sample_gil {
	SAMPLE_GIL_NONE, /* neither has it nor sleeps for it */
	SAMPLE_GIL_HOLDS,
	SAMPLE_GIL_WAITS,
	SAMPLE_GIL_UNKNOWN,
};

/* The activity of the thread, according to the kernel. */
enum sample_activity {
	SAMPLE_UNKNOWN,
	SAMPLE_RUNNING, /* on a CPU, or runnable */
	SAMPLE_LOCK,    /* asleep on a futex: a lock, a condition, the GIL */
	SAMPLE_NETWORK, /* in recv, send, accept, connect, or read or write of a socket */
	SAMPLE_POLL,    /* in poll, select, epoll_wait */
	SAMPLE_FILE,    /* in read, write, fsync and similar calls of other files */
	SAMPLE_SLEEP,   /* in nanosleep */
	SAMPLE_CHILD,   /* waits for a process */
	SAMPLE_OTHER,   /* asleep in another system call */
	SAMPLE_ACTIVITIES,
};

#define SAMPLE_TORN 1 /* its stack changed while it was read, so there is none */
#define SAMPLE_GONE 2 /* it was not read, because it has ended or was not selected */

/**
 * The state of a thread from a sample on, until the next run or the last sample.
 * @sample: index in struct samples.times
 * @stack: id in struct samples.stacks, 0: no Python frame
 * @gil_of: the number of the interpreter that the GIL belongs to
 */
struct sample_run {
	uint32_t sample, stack, gil_of;
	uint8_t gil, activity, flags;
};

/* @name: the kernel's or the program's, id in struct samples.names */
struct sample_thread {
	uint32_t pid, tid, name;
	VEC(struct sample_run) runs;
};

/**
 * @hz: planned samples per second; @gil_only: only the GIL's holder is sampled, if there is one
 * @times: of each sample, ascending; @end_ns: when sampling ended
 * @missed: samples that could not be taken in time
 * @torn: stacks that could not be read, out of @stacks_read
 * @cut: the file is truncated
 */
struct samples {
	unsigned hz;
	bool gil_only, cut;
	struct names *names;
	struct stacks *stacks;
	VEC(uint64_t) times;
	VEC(struct sample_thread) threads;
	uint64_t start_ns, end_ns, missed, torn, stacks_read;
};

/* Errors: it is not such a file, or refers to undefined numbers; they name the offset. privacy: for the
 * names, borrowed until samples_close; NULL: nothing is hidden. */
int samples_open(struct samples **ret, const char *path, const struct privacy *privacy,
                 struct error *err);

/* The same from memory, which may be freed afterwards. */
int samples_parse(struct samples **ret, const void *data, size_t size,
                  const struct privacy *privacy, struct error *err);
void samples_close(struct samples *samples);

/* The index after the last sample of run i of a thread. */
static inline uint32_t sample_run_end(const struct samples *samples,
                                      const struct sample_thread *thread, size_t i)
{
	return i + 1 < thread->runs.n ? thread->runs.v[i + 1].sample : (uint32_t)samples->times.n;
}

DEFINE_CLEANUP(struct samples *, samples_close);

#endif
