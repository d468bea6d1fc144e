/* SPDX-License-Identifier: MIT */
/* What is recorded becomes exactly these arguments of perf. */
#include <stdlib.h>

#include "base/str.h"
#include "record/perf.h"
#include "tap.h"

/* The arguments on one line, '|' between them. */
static char *joined(const struct perf_plan *plan)
{
	struct str text = { 0 };
	char **argv = perfcmd_argv(plan);

	for (char **arg = argv; *arg; arg++)
		str_addf(&text, "%s%s", text.len ? "|" : "", *arg);
	argv_free(argv);
	return str_take(&text);
}

static void is_argv(const struct perf_plan *plan, const char *want, const char *name)
{
	char *got = joined(plan);

	is_str(got, want, "%s", name);
	free(got);
}

static void test_gil(void)
{
	const char *const probes[] = { "g:take_gil", "g:take_gil_ret", NULL };
	const char *const counters[] = { "page-faults", NULL };
	struct perf_plan plan = {
		.perf = "perf",
		.output = "/a b/gil.perf.data",
		.pid = 42,
		.control_fd = 7,
		.ack_fd = 8,
		.mmap_pages = 1024,
		.buildid_mmap = true,
		.probes = probes,
		.waking = true,
	};

	is_argv(&plan,
	        "perf|record|-o|/a b/gil.perf.data|-k|CLOCK_MONOTONIC|-D|-1|--control|fd:7,8|"
	        "--switch-events|--sample-cpu|--no-bpf-event|-N|--buildid-mmap|--no-period|-m|1024|"
	        "-e|g:take_gil|"
	        "-e|g:take_gil_ret|"
	        "-e|sched:sched_waking/call-graph=no/|-p|42",
	        "the GIL pass: uprobes and wake-ups, no stacks");
	plan.sched = true;
	plan.counters = counters;
	plan.unswapped = true;
	plan.buildid_mmap = false;
	plan.mmap_pages = 0;
	is_argv(&plan,
	        "perf|record|-o|/a b/gil.perf.data|-k|CLOCK_MONOTONIC|-D|-1|--control|fd:7,8|"
	        "--switch-events|--sample-cpu|--no-bpf-event|-N|-B|-e|g:take_gil|-e|g:take_gil_ret|"
	        "-e|sched:sched_waking/call-graph=no/|-e|sched:sched_switch/call-graph=no/|"
	        "-e|page-faults|-e|dummy:uS|-p|42",
	        "with states and a counter, on an older perf with its own buffer");
}

static void test_stacks(void)
{
	struct perf_plan plan = {
		.perf = "perf",
		.output = "s",
		.pid = 1,
		.control_fd = 3,
		.ack_fd = 4,
		.mmap_pages = 8192,
		.buildid_mmap = true,
		.waking = true,
		.sched = true,
		.stack_size = 4096,
	};

	is_argv(&plan,
	        "perf|record|-o|s|-k|CLOCK_MONOTONIC|-D|-1|--control|fd:3,4|--switch-events|--"
	        "sample-cpu|--no-bpf-event|-N|"
	        "--buildid-mmap|--no-period|-m|8192|-e|sched:sched_waking/call-graph=no/|"
	        "-e|sched:sched_switch/call-graph=dwarf,stack-size=4096/|"
	        "--filter|prev_state & 0x7f|-p|1",
	        "the stacks pass: stacks with the switches that go to sleep, and with nothing "
	        "else");
	plan.stack_size = 1024;
	char *argv = joined(&plan);

	ok(strstr(argv, "stack-size=1024/"), "smaller dumps");
	free(argv);
}

static void test_native(void)
{
	const struct perf_plan plan = {
		.perf = "perf",
		.output = "g",
		.pid = 1,
		.control_fd = 3,
		.ack_fd = 4,
		.native = 2048,
		.native_hz = 250,
	};

	is_argv(&plan,
	        "perf|record|-o|g|-k|CLOCK_MONOTONIC|-D|-1|--control|fd:3,4|--switch-events|"
	        "--sample-cpu|--no-bpf-event|-N|-B|--no-period|-e|cpu-clock/"
	        "name=giltracer_native,freq=250,call-graph=dwarf,"
	        "stack-size=2048/u|-p|1",
	        "stacks of what runs, of the program's own code alone");
}

static void test_switches(void)
{
	struct perf_plan plan = {
		.perf = "perf",
		.output = "s",
		.pid = 1,
		.control_fd = 3,
		.ack_fd = 4,
		.mmap_pages = 8,
		.aio = true,
	};

	is_argv(&plan,
	        "perf|record|-o|s|-k|CLOCK_MONOTONIC|-D|-1|--control|fd:3,4|--switch-events|"
	        "--sample-cpu|--no-bpf-event|-N|-B|--no-period|-m|8|--aio=2|-e|dummy:u|-p|1",
	        "switches alone, where tracepoints are not permitted");
}

static void test_wakeups(void)
{
	struct perf_plan plan = {
		.perf = "perf",
		.output = "w",
		.pid = 42,
		.control_fd = 7,
		.ack_fd = 8,
		.mmap_pages = 512,
		.waking = true,
		.sched = true,
		.everybody = true,
	};

	is_argv(&plan,
	        "perf|record|-o|w|-k|CLOCK_MONOTONIC|-D|-1|--control|fd:7,8|--no-bpf-event|-N|-B|--"
	        "no-period|-m|"
	        "512|"
	        "-e|sched:sched_waking/call-graph=no/|-e|sched:sched_migrate_task/call-graph=no/|"
	        "-e|sched:sched_switch/call-graph=no/|-a",
	        "wake-ups and CPUs of everybody: no process, no switches by thread");
}

int main(void)
{
	test_native();
	test_switches();
	test_wakeups();
	test_gil();
	test_stacks();
	return done_testing();
}
