/* SPDX-License-Identifier: MIT */
/* What this host permits perf and us to record, and how much. */
#ifndef GILTRACER_SYSTEM_PERF_ACCESS_H
#define GILTRACER_SYSTEM_PERF_ACCESS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* ---- events that are opened to ask the kernel whether it permits them */

/* An event that counts nothing, in user space only: any user may open it for an own process. */
static inline struct perf_event_attr perf_attr_self(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(struct perf_event_attr),
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

/* The same, inherited and read with samples, like perf's "dummy:uS". */
static inline struct perf_event_attr perf_attr_inherited(void)
{
	struct perf_event_attr attr = perf_attr_self();

	attr.sample_period = 4000;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_ID;
	attr.inherit = 1;
	return attr;
}

/* A tracepoint with its data; uprobes are recorded in this form, too. */
static inline struct perf_event_attr perf_attr_tracepoint(uint64_t id)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.config = id,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME,
		.disabled = 1,
	};
}

/* ---- whether the kernel lets this process record events, and if not, what forbids it */

/* Try to open a software event of our own. The error names what forbids it, such as seccomp. */
int perf_try_self(struct error *err);

/* Open tracepoint GROUP:EVENT with its data for ourselves, without recording it; uprobes are recorded in
 * this form, too. As long as it is open, the kernel removes this uprobe from other programs at once when
 * they are not recorded any more. Else it first waits, for tens of milliseconds, as it does when the last
 * descriptor is closed. Returns the descriptor, or -1. */
int perf_hold_event(const char *group, const char *event, struct error *err);

/*
 * Whether the kernel permits reading inherited events with samples (6.12), as "dummy:uS" does. If
 * such an event is open, the kernel leaves each task its own events. Else it swaps those of related
 * tasks when it switches between them, and uprobes in a program that a child then executes are
 * never placed, because the kernel looks for the task for which the event was opened.
 */
bool perf_reads_inherited(void);

/* ---- how much it may record */

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
 * @tried: @tried_fd is the tracepoint that was opened to find out, see perf_limits_close
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
	bool aio, tried;
	int tried_fd;
};

/* Errors: ENOENT: perf is not installed; ENOTSUP: it is too old to be controlled (before 5.10,
 * unless its distribution has backported that). */
int perf_limits_find(struct perf_limits *ret, struct error *err);

/* Close the tracepoint. If nobody else has it open, the kernel takes 40 ms for that, so call this once perf
 * records. */
void perf_limits_close(struct perf_limits *host);
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
