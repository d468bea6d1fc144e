/* SPDX-License-Identifier: MIT */
/* giltracer stacks: what every thread of a running program is doing, the GIL's holder first. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "cmd.h"
#include "base/opts.h"
#include "live/snapshot.h"

static const char *state_name(char state)
{
	switch (state) {
	case 'R':
		return "runnable"; /* on a CPU, or waiting for one */
	case 'S':
		return "sleeping";
	case 'D':
		return "uninterruptible";
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
		return "ended";
	}
	return "state unknown";
}

static const char *gil_name(enum gil_relation gil)
{
	return gil == GIL_HOLDS ? "holds" : gil == GIL_WAITS ? "waits" : NULL;
}

/* ---- text */

static void print_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct snapshot_thread *holder = snapshot_holder(snapshot, thread->gil_address);

	if (thread->gil != GIL_HOLDS && thread->gil != GIL_WAITS)
		return;
	printf("%s the GIL", thread->gil == GIL_HOLDS ? "holds" : "waits for");
	if (snapshot->gils > 1)
		printf(" of interpreter %" PRIu32, thread->gil_of);
	if (thread->gil == GIL_WAITS && holder)
		printf(", held by %" PRIu32, holder->tid);
	printf(", ");
}

static void print_frame(const struct snapshot_frame *frame)
{
	utf8_fprintf(stdout, "    %s (%s", frame->code->name, frame->code->file);
	if (frame->line)
		printf(":%" PRIu32, frame->line);
	puts(")");
}

static void print_thread(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	if (thread->tid)
		utf8_fprintf(stdout, "\nthread %" PRIu32 " %s: ", thread->tid, thread->name);
	else
		printf("\nunknown thread: ");
	print_gil(snapshot, thread);
	printf("%s\n", state_name(thread->state));
	if (thread->torn)
		puts("    its stack changed while it was read");
	for (size_t i = 0; i < thread->frames.n; i++)
		print_frame(&thread->frames.v[i]);
}

static void print_text(const struct target *target, const struct snapshot *snapshot)
{
	const struct python *py = target->process.python;

	utf8_fprintf(stdout, "process %d: %s, CPython %s, %zu threads\n", (int)target->pid,
	             py->image, py->version, snapshot->threads.n);
	if (!snapshot->gil_known)
		puts("The holder of the GIL is unknown.");
	else if (!snapshot->gils)
		puts("Its GIL is off: this is a free-threaded build.");
	for (size_t i = 0; i < snapshot->threads.n; i++)
		print_thread(snapshot, &snapshot->threads.v[i]);
}

/* ---- JSON */

static json_t *text_json(const char *text)
{
	CLEANUP(str_done) struct str safe = { 0 };

	utf8_add_safe(&safe, text, UINT32_MAX);
	return json_string(str_get(&safe));
}

static json_t *frame_json(const struct snapshot_frame *frame)
{
	return json_pack("{s:o, s:o, s:o, s:I}", "function", text_json(frame->code->name), "file",
	                 text_json(frame->code->file), "line",
	                 frame->line ? json_integer(frame->line) : json_null(), "first_line",
	                 (json_int_t)frame->code->first_line);
}

static json_t *thread_json(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct snapshot_thread *holder = snapshot_holder(snapshot, thread->gil_address);
	const char state[] = { thread->state, '\0' };
	json_t *frames = json_array();

	for (size_t i = 0; i < thread->frames.n; i++)
		json_array_append_new(frames, frame_json(&thread->frames.v[i]));
	return json_pack(
		"{s:I, s:o, s:s, s:s?, s:o, s:o, s:b, s:o}", "tid", (json_int_t)thread->tid, "name",
		text_json(thread->name), "state", state, "gil", gil_name(thread->gil), "gil_of",
		thread->gil_address ? json_integer(thread->gil_of) : json_null(), "holder_tid",
		thread->gil == GIL_WAITS && holder ? json_integer(holder->tid) : json_null(),
		"torn", thread->torn, "frames", frames);
}

static int print_json(const struct target *target, const struct snapshot *snapshot,
                      struct error *err)
{
	const struct python *py = target->process.python;
	json_auto_t *root = NULL;
	json_t *threads = json_array();

	for (size_t i = 0; i < snapshot->threads.n; i++)
		json_array_append_new(threads, thread_json(snapshot, &snapshot->threads.v[i]));
	root = json_pack("{s:i, s:I, s:I, s:o, s:s, s:b, s:I, s:o}", "schema", 1, "pid",
	                 (json_int_t)target->pid, "time_ns", (json_int_t)snapshot->time_ns,
	                 "executable", text_json(py->image), "version", py->version, "gil_known",
	                 snapshot->gil_known, "gils", (json_int_t)snapshot->gils, "threads",
	                 threads);
	if (!root)
		return error_set(err, EINVAL, "the JSON document cannot be made");
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	return 0;
}

/* ---- the command */

static int show(pid_t pid, bool json, struct error *err)
{
	CLEANUP(target_close) struct target *target = NULL;
	CLEANUP(snapshots_free) struct snapshots *snapshots = NULL;
	struct snapshot snapshot;
	int ret = 0;

	if (target_open(&target, pid, err) < 0)
		return -1;
	snapshots = snapshots_new(target);
	if (snapshot_take(&snapshot, snapshots, err) < 0)
		return -1;
	if (json)
		ret = print_json(target, &snapshot, err);
	else
		print_text(target, &snapshot);
	snapshot_done(&snapshot);
	return ret;
}

static int stacks_run(int argc, char **argv, struct error *err)
{
	bool json = false, help = false;
	unsigned pid = 0;
	const struct opt opts[] = {
		OPT_UINT('p', "pid", "PID", &pid, 1, INT32_MAX, "the process to show"),
		OPT_FLAG(0, "json", &json, "print JSON"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int go_on = cmd_options(&cmd_stacks, opts, &help, argc, argv, err);

	if (go_on <= 0)
		return go_on;
	if (!pid)
		return error_set(err, EINVAL, "option -p PID is missing: the process to show");
	if (cmd_python(&pid, err) < 0)
		return -1;
	return show((pid_t)pid, json, err);
}

const struct cmd cmd_stacks = {
	.name = "stacks",
	.usage = "-p PID [OPTION]...",
	.summary = "print the Python stacks of a running program, the GIL's holder first",
	.run = stacks_run,
};
