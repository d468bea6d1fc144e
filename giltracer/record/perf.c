/* SPDX-License-Identifier: MIT */
#include "record/perf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/str.h"
#include "base/vec.h"
#include "system/host.h"

/* ---- the arguments of perf record */

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

/* ---- one perf record */

/* perf reads all of /proc/PID and opens an event per CPU before it answers, which takes seconds
 * on a loaded machine. */
#define ANSWER_MS 60000

/* How long it may take to notice Ctrl-C meanwhile. */
#define LOOK_MS 100

/* The highest priority: at -10, perf sometimes lost records on a loaded machine. */
#define PERF_NICE -20

/* The part of perf's messages that is examined: it may print a line for each of many threads. */
#define TEXT_MAX (1 << 20)

static bool is_progress(const char *line)
{
	return str_has_prefix(line, "Events ") || str_has_prefix(line, "[ perf record:") || !*line;
}

/* A warning about a thread that ended before perf attached to it. */
static bool is_about_threads(const char *line)
{
	return str_has_prefix(line, "WARNING: Ignored open failure for pid ");
}

/* perf's warnings about kernel symbols, which every user but root gets. */
static bool is_about_symbols(const char *line)
{
	static const char *const starts[] = {
		"WARNING: Kernel address maps",           "Cannot read kernel map",
		"check /proc/sys/kernel/kptr_restrict",   "Samples in kernel",
		"file is not found in the buildid cache", "If some relocation was applied",
		"even with a suitable vmlinux",           "Couldn't record kernel",
		"Symbol resolution may be skewed",        "Check /proc/kallsyms",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (str_has_prefix(line, starts[i]))
			return true;
	return false;
}

/* The beginning of perf's usage text, which follows its message. */
static bool is_usage(const char *line)
{
	return str_has_prefix(line, "Run 'perf ") || str_has_prefix(line, "Usage:");
}

/* perf's message on one line, without the lines it always prints. The caller frees it. */
static char *perf_text(const struct recorder *recorder)
{
	CLEANUP(str_done) struct str text = { 0 };
	CLEANUP(free) char *buf = xcalloc(TEXT_MAX, 1);
	char *line, *rest = buf;

	if (pread(recorder->text_fd, buf, TEXT_MAX - 1, 0) < 0)
		*buf = '\0';
	while ((line = strsep(&rest, "\n"))) {
		line += strspn(line, " \t");
		if (is_usage(line))
			break;
		if (!is_progress(line) && !is_about_symbols(line) && !is_about_threads(line) &&
		    text.len < 300)
			str_addf(&text, "%s%s", text.len ? " " : "", line);
	}
	return str_take(&text);
}

/* Advice that follows from perf's message. */
static const char *hint(const char *text, int *ret_code)
{
	*ret_code = EIO;
	if (strcasestr(text, "permi") || strcasestr(text, "privilege")) {
		*ret_code = EPERM;
		return " (giltracer check shows what this host permits)";
	}
	/*
	 * "Couldn't create thread/CPU maps: No such process", or "failed to set filter … (File
	 * exists)": perf has removed the events of a thread that had ended and counts another
	 * thread's events twice.
	 */
	if (strstr(text, "No such process") ||
	    (strstr(text, "set filter") && strstr(text, "File exists")))
		*ret_code = ESRCH;
	if (strstr(text, "No space left"))
		return " (choose another folder with TMPDIR or --keep, or limit the size "
		       "with --max-size)";
	if (strstr(text, "is not supported"))
		return " (this host cannot count it; page-faults, context-switches and "
		       "other software events can be counted everywhere)";
	return "";
}

static int fail(const struct recorder *recorder, const char *what, struct error *err)
{
	CLEANUP(free) char *text = perf_text(recorder);
	int code;
	const char *advice = hint(text, &code);

	if (!*text && recorder->perf.reaped && WIFEXITED(recorder->perf.status))
		return error_set(err, code, "perf record %s without a message (status %d)", what,
		                 WEXITSTATUS(recorder->perf.status));
	return error_set(err, code, "perf record %s%s%s%s", what, *text ? ": " : "", text, advice);
}

static int open_pipes(struct recorder *rec, int *ret_control, int *ret_ack, struct error *err)
{
	int fds[2];

	rec->text_fd = memfd_create("giltracer-perf", MFD_CLOEXEC);
	if (rec->text_fd < 0)
		return error_errno(err, "memfd_create");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "pipe");
	*ret_control = fds[0];
	rec->control_fd = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "pipe");
	rec->ack_fd = fds[0];
	*ret_ack = fds[1];
	return 0;
}

/* One line of any length, so that it can be copied into a shell. */
static void log_command(char *const *argv)
{
	CLEANUP(str_done) struct str line = { 0 };

	for (char *const *arg = argv; *arg; arg++)
		str_addf(&line, strpbrk(*arg, " '\"|&;<>()$`\\*?~#") ? " '%s'" : " %s", *arg);
	log_debug("started:%s", str_get(&line));
}

/* perf makes its control pipes non-blocking. In perf, they have the same numbers as here. */
static int spawn(struct recorder *rec, const struct perf_plan *wanted,
                 const struct signals *signals, struct error *err)
{
	CLEANUP(close) int control = -1;
	CLEANUP(close) int ack = -1;
	struct perf_plan plan = *wanted;
	char **argv;
	int failed;

	if (open_pipes(rec, &control, &ack, err) < 0)
		return -1;
	plan.control_fd = control;
	plan.ack_fd = ack;
	plan.mmap_pages = rec->mmap_pages;
	argv = perfcmd_argv(&plan);
	failed = child_spawn(
		&rec->perf,
		&(struct child_spec){
			.file = plan.perf,
			.argv = argv,
			.fds = (struct child_fd[]){ { control, control },
	                                            { ack, ack },
	                                            { rec->text_fd, 1 },
	                                            { rec->text_fd, 2 } },
			.fd_count = 4,
			.own_group = true,
			.mask = &signals->old,
			.prepare = plan.without_syslog ? host_hide_kernel_symbols : NULL,
		},
		err);
	log_command(argv);
	argv_free(argv);
	return failed < 0 ? error_prefix(err, "perf record") : 0;
}

/* Returns a positive value if perf answered, 0 if it ended, negative if it did not answer in
 * time or a signal asks us to end. */
static int read_ack(struct recorder *rec)
{
	struct pollfd ready = { .fd = rec->ack_fd, .events = POLLIN };
	char buf[16];
	int n = 0;

	for (int left = rec->answer_ms; n == 0 && left > 0; left -= LOOK_MS) {
		if (rec->starting && signals_ending())
			return -1;
		n = poll(&ready, 1, left < LOOK_MS ? left : LOOK_MS);
		if (n < 0 && errno == EINTR)
			n = 0;
	}
	/* "ack\n"; some versions of perf add a terminating zero. */
	return n == 1 ? read(rec->ack_fd, buf, sizeof(buf)) > 0 : -1;
}

/* perf's last message. All that is left to do then is to close its events, for which the kernel takes
 * 50 to 100 ms for each uprobe and some tens for each tracepoint. */
static bool has_written(const struct recorder *rec)
{
	char end[512] = "";
	const off_t part = sizeof(end) - 1;
	struct stat st;

	return fstat(rec->text_fd, &st) == 0 &&
	       pread(rec->text_fd, end, (size_t)part, st.st_size > part ? st.st_size - part : 0) >
	               0 &&
	       strstr(end, "[ perf record: Captured and wrote ");
}

/* Waits until perf has ended or has written its file. */
static void wait_written(struct recorder *rec)
{
	CLEANUP(close) int fd = (int)syscall(SYS_pidfd_open, rec->perf.pid, 0);
	struct pollfd end = { .fd = fd, .events = POLLIN };

	while (!child_ended(&rec->perf) && !has_written(rec))
		poll(&end, 1, 1);
}

bool recorder_has_events(const struct recorder *recorder)
{
	CLEANUP(free) char *path = procfs_path(recorder->perf.pid, 0, "fd");
	DIR *dir = opendir(path);
	bool found = !dir;
	struct dirent *entry;
	char target[64];

	while (!found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		found = !strcmp(target, "anon_inode:[perf_event]");
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Sends "enable" or "disable"; recorder_answer returns when perf has done it. An error if perf died. */
static int recorder_command(struct recorder *rec, const char *command, struct error *err)
{
	CLEANUP(free) char *line = NULL;
	void (*old)(int);
	ssize_t n;

	if (rec->control_fd < 0)
		return error_set(err, EIO, "perf record has ended");
	line = xasprintf("%s\n", command);
	old = signal(SIGPIPE, SIG_IGN);
	n = write(rec->control_fd, line, strlen(line));
	signal(SIGPIPE, old);
	return n == (ssize_t)strlen(line) ? 0 : fail(rec, "ended early", err);
}

static int recorder_answer(struct recorder *rec, struct error *err)
{
	int answer = read_ack(rec);

	if (answer < 0 && rec->starting && signals_ending())
		return error_set(err, EINTR, "interrupted");
	if (answer < 0)
		return error_set(err, ETIMEDOUT, "perf record has not answered for %d ms",
		                 rec->answer_ms);
	return answer ? 0 : fail(rec, "ended early", err);
}

static bool short_of_memory(const struct recorder *rec)
{
	CLEANUP(free) char *text = perf_text(rec);

	return strstr(text, "mmap") || strstr(text, "mapping pages");
}

/* perf loses what it does not read in time, so its priority is raised if that is permitted; not
 * to a realtime priority, because perf sometimes runs without sleeping. */
static void raise_priority(pid_t pid)
{
	if (setpriority(PRIO_PROCESS, (id_t)pid, PERF_NICE) < 0)
		log_debug("perf: no higher priority: %s", strerror(errno));
}

int recorder_start(struct recorder *ret, const struct perf_plan *plan,
                   const struct signals *signals, struct error *err)
{
	struct error ignored;

	if (!ret->mmap_pages)
		ret->mmap_pages = plan->mmap_pages;
	ret->answer_ms = plan->answer_ms ? (int)plan->answer_ms : ANSWER_MS;
	ret->starting = true;
	if (spawn(ret, plan, signals, err) < 0)
		return -1;
	/* The events are disabled already; the command only tests whether perf answers. */
	recorder_command(ret, "disable", &ignored);
	return 0;
}

/* A thread ended after perf had opened its events: perf cannot read its name, and ends without a
 * message. */
static bool lost_a_thread(const struct recorder *rec)
{
	CLEANUP(free) char *text = perf_text(rec);

	return !*text && rec->perf.reaped && WIFEXITED(rec->perf.status) &&
	       WEXITSTATUS(rec->perf.status);
}

static int could_not_start(const struct recorder *rec, struct error *err)
{
	fail(rec, "could not start", err);
	if (lost_a_thread(rec))
		err->code = ESRCH;
	return -1;
}

/* perf ended because it could not lock enough memory: start it again with half. */
static int start_smaller(struct recorder *rec, const struct perf_plan *plan,
                         const struct signals *signals, struct error *err)
{
	unsigned pages = rec->mmap_pages / 2;

	log_debug("perf: no %u pages per CPU, trying half", rec->mmap_pages);
	recorder_done(rec);
	*rec = (struct recorder)RECORDER_NONE;
	rec->mmap_pages = pages;
	return recorder_start(rec, plan, signals, err);
}

/* perf 7.2 and later continue without an event that the kernel refuses, so that the recording
 * would lack it. */
static bool dropped_an_event(const struct recorder *rec)
{
	CLEANUP(free) char *text = perf_text(rec);

	return strstr(text, "which will be removed");
}

int recorder_ready(struct recorder *rec, const struct perf_plan *plan,
                   const struct signals *signals, struct error *err)
{
	struct error said;

	while (recorder_answer(rec, &said) < 0) {
		/* perf still runs, and would do so until the program ends: do not wait for it. */
		if (said.code == ETIMEDOUT || said.code == EINTR) {
			*err = said;
			return -1;
		}
		child_wait(&rec->perf);
		if (rec->mmap_pages <= 1 || !short_of_memory(rec))
			return could_not_start(rec, err);
		if (start_smaller(rec, plan, signals, err) < 0)
			return -1;
	}
	rec->starting = false;
	if (dropped_an_event(rec))
		return fail(rec, "could not start", err);
	raise_priority(rec->perf.pid);
	return 0;
}

void recorder_stop(struct recorder *rec)
{
	rec->stopped = true;
	if (rec->perf.pid > 0 && !child_ended(&rec->perf))
		kill(rec->perf.pid, SIGTERM);
}

static bool could_not_write(const struct recorder *rec)
{
	CLEANUP(free) char *text = perf_text(rec);

	return strstr(text, "failed to write");
}

int recorder_finish(struct recorder *rec, struct error *err)
{
	int status;

	recorder_stop(rec);
	wait_written(rec);
	if (!rec->perf.reaped)
		return could_not_write(rec) ? fail(rec, "failed", err) : 0;
	status = rec->perf.status;
	/* After its last write, successful or not, perf dies by the signal that ended it. */
	if (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM))
		return could_not_write(rec) ? fail(rec, "failed", err) : 0;
	if (WIFSIGNALED(status))
		return error_set(err, EIO,
		                 "perf record was killed by signal %d%s: records that it had not "
		                 "written yet are lost",
		                 WTERMSIG(status),
		                 WTERMSIG(status) == SIGKILL
		                         ? " (by the kernel if memory ran out, see dmesg)"
		                         : "");
	return fail(rec, "failed", err);
}

void recorder_done(struct recorder *rec)
{
	child_done(&rec->perf);
	if (rec->control_fd >= 0)
		close(take_fd(&rec->control_fd));
	if (rec->ack_fd >= 0)
		close(take_fd(&rec->ack_fd));
	if (rec->text_fd >= 0)
		close(take_fd(&rec->text_fd));
}

/* ---- several of one process at the same time */

int recorders_start(struct recorders *r, const struct signals *signals, struct error *err)
{
	struct perf_plan plans[RECORDERS_MAX];

	for (size_t i = 0; i < r->count; i++) {
		plans[i] = r->plans[i];
		plans[i].pid = r->pid;
		plans[i].others = r->others;
		plans[i].late_tasks = r->late_tasks;
		if (recorder_start(&r->v[i], &plans[i], signals, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < r->count; i++)
		if (recorder_ready(&r->v[i], &plans[i], signals, err) < 0)
			return -1;
	return 0;
}

void recorders_command(struct recorders *r, const char *command, char **note)
{
	bool sent[RECORDERS_MAX] = { false };
	struct error err;

	/* perf ends with the program; recorder_finish() reports whether it succeeded. */
	if (r->ended(r->data))
		return;
	for (size_t i = 0; i < r->count; i++) {
		if (r->v[i].stopped || (r->plans[i].standby && !r->standby_used))
			continue;
		sent[i] = recorder_command(&r->v[i], command, &err) == 0;
		if (!sent[i] && !r->ended(r->data))
			str_set_once(note, err.text);
	}
	for (size_t i = 0; i < r->count; i++)
		if (sent[i] && recorder_answer(&r->v[i], &err) < 0 && !r->ended(r->data))
			str_set_once(note, err.text);
}

int recorders_enable_standby(struct recorders *r, struct error *err)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->plans[i].standby && (recorder_command(&r->v[i], "enable", err) < 0 ||
		                            recorder_answer(&r->v[i], err) < 0))
			return -1;
	r->standby_used = true;
	return 0;
}

static bool is_unused(const struct recorders *r, size_t i)
{
	return r->plans[i].standby && !r->standby_used;
}

void recorders_finish(struct recorders *r, char **note)
{
	char *why = NULL;
	struct error err;

	/* Stop all at the same time: the kernel takes a while for each. */
	for (size_t i = 0; i < r->count; i++) {
		if (is_unused(r, i) && r->v[i].perf.pid > 0 && !child_ended(&r->v[i].perf))
			kill(r->v[i].perf.pid, SIGKILL);
		recorder_stop(&r->v[i]);
	}
	for (size_t i = 0; i < r->count; i++)
		if (!is_unused(r, i) && recorder_finish(&r->v[i], &err) < 0)
			str_set_once(&why, err.text);
	if (!why)
		return;
	free(*note);
	*note = why;
}

void recorders_leave(struct recorders *r, struct afterwards *ret)
{
	for (size_t i = 0; i < r->count; i++) {
		struct child *perf = &r->v[i].perf;
		int fd = child_ended(perf) ? -1 : (int)syscall(SYS_pidfd_open, perf->pid, 0);

		if (fd < 0) /* it has ended, or nothing can wait for it later */
			continue;
		*vec_push(&ret->perfs) = fd;
		perf->pid = 0;
	}
}

void afterwards_move(struct afterwards *to, struct afterwards *from)
{
	for (size_t i = 0; i < from->perfs.n; i++)
		*vec_push(&to->perfs) = from->perfs.v[i];
	for (size_t i = 0; i < from->held.n; i++)
		*vec_push(&to->held) = from->held.v[i];
	vec_done(&from->perfs);
	vec_done(&from->held);
}

void afterwards_wait(struct afterwards *after)
{
	for (size_t i = 0; i < after->perfs.n; i++)
		poll(&(struct pollfd){ .fd = after->perfs.v[i], .events = POLLIN }, 1, ANSWER_MS);
	afterwards_done(after);
}

void afterwards_done(struct afterwards *after)
{
	for (size_t i = 0; i < after->perfs.n; i++)
		close(after->perfs.v[i]);
	for (size_t i = 0; i < after->held.n; i++)
		close(after->held.v[i]);
	vec_done(&after->perfs);
	vec_done(&after->held);
}

void recorders_done(struct recorders *r)
{
	for (size_t i = 0; i < RECORDERS_MAX; i++)
		recorder_done(&r->v[i]);
}

void recorders_reset(struct recorders *r)
{
	recorders_done(r);
	for (size_t i = 0; i < RECORDERS_MAX; i++)
		r->v[i] = (struct recorder)RECORDER_NONE;
}
