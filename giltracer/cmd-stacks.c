/* SPDX-License-Identifier: MIT */
/* giltracer stacks: what every thread of a running program is doing, the GIL's holder first. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cmd.h"
#include "base/opts.h"
#include "live/snapshot.h"
#include "python/memory.h"

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

/* ---- locks */

/*
 * A thread that waits for a lock sleeps for a futex, and the line that it executes takes the lock. Which
 * thread has the lock is recorded in an RLock alone (from 3.14 on). Of another one, it can be inferred: if
 * the line that one thread executes is in a block of "with" and the same expression, that thread has it.
 */

#define SOURCE_BYTES (1u << 20)  /* the largest file that is read */
#define PARKED_NEAR  (16u << 10) /* from the stack pointer to what a parked thread waits for */
#define OBJECT_BYTES 16          /* before the PyMutex of a lock */
#define TYPE_NAME    24          /* in a type */

/**
 * A wait of a thread for a lock.
 * @address: of the lock; @expression: "self._lock"; NULL: it does not wait for a lock, as far as known
 * @holder: index of the thread that has it; SIZE_MAX: unknown; @inferred: from the source
 */
struct lock_wait {
	uint64_t address;
	char *expression;
	size_t holder;
	bool inferred;
};

/* The text of source files, by their code objects; NULL: cannot be read. */
struct source {
	const char *file;
	char *text;
};

struct locks {
	const struct target *target;
	const struct snapshot *snapshot;
	VEC(struct lock_wait) waits; /* by thread */
	VEC(struct source) sources;
};

/* The file is that of another process, perhaps of another user. */
static char *read_source(pid_t pid, const char *file)
{
	CLEANUP(free)
	char *path = xasprintf("/proc/%d/%s/%s", (int)pid, *file == '/' ? "root" : "cwd", file);
	CLEANUP(close) int fd = *file == '<' ? -1 : file_open_regular(path, &(struct error){ 0 });
	CLEANUP(free) char *text = xcalloc(SOURCE_BYTES + 1, 1);
	size_t used = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text + used, SOURCE_BYTES - used)) > 0)
		used += (size_t)n;
	return fd < 0 || used == SOURCE_BYTES ? NULL : take(text);
}

/* The beginning of a line; NULL: there is none, or the source cannot be read. */
static const char *line_at(struct locks *l, const char *file, uint32_t line)
{
	const char *at;
	size_t i = 0;

	while (i < l->sources.n && strcmp(l->sources.v[i].file, file) != 0)
		i++;
	if (i == l->sources.n)
		*vec_push(&l->sources) = (struct source){ file, read_source(l->target->pid, file) };
	at = l->sources.v[i].text;
	while (at && --line)
		at = (at = strchr(at, '\n')) ? at + 1 : NULL;
	return at;
}

/* The beginning of the line before; NULL: it is the first one of the text. */
static const char *line_before(const char *text, const char *line)
{
	if (line-- == text)
		return NULL;
	while (line > text && line[-1] != '\n')
		line--;
	return line;
}

static size_t indent_of(const char *line)
{
	return strspn(line, " \t");
}

static bool is_in_expression(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The lock that the line takes, "with EXPRESSION:" or "EXPRESSION.acquire("; NULL: none. */
static char *lock_in(const char *line, bool with_only)
{
	const char *end = line + strcspn(line, "\n"), *from = line + indent_of(line), *to;

	if (!strncmp(from, "with ", 5)) {
		from += 5;
		for (to = from; is_in_expression(*to); to++)
			;
		return to > from && strchr(":, ", *to) && *to ? xstrndup(from, (size_t)(to - from))
		                                              : NULL;
	}
	to = strstr(line, ".acquire(");
	if (with_only || !to || to > end)
		return NULL;
	for (from = to; from > line && is_in_expression(from[-1]); from--)
		;
	return to > from ? xstrndup(from, (size_t)(to - from)) : NULL;
}

/* Whether two expressions may mean the same lock, such as an attribute of an object that one function calls
 * "self". */
static bool may_be_same(const char *a, const char *b)
{
	const char *dot_a = strrchr(a, '.'), *dot_b = strrchr(b, '.');

	return !strcmp(a, b) || (dot_a && dot_b && !strcmp(dot_a, dot_b));
}

/* Whether the frame executes a line of a block "with EXPRESSION:". */
static bool is_within(struct locks *l, const struct snapshot_frame *frame, const char *expression)
{
	const char *line = frame->line ? line_at(l, frame->code->file, frame->line) : NULL;
	const char *text = line ? line_at(l, frame->code->file, 1) : NULL;
	size_t indent = line ? indent_of(line) : 0;

	for (uint32_t n = frame->line; line && indent && --n > (uint32_t)frame->code->first_line;) {
		CLEANUP(free) char *lock = NULL;

		line = line_before(text, line);
		if (!line || indent_of(line) >= indent || strchr("#\n", line[indent_of(line)]))
			continue;
		indent = indent_of(line);
		lock = lock_in(line, true);
		if (lock && may_be_same(lock, expression))
			return true;
	}
	return false;
}

/* Whether two functions of a file may mean the same by "self". */
static bool same_class(const char *a, const char *b)
{
	const char *dot_a = strrchr(a, '.'), *dot_b = strrchr(b, '.');

	return !dot_a || !dot_b || (dot_a - a == dot_b - b && !strncmp(a, b, (size_t)(dot_a - a)));
}

static void infer_holder(struct locks *l, size_t waiter)
{
	const struct snapshot_frame *in = &l->snapshot->threads.v[waiter].frames.v[0];
	struct lock_wait *wait = &l->waits.v[waiter];
	unsigned found = 0;

	for (size_t i = 0; i < l->snapshot->threads.n; i++) {
		const struct snapshot_thread *t = &l->snapshot->threads.v[i];
		bool within = false;

		for (size_t k = 0; i != waiter && k < t->frames.n && !within; k++)
			within = !strcmp(t->frames.v[k].code->file, in->code->file) &&
			         (strncmp(wait->expression, "self.", 5) != 0 ||
			          same_class(t->frames.v[k].code->name, in->code->name)) &&
			         is_within(l, &t->frames.v[k], wait->expression);
		if (!within)
			continue;
		wait->holder = i;
		found++;
	}
	wait->inferred = found == 1;
	if (found != 1)
		wait->holder = SIZE_MAX;
}

/* An RLock that is a PyMutex: it is followed by the pthread_t of the thread that has it. */
static void look_at_owner(struct locks *l, struct lock_wait *wait)
{
	char name[sizeof("_thread.RLock")] = "";
	uint64_t type, text, owner;
	pid_t pid = l->target->pid;

	if (!memory_u64(pid, wait->address - OBJECT_BYTES + 8, &type) ||
	    !memory_u64(pid, type + TYPE_NAME, &text) ||
	    !memory_read(pid, text, name, sizeof(name)) ||
	    memcmp(name, "_thread.RLock", sizeof(name)) != 0 ||
	    !memory_u64(pid, wait->address + 8, &owner) || !owner)
		return;
	for (size_t i = 0; i < l->snapshot->threads.n; i++)
		if (l->snapshot->threads.v[i].ident == owner)
			wait->holder = i;
}

/* What these functions of threading wait for is no lock that a thread has. */
static bool waits_for_signal(const struct live_code *code)
{
	static const char *const names[] = { "wait", "join", "_wait_for_tstate_lock" };
	const char *slash = strrchr(code->file, '/'), *dot = strrchr(code->name, '.');

	for (size_t i = 0; slash && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(slash, "/threading.py") &&
		    !strcmp(dot ? dot + 1 : code->name, names[i]))
			return true;
	return false;
}

static void find_wait(struct locks *l, size_t i)
{
	const struct snapshot_thread *t = &l->snapshot->threads.v[i];
	struct lock_wait *wait = vec_push(&l->waits);
	const struct snapshot_frame *in = t->frames.n ? &t->frames.v[0] : NULL;
	bool parked = t->futex - t->sp < PARKED_NEAR;
	const char *line;

	*wait = (struct lock_wait){ .holder = SIZE_MAX };
	if (!t->futex || !in || !in->line || waits_for_signal(in->code))
		return;
	line = line_at(l, in->code->file, in->line);
	wait->expression = line ? lock_in(line, false) : NULL;
	if (!wait->expression)
		return;
	wait->address = t->futex;
	/* The semaphore of a parked thread follows the address of the lock, on its stack. */
	if (parked && !memory_u64(l->target->pid, t->futex - 8, &wait->address))
		wait->address = 0;
	if (parked && wait->address && !l->target->process.python->free_threaded)
		look_at_owner(l, wait);
	if (wait->holder == SIZE_MAX)
		infer_holder(l, i);
}

/* Threads that wait for the same lock may call it by different names. */
static void locks_find(struct locks *l)
{
	for (size_t i = 0; i < l->snapshot->threads.n; i++)
		find_wait(l, i);
	for (size_t i = 0; i < l->waits.n; i++)
		for (size_t k = 0; k < l->waits.n && l->waits.v[i].holder == SIZE_MAX; k++) {
			const struct lock_wait *other = &l->waits.v[k];

			if (!l->waits.v[i].address || other->address != l->waits.v[i].address)
				continue;
			l->waits.v[i].holder = other->holder == i ? SIZE_MAX : other->holder;
			l->waits.v[i].inferred = other->inferred;
		}
}

static void locks_done(struct locks *l)
{
	for (size_t i = 0; i < l->waits.n; i++)
		free(l->waits.v[i].expression);
	for (size_t i = 0; i < l->sources.n; i++)
		free(l->sources.v[i].text);
	vec_done(&l->waits);
	vec_done(&l->sources);
}

/* ---- text */

static void print_lock(const struct locks *l, size_t i)
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
static bool begins_circle(const struct locks *l, size_t i)
{
	size_t at = l->waits.v[i].holder;

	for (size_t n = 0; at != i && n < l->waits.n; n++) {
		if (at == SIZE_MAX || at < i)
			return false;
		at = l->waits.v[at].holder;
	}
	return at == i;
}

static void print_deadlocks(const struct locks *l)
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

static void print_thread(const struct locks *locks, size_t i)
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

static void print_text(const struct locks *locks)
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
static json_t *lock_json(const struct locks *l, const struct lock_wait *wait)
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

static json_t *thread_json(const struct locks *locks, size_t at)
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

static int print_json(const struct locks *locks, struct error *err)
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
	struct locks locks = { .snapshot = &snapshot };
	int ret = 0;

	if (target_open(&target, pid, err) < 0)
		return -1;
	snapshots = snapshots_new(target);
	if (snapshot_take(&snapshot, snapshots, err) < 0)
		return -1;
	locks.target = target;
	locks_find(&locks);
	if (json)
		ret = print_json(&locks, err);
	else
		print_text(&locks);
	locks_done(&locks);
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
