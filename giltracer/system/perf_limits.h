/* SPDX-License-Identifier: MIT */
/* What perf and the kernel let this user record on this host. */
#ifndef GILTRACER_SYSTEM_PERF_LIMITS_H
#define GILTRACER_SYSTEM_PERF_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/**
 * @without_syslog: perf runs without CAP_SYSLOG, so that it does not read the kernel's symbols
 * @version: of perf, "6.1.187"; NULL: there is no perf that can be used. Owned
 * @by_event: perf has --buildid-mmap, and control commands that name an event (Linux 5.12)
 * @tracepoints: sched:* can be recorded with their data
 * @everybody: of the whole machine, too, not only of our own processes
 * @sample_hz: maximum frequency of samples; the kernel lowers it if samples take too long
 * @buffer_bytes: ring buffer that one recording may have, per CPU
 * @buffer_limited: by perf_event_mlock_kb and RLIMIT_MEMLOCK rather than by memory; then
 * @pool_bytes: the part of buffer_bytes that all recordings of this user share, first come, first
 * served
 * @own_bytes: the limit of each recording in addition
 * @aio: @buffer_limited, and perf can write asynchronously
 */
struct perf_limits {
	bool without_syslog;
	char *version;
	bool by_event;
	bool tracepoints, everybody;
	unsigned sample_hz;
	uint64_t buffer_bytes;
	bool buffer_limited;
	uint64_t pool_bytes, own_bytes;
	bool aio;
};

/* Errors: ENOENT: perf is not installed; ENOTSUP: it is too old to be controlled (before 5.10,
 * unless its distribution has backported that). */
int perf_limits_find(struct perf_limits *ret, struct error *err);
void perf_limits_done(struct perf_limits *host);

/**
 * One of several simultaneous recordings.
 * @count: how many there are
 * @index: which one this is, in the order in which they are started
 * @share: its buffer is 1/share of the memory, if only memory limits it
 * @stacks: it contains stacks
 */
struct perf_share {
	unsigned count, index, share;
	bool stacks;
};

/* Ring buffer pages per CPU for it, a power of two as perf -m requires. */
unsigned perf_limits_pages(const struct perf_limits *host, const struct perf_share *share);

/*
 * Bytes of stack to record with each switch: 4096, or fewer if a buffer could not hold enough of
 * them while perf gets no CPU. Measured at 20,000 switches a second on two CPUs at a load of 6 to
 * 13, by an ordinary user, whose perf has no priority, in 4 MiB: up to 21 % lost at 4096 bytes,
 * nothing at 1024.
 */
unsigned perf_limits_stack_size(uint64_t buffer_bytes);

#endif
