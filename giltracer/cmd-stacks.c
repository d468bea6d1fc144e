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
#include "live/lock_waits.h"
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

static void print_lock(const struct lock_waits *l, size_t i)
{
	const struct lock_wait *wait = &l->waits.v[i];
	unsigned others = 0;

	if (!wait->expression)
		return;
	for (size_t k = 0; k < l->waits.n; k++)
		others += k != i && wait->address && l->waits.v[k].address == wait->address;
	printf("waits for the lock ");
	utf8_fprintf(stdout, "%s", wait->expression);
	if (others)
		printf(", as %u other%s", others, others == 1 ? " does" : "s do");
	if (wait->holder == SIZE_MAX)
		printf(", holder unknown, ");
	else
		printf(", held by %" PRIu32 "%s, ", l->snapshot->threads.v[wait->holder].tid,
		       wait->inferred ? " (inferred)" : "");
}

/* Whether the thread at i is the first one of a circle of threads that wait for each other. */
static bool begins_circle(const struct lock_waits *l, size_t i)
{
	size_t at = l->waits.v[i].holder;

	for (size_t n = 0; at != i && n < l->waits.n; n++) {
		if (at == SIZE_MAX || at < i)
			return false;
		at = l->waits.v[at].holder;
	}
	return at == i;
}

static void print_deadlocks(const struct lock_waits *l)
{
	for (size_t i = 0; i < l->waits.n; i++) {
		bool inferred = l->waits.v[i].inferred;

		if (!begins_circle(l, i))
			continue;
		printf("Deadlock: %" PRIu32, l->snapshot->threads.v[i].tid);
		for (size_t at = l->waits.v[i].holder;; at = l->waits.v[at].holder) {
			printf(" waits for %" PRIu32, l->snapshot->threads.v[at].tid);
			inferred |= l->waits.v[at].inferred;
			if (at == i)
				break;
			printf(", which");
		}
		printf("%s.\n", inferred ? " (inferred)" : "");
	}
}

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

static void print_thread(const struct lock_waits *locks, size_t i)
{
	const struct snapshot *snapshot = locks->snapshot;
	const struct snapshot_thread *thread = &snapshot->threads.v[i];

	if (thread->tid)
		utf8_fprintf(stdout, "\nthread %" PRIu32 " %s: ", thread->tid, thread->name);
	else
		printf("\nunknown thread: ");
	print_gil(snapshot, thread);
	print_lock(locks, i);
	printf("%s\n", state_name(thread->state));
	if (thread->torn)
		puts("    its stack changed while it was read");
	for (size_t k = 0; k < thread->frames.n; k++)
		print_frame(&thread->frames.v[k]);
}

static void print_text(const struct lock_waits *locks)
{
	const struct target *target = locks->target;
	const struct snapshot *snapshot = locks->snapshot;
	const struct python *py = target->process.python;

	utf8_fprintf(stdout, "process %d: %s, CPython %s, %zu threads\n", (int)target->pid,
	             py->image, py->version, snapshot->threads.n);
	if (!snapshot->gil_known)
		puts("The holder of the GIL is unknown.");
	else if (!snapshot->gils)
		puts("Its GIL is off: this is a free-threaded build.");
	print_deadlocks(locks);
	for (size_t i = 0; i < snapshot->threads.n; i++)
		print_thread(locks, i);
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

/* The lock for which a thread waits; null: none, as far as known. */
static json_t *lock_json(const struct lock_waits *l, const struct lock_wait *wait)
{
	char address[32];

	if (!wait->expression)
		return json_null();
	snprintf(address, sizeof(address), "%#" PRIx64, wait->address);
	return json_pack("{s:o, s:s?, s:o, s:b}", "expression", text_json(wait->expression),
	                 "address", wait->address ? address : NULL, "holder_tid",
	                 wait->holder == SIZE_MAX
	                         ? json_null()
	                         : json_integer(l->snapshot->threads.v[wait->holder].tid),
	                 "inferred", wait->inferred);
}

static json_t *thread_json(const struct lock_waits *locks, size_t at)
{
	const struct snapshot *snapshot = locks->snapshot;
	const struct snapshot_thread *thread = &snapshot->threads.v[at];
	const struct snapshot_thread *holder = snapshot_holder(snapshot, thread->gil_address);
	const char state[] = { thread->state, '\0' };
	json_t *frames = json_array();

	for (size_t i = 0; i < thread->frames.n; i++)
		json_array_append_new(frames, frame_json(&thread->frames.v[i]));
	return json_pack(
		"{s:I, s:o, s:s, s:s?, s:o, s:o, s:o, s:b, s:o}", "tid", (json_int_t)thread->tid,
		"name", text_json(thread->name), "state", state, "gil", gil_name(thread->gil),
		"gil_of", thread->gil_address ? json_integer(thread->gil_of) : json_null(),
		"holder_tid",
		thread->gil == GIL_WAITS && holder ? json_integer(holder->tid) : json_null(),
		"lock", lock_json(locks, &locks->waits.v[at]), "torn", thread->torn, "frames",
		frames);
}

static int print_json(const struct lock_waits *locks, struct error *err)
{
	const struct target *target = locks->target;
	const struct snapshot *snapshot = locks->snapshot;
	const struct python *py = target->process.python;
	json_auto_t *root = NULL;
	json_t *threads = json_array();

	for (size_t i = 0; i < snapshot->threads.n; i++)
		json_array_append_new(threads, thread_json(locks, i));
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
	struct lock_waits locks;
	int ret = 0;

	if (target_open(&target, pid, err) < 0)
		return -1;
	snapshots = snapshots_new(target);
	if (snapshot_take(&snapshot, snapshots, err) < 0)
		return -1;
	lock_waits_find(&locks, target, &snapshot);
	if (json)
		ret = print_json(&locks, err);
	else
		print_text(&locks);
	lock_waits_done(&locks);
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
