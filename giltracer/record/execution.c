/* SPDX-License-Identifier: MIT */
#include "record/execution.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/str.h"
#include "base/vec.h"
#include "python/target.h"
#include "live/family.h"
#include "live/snapshot.h"
#include "python/probes.h"
#include "python/process.h"
#include "preload/format.h"
#include "record/engine.h"
#include "record/group_signals.h"
#include "record/flight.h"
#include "record/library.h"
#include "record/notes.h"
#include "record/perf.h"
#include "session/session.h"
#include "system/host.h"
#include "system/perf_access.h"
#include "system/uprobes.h"

/* ---- limits of time, size and disk space */

#define MIB UINT64_C(1048576)

/* How often sizes are checked. perf writes at most some 100 MB a second. */
#define LOOK_MS 200

/* Bytes to leave free: perf still has buffered data to write at the end, and other programs
 * write, too. */
#define LEAST_FREE (256 * MIB)

/* The free bytes of the file system that contains path. */
static uint64_t free_bytes(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

void limit_begin(struct limit *limit, const char *folder)
{
	uint64_t quarter = free_bytes(folder) / 4;

	limit->folder = folder;
	limit->least_free = quarter < LEAST_FREE ? quarter : LEAST_FREE;
}

int limit_wait_ms(const struct limit *limit, uint64_t elapsed_ns)
{
	uint64_t end_ns = limit->duration_s * NS_PER_SECOND;

	if (!limit->duration_s || end_ns > elapsed_ns + LOOK_MS * NS_PER_SECOND / 1000)
		return LOOK_MS;
	return end_ns > elapsed_ns ? (int)((end_ns - elapsed_ns) / 1000000) + 1 : 0;
}

static uint64_t size_of(const struct perf_plan *recordings, size_t count)
{
	uint64_t size = 0;
	struct stat st;

	for (size_t i = 0; i < count; i++)
		if (stat(recordings[i].output, &st) == 0)
			size += (uint64_t)st.st_size;
	return size;
}

/* The sentence about the limit of size; the caller frees it. */
static char *limit_size_text(const struct limit *limit, uint64_t elapsed_ns)
{
	return xasprintf(NOTE_MAX_SIZE, (double)elapsed_ns / 1e9, limit->max_mib);
}

char *limit_reached(const struct limit *limit, uint64_t elapsed_ns,
                    const struct perf_plan *recordings, size_t count)
{
	if (limit->duration_s && elapsed_ns >= limit->duration_s * NS_PER_SECOND)
		return xasprintf(NOTE_DURATION, limit->duration_s);
	if (limit->max_mib && size_of(recordings, count) >= limit->max_mib * MIB)
		return limit_size_text(limit, elapsed_ns);
	if (limit->folder && free_bytes(limit->folder) < limit->least_free)
		return xasprintf(NOTE_DISK_FULL, (double)elapsed_ns / 1e9);
	return NULL;
}

/* ---- the names that a program gives its threads */

#define MOST 10000

void thread_names_add(struct thread_names *named, uint32_t pid, const char *text)
{
	char *name;
	unsigned long tid = strtoul(text, &name, 10);

	if (!tid || tid > INT32_MAX || *name != ' ')
		return;
	*vec_push(named) = (struct session_thread){ pid, (uint32_t)tid, xstrdup(name + 1) };
}

void thread_names_read(struct thread_names *named, const char *path)
{
	struct error ignored;
	int fd = file_open_member(path, &ignored);
	CLEANUP(fclose) FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	CLEANUP(free) char *line = NULL;
	size_t alloc = 0;
	ssize_t len;
	struct thread_names last = *named;

	*named = (struct thread_names){ 0 };
	while (file && named->n < MOST && (len = getline(&line, &alloc, file)) > 0) {
		char *tid;
		unsigned long pid = strtoul(line, &tid, 10);

		if (line[len - 1] != '\n' || !pid || pid > INT32_MAX || *tid != ' ')
			continue;
		line[len - 1] = '\0';
		thread_names_add(named, (uint32_t)pid, tid + 1);
	}
	for (size_t i = 0; i < last.n; i++)
		*vec_push(named) = last.v[i];
	vec_done(&last);
	if (file)
		unlink(path);
}

/* ---- threads that sleep throughout */

struct asleep_thread {
	struct session_slept slept;
	uint64_t slices;
};

struct asleep {
	VEC(struct asleep_thread) v;
};

#define THREADS_MAX 10000 /* of all processes: the state of further threads remains unknown */

/* 0: unknown */
static char state_of(uint32_t pid, uint32_t tid)
{
	struct procfs_stat stat;

	procfs_stat(&stat, (pid_t)pid, (pid_t)tid);
	return stat.state == 't' ? 'T' : stat.state;
}

/* How often it was given a CPU; 0: unknown */
static uint64_t slices_of(uint32_t pid, uint32_t tid)
{
	CLEANUP(free) char *text = procfs_read((pid_t)pid, (pid_t)tid, "schedstat", NULL);
	uint64_t slices;

	return text && sscanf(text, "%*u %*u %" SCNu64, &slices) == 1 ? slices : 0;
}

/* The number is read before the state: a thread that sleeps then and has the same number at the end
 * has not run since. */
static void add_thread(struct asleep *asleep, uint32_t pid, uint32_t tid)
{
	uint64_t slices = slices_of(pid, tid);
	char state = state_of(pid, tid);

	if (slices && state && strchr("SDT", state) && asleep->v.n < THREADS_MAX)
		*vec_push(&asleep->v) = (struct asleep_thread){
			.slept = { .pid = pid, .tid = tid, .state = state }, .slices = slices
		};
}

/* The number of its threads. */
static size_t each_thread(struct asleep *asleep, pid_t pid,
                          void (*visit)(struct asleep *, uint32_t, uint32_t))
{
	struct procfs_threads threads = { 0 };
	size_t n;

	procfs_threads(&threads, pid);
	n = threads.v.n;
	for (size_t i = 0; visit && i < n; i++)
		visit(asleep, (uint32_t)pid, (uint32_t)threads.v.v[i]);
	vec_done(&threads.v);
	return n;
}

/* Before the recording: lists the threads of a process that sleep or are stopped. Returns whether these
 * are all of its threads. */
static bool asleep_begin(struct asleep *asleep, pid_t pid)
{
	size_t before = asleep->v.n;

	return each_thread(asleep, pid, add_thread) == asleep->v.n - before;
}

/* A thread that is not in the snapshot has no thread state, so it is without the GIL, unless one in it
 * has no known number. */
static enum gil_relation gil_of(const struct snapshot *snapshot, uint32_t tid)
{
	enum gil_relation gil = snapshot->gil_known ? GIL_NONE : GIL_NOT_KNOWN;

	for (size_t i = 0; i < snapshot->threads.n; i++) {
		const struct snapshot_thread *t = &snapshot->threads.v[i];

		if (t->tid == tid)
			return t->gil;
		if (!t->tid)
			gil = GIL_NOT_KNOWN;
	}
	return gil;
}

/* After the recording, before asleep_end: takes from a snapshot of the process which threads are without
 * the GIL, and removes those that hold it or wait for it: these are not idle. */
static void asleep_look(struct asleep *asleep, pid_t pid, const struct snapshot *snapshot)
{
	size_t kept = 0;

	for (size_t i = 0; i < asleep->v.n; i++) {
		struct asleep_thread t = asleep->v.v[i];

		/* Whether a thread that is stopped waited for the GIL before is not visible. */
		if (t.slept.pid == (uint32_t)pid && t.slept.state != 'T') {
			enum gil_relation gil = gil_of(snapshot, t.slept.tid);

			if (gil == GIL_HOLDS || gil == GIL_WAITS)
				continue;
			t.slept.no_gil = gil == GIL_NONE;
		}
		asleep->v.v[kept++] = t;
	}
	asleep->v.n = kept;
}

/* Removes those that have run since. Returns whether all threads of the process were stopped and
 * have not run. */
static bool asleep_end(struct asleep *asleep, pid_t pid)
{
	size_t kept = 0, stopped = 0;

	for (size_t i = 0; i < asleep->v.n; i++) {
		const struct asleep_thread *t = &asleep->v.v[i];

		if (slices_of(t->slept.pid, t->slept.tid) != t->slices ||
		    state_of(t->slept.pid, t->slept.tid) != t->slept.state)
			continue;
		stopped += t->slept.state == 'T' && t->slept.pid == (uint32_t)pid;
		asleep->v.v[kept++] = *t;
	}
	asleep->v.n = kept;
	return stopped && stopped == each_thread(asleep, pid, NULL);
}

/* After asleep_end: whether no thread of the process has run. */
static bool asleep_is_all(const struct asleep *asleep, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < asleep->v.n; i++)
		n += asleep->v.v[i].slept.pid == (uint32_t)pid;
	return n == each_thread(NULL, pid, NULL);
}

static void asleep_done(struct asleep *asleep)
{
	vec_done(&asleep->v);
}

/* ---- samples */

static void set_note(struct sampling *sampling, char *note)
{
	free(sampling->note);
	sampling->note = note;
}

/* Fails only if nothing but samples is recorded. */
static int sampling_start(struct sampling *sampling, pid_t pid, struct error *err)
{
	struct error why;

	if (!sampling->plan.path || sampling->sampler)
		return 0;
	sampling->plan.pid = pid;
	if (sampler_start(&sampling->sampler, &sampling->plan, &why) == 0) {
		sampling->taken = true;
		return 0;
	}
	if (sampling->must) {
		*err = why;
		return -1;
	}
	set_note(sampling, xasprintf(NOTE_NO_SAMPLES, why.text));
	return 0;
}

void sampling_stop(struct sampling *sampling)
{
	struct sampler_totals totals = { 0 };
	struct error err;

	if (!sampling->sampler)
		return;
	if (sampler_stop(take(sampling->sampler), &totals, &err) < 0)
		set_note(sampling, xasprintf(NOTE_SAMPLES_MISSING, err.text));
	else if (totals.full)
		set_note(sampling, xstrdup(NOTE_SAMPLES_FULL));
	log_debug("%llu samples, %llu missed, %.3f s of CPU time",
	          (unsigned long long)totals.samples, (unsigned long long)totals.missed,
	          (double)totals.cpu_ns / 1e9);
}

void sampling_done(struct sampling *sampling)
{
	sampling_stop(sampling);
	free(sampling->note);
	sampling->note = NULL;
}

/* ---- an execution */

/* The number of our socket in the program: high, because programs rely on low numbers, and close
 * the first thousands without looking. */
#define CHANNEL_FD 5000

/* Longest message of share/python/program.py. */
#define MESSAGE_MAX 4096

#define NAMES_MAX 10000

/* Processes whose memory is read, and how often that is tried: a child may be about to execute a
 * Python. */
#define MEMBERS_MAX  200
#define MEMBER_TRIES 3

/* The delay between the first two reads of the stacks; it doubles each time, up to the last
 * value. */
#define LOOK_FIRST_MS 20
#define LOOK_LAST_MS  1000

/* How often children of a program of ours are looked for and read. */
#define OTHERS_MS 100

/* The longest delay between two looks at whether a main thread that has loaded the library sleeps; the
 * first is 1 ms, and each is twice the last. */
#define SETTLE_MS 32

/* After this time, no other process is added. */
#define ADD_S 10

/* How often perf is started if threads end meanwhile: TRIES_EARLY times as usual, then with
 * --tail-synthesize. */
#define TRIES_EARLY 4
#define TRIES_MAX   12

/* How long uprobes may slow the program down until that is noticed: in its first second, so that a short
 * program is not slowed down for much of its time, and later. */
#define COST_LOOK_FIRST_MS 1
#define COST_LOOK_MS       5

/* How long they stay because a process does not have the library, until that is examined again. */
#define KEEP_MS 500

/* A process that runs already, or a descendant of it. @target: NULL: its memory cannot be read */
struct member {
	pid_t pid;
	unsigned tries;
	struct target *target;
	struct snapshots *snapshots;
};

/**
 * The process is our child, which our part of it (share/python/program.py) tells about by a channel, or
 * ran before. Of one that ran before, perf is attached as to a program of ours; what ours reports
 * at its end (the files and lines of its code objects, the names of its threads) is read from its
 * memory, and its stacks are read now and then for that.
 * @pid: of the process; @pidfd: of one that ran before; -1: it is ours
 * @keep_until_ns: when to examine again whether another one takes over
 * @channel: our end; -1: there is none, or the program has closed its own
 * @codes: the list that comes by the channel; NULL: its file is the program's
 * @tstp: signalfd of SIGTSTP; -1: none
 * @suspended_ns: when the program was stopped; 0: it runs
 * @failure: why it was killed; @unrecordable: that is because of the engine, and the program has not begun
 * @whole_ns: when the engine had added all processes of one that ran before
 * @members: of one that ran before, the first is the process itself; @no_target: why its memory
 * cannot be read
 * @look_ns: when to read their stacks again; 0: never
 * @asked: to end the recording of one that ran before
 * @asleep: threads that sleep, since @asleep_ns
 */
struct execution {
	const struct execution_plan *plan;
	const struct signals *signals;
	struct execution_result *result;
	struct recorders recorders;
	pid_t pid;
	uint64_t keep_until_ns;

	struct child program;
	struct group_signals group;
	int channel;
	FILE *codes;
	int tstp;
	uint64_t suspended_ns;
	char *failure;
	bool unrecordable;

	int pidfd;
	VEC(struct member) members;
	struct error no_target;
	uint64_t whole_ns;
	uint64_t look_ns;
	unsigned look_ms;
	bool asked;
	struct asleep asleep;
	uint64_t asleep_ns;
	bool looked; /* at who has the GIL */
};

static bool is_ours(const struct execution *e)
{
	return e->pidfd < 0;
}

static bool has_ended(void *data)
{
	struct execution *e = data;
	struct pollfd fd = { .fd = e->pidfd, .events = POLLIN };

	return is_ours(e) ? child_ended(&e->program) : poll(&fd, 1, 0) > 0;
}

/* ---- a program that we start */

int execution_channel_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= CHANNEL_FD)
		return (int)limit.rlim_cur - 1;
	return CHANNEL_FD;
}

/* The arguments in the order in which share/python/program.py reads them. The caller frees the
 * array, but not its strings. */
static const char **program_argv(const struct execution_plan *plan, const char *fd,
                                 const char *entries)
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
		plan->stack ? plan->stack : "-",
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

static size_t program_fds(const struct execution_plan *plan, int channel, int number,
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

static int program_prepare(struct execution *e, struct error *err)
{
	const struct execution_plan *plan = e->plan;
	int number = execution_channel_number();
	CLEANUP(free) char *fd = xasprintf("%d", number);
	CLEANUP(free) char *entries = xasprintf("%u", plan->python_trace_entries);
	CLEANUP(free) const char **argv = program_argv(plan, fd, entries);
	CLEANUP(close) int theirs = -1;
	struct child_fd fds[4];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_errno(err, "socketpair");
	e->channel = pair[0];
	theirs = pair[1];
	if (child_spawn(&e->program,
	                &(struct child_spec){
				.file = plan->python,
				.argv = (char *const *)(uintptr_t)argv,
				.fds = fds,
				.fd_count = program_fds(plan, theirs, number, fds),
				.env = plan->preloading ? plan->preloading->env : NULL,
				.held = true,
				.mask = &e->signals->old,
			},
	                err) < 0)
		return -1;
	e->pid = e->program.pid;
	return 0;
}

/* ---- perf */

/* ",CHILD" for each descendant. */
static void add_descendants(struct str *out, pid_t pid)
{
	struct family family = { 0 };

	family_read(&family, pid);
	for (size_t i = 0; i < family.v.n; i++)
		str_addf(out, "%s%d", i ? "," : "", (int)family.v.v[i]);
	vec_done(&family.v);
}

/* Threads and processes of a program that runs come and go while perf lists them. perf may give up
 * then, and is started again. */
static int start_recorders(struct execution *e, struct error *err)
{
	struct recorders *r = &e->recorders;

	r->plans = e->plan->perf;
	r->count = e->plan->perf_count;
	r->pid = e->pid;
	r->ended = has_ended;
	r->data = e;
	for (unsigned tries = 1;; tries++) {
		CLEANUP(str_done) struct str others = { 0 };

		if (!is_ours(e) && !e->plan->no_children)
			add_descendants(&others, e->pid);
		r->others = others.len ? str_get(&others) : NULL;
		r->late_tasks = tries > TRIES_EARLY;
		if (recorders_start(r, e->signals, err) == 0)
			break;
		if (e->plan->may_change && !has_ended(e) &&
		    (err->code == EIO || err->code == EPERM))
			err->code = ECHILD;
		if (is_ours(e) || err->code != ESRCH || tries == TRIES_MAX || has_ended(e))
			return -1;
		log_debug("%s: threads ended meanwhile, trying again", err->text);
		recorders_reset(r);
	}
	r->others = NULL;
	perf_limits_close(e->plan->host);
	e->result->late_tasks = r->late_tasks;
	for (size_t i = 0; i < r->count; i++)
		e->result->mmap_pages[i] = r->v[i].mmap_pages;
	return 0;
}

/* ---- messages from the program */

static const char *argument(const char *message, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(message, word, len) && message[len] == ' ' ? message + len + 1 : NULL;
}

static void answer(struct execution *e, const char *text)
{
	if (send(e->channel, text, strlen(text), MSG_NOSIGNAL) < 0)
		log_debug("the program does not respond: %s", strerror(errno));
}

static void stop_sampling(struct execution *e)
{
	if (e->plan->sampling)
		sampling_stop(e->plan->sampling);
}

/* A limit may have ended the recordings already. */
static void handle_stop(struct execution *e, const char *time)
{
	if (!e->result->limit_note) {
		e->result->stop_ns = strtoull(time, NULL, 10);
		stop_sampling(e);
		recorders_command(&e->recorders, "disable", &e->result->perf_note);
	}
	answer(e, "ok");
}

static struct engine_process process_of(const struct execution *e, uint32_t tid)
{
	const struct member *first = e->members.n ? &e->members.v[0] : NULL;

	return (struct engine_process){ .plan = e->plan,
		                        .recorders = &e->recorders,
		                        .pid = e->pid,
		                        .tid = tid,
		                        .target = first ? first->target : NULL,
		                        .snapshots = first ? first->snapshots : NULL,
		                        .no_target = &e->no_target };
}

static int start_engine(struct execution *e, uint64_t *start_ns, struct error *err)
{
	const struct engine_process process = process_of(e, 0);
	const struct engine *engine = e->plan->engine;

	return engine && engine->start ? engine->start(&process, start_ns, err) : 0;
}

static int engine_records(const struct execution *e, uint32_t tid, struct error *err)
{
	const struct engine_process process = process_of(e, tid);
	const struct engine *engine = e->plan->engine;

	return engine && engine->records ? engine->records(&process, err) : 0;
}

/* Kills the program if it cannot be recorded, before it does any work of its own: a run without
 * a recording would be worse than none. */
static bool can_record(struct execution *e, uint32_t tid)
{
	struct error err;

	if (engine_records(e, tid, &err) == 0)
		return true;
	str_set_once(&e->failure, err.text);
	e->unrecordable = true;
	kill(e->pid, SIGKILL);
	return false;
}

/* Kills the program likewise if samples are all that is recorded and they cannot be taken. */
static bool starts_sampling(struct execution *e)
{
	struct error err;

	if (!e->plan->sampling || sampling_start(e->plan->sampling, e->pid, &err) == 0)
		return true;
	str_set_once(&e->failure, err.text);
	kill(e->pid, SIGKILL);
	return false;
}

/* The program may no longer open a file, so the list of its code objects comes in parts, unless it
 * has closed the channel. */
static void take_code(struct execution *e, const char *part, size_t size)
{
	if (!e->codes && e->plan->codes)
		e->codes = fopen(e->plan->codes, "we");
	if (e->codes)
		fwrite(part, size, 1, e->codes);
}

/* All parts were received, or the program has written the file itself. */
static void finish_codes(struct execution *e)
{
	e->result->codes = !e->codes || (fflush(e->codes) == 0 && !ferror(e->codes));
}

#define NAMES_BYTES_MAX (16 << 20)

/* A flight recorder's report may be made without us. */
static void keep_name(const struct execution *e, uint32_t pid, uint32_t tid, const char *name)
{
	CLEANUP(fclose) FILE *out = NULL;
	CLEANUP(free) char *line = xasprintf("%u %u %s", pid, tid, name);

	if (!e->plan->flight_ns || !(out = fopen(e->plan->children, "ae")) ||
	    fseek(out, 0, SEEK_END) < 0 || ftell(out) > NAMES_BYTES_MAX)
		return;
	for (char *c = line; *c; c++)
		fputc(*c == '\n' ? ' ' : *c, out);
	fputc('\n', out);
}

static void name_thread(struct execution *e, const char *text)
{
	const struct session_thread *added;
	struct thread_names *named = &e->result->named;
	size_t n = named->n;

	/* The program may start threads for ever. */
	if (e->plan->flight_ns && n >= NAMES_MAX)
		free(named->v[--named->n].name);
	n = named->n;
	thread_names_add(named, 0, text);
	added = &named->v[n];
	if (named->n > n)
		keep_name(e, (uint32_t)e->program.pid, added->tid, added->name);
}

static void handle_message(struct execution *e, const char *message)
{
	struct execution_result *result = e->result;
	const char *arg;

	log_debug("program: %s", message);
	if ((arg = argument(message, "begin"))) {
		if (!child_ended(&e->program) && can_record(e, (uint32_t)strtoul(arg, NULL, 10)))
			answer(e, "go");
	} else if ((arg = argument(message, "start"))) {
		result->start_tid = (uint32_t)strtoul(arg, NULL, 10);
		if (result->limit_note) { /* tracing is over before it began */
			answer(e, "go");
			return;
		}
		if (child_ended(&e->program) || !starts_sampling(e))
			return;
		recorders_command(&e->recorders, "enable", &e->result->perf_note);
		/* An approximation: the program reports the exact time next. */
		result->start_ns = clock_now_ns();
		answer(e, "go");
	} else if ((arg = argument(message, "started"))) {
		if (result->start_ns)
			result->start_ns = strtoull(arg, NULL, 10);
	} else if ((arg = argument(message, "gil"))) {
		result->gil = session_gil_of(arg);
	} else if ((arg = argument(message, "stop"))) {
		handle_stop(e, arg);
	} else if ((arg = argument(message, "trace"))) {
		str_set_once(&result->trace, arg);
	} else if (!strcmp(message, "codes")) {
		finish_codes(e);
	} else if (!strcmp(message, "unloaded")) {
		result->unloaded = true;
	} else if ((arg = argument(message, "thread"))) {
		name_thread(e, arg);
	} else if ((arg = argument(message, "note"))) {
		str_set_once(&result->trace_note, arg);
	} else if ((arg = argument(message, "entry"))) {
		str_set_once(&result->entry_note, arg);
	} else if ((arg = argument(message, "fail"))) {
		str_set_once(&e->failure, arg);
	}
}

/* What has become of our part of the program, whose end of the channel is closed. A process that
 * is ending has no command line any more. */
static enum execution_channel closed_by(const struct execution *e)
{
	size_t len = 0;
	CLEANUP(free) char *words = procfs_read(e->pid, 0, "cmdline", &len);

	if (!words || !len)
		return CHANNEL_OPEN;
	for (size_t at = 0; at < len; at += strlen(words + at) + 1)
		if (!strcmp(words + at, e->plan->bootstrap))
			return CHANNEL_CLOSED;
	return CHANNEL_EXECUTED;
}

/* The program cannot say any more when tracing should start, so it starts now. */
static void start_without_program(struct execution *e)
{
	if (e->result->start_ns || e->result->limit_note)
		return;
	recorders_command(&e->recorders, "enable", &e->result->perf_note);
	if (!starts_sampling(e))
		return;
	e->result->start_ns = clock_now_ns();
}

static void channel_closed(struct execution *e)
{
	close(take_fd(&e->channel));
	e->result->channel = closed_by(e);
	if (e->result->channel != CHANNEL_OPEN && !e->result->unloaded)
		start_without_program(e);
}

/* Returns false if there is nothing to read at present. */
static bool read_message(struct execution *e)
{
	char buf[MESSAGE_MAX + 1];
	ssize_t n;

	if (e->channel < 0)
		return false;
	n = recv(e->channel, buf, MESSAGE_MAX, MSG_DONTWAIT);
	if (n > 5 && !memcmp(buf, "code ", 5)) {
		take_code(e, buf + 5, (size_t)n - 5);
		return true;
	}
	if (n > 0) {
		buf[n] = '\0';
		handle_message(e, buf);
		return true;
	}
	/* A program that ends without reading our answer resets the connection, which is reported once,
	 * before the messages that it has sent. */
	if (n < 0 && (errno == ECONNRESET || errno == EINTR))
		return true;
	if (n == 0 || errno != EAGAIN)
		channel_closed(e);
	return false;
}

/* ---- signals */

static void end_suspension(struct execution *e)
{
	struct suspensions *list = &e->result->suspended;

	if (e->suspended_ns && list->n < SUSPENSIONS_MAX)
		list->v[list->n++] = (struct suspension){ e->suspended_ns, clock_now_ns() };
	e->suspended_ns = 0;
}

/* @tstp_ns: when we were stopped, too, and thus cannot have seen that the program was; 0: we were not */
static void handle_changes(struct execution *e, uint64_t tstp_ns)
{
	int change;

	while ((change = child_change(&e->program))) {
		e->result->stopped = true;
		if (!e->suspended_ns)
			e->suspended_ns = tstp_ns || change == CLD_CONTINUED ? tstp_ns
			                                                     : clock_now_ns();
		if (change == CLD_CONTINUED)
			end_suspension(e);
	}
}

/* Ctrl-Z stops the program and us. Receiving it first shows when. */
static void open_tstp(struct execution *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
		e->tstp = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Lets a SIGTSTP that is pending have its usual effect. */
static void take_tstp(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void handle_tstp(struct execution *e)
{
	struct signalfd_siginfo info;
	uint64_t tstp_ns;

	if (e->tstp < 0 || read(e->tstp, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	tstp_ns = clock_now_ns();
	raise(SIGTSTP);
	take_tstp();
	/* The program may still be stopped, or have been continued before us. */
	handle_changes(e, tstp_ns);
	close(take_fd(&e->tstp));
	open_tstp(e);
}

static void close_tstp(struct execution *e)
{
	take_tstp();
	if (e->tstp >= 0)
		close(take_fd(&e->tstp));
}

/* A signal to the whole group, from the terminal (Ctrl-C, Ctrl-\) or by kill(-PGID), has reached
 * our program itself. A signal to giltracer alone is passed on to it, and ends the recording of a
 * process that ran before. A flight recorder takes SIGUSR1 as the wish for a report. */
static void handle_signal(struct execution *e, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	const bool reports = signal == SIGUSR1 && e->plan->flight_ns;

	if (!is_ours(e)) {
		if (reports)
			flight_watch_ask(e->plan->watch);
		else
			e->asked |= signal != SIGCHLD;
		return;
	}
	if (signal == SIGCHLD) {
		handle_changes(e, 0);
		return;
	}
	if (signal != SIGUSR1 && signal != SIGUSR2)
		e->result->interrupted = true;
	if (group_signals_saw(&e->group, signal))
		return;
	if (reports)
		flight_watch_ask(e->plan->watch);
	else if (!child_ended(&e->program))
		kill(e->pid, signal);
}

static void read_signals(struct execution *e)
{
	struct signalfd_siginfo info;

	while (read(e->signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		handle_signal(e, &info);
}

/* ---- recordings that end before the program */

/* The library records from the start of Python on, perf when the program asks for it. */
static bool is_recording(const struct execution *e)
{
	const struct execution_result *result = e->result;

	return (result->start_ns || e->plan->preloading) && !result->stop_ns && !result->limit_note;
}

/* The time for which the program has been traced at the time now. */
static uint64_t traced_ns(const struct execution *e, uint64_t now)
{
	uint64_t start_ns = e->whole_ns ? e->whole_ns : e->result->start_ns;

	return start_ns && now > start_ns ? now - start_ns : 0;
}

/* ---- from one engine to the next */

static bool may_hand_over(const struct execution *e)
{
	return e->plan->then && is_recording(e) && e->result->start_ns && !e->result->handover_ns;
}

static bool covers_all(const struct execution *e)
{
	struct family family = { 0 };
	bool all = true;

	family_read(&family, e->pid);
	for (size_t i = 0; i < family.v.n && all; i++)
		all = e->plan->then->covers(e->plan, family.v.v[i]);
	vec_done(&family.v);
	return all;
}

/* Each recording begins before its predecessor ends, so that nothing is missed. */
static void look_at_cost(struct execution *e)
{
	const struct execution_plan *plan = e->plan;
	const struct engine_process process = process_of(e, 0);
	struct error err;

	if (!may_hand_over(e) || clock_now_ns() < e->keep_until_ns || !plan->then->is_due(plan))
		return;
	e->keep_until_ns = clock_now_ns() + KEEP_MS * NS_PER_MS;
	if (!covers_all(e))
		return;
	if (recorders_enable_standby(&e->recorders, &err) < 0) {
		log_debug("uprobes go on: %s", err.text);
		return;
	}
	e->result->handover_ns = clock_now_ns();
	plan->then->take_over(plan);
	plan->engine->retire(&process, &e->result->after);
	recorder_stop(&e->recorders.v[0]);
	plan->on_handover(traced_ns(e, e->result->handover_ns));
}

/* perf ends when the kernel has removed the uprobes. */
static void look_at_uprobes(struct execution *e)
{
	if (e->result->handover_ns && !e->result->uprobes_end_ns &&
	    child_ended(&e->recorders.v[0].perf))
		e->result->uprobes_end_ns = clock_now_ns();
}

/* ---- a process that runs already, and its descendants */

char **execution_command(pid_t pid)
{
	size_t len = 0;
	/* A program may have written its own name there. */
	CLEANUP(free) char *text = procfs_read(pid, 0, "cmdline", &len);
	VEC(char *) args = { 0 };

	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		*vec_push(&args) = xstrdup(text + at);
	if (!args.n)
		*vec_push(&args) = xasprintf("%d", (int)pid);
	*vec_push(&args) = NULL;
	return args.v;
}

/* The library records the numbers that the program sees: in a container, not ours. */
static uint32_t number_of(const struct execution *e, pid_t pid, uint32_t tid)
{
	return e->plan->preloading ? procfs_own_number(pid, (pid_t)tid) : tid ? tid : (uint32_t)pid;
}

/* A later name of a thread replaces an earlier one. */
static void add_name(struct execution *e, uint32_t pid, uint32_t tid, const char *name)
{
	struct thread_names *named = &e->result->named;

	for (size_t i = 0; i < named->n; i++)
		if (named->v[i].tid == tid) {
			if (!strcmp(named->v[i].name, name))
				return;
			keep_name(e, pid, tid, name);
			free(named->v[i].name);
			named->v[i].pid = pid;
			named->v[i].name = xstrdup(name);
			return;
		}
	if (named->n >= NAMES_MAX)
		return;
	keep_name(e, pid, tid, name);
	*vec_push(named) = (struct session_thread){ .pid = pid, .tid = tid, .name = xstrdup(name) };
}

static void open_member(struct member *m, struct error *err)
{
	if (m->target || m->tries == MEMBER_TRIES)
		return;
	m->tries++;
	if (target_open(&m->target, m->pid, err) == 0)
		m->snapshots = snapshots_new(m->target);
	else
		log_debug("no files and lines of process %d: %s", (int)m->pid, err->text);
}

static void add_member(struct execution *e, pid_t pid)
{
	for (size_t i = 0; i < e->members.n; i++)
		if (e->members.v[i].pid == pid)
			return;
	if (e->members.n < MEMBERS_MAX)
		*vec_push(&e->members) = (struct member){ .pid = pid };
}

static void add_members(struct execution *e)
{
	struct family family = { 0 };

	if (e->plan->no_children)
		return;
	family_read(&family, e->members.v[0].pid);
	for (size_t i = 0; i < family.v.n; i++)
		add_member(e, family.v.v[i]);
	vec_done(&family.v);
}

/* The names of its threads, and the code objects that they execute. False: it cannot be read now. */
static bool read_member(struct execution *e, struct member *m, struct snapshot *ret)
{
	struct error ignored;

	open_member(m, &ignored);
	if (!m->target || snapshot_take(ret, m->snapshots, &ignored) < 0)
		return false;
	for (size_t i = 0; i < ret->threads.n; i++)
		if (ret->threads.v[i].named)
			add_name(e, number_of(e, m->pid, 0),
			         number_of(e, m->pid, ret->threads.v[i].tid),
			         ret->threads.v[i].name);
	return true;
}

/* The only thread that has a GIL, if it is the same whenever the process is looked at. */
static void note_holder(struct execution *e, const struct snapshot *snapshot)
{
	uint32_t *holder = &e->result->holder_tid, tid = 0;
	size_t n = 0;

	for (size_t i = 0; i < snapshot->threads.n; i++)
		if (snapshot->threads.v[i].gil == GIL_HOLDS) {
			tid = snapshot->threads.v[i].tid;
			n++;
		}
	if (n != 1 || (e->looked && tid != *holder))
		tid = 0;
	*holder = tid ? number_of(e, e->members.v[0].pid, tid) : 0;
	e->looked = true;
}

static void look_at(struct execution *e, struct member *m)
{
	struct snapshot snapshot;

	if (!read_member(e, m, &snapshot))
		return;
	asleep_look(&e->asleep, m->pid, &snapshot);
	if (m == e->members.v) {
		note_holder(e, &snapshot);
		/* Whether an import or an option has turned it on is not known. */
		if (m->target->def->layout.free_threaded && snapshot.gil_known && !snapshot.gils)
			e->result->gil = SESSION_GIL_OFF;
	}
	snapshot_done(&snapshot);
}

static void look(struct execution *e)
{
	e->look_ns = clock_now_ns() + e->look_ms * NS_PER_MS;
	e->look_ms = e->look_ms * 2 < LOOK_LAST_MS ? e->look_ms * 2 : LOOK_LAST_MS;
	e->result->stopped |= process_is_stopped(e->members.v[0].pid);
	add_members(e);
	for (size_t i = 0; i < e->members.n; i++)
		look_at(e, &e->members.v[i]);
}

static bool has_library(pid_t pid)
{
	size_t len = 0;
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", &len);

	return maps && strstr(maps, "/libgiltracer-preload.so");
}

/* Of a program of ours that uprobes record: processes in which neither our part of the program nor the
 * library is, because their environment was cleared, or the program executed another one. */
static void look_at_others(struct execution *e)
{
	struct family family = { 0 };
	struct snapshot snapshot;

	e->look_ns = clock_now_ns() + OTHERS_MS * NS_PER_MS;
	family_read(&family, e->program.pid);
	if (e->channel < 0)
		*vec_push(&family.v) = e->program.pid;
	for (size_t i = 0; i < family.v.n; i++)
		if (family_is_python(family.v.v[i]) && !has_library(family.v.v[i]))
			add_member(e, family.v.v[i]);
	vec_done(&family.v);
	for (size_t i = 0; i < e->members.n; i++)
		if (read_member(e, &e->members.v[i], &snapshot))
			snapshot_done(&snapshot);
}

/* Which threads sleep, before the recording. Returns whether all of the process itself do. */
static bool begin_asleep(struct execution *e)
{
	bool all = true;

	add_members(e);
	asleep_done(&e->asleep);
	for (size_t i = 0; i < e->members.n; i++)
		all &= asleep_begin(&e->asleep, e->members.v[i].pid) || i;
	e->asleep_ns = clock_now_ns();
	return all;
}

/* The library was loaded by the main thread, which may have slept before: gives it the time to sleep
 * again. */
static void begin_asleep_joined(struct execution *e)
{
	for (int ms = 1; !begin_asleep(e) && ms <= SETTLE_MS; ms *= 2)
		poll(NULL, 0, ms);
}

/* Which of them have slept until now. If all have, nothing of the program happened before, either:
 * it loaded the library. */
static void end_asleep(struct execution *e)
{
	struct execution_result *result = e->result;
	bool idle = true;

	look(e);
	if (asleep_end(&e->asleep, e->members.v[0].pid)) {
		result->idle = true;
		result->suspended.v[0] = (struct suspension){ result->start_ns, result->stop_ns };
		result->suspended.n = 1;
	}
	for (size_t i = 0; i < e->members.n; i++)
		idle &= asleep_is_all(&e->asleep, e->members.v[i].pid);
	result->idle |= idle;
	if (idle && e->asleep_ns > result->start_ns) {
		result->start_ns = e->asleep_ns;
		result->wall_ns = result->stop_ns - result->start_ns;
	}
	for (size_t i = 0; i < e->asleep.v.n; i++) {
		struct session_slept slept = e->asleep.v.v[i].slept;

		slept.tid = number_of(e, (pid_t)slept.pid, slept.tid);
		slept.pid = number_of(e, (pid_t)slept.pid, 0);
		*vec_push(&result->slept) = slept;
	}
}

/* In addition to those of our program, if there are any. */
static void write_codes(struct execution *e)
{
	struct target *targets[MEMBERS_MAX];
	struct error err;
	size_t n = 0;

	for (size_t i = 0; i < e->members.n; i++)
		if (e->members.v[i].target)
			targets[n++] = e->members.v[i].target;
	if (!n || !e->plan->codes || (!is_ours(e) && !e->members.v[0].target) ||
	    (is_ours(e) && !e->result->codes && access(e->plan->codes, F_OK) == 0))
		return;
	e->result->codes = codes_write(targets, n, e->plan->codes, &err) == 0;
	if (!e->result->codes)
		log_debug("%s", err.text);
}

/* ---- until the program or the recording ends */

static int wait_ms(const struct execution *e)
{
	uint64_t now = clock_now_ns();
	int ms = is_recording(e) ? limit_wait_ms(&e->plan->limit, traced_ns(e, now)) : -1;
	int next = e->look_ns > now ? (int)((e->look_ns - now) / 1000000) + 1 : 0;
	int cost_ms = traced_ns(e, now) < NS_PER_SECOND ? COST_LOOK_FIRST_MS : COST_LOOK_MS;

	if (may_hand_over(e) && ms > cost_ms)
		ms = cost_ms;
	return e->look_ns && (ms < 0 || next < ms) ? next : ms;
}

/* Our program goes on. The recording of another process ends as if a signal had asked for it. */
static void look_at_limit(struct execution *e)
{
	struct execution_result *result = e->result;
	const struct preloading *preloading = e->plan->preloading;
	uint64_t now = clock_now_ns();

	if (!is_recording(e))
		return;
	if (preloading && preloading_full_ns(preloading)) {
		now = preloading_full_ns(preloading);
		result->limit_note = limit_size_text(&e->plan->limit, traced_ns(e, now));
	} else {
		result->limit_note = limit_reached(&e->plan->limit, traced_ns(e, now),
		                                   e->plan->perf, e->plan->perf_count);
	}
	if (!result->limit_note)
		return;
	if (!is_ours(e)) {
		e->asked = true;
		return;
	}
	result->stop_ns = now;
	stop_sampling(e);
	if (preloading)
		preloading_stop(preloading);
	recorders_command(&e->recorders, "disable", &result->perf_note);
	recorders_finish(&e->recorders, &result->perf_note);
	if (e->plan->on_limit)
		e->plan->on_limit(result->limit_note);
}

static void watch(struct execution *e)
{
	while (!e->asked && !has_ended(e)) {
		struct pollfd fds[] = {
			{ .fd = e->signals->fd, .events = POLLIN },
			{ .fd = e->channel, .events = POLLIN },
			{ .fd = e->tstp, .events = POLLIN },
			{ .fd = e->pidfd, .events = POLLIN },
		};

		if (poll(fds, sizeof(fds) / sizeof(*fds), wait_ms(e)) < 0 && errno != EINTR)
			break;
		handle_tstp(e);
		read_signals(e);
		read_message(e);
		look_at_cost(e);
		look_at_uprobes(e);
		look_at_limit(e);
		if (e->plan->flight_ns && !has_ended(e))
			flight_watch_look(e->plan->watch, e->plan->preloading, e->plan->flight_ns);
		if (e->look_ns && clock_now_ns() >= e->look_ns)
			(is_ours(e) ? look_at_others : look)(e);
	}
	while (read_message(e))
		continue;
	if (e->plan->flight_ns)
		flight_watch_finish(e->plan->watch, e->plan->preloading->control);
}

static void begin_accounts(struct execution *e, struct cgroup *cgroup)
{
	CLEANUP(free) char *proc = procfs_path(e->pid, 0, "");

	e->result->pid = is_ours(e) ? (uint32_t)e->pid : number_of(e, e->pid, 0);
	e->result->stolen_ns = steal_time_ns();
	cgroup_open(cgroup, is_ours(e) ? "/proc/self" : proc);
}

/* ---- to start a program */

static int run_program(struct execution *e, struct error *err)
{
	CLEANUP(cgroup_done) struct cgroup cgroup = { 0 };
	uint64_t start_ns;

	if (group_signals_start(&e->group, err) < 0 || program_prepare(e, err) < 0 ||
	    start_recorders(e, err) < 0)
		return -1;
	if (signals_ending())
		return error_set(err, EINTR, "interrupted");
	if (start_engine(e, NULL, err) < 0)
		return -1;
	start_ns = clock_now_ns();
	begin_accounts(e, &cgroup);
	if (e->plan->preloading)
		preloading_note_time(e->plan->preloading);
	if (child_release(&e->program, err) < 0) {
		recorders_finish(&e->recorders, &e->result->perf_note);
		return error_prefix(err, "%s", e->plan->python);
	}
	open_tstp(e);
	if (e->plan->probes && !e->plan->no_children)
		e->look_ns = clock_now_ns() + OTHERS_MS * NS_PER_MS;
	watch(e);
	close_tstp(e);
	stop_sampling(e);
	if (e->plan->preloading) {
		if (e->plan->probes)
			e->result->turn_ns = preloading_turn_ns(e->plan->preloading);
		preloading_note_time(e->plan->preloading);
		if (!e->result->limit_note)
			preloading_stop(e->plan->preloading);
	}
	e->result->wall_ns = clock_now_ns() - start_ns;
	e->result->status = e->program.status;
	end_suspension(e);
	e->result->quota = cgroup_since(&cgroup);
	recorders_finish(&e->recorders, &e->result->perf_note);
	/* The kernel accounts stolen time at each CPU's tick, so the last of it may be missing. */
	e->result->stolen_ns = steal_time_since(e->result->stolen_ns);
	if (e->plan->preloading)
		preloading_names(e->plan->preloading, &e->result->named);
	thread_names_read(&e->result->named, e->plan->children);
	/* The program renames the file when it is complete, but may be unable to say so. */
	if (e->plan->codes && !e->codes && access(e->plan->codes, F_OK) == 0)
		e->result->codes = true;
	write_codes(e);
	if (e->failure)
		return error_set(err, e->unrecordable ? ESTALE : EINVAL, "%s", e->failure);
	return 0;
}

/* ---- to join a process that runs already */

static int add_process(const struct execution *e, struct member *m, uint64_t until_ns,
                       struct error *err)
{
	struct engine_process process = process_of(e, 0);

	if (clock_now_ns() >= until_ns)
		return error_set(err, ETIMEDOUT, "the others took %d s", ADD_S);
	open_member(m, err);
	process.pid = m->pid;
	process.target = m->target;
	process.snapshots = m->snapshots;
	process.no_target = err;
	return e->plan->engine->add(&process, err);
}

/* The present descendants. */
static void add_processes(struct execution *e)
{
	const uint64_t until_ns = clock_now_ns() + (uint64_t)ADD_S * NS_PER_SECOND;
	struct error err, why;
	size_t failed = 0;

	add_members(e);
	for (size_t i = 1; i < e->members.n; i++) {
		struct member *m = &e->members.v[i];

		if (!family_is_python(m->pid) || add_process(e, m, until_ns, &err) == 0 ||
		    !family_is_python(m->pid))
			continue;
		log_warn("process %d, a child of the program, is not recorded: %s", (int)m->pid,
		         err.text);
		if (!failed++)
			why = err;
	}
	if (failed)
		e->result->left_out_note = xasprintf(NOTE_LEFT_OUT, failed, why.text);
	e->whole_ns = clock_now_ns();
}

static int start_process(struct execution *e, struct error *err)
{
	struct recorders *r = &e->recorders;

	if (start_recorders(e, err) < 0)
		return -1;
	begin_asleep(e);
	recorders_command(r, "enable", &e->result->perf_note);
	e->result->start_ns = clock_now_ns();
	if (start_engine(e, &e->result->start_ns, err) < 0)
		return -1;
	if (e->plan->engine && e->plan->engine->add)
		add_processes(e);
	if (e->plan->preloading)
		begin_asleep_joined(e);
	if (e->plan->sampling && sampling_start(e->plan->sampling, e->pid, err) < 0)
		return -1;
	return has_ended(e) ? 0 : engine_records(e, 0, err);
}

static int run_process(struct execution *e, struct error *err)
{
	CLEANUP(cgroup_done) struct cgroup cgroup = { 0 };

	begin_accounts(e, &cgroup);
	if (start_process(e, err) < 0)
		return -1;
	if (e->plan->limit.duration_s)
		log_info("recording process %d for %u s", (int)e->pid, e->plan->limit.duration_s);
	else
		log_info("recording process %d until Ctrl-C", (int)e->pid);
	e->look_ms = LOOK_FIRST_MS;
	look(e);
	watch(e);
	if (e->plan->sampling)
		sampling_stop(e->plan->sampling);
	if (e->plan->preloading) {
		preloading_stop(e->plan->preloading);
		preloading_note_time(e->plan->preloading);
	}
	recorders_command(&e->recorders, "disable", &e->result->perf_note);
	e->result->stop_ns = clock_now_ns();
	e->result->wall_ns = e->result->stop_ns - e->result->start_ns;
	e->result->quota = cgroup_since(&cgroup);
	end_asleep(e);
	write_codes(e);
	recorders_finish(&e->recorders, &e->result->perf_note);
	e->result->stolen_ns = steal_time_since(e->result->stolen_ns);
	if (e->result->limit_note && e->plan->on_limit)
		e->plan->on_limit(e->result->limit_note);
	return 0;
}

/* ---- either */

static int open_process(struct execution *e, struct error *err)
{
	e->pidfd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	if (e->pidfd < 0)
		return errno == ESRCH ? error_set(err, ESRCH, "process %d has ended", (int)e->pid)
		                      : error_errno(err, "process %d: pidfd_open", (int)e->pid);
	add_member(e, e->pid);
	open_member(&e->members.v[0], &e->no_target);
	return 0;
}

static void end(struct execution *e)
{
	child_done(&e->program);
	recorders_done(&e->recorders);
	group_signals_done(&e->group);
	if (e->channel >= 0)
		close(e->channel);
	if (e->codes)
		fclose(e->codes);
	free(e->failure);
	for (size_t i = 0; i < e->members.n; i++) {
		snapshots_free(e->members.v[i].snapshots);
		target_close(e->members.v[i].target);
	}
	vec_done(&e->members);
	asleep_done(&e->asleep);
	if (e->pidfd >= 0)
		close(e->pidfd);
}

int execution_run(const struct execution_plan *plan, const struct signals *signals,
                  struct execution_result *ret, struct error *err)
{
	struct execution e = {
		.plan = plan,
		.signals = signals,
		.result = ret,
		.recorders = RECORDERS_NONE,
		.pid = plan->pid,
		.program = CHILD_NONE,
		.group = GROUP_SIGNALS_NONE,
		.channel = -1,
		.tstp = -1,
		.pidfd = -1,
	};
	int failed;

	*ret = (struct execution_result){ 0 };
	if (plan->pid)
		failed = open_process(&e, err) < 0 ? -1 : run_process(&e, err);
	else
		failed = run_program(&e, err);
	if (failed == 0)
		recorders_leave(&e.recorders, &ret->after);
	end(&e);
	if (failed < 0)
		execution_result_done(ret);
	return failed;
}

void execution_result_done(struct execution_result *result)
{
	free(result->trace);
	free(result->trace_note);
	session_threads_free(result->named.v, result->named.n);
	vec_done(&result->slept);
	free(result->entry_note);
	free(result->limit_note);
	free(result->perf_note);
	free(result->left_out_note);
	afterwards_done(&result->after);
	*result = (struct execution_result){ 0 };
}
