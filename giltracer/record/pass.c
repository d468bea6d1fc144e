/* SPDX-License-Identifier: MIT */
/* One execution of the program, watched by perf. */
#include "record/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "live/family.h"
#include "locate/probes.h"
#include "record/preloading.h"
#include "record/perf.h"
#include "record/sampling.h"
#include "system/host.h"
#include "system/perf_access.h"
#include "system/uprobes.h"
#include "record/group_signals.h"

/* The number of our socket in the program: high, because programs rely on low numbers, and close
 * the first thousands without looking. */
#define CHANNEL_FD 5000

#define MAPS_MAX (4 << 20)

/* Longest message of share/python/program.py. */
#define MESSAGE_MAX 4096

struct pass {
	const struct pass_plan *plan;
	const struct signals *signals;
	struct pass_result *result;
	struct child program;
	struct recorders recorders;
	struct group_signals group;
	VEC(int) held;          /* the uprobes, until the recordings have ended */
	uint64_t keep_until_ns; /* uprobes */
	int channel;            /* our end; -1 when the program has closed its own */
	FILE *codes; /* of the list that comes by the channel; NULL: its file is the program's */
	int tstp;    /* signalfd of SIGTSTP; -1: none */
	uint64_t suspended_ns; /* when the program was stopped; 0: it runs */
	char *failure;
	bool unrecordable; /* that is because of the engine, and the program has not begun */
};

/* The first problem is the one to report. */
static void set_once(char **where, const char *text)
{
	if (!*where)
		*where = xstrdup(text);
}

/* ---- the program */

int pass_channel_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= CHANNEL_FD)
		return (int)limit.rlim_cur - 1;
	return CHANNEL_FD;
}

/* The arguments in the order in which share/python/program.py reads them. The caller frees the
 * array, but not its strings. */
static const char **program_argv(const struct pass_plan *plan, const char *fd, const char *entries)
{
	struct {
		const char **v;
		size_t n, alloc;
	} args = { 0 };
	const char *const first[] = {
		plan->bootstrap,
		fd,
		plan->kind,
		plan->entry,
		plan->imports ? plan->imports : "",
		plan->python_trace ? plan->python_trace : "-",
		entries,
		plan->codes ? plan->codes : "-",
		plan->children,
		plan->target,
	};

	*vec_push(&args) = plan->python;
	for (const char *const *option = plan->python_options; option && *option; option++)
		*vec_push(&args) = *option;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		*vec_push(&args) = first[i];
	for (char *const *arg = plan->args; *arg; arg++)
		*vec_push(&args) = *arg;
	*vec_push(&args) = NULL;
	return args.v;
}

static size_t program_fds(const struct pass_plan *plan, int channel, int number,
                          struct child_fd ret[4])
{
	const int std[] = { plan->in, plan->out, plan->err };
	size_t n = 0;

	for (int i = 0; i < 3; i++)
		if (std[i] >= 0)
			ret[n++] = (struct child_fd){ std[i], i };
	ret[n++] = (struct child_fd){ channel, number };
	return n;
}

static int program_prepare(struct pass *pass, struct error *err)
{
	const struct pass_plan *plan = pass->plan;
	int number = pass_channel_number();
	CLEANUP(free) char *fd = xasprintf("%d", number);
	CLEANUP(free) char *entries = xasprintf("%u", plan->python_trace_entries);
	CLEANUP(free) const char **argv = program_argv(plan, fd, entries);
	CLEANUP(close) int theirs = -1;
	struct child_fd fds[4];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_errno(err, "socketpair");
	pass->channel = pair[0];
	theirs = pair[1];
	return child_spawn(&pass->program,
	                   &(struct child_spec){
				   .file = plan->python,
				   .argv = (char *const *)(uintptr_t)argv,
				   .fds = fds,
				   .fd_count = program_fds(plan, theirs, number, fds),
				   .env = plan->preloading ? plan->preloading->env : NULL,
				   .held = true,
				   .mask = &pass->signals->old,
			   },
	                   err);
}

/* ---- its recordings */

static bool program_ended(void *data)
{
	struct pass *pass = data;

	return child_ended(&pass->program);
}

static int start_recorders(struct pass *pass, struct error *err)
{
	struct recorders *r = &pass->recorders;

	r->plans = pass->plan->perf;
	r->count = pass->plan->perf_count;
	r->pid = pass->program.pid;
	r->ended = program_ended;
	r->data = pass;
	if (recorders_start(r, pass->signals, err) < 0) {
		if (pass->plan->may_change && (err->code == EIO || err->code == EPERM))
			err->code = ECHILD;
		return -1;
	}
	for (size_t i = 0; i < r->count; i++)
		pass->result->mmap_pages[i] = r->v[i].mmap_pages;
	return 0;
}

/* ---- messages from the program */

static const char *argument(const char *message, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(message, word, len) && message[len] == ' ' ? message + len + 1 : NULL;
}

static void answer(struct pass *pass, const char *text)
{
	if (send(pass->channel, text, strlen(text), MSG_NOSIGNAL) < 0)
		log_debug("the program does not respond: %s", strerror(errno));
}

static void stop_sampling(struct pass *pass)
{
	if (pass->plan->sampling)
		sampling_stop(pass->plan->sampling);
}

/* A limit may have ended the recordings already. */
static void handle_stop(struct pass *pass, const char *time)
{
	if (!pass->result->limit_note) {
		pass->result->stop_ns = strtoull(time, NULL, 10);
		stop_sampling(pass);
		recorders_command(&pass->recorders, "disable", &pass->result->perf_note);
	}
	answer(pass, "ok");
}

/* Whether a thread belongs to the process that we started, not to a child of it. */
static bool is_ours(const struct pass *pass, uint32_t tid)
{
	CLEANUP(free)
	char *path = xasprintf("/proc/%d/task/%u", (int)pass->program.pid, tid);

	return access(path, F_OK) == 0;
}

static bool has_probes(const struct pass *pass, uint32_t tid, struct error *err)
{
	return !pass->plan->probes || !recorder_has_events(&pass->recorders.v[0]) ||
	       !is_ours(pass, tid) ||
	       probe_verify_process(pass->program.pid, pass->plan->probes, err) == 0;
}

/* Another engine is better than a library that is not there; without one, the program runs. */
static bool has_library(const struct pass *pass, uint32_t tid, struct error *err)
{
	const struct pass_plan *plan = pass->plan;

	if (!plan->may_change || plan->probes || preloading_works(plan->preloading, tid))
		return true;
	error_set(err, ESTALE,
	          "the library was not loaded into the program, because something "
	          "cleared its environment or it never has a GIL");
	return false;
}

/* Kills the program if it cannot be recorded, before it does any work of its own: a run without
 * a recording would be worse than none. */
static bool can_record(struct pass *pass, uint32_t tid)
{
	struct error err;

	if (has_probes(pass, tid, &err) && has_library(pass, tid, &err))
		return true;
	set_once(&pass->failure, err.text);
	pass->unrecordable = true;
	kill(pass->program.pid, SIGKILL);
	return false;
}

/* Kills the program likewise if samples are all that is recorded and they cannot be taken. */
static bool starts_sampling(struct pass *pass)
{
	struct error err;

	if (!pass->plan->sampling ||
	    sampling_start(pass->plan->sampling, pass->program.pid, &err) == 0)
		return true;
	set_once(&pass->failure, err.text);
	kill(pass->program.pid, SIGKILL);
	return false;
}

/* The program may no longer open a file, so the list of its code objects comes in parts, unless it
 * has closed the channel. */
static void take_code(struct pass *pass, const char *part, size_t size)
{
	if (!pass->codes && pass->plan->codes)
		pass->codes = fopen(pass->plan->codes, "we");
	if (pass->codes)
		fwrite(part, size, 1, pass->codes);
}

/* All parts were received, or the program has written the file itself. */
static void finish_codes(struct pass *pass)
{
	pass->result->codes = !pass->codes || (fflush(pass->codes) == 0 && !ferror(pass->codes));
}

static void handle_message(struct pass *pass, const char *message)
{
	struct pass_result *result = pass->result;
	const char *arg;

	log_debug("program: %s", message);
	if ((arg = argument(message, "begin"))) {
		if (!child_ended(&pass->program) &&
		    can_record(pass, (uint32_t)strtoul(arg, NULL, 10)))
			answer(pass, "go");
	} else if ((arg = argument(message, "start"))) {
		result->start_tid = (uint32_t)strtoul(arg, NULL, 10);
		if (result->limit_note) { /* tracing is over before it began */
			answer(pass, "go");
			return;
		}
		if (child_ended(&pass->program) || !starts_sampling(pass))
			return;
		recorders_command(&pass->recorders, "enable", &pass->result->perf_note);
		/* An approximation: the program reports the exact time next. */
		result->start_ns = clock_now_ns();
		answer(pass, "go");
	} else if ((arg = argument(message, "started"))) {
		if (result->start_ns)
			result->start_ns = strtoull(arg, NULL, 10);
	} else if ((arg = argument(message, "gil"))) {
		result->gil = session_gil_of(arg);
	} else if ((arg = argument(message, "stop"))) {
		handle_stop(pass, arg);
	} else if ((arg = argument(message, "trace"))) {
		set_once(&result->trace, arg);
	} else if (!strcmp(message, "codes")) {
		finish_codes(pass);
	} else if (!strcmp(message, "unloaded")) {
		result->unloaded = true;
	} else if ((arg = argument(message, "thread"))) {
		thread_names_add(&result->named, 0, arg);
	} else if ((arg = argument(message, "note"))) {
		set_once(&result->trace_note, arg);
	} else if ((arg = argument(message, "entry"))) {
		set_once(&result->entry_note, arg);
	} else if ((arg = argument(message, "fail"))) {
		set_once(&pass->failure, arg);
	}
}

/* What has become of our part of the program, whose end of the channel is closed. A process that
 * is ending has no command line any more. */
static enum pass_channel closed_by(const struct pass *pass)
{
	CLEANUP(free)
	char *path = xasprintf("/proc/%d/cmdline", (int)pass->program.pid);
	CLEANUP(fclose) FILE *file = fopen(path, "re");
	CLEANUP(free) char *word = NULL;
	size_t alloc = 0;
	bool any = false;

	while (file && getdelim(&word, &alloc, '\0', file) > 0) {
		any = true;
		if (!strcmp(word, pass->plan->bootstrap))
			return PASS_CHANNEL_CLOSED;
	}
	return any ? PASS_CHANNEL_EXECUTED : PASS_CHANNEL_OPEN;
}

/* The program cannot say any more when tracing should start, so it starts now. */
static void start_without_program(struct pass *pass)
{
	if (pass->result->start_ns || pass->result->limit_note)
		return;
	recorders_command(&pass->recorders, "enable", &pass->result->perf_note);
	if (!starts_sampling(pass))
		return;
	pass->result->start_ns = clock_now_ns();
}

static void channel_closed(struct pass *pass)
{
	close(take_fd(&pass->channel));
	pass->result->channel = closed_by(pass);
	if (pass->result->channel != PASS_CHANNEL_OPEN && !pass->result->unloaded)
		start_without_program(pass);
}

/* Returns false if there is nothing to read at present. */
static bool read_message(struct pass *pass)
{
	char buf[MESSAGE_MAX + 1];
	ssize_t n;

	if (pass->channel < 0)
		return false;
	n = recv(pass->channel, buf, MESSAGE_MAX, MSG_DONTWAIT);
	if (n > 5 && !memcmp(buf, "code ", 5)) {
		take_code(pass, buf + 5, (size_t)n - 5);
		return true;
	}
	if (n > 0) {
		buf[n] = '\0';
		handle_message(pass, buf);
		return true;
	}
	/* A program that ends without reading our answer resets the connection, which is reported once,
	 * before the messages that it has sent. */
	if (n < 0 && (errno == ECONNRESET || errno == EINTR))
		return true;
	if (n == 0 || errno != EAGAIN)
		channel_closed(pass);
	return false;
}

/* ---- signals */

static void end_suspension(struct pass *pass)
{
	struct suspensions *list = &pass->result->suspended;

	if (pass->suspended_ns && list->n < SUSPENSIONS_MAX)
		list->v[list->n++] = (struct suspension){ pass->suspended_ns, clock_now_ns() };
	pass->suspended_ns = 0;
}

/* @tstp_ns: when we were stopped, too, and thus cannot have seen that the program was; 0: we were not */
static void handle_changes(struct pass *pass, uint64_t tstp_ns)
{
	int change;

	while ((change = child_change(&pass->program))) {
		pass->result->stopped = true;
		if (!pass->suspended_ns)
			pass->suspended_ns = tstp_ns || change == CLD_CONTINUED ? tstp_ns
			                                                        : clock_now_ns();
		if (change == CLD_CONTINUED)
			end_suspension(pass);
	}
}

/* Ctrl-Z stops the program and us. Receiving it first shows when. */
static void open_tstp(struct pass *pass)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
		pass->tstp = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Lets a SIGTSTP that is pending have its usual effect. */
static void take_tstp(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void handle_tstp(struct pass *pass)
{
	struct signalfd_siginfo info;
	uint64_t tstp_ns;

	if (pass->tstp < 0 || read(pass->tstp, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	tstp_ns = clock_now_ns();
	raise(SIGTSTP);
	take_tstp();
	/* The program may still be stopped, or have been continued before us. */
	handle_changes(pass, tstp_ns);
	close(take_fd(&pass->tstp));
	open_tstp(pass);
}

static void close_tstp(struct pass *pass)
{
	take_tstp();
	if (pass->tstp >= 0)
		close(take_fd(&pass->tstp));
}

/* A signal to the whole group, from the terminal (Ctrl-C, Ctrl-\) or by kill(-PGID), has reached
 * the program itself. A signal to giltracer alone is passed on to the program. */
static void handle_signal(struct pass *pass, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;

	if (signal == SIGCHLD) {
		handle_changes(pass, 0);
		return;
	}
	if (signal != SIGUSR1 && signal != SIGUSR2)
		pass->result->interrupted = true;
	if (!group_signals_saw(&pass->group, signal) && !child_ended(&pass->program))
		kill(pass->program.pid, signal);
}

static void read_signals(struct pass *pass)
{
	struct signalfd_siginfo info;

	while (read(pass->signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		handle_signal(pass, &info);
}

/* ---- recordings that end before the program */

/* The library records from the start of Python on, perf when the program asks for it. */
static bool is_recording(const struct pass *pass)
{
	const struct pass_result *result = pass->result;

	return (result->start_ns || pass->plan->preloading) && !result->stop_ns &&
	       !result->limit_note;
}

/* The time for which the program has been traced at the time now. */
static uint64_t traced_ns(const struct pass *pass, uint64_t now)
{
	uint64_t start_ns = pass->result->start_ns;

	return start_ns && now > start_ns ? now - start_ns : 0;
}

/* ---- from uprobes to the library */

/* How long uprobes may slow the program down until that is noticed. */
#define COST_LOOK_MS 5

/* How long they stay because a process does not have the library, until that is examined again. */
#define KEEP_MS 500

static bool may_hand_over(const struct pass *pass)
{
	return pass->plan->may_hand_over && is_recording(pass) && pass->result->start_ns &&
	       !pass->result->handover_ns;
}

/* Whether uprobes record the process, but not the library, which is not in it or not yet. */
static bool lacks_library(const struct pass *pass, pid_t pid)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/maps", (int)pid);
	CLEANUP(free) char *maps = NULL;
	struct error ignored;

	return !preloading_works(pass->plan->preloading, (uint32_t)pid) &&
	       file_read(&maps, NULL, path, MAPS_MAX, &ignored) == 0 &&
	       strstr(maps, pass->plan->probes->path);
}

static bool all_have_library(const struct pass *pass)
{
	struct family family = { 0 };
	bool all = true;

	family_read(&family, pass->program.pid);
	for (size_t i = 0; i < family.v.n && all; i++)
		all = !lacks_library(pass, family.v.v[i]);
	vec_done(&family.v);
	return all;
}

static void hold_uprobes(struct pass *pass)
{
	const struct probe_set *set = pass->plan->probes;

	for (size_t i = 0; i < set->probes.n; i++) {
		int fd = perf_hold_event(set->group, set->probes.v[i].event);

		if (fd >= 0)
			*vec_push(&pass->held) = fd;
	}
}

static void drop_uprobes(struct pass *pass)
{
	for (size_t i = 0; i < pass->held.n; i++)
		close(pass->held.v[i]);
	vec_done(&pass->held);
}

/* Each recording begins before its predecessor ends, so that nothing is missed. */
static void look_at_cost(struct pass *pass)
{
	const struct pass_plan *plan = pass->plan;
	struct error err;

	if (!may_hand_over(pass) || clock_now_ns() < pass->keep_until_ns ||
	    !preloading_finds_slow(plan->preloading))
		return;
	pass->keep_until_ns = clock_now_ns() + KEEP_MS * NS_PER_MS;
	if (!all_have_library(pass))
		return;
	if (recorders_enable_standby(&pass->recorders, &err) < 0) {
		log_debug("uprobes go on: %s", err.text);
		return;
	}
	pass->result->handover_ns = clock_now_ns();
	preloading_take_over(plan->preloading);
	hold_uprobes(pass);
	recorder_stop(&pass->recorders.v[0]);
	plan->on_handover(traced_ns(pass, pass->result->handover_ns));
}

/* perf ends when the kernel has removed the uprobes. */
static void look_at_uprobes(struct pass *pass)
{
	if (pass->result->handover_ns && !pass->result->uprobes_end_ns &&
	    child_ended(&pass->recorders.v[0].perf))
		pass->result->uprobes_end_ns = clock_now_ns();
}

static int wait_ms(const struct pass *pass)
{
	int ms;

	if (!is_recording(pass))
		return -1;
	ms = limit_wait_ms(&pass->plan->limit, traced_ns(pass, clock_now_ns()));
	return may_hand_over(pass) && ms > COST_LOOK_MS ? COST_LOOK_MS : ms;
}

static void look_at_limit(struct pass *pass)
{
	struct pass_result *result = pass->result;
	const struct preloading *preloading = pass->plan->preloading;
	uint64_t now = clock_now_ns();

	if (!is_recording(pass))
		return;
	if (preloading && preloading_full_ns(preloading)) {
		now = preloading_full_ns(preloading);
		result->limit_note = limit_size_text(&pass->plan->limit, traced_ns(pass, now));
	} else {
		result->limit_note = limit_reached(&pass->plan->limit, traced_ns(pass, now),
		                                   pass->plan->perf, pass->plan->perf_count);
	}
	if (!result->limit_note)
		return;
	result->stop_ns = now;
	stop_sampling(pass);
	if (preloading)
		preloading_stop(preloading);
	recorders_command(&pass->recorders, "disable", &pass->result->perf_note);
	recorders_finish(&pass->recorders, &pass->result->perf_note);
	if (pass->plan->on_limit)
		pass->plan->on_limit(result->limit_note);
}

static void watch(struct pass *pass)
{
	open_tstp(pass);
	while (!child_ended(&pass->program)) {
		struct pollfd fds[] = {
			{ .fd = pass->signals->fd, .events = POLLIN },
			{ .fd = pass->channel, .events = POLLIN },
			{ .fd = pass->tstp, .events = POLLIN },
		};

		if (poll(fds, 3, wait_ms(pass)) < 0 && errno != EINTR)
			break;
		handle_tstp(pass);
		read_signals(pass);
		read_message(pass);
		look_at_cost(pass);
		look_at_uprobes(pass);
		look_at_limit(pass);
	}
	close_tstp(pass);
	while (read_message(pass))
		continue;
}

/* ---- one execution */

static int run(struct pass *pass, struct error *err)
{
	CLEANUP(cgroup_done) struct cgroup cgroup = { 0 };
	uint64_t start_ns;

	if (group_signals_start(&pass->group, err) < 0 || program_prepare(pass, err) < 0 ||
	    start_recorders(pass, err) < 0)
		return -1;
	if (signals_ending())
		return error_set(err, EINTR, "interrupted");
	if (pass->plan->probes && probe_verify_file(pass->plan->probes, err) < 0)
		return -1;
	pass->result->pid = (uint32_t)pass->program.pid;
	start_ns = clock_now_ns();
	pass->result->stolen_ns = steal_time_ns();
	cgroup_open(&cgroup, "/proc/self");
	if (pass->plan->preloading)
		preloading_note_time(pass->plan->preloading);
	if (child_release(&pass->program, err) < 0) {
		recorders_finish(&pass->recorders, &pass->result->perf_note);
		return error_prefix(err, "%s", pass->plan->python);
	}
	watch(pass);
	stop_sampling(pass);
	if (pass->plan->preloading) {
		if (pass->plan->probes)
			pass->result->turn_ns = preloading_turn_ns(pass->plan->preloading);
		preloading_note_time(pass->plan->preloading);
		if (!pass->result->limit_note)
			preloading_stop(pass->plan->preloading);
	}
	pass->result->wall_ns = clock_now_ns() - start_ns;
	pass->result->status = pass->program.status;
	end_suspension(pass);
	pass->result->quota = cgroup_since(&cgroup);
	recorders_finish(&pass->recorders, &pass->result->perf_note);
	/* The kernel accounts stolen time at each CPU's tick, so the last of it may be missing. */
	pass->result->stolen_ns = steal_time_since(pass->result->stolen_ns);
	if (pass->plan->preloading)
		preloading_names(pass->plan->preloading, &pass->result->named);
	thread_names_read(&pass->result->named, pass->plan->children);
	/* The program renames the file when it is complete, but may be unable to say so. */
	if (pass->plan->codes && !pass->codes && access(pass->plan->codes, F_OK) == 0)
		pass->result->codes = true;
	if (pass->failure)
		return error_set(err, pass->unrecordable ? ESTALE : EINVAL, "%s", pass->failure);
	return 0;
}

int pass_run(const struct pass_plan *plan, const struct signals *signals, struct pass_result *ret,
             struct error *err)
{
	struct pass pass = {
		.plan = plan,
		.signals = signals,
		.result = ret,
		.program = CHILD_NONE,
		.recorders = RECORDERS_NONE,
		.group = GROUP_SIGNALS_NONE,
		.channel = -1,
		.tstp = -1,
	};
	int failed;

	*ret = (struct pass_result){ 0 };
	failed = run(&pass, err);
	child_done(&pass.program);
	recorders_done(&pass.recorders);
	drop_uprobes(&pass);
	group_signals_done(&pass.group);
	if (pass.channel >= 0)
		close(pass.channel);
	if (pass.codes)
		fclose(pass.codes);
	free(pass.failure);
	if (failed < 0)
		pass_result_done(ret);
	return failed;
}

void pass_result_done(struct pass_result *result)
{
	free(result->trace);
	free(result->trace_note);
	session_threads_free(result->named.v, result->named.n);
	vec_done(&result->slept);
	free(result->entry_note);
	free(result->limit_note);
	free(result->perf_note);
	*result = (struct pass_result){ 0 };
}
