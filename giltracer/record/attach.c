/* SPDX-License-Identifier: MIT */
/*
 * Attaches perf as to a program of ours. What a program that we start reports at its end (the files
 * and lines of its code objects, the names of its threads) is read from its memory; its stacks are
 * read now and then for that.
 */
#include "record/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "live/codes.h"
#include "live/family.h"
#include "live/snapshot.h"
#include "locate/process.h"
#include "preload/format.h"
#include "record/asleep.h"
#include "record/joining.h"
#include "record/preloading.h"
#include "system/uprobes.h"
#include "record/perf.h"
#include "record/sampling.h"
#include "system/host.h"

#define CMDLINE_MAX (1u << 20)
#define NAMES_MAX   10000

/* Processes whose memory is read, and how often that is tried: a child may be about to execute a
 * Python. */
#define MEMBERS_MAX  200
#define MEMBER_TRIES 3

/* The delay between the first two reads of the stacks; it doubles each time, up to the last
 * value. */
#define LOOK_FIRST_MS 20
#define LOOK_LAST_MS  1000

/* The longest delay between two looks at whether a main thread that has loaded the library sleeps; the
 * first is 1 ms, and each is twice the last. */
#define SETTLE_MS 32

/* How often perf is started if threads end meanwhile: TRIES_EARLY times as usual, then with
 * --tail-synthesize. */
#define TRIES_EARLY 4
#define TRIES_MAX   12

/* The process or a descendant. @target: NULL: its memory cannot be read */
struct member {
	pid_t pid;
	unsigned tries;
	struct target *target;
	struct snapshots *snapshots;
};

struct attach {
	const struct pass_plan *plan;
	const struct signals *signals;
	struct pass_result *result;
	struct recorders recorders;
	int pidfd;
	VEC(struct member) members; /* the first one is the process itself */
	struct error no_target;     /* why its memory cannot be read */
	uint64_t look_ns;           /* when to read the stacks again */
	unsigned look_ms;
	bool asked; /* a signal asked us to end */
	struct asleep asleep;
	uint64_t asleep_ns; /* when it was begun */
};

char **attach_command(pid_t pid)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/cmdline", (int)pid);
	CLEANUP(free) char *text = NULL;
	struct error ignored;
	size_t len = 0;
	struct {
		char **v;
		size_t n, alloc;
	} args = { 0 };

	/* A program may have written its own name there. */
	if (file_read(&text, &len, path, CMDLINE_MAX, &ignored) < 0)
		len = 0;
	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		*vec_push(&args) = xstrdup(text + at);
	if (!args.n)
		*vec_push(&args) = xasprintf("%d", (int)pid);
	*vec_push(&args) = NULL;
	return args.v;
}

/* ---- the process and its descendants */

static bool has_ended(void *data)
{
	const struct attach *a = data;
	struct pollfd fd = { .fd = a->pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* ",CHILD" for each descendant. */
static void add_descendants(struct str *out, pid_t pid)
{
	struct family family = { 0 };

	family_read(&family, pid);
	for (size_t i = 0; i < family.v.n; i++)
		str_addf(out, "%s%d", i ? "," : "", (int)family.v.v[i]);
	vec_done(&family.v);
}

/* ---- code objects and names */

/* A later name of a thread replaces an earlier one. */
static void add_name(struct attach *a, pid_t pid, const struct snapshot_thread *thread)
{
	struct thread_names *named = &a->result->named;

	for (size_t i = 0; i < named->n; i++)
		if (named->v[i].tid == thread->tid) {
			free(named->v[i].name);
			named->v[i].pid = (uint32_t)pid;
			named->v[i].name = xstrdup(thread->name);
			return;
		}
	if (named->n < NAMES_MAX)
		*vec_push(named) = (struct session_thread){ .pid = (uint32_t)pid,
			                                    .tid = thread->tid,
			                                    .name = xstrdup(thread->name) };
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

static void add_member(struct attach *a, pid_t pid)
{
	for (size_t i = 0; i < a->members.n; i++)
		if (a->members.v[i].pid == pid)
			return;
	if (a->members.n < MEMBERS_MAX)
		*vec_push(&a->members) = (struct member){ .pid = pid };
}

static void add_members(struct attach *a)
{
	struct family family = { 0 };

	if (a->plan->no_children)
		return;
	family_read(&family, a->members.v[0].pid);
	for (size_t i = 0; i < family.v.n; i++)
		add_member(a, family.v.v[i]);
	vec_done(&family.v);
}

static void look_at(struct attach *a, struct member *m)
{
	struct snapshot snapshot;
	struct error ignored;

	open_member(m, &ignored);
	if (!m->target || snapshot_take(&snapshot, m->snapshots, &ignored) < 0)
		return;
	for (size_t i = 0; i < snapshot.threads.n; i++)
		if (snapshot.threads.v[i].named)
			add_name(a, m->pid, &snapshot.threads.v[i]);
	asleep_look(&a->asleep, m->pid, &snapshot);
	snapshot_done(&snapshot);
}

static void look(struct attach *a)
{
	a->look_ns = clock_now_ns() + a->look_ms * NS_PER_MS;
	a->look_ms = a->look_ms * 2 < LOOK_LAST_MS ? a->look_ms * 2 : LOOK_LAST_MS;
	a->result->stopped |= process_is_stopped(a->members.v[0].pid);
	add_members(a);
	for (size_t i = 0; i < a->members.n; i++)
		look_at(a, &a->members.v[i]);
}

/* Which threads sleep, before the recording. Returns whether all of the process itself do. */
static bool begin_asleep(struct attach *a)
{
	bool all = true;

	add_members(a);
	asleep_done(&a->asleep);
	for (size_t i = 0; i < a->members.n; i++)
		all &= asleep_begin(&a->asleep, a->members.v[i].pid) || i;
	a->asleep_ns = clock_now_ns();
	return all;
}

/* The library was loaded by the main thread, which may have slept before: gives it the time to sleep
 * again. */
static void begin_asleep_joined(struct attach *a)
{
	for (int ms = 1; !begin_asleep(a) && ms <= SETTLE_MS; ms *= 2)
		poll(NULL, 0, ms);
}

/* Which of them have slept until now. If all have, nothing of the program happened before, either:
 * it loaded the library. */
static void end_asleep(struct attach *a)
{
	struct pass_result *result = a->result;
	bool idle = true;

	look(a);
	if (asleep_end(&a->asleep, a->members.v[0].pid)) {
		result->suspended.v[0] = (struct suspension){ result->start_ns, result->stop_ns };
		result->suspended.n = 1;
	}
	for (size_t i = 0; i < a->members.n; i++)
		idle &= asleep_is_all(&a->asleep, a->members.v[i].pid);
	if (idle && a->asleep_ns > result->start_ns) {
		result->start_ns = a->asleep_ns;
		result->wall_ns = result->stop_ns - result->start_ns;
	}
	for (size_t i = 0; i < a->asleep.v.n; i++)
		*vec_push(&result->slept) = a->asleep.v.v[i].slept;
}

static void write_codes(struct attach *a)
{
	struct target *targets[MEMBERS_MAX];
	struct error err;
	size_t n = 0;

	if (!a->members.v[0].target || !a->plan->codes)
		return;
	for (size_t i = 0; i < a->members.n; i++)
		if (a->members.v[i].target)
			targets[n++] = a->members.v[i].target;
	a->result->codes = codes_write(targets, n, a->plan->codes, &err) == 0;
	if (!a->result->codes)
		log_debug("%s", err.text);
}

/* ---- the recording */

static void read_signals(struct attach *a)
{
	struct signalfd_siginfo info;

	while (read(a->signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			a->asked = true;
}

static void look_at_limit(struct attach *a)
{
	struct pass_result *result = a->result;

	if (a->plan->preloading && preloading_full_ns(a->plan->preloading))
		result->limit_note =
			limit_size_text(&a->plan->limit,
		                        preloading_full_ns(a->plan->preloading) - result->start_ns);
	else
		result->limit_note = limit_reached(&a->plan->limit,
		                                   clock_now_ns() - result->start_ns, a->plan->perf,
		                                   a->plan->perf_count);
	a->asked |= result->limit_note != NULL;
}

static int wait_ms(const struct attach *a)
{
	uint64_t now = clock_now_ns();
	int limit = limit_wait_ms(&a->plan->limit, now - a->result->start_ns);
	int next = a->look_ns > now ? (int)((a->look_ns - now) / 1000000) + 1 : 0;

	return limit >= 0 && limit < next ? limit : next;
}

static void watch(struct attach *a)
{
	while (!a->asked && !has_ended(a)) {
		struct pollfd fds[] = {
			{ .fd = a->signals->fd, .events = POLLIN },
			{ .fd = a->pidfd, .events = POLLIN },
		};

		if (poll(fds, 2, wait_ms(a)) < 0 && errno != EINTR)
			break;
		read_signals(a);
		look_at_limit(a);
		if (clock_now_ns() >= a->look_ns)
			look(a);
	}
}

/* Threads and processes of the program come and go while perf lists them. perf may give up then,
 * and is started again. */
static int start_recorders(struct attach *a, pid_t pid, struct error *err)
{
	struct recorders *r = &a->recorders;

	for (unsigned tries = 1;; tries++) {
		CLEANUP(str_done) struct str others = { 0 };

		if (!a->plan->no_children)
			add_descendants(&others, pid);
		r->others = others.len ? str_get(&others) : NULL;
		r->late_tasks = tries > TRIES_EARLY;
		if (recorders_start(r, a->signals, err) == 0)
			break;
		if (a->plan->may_change && !has_ended(a) &&
		    (err->code == EIO || err->code == EPERM))
			err->code = ECHILD;
		if (err->code != ESRCH || tries == TRIES_MAX || has_ended(a))
			return -1;
		log_debug("%s: threads ended meanwhile, trying again", err->text);
		recorders_reset(r);
	}
	r->others = NULL;
	a->result->late_tasks = r->late_tasks;
	return 0;
}

static bool has_thread(const struct snapshot *snapshot, uint32_t tid)
{
	for (size_t i = 0; i < snapshot->threads.n; i++)
		if (snapshot->threads.v[i].tid == tid)
			return true;
	return false;
}

/* The library sees only threads that use the GIL. Notes those that were there before and are without
 * it now: unless they have records, they have been without it since. */
static void note_idle(const struct attach *a, const struct snapshot *before)
{
	const struct member *m = &a->members.v[0];
	struct snapshot now;
	struct error ignored;

	if (snapshot_take(&now, m->snapshots, &ignored) < 0)
		return;
	for (size_t i = 0; i < now.threads.n; i++) {
		const struct snapshot_thread *t = &now.threads.v[i];

		if (t->tid && t->tid != (uint32_t)m->pid && t->gil == GIL_NONE &&
		    has_thread(before, t->tid))
			preloading_note_idle(a->plan->preloading, (uint32_t)m->pid, t->tid);
	}
	snapshot_done(&now);
}

static int join(const struct attach *a, struct error *err)
{
	const struct member *m = &a->members.v[0];
	struct snapshot before;
	struct error ignored;
	int ret;

	preloading_note_time(a->plan->preloading);
	if (!m->target) {
		*err = a->no_target;
		return -1;
	}
	if (snapshot_take(&before, m->snapshots, &ignored) < 0)
		before = (struct snapshot){ 0 };
	ret = joining_begin(a->plan->preloading, m->target, a->plan->no_children, err);
	if (ret < 0) {
		err->code = ESTALE;
	} else {
		a->result->start_ns = a->plan->preloading->control->joined_ns;
		note_idle(a, &before);
	}
	snapshot_done(&before);
	return ret;
}

static int start(struct attach *a, pid_t pid, struct error *err)
{
	struct recorders *r = &a->recorders;

	r->plans = a->plan->perf;
	r->count = a->plan->perf_count;
	r->pid = pid;
	r->ended = has_ended;
	r->data = a;
	if (start_recorders(a, pid, err) < 0)
		return -1;
	for (size_t i = 0; i < r->count; i++)
		a->result->mmap_pages[i] = r->v[i].mmap_pages;
	if (a->plan->probes && probe_verify_file(a->plan->probes, err) < 0)
		return -1;
	begin_asleep(a);
	recorders_command(r, "enable", &a->result->perf_note);
	a->result->start_ns = clock_now_ns();
	if (a->plan->preloading) {
		if (join(a, err) < 0)
			return -1;
		begin_asleep_joined(a);
	}
	if (a->plan->sampling && sampling_start(a->plan->sampling, pid, err) < 0)
		return -1;
	if (a->plan->probes && !has_ended(a) && recorder_has_events(&r->v[0]) &&
	    probe_verify_process(pid, a->plan->probes, err) < 0)
		return -1;
	return 0;
}

static int record(struct attach *a, pid_t pid, struct error *err)
{
	CLEANUP(cgroup_done) struct cgroup cgroup = { 0 };
	char proc[32];

	snprintf(proc, sizeof(proc), "/proc/%d", (int)pid);
	a->result->pid = (uint32_t)pid;
	a->result->stolen_ns = steal_time_ns();
	cgroup_open(&cgroup, proc);
	if (start(a, pid, err) < 0)
		return -1;
	if (a->plan->limit.duration_s)
		log_info("recording process %d for %u s", (int)pid, a->plan->limit.duration_s);
	else
		log_info("recording process %d until Ctrl-C", (int)pid);
	a->look_ms = LOOK_FIRST_MS;
	look(a);
	watch(a);
	if (a->plan->sampling)
		sampling_stop(a->plan->sampling);
	if (a->plan->preloading) {
		preloading_stop(a->plan->preloading);
		preloading_note_time(a->plan->preloading);
	}
	recorders_command(&a->recorders, "disable", &a->result->perf_note);
	a->result->stop_ns = clock_now_ns();
	a->result->wall_ns = a->result->stop_ns - a->result->start_ns;
	a->result->quota = cgroup_since(&cgroup);
	end_asleep(a);
	write_codes(a);
	recorders_finish(&a->recorders, &a->result->perf_note);
	a->result->stolen_ns = steal_time_since(a->result->stolen_ns);
	if (a->result->limit_note && a->plan->on_limit)
		a->plan->on_limit(a->result->limit_note);
	return 0;
}

int attach_run(const struct pass_plan *plan, pid_t pid, const struct signals *signals,
               struct pass_result *ret, struct error *err)
{
	struct attach a = {
		.plan = plan,
		.signals = signals,
		.result = ret,
		.recorders = RECORDERS_NONE,
		.pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
	};
	int failed;

	*ret = (struct pass_result){ 0 };
	if (a.pidfd < 0)
		return errno == ESRCH ? error_set(err, ESRCH, "process %d has ended", (int)pid)
		                      : error_errno(err, "process %d: pidfd_open", (int)pid);
	add_member(&a, pid);
	open_member(&a.members.v[0], &a.no_target);
	failed = record(&a, pid, err);
	recorders_done(&a.recorders);
	for (size_t i = 0; i < a.members.n; i++) {
		snapshots_free(a.members.v[i].snapshots);
		target_close(a.members.v[i].target);
	}
	vec_done(&a.members);
	asleep_done(&a.asleep);
	close(a.pidfd);
	if (failed < 0)
		pass_result_done(ret);
	return failed;
}
