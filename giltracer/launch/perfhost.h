/* SPDX-License-Identifier: MIT */
/* What perf and the kernel let this user record on this host. */
#ifndef GILTRACER_LAUNCH_PERFHOST_H
#define GILTRACER_LAUNCH_PERFHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/**
 * @version: of perf, "6.1.187"; owned
 * @tracepoints: sched:* with their data may be recorded
 * @everybody: so they may on the whole machine, not of our own processes alone
 * @buffer_bytes: ring buffer that all recordings together may have, per CPU
 * @buffer_limited: by perf_event_mlock_kb rather than by memory
 */
struct perf_host {
	char *version;
	unsigned major, minor;
	bool tracepoints, everybody;
	uint64_t buffer_bytes;
	bool buffer_limited;
};

/* Errors: ENOENT perf is not installed, ENOTSUP it is too old to be controlled (before 5.10). */
int perf_host_find(struct perf_host *ret, struct error *err);
void perf_host_done(struct perf_host *host);

/* Ring buffer pages per CPU for one of so many recordings, with stacks or without: a power of two,
 * what perf -m wants. */
unsigned perf_host_pages(const struct perf_host *host, unsigned recordings, bool stacks);

/*
 * Bytes of stack to dump with each switch: 4096, less where the buffer holds too few of them.
 * Measured: 20,000 switches a second in 4 MiB per CPU lose nothing at 4096.
 */
unsigned perf_host_stack_size(uint64_t buffer_bytes);

#endif
