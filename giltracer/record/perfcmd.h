/* SPDX-License-Identifier: MIT */
/* Turns a plan into the arguments of perf record. Pure: nothing is looked up on the host. */
#ifndef GILTRACER_RECORD_PERFCMD_H
#define GILTRACER_RECORD_PERFCMD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The name of the sampling event, for trace/perf/from_perf.h. */
#define PERFCMD_NATIVE "giltracer_native"

/**
 * All pointers are borrowed.
 * @perf: the program, a path or a name for PATH
 * @without_syslog: start perf without CAP_SYSLOG, so that it does not read the kernel's symbols
 * @output: perf.data to write
 * @pid: process to attach to, with all its future children
 * @others: more such processes, "12,34"; NULL for none
 * @late_tasks: write the names and mappings of existing threads at the end: perf gives up if a
 * thread ends while it reads them at the start
 * @everybody: not @pid but the whole machine, and only its wake-ups and CPU switches
 * @control_fd, @ack_fd: perf's ends of its control pipes
 * @native: sample user stacks of running threads, with dumps of this many bytes; 0: none
 * @native_hz: frequency of these samples; at most perf_host.sample_hz
 * @answer_ms: how long perf may take to answer; 0: a minute
 * @mmap_pages: ring buffer per CPU, a power of two; 0 leaves it to perf
 * @aio: write asynchronously: with small buffers, records are lost while perf waits for the file
 * @buildid_mmap: build-ids in the mmap records (perf 5.12)
 * @probes: "GROUP:EVENT", NULL-terminated; NULL for none
 * @early: those of probes that are recorded before the program switches tracing on;
 * NULL-terminated; NULL for none
 * @counters: the user's events, NULL-terminated; NULL for none
 * @unswapped: keep a task's events with the task, see perf_reads_inherited()
 * @waking: record sched:sched_waking
 * @sched: record sched:sched_switch; @stops: only where a signal or a debugger stops a thread
 * @standby: its events are enabled only when the library takes over from uprobes
 * @stack_size: bytes of user stack with each sched:sched_switch to a sleep, a multiple of 8; 0: no
 * stacks
 */
struct perf_plan {
	const char *perf;
	bool without_syslog;
	const char *output;
	pid_t pid;
	const char *others;
	int control_fd, ack_fd;
	unsigned answer_ms;
	unsigned mmap_pages;
	bool aio;
	bool buildid_mmap;
	const char *const *probes;
	const char *const *early;
	const char *const *counters;
	bool everybody;
	bool late_tasks;
	bool unswapped;
	bool waking;
	bool sched, stops;
	bool standby;
	unsigned stack_size;
	unsigned native, native_hz;
};

/* The argument vector, NULL-terminated; free with argv_free. */
char **perfcmd_argv(const struct perf_plan *plan);

void argv_free(char **argv);

#endif
