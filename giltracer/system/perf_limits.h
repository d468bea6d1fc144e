/* SPDX-License-Identifier: MIT */
/* What perf and the kernel let this user record on this host. */
#ifndef GILTRACER_SYSTEM_PERF_LIMITS_H
#define GILTRACER_SYSTEM_PERF_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/**
 * @guard: what records in our place, see perf_guard.h; NULL: perf itself. Owned
 * @perf: the perf that records, a path or a name for PATH; owned
 * @without_syslog: it works without CAP_SYSLOG, so that it does not read the kernel's symbols
 * @version: of perf, "6.1.187"; owned
 * @by_event: it knows --buildid-mmap, and control commands that name an event (Linux 5.12)
 * @tracepoints: sched:* with their data may be recorded
 * @everybody: so they may on the whole machine, not of our own processes alone
 * @sample_hz: how often a clock may sample; the kernel lowers it when samples take it too long
 * @buffer_bytes: ring buffer that one recording may have, per CPU
 * @buffer_limited: by perf_event_mlock_kb and RLIMIT_MEMLOCK rather than by memory; then
 * @pool_bytes: of buffer_bytes, what all recordings of this user share, whoever comes first
 * @own_bytes: and what each recording has for itself
 * @aio: then: perf can write while it reads
 */
struct perf_limits {
	char *guard, *perf;
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

/* Errors: ENOENT perf is not installed, ENOTSUP it is too old to be controlled (before 5.10,
 * unless its distribution has put that in). */
int perf_limits_find(struct perf_limits *ret, struct error *err);
void perf_limits_done(struct perf_limits *host);

/**
 * One of several recordings that are made at the same time.
 * @count: how many there are
 * @index: which one it is, in the order in which they are started
 * @share: where memory alone limits the buffers: one of how many parts it gets
 * @stacks: it has stacks
 */
struct perf_share {
	unsigned count, index, share;
	bool stacks;
};

/* Ring buffer pages per CPU for it: a power of two, what perf -m wants. */
unsigned perf_limits_pages(const struct perf_limits *host, const struct perf_share *share);

/*
 * Bytes of stack to dump with each switch: 4096, less where the buffer holds too few of them for
 * the time in which perf gets no CPU. Measured at 20,000 switches a second on two CPUs at a load of
 * 6 to 13, by an ordinary user, whose perf has no priority, in 4 MiB: up to 21 % lost at 4096
 * bytes, nothing at 1024.
 */
unsigned perf_limits_stack_size(uint64_t buffer_bytes);

#endif
