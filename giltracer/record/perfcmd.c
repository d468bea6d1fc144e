/* SPDX-License-Identifier: MIT */
/* Turns a plan into the arguments of perf record. */
#include "record/perfcmd.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"

/*
 * The preempt flag of PERF_RECORD_SWITCH marks threads that are still runnable; stacks show why the
 * others sleep. The bits are the task states S, D, T, t, X, Z and P; the kernel's additional values
 * for a preempted thread are above them (TASK_REPORT_MAX, include/linux/sched.h).
 */
#define SLEEPS "prev_state & 0x7f"
#define STOPS  "prev_state & 0xc"

struct args {
	char **v;
	size_t n;
	size_t alloc;
};

static void add(struct args *args, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct args *args, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	*vec_push(args) = xvasprintf(fmt, ap);
	va_end(ap);
}

static void add_events(struct args *args, const char *const *events)
{
	for (; events && *events; events++) {
		add(args, "-e");
		add(args, "%s", *events);
	}
}

static void add_sched(struct args *args, const struct perf_plan *plan)
{
	if (plan->waking) {
		add(args, "-e");
		add(args, "sched:sched_waking/call-graph=no/");
	}
	if (plan->everybody) {
		add(args, "-e");
		add(args, "sched:sched_migrate_task/call-graph=no/");
	}
	if (plan->stops && !plan->sched) {
		add(args, "-e");
		add(args, "sched:sched_switch/call-graph=no/");
		add(args, "--filter");
		add(args, STOPS);
	}
	if (!plan->sched)
		return;
	add(args, "-e");
	if (plan->stack_size) {
		add(args, "sched:sched_switch/call-graph=dwarf,stack-size=%u/", plan->stack_size);
		add(args, "--filter");
		add(args, SLEEPS);
	} else {
		add(args, "sched:sched_switch/call-graph=no/");
	}
}

static void add_settings(struct args *args, const struct perf_plan *plan)
{
	add(args, "%s", plan->perf);
	add(args, "record");
	add(args, "-o");
	add(args, "%s", plan->output);
	add(args, "-k");
	add(args, "CLOCK_MONOTONIC");
	/* The events are disabled until the program reports its start. */
	add(args, "-D");
	add(args, "-1");
	add(args, "--control");
	add(args, "fd:%d,%d", plan->control_fd, plan->ack_fd);
	if (!plan->everybody) {
		add(args, "--switch-events");
		/* Otherwise switch records have no CPU. */
		add(args, "--sample-cpu");
	}
	/* perf's thread for BPF events sleeps for a second at a time, and perf waits for it at
	 * the end. */
	add(args, "--no-bpf-event");
	/* perf does not read the whole file for build-ids at the end, nor copy files into
	 * ~/.debug. */
	add(args, "-N");
	add(args, plan->buildid_mmap ? "--buildid-mmap" : "-B");
	/* Only counters need the period; without it, all samples are a tenth smaller. */
	if (!plan->counters || !*plan->counters)
		add(args, "--no-period");
	if (plan->mmap_pages) {
		add(args, "-m");
		add(args, "%u", plan->mmap_pages);
	}
	if (plan->aio)
		add(args, "--aio=2");
	if (plan->late_tasks && !plan->everybody)
		add(args, "--tail-synthesize");
}

char **perfcmd_argv(const struct perf_plan *plan)
{
	struct args args = { 0 };

	add_settings(&args, plan);
	add_events(&args, plan->probes);
	add_sched(&args, plan);
	add_events(&args, plan->counters);
	/* Without an event, perf records cycles; switches come with any event. */
	if (!plan->probes && !plan->waking && !plan->sched && !plan->native) {
		add(&args, "-e");
		add(&args, "dummy:u");
	}
	if (plan->unswapped) {
		add(&args, "-e");
		add(&args, "dummy:uS");
	}
	if (plan->native) {
		add(&args, "-e");
		add(&args,
		    "cpu-clock/name=" PERFCMD_NATIVE ",freq=%u,call-graph=dwarf,stack-size=%u/u",
		    plan->native_hz, plan->native);
	}
	if (plan->everybody) {
		add(&args, "-a");
	} else {
		add(&args, "-p");
		add(&args, plan->others ? "%d,%s" : "%d%s", (int)plan->pid,
		    plan->others ? plan->others : "");
	}
	*vec_push(&args) = NULL;
	return args.v;
}

void argv_free(char **argv)
{
	for (char **arg = argv; arg && *arg; arg++)
		free(*arg);
	free(argv);
}
