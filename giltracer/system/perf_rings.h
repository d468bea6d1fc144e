/* SPDX-License-Identifier: MIT */
/* Tracepoints of the threads of a process, read from the kernel's ring buffers while it runs. */
#ifndef GILTRACER_SYSTEM_PERF_RINGS_H
#define GILTRACER_SYSTEM_PERF_RINGS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct perf_rings;

enum perf_ring_kind {
	PERF_RING_SAMPLE,
	PERF_RING_EXIT, /* the thread ends */
	PERF_RING_EXEC, /* the process runs another program */
	PERF_RING_LOST, /* records of one CPU, between since_ns and time_ns */
};

/**
 * @time_ns: CLOCK_MONOTONIC
 * @raw: data of a sample in the tracepoint's format, which begins with its id of 2 bytes; borrowed
 */
struct perf_ring_record {
	enum perf_ring_kind kind;
	uint32_t pid, tid;
	uint64_t time_ns, since_ns, lost;
	const uint8_t *raw;
	size_t raw_size;
};

typedef void perf_ring_take(void *data, const struct perf_ring_record *record);

/*
 * Open the n tracepoints with these ids in all present and future threads of the process, but not
 * in its child processes. Records of a thread that begins during the call may appear twice, and
 * some of them may be missing. Errors: ESRCH: the process has ended; those of perf_event_open(2).
 */
int perf_rings_open(struct perf_rings **ret, pid_t pid, const uint64_t *ids, size_t n,
                    struct error *err);
void perf_rings_close(struct perf_rings *rings);

/* Wait until records can be read or fd is readable, at most timeout_ms. */
void perf_rings_wait(struct perf_rings *rings, int fd, int timeout_ms);

/* Pass on all records, one CPU after the other; those of one CPU are in the order of time. */
void perf_rings_read(struct perf_rings *rings, perf_ring_take *take, void *data);

DEFINE_CLEANUP(struct perf_rings *, perf_rings_close);

#endif
