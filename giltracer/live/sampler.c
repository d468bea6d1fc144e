/* SPDX-License-Identifier: MIT */
#include "live/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/idmap.h"
#include "base/thread.h"
#include "base/vec.h"
#include "live/family.h"
#include "live/sample_file.h"
#include "live/snapshot.h"

#define CHILDREN_NS  (NS_PER_SECOND / 10) /* how often to look for new processes */
#define FLUSH_NS     NS_PER_SECOND
#define ATTEMPTS_MAX 5  /* to find Python in a process, which may call exec first */
#define FAILURES_MAX 20 /* samples in a row, before Python is looked for again */

/* A process that is sampled, or that was found not to run Python. failures: since the last sample of
 * it that succeeded */
struct sampled_process {
	pid_t pid;
	struct target *target; /* NULL: not opened yet, or closed */
	struct snapshots *snapshots;
	unsigned attempts, failures;
};

struct sampler {
	struct sampler_plan plan;
	struct sample_file *file;
	VEC(struct sampled_process) processes;
	struct sampler_totals totals;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop, failed;              /* to read some process */
	uint64_t children_ns, flush_ns; /* when to do it next */
	uint64_t random;
};

/* CPU time of this thread. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

/* ---- processes */

static struct sampled_process *find_process(struct sampler *s, pid_t pid)
{
	for (size_t i = 0; i < s->processes.n; i++)
		if (s->processes.v[i].pid == pid)
			return &s->processes.v[i];
	return NULL;
}

static int open_process(struct sampled_process *process, struct error *err)
{
	if (target_open(&process->target, process->pid, err) < 0)
		return -1;
	process->snapshots = snapshots_new(process->target);
	return 0;
}

static void close_process(struct sampled_process *process)
{
	snapshots_free(take(process->snapshots));
	target_close(take(process->target));
}

static void open_again(struct sampled_process *process)
{
	struct error ignored;

	if (!process->target && process->attempts < ATTEMPTS_MAX) {
		process->attempts++;
		process->failures = 0;
		open_process(process, &ignored);
	}
}

static void look_at_child(struct sampler *s, pid_t pid)
{
	struct sampled_process *process = find_process(s, pid);

	if (!process) {
		process = vec_push(&s->processes);
		*process = (struct sampled_process){ .pid = pid };
	}
	open_again(process);
}

static void look_for_processes(struct sampler *s, uint64_t now)
{
	struct family family = { 0 };

	if (now < s->children_ns)
		return;
	s->children_ns = now + CHILDREN_NS;
	open_again(&s->processes.v[0]);
	if (!s->plan.children)
		return;
	family_read(&family, s->plan.pid);
	for (size_t i = 0; i < family.v.n; i++)
		look_at_child(s, family.v.v[i]);
	vec_done(&family.v);
}

/* ---- a sample */

/* The process has ended; or its threads change too fast, or it executes another program. */
static void add_failure(struct sampler *s, struct sampled_process *process, bool ended)
{
	if (ended)
		process->attempts = ATTEMPTS_MAX;
	else
		s->failed = true;
	if (ended || ++process->failures == FAILURES_MAX)
		close_process(process);
}

static void add_process(struct sampler *s, struct sampled_process *process)
{
	struct snapshot snapshot;
	struct error err;
	bool holder_only;

	if (snapshot_take(&snapshot, process->snapshots, &err) < 0) {
		add_failure(s, process, err.code != EAGAIN && err.code != E2BIG);
		return;
	}
	process->attempts = process->failures = 0;
	holder_only = s->plan.gil_only && snapshot.threads.n &&
	              snapshot.threads.v[0].gil == GIL_HOLDS;
	for (size_t i = 0; i < snapshot.threads.n; i++)
		if (snapshot.threads.v[i].tid &&
		    (!holder_only || snapshot.threads.v[i].gil == GIL_HOLDS))
			sample_file_thread(s->file, process->pid, &snapshot.threads.v[i]);
	snapshot_done(&snapshot);
}

static void count_missed(struct sampler *s, uint64_t missed)
{
	s->totals.missed += missed;
	sample_file_missed(s->file, missed);
}

static void take_sample(struct sampler *s)
{
	sample_file_begin(s->file, clock_now_ns());
	for (size_t i = 0; i < s->processes.n; i++)
		if (s->processes.v[i].target)
			add_process(s, &s->processes.v[i]);
	sample_file_end(s->file);
	s->totals.samples++;
	if (s->failed)
		count_missed(s, 1);
	s->failed = false;
}

/* ---- time */

static uint64_t next_random(struct sampler *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

/* Returns false if sampling is to stop. */
static bool wait_until(struct sampler *s, uint64_t when_ns)
{
	const struct timespec when = { .tv_sec = (time_t)(when_ns / NS_PER_SECOND),
		                       .tv_nsec = (long)(when_ns % NS_PER_SECOND) };
	bool stop;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !pthread_cond_timedwait(&s->wake, &s->lock, &when))
		continue;
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return !stop;
}

/* Counts periods that have already ended as missed. */
static uint64_t skip_missed(struct sampler *s, uint64_t period, uint64_t period_ns)
{
	uint64_t now = clock_now_ns(), missed;

	if (now < period + period_ns)
		return period;
	missed = (now - period) / period_ns;
	count_missed(s, missed);
	return period + missed * period_ns;
}

static void *run(void *data)
{
	struct sampler *s = data;
	uint64_t period_ns = NS_PER_SECOND / s->plan.hz;
	uint64_t period = clock_now_ns();

	while (wait_until(s, period + next_random(s) % period_ns) && !s->totals.full) {
		uint64_t now = clock_now_ns();

		look_for_processes(s, now);
		take_sample(s);
		if (now >= s->flush_ns) {
			sample_file_flush(s->file);
			s->flush_ns = now + FLUSH_NS;
		}
		s->totals.full = sample_file_is_full(s->file);
		period = skip_missed(s, period + period_ns, period_ns);
	}
	s->totals.cpu_ns = cpu_ns();
	return NULL;
}

/* ---- the whole */

static void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->processes.n; i++)
		close_process(&s->processes.v[i]);
	vec_done(&s->processes);
	sample_file_close(s->file);
	free(s);
}

DEFINE_CLEANUP(struct sampler *, sampler_free);

static int open_parts(struct sampler *s, struct error *err)
{
	const struct sample_file_plan file = {
		.path = s->plan.path,
		.hz = s->plan.hz,
		.gil_only = s->plan.gil_only,
		.start_ns = clock_now_ns(),
		.max_bytes = s->plan.max_bytes,
	};
	struct sampled_process *process = vec_push(&s->processes);

	*process = (struct sampled_process){ .pid = s->plan.pid };
	if (open_process(process, err) < 0)
		return -1;
	return sample_file_open(&s->file, &file, err);
}

int sampler_start(struct sampler **ret, const struct sampler_plan *plan, struct error *err)
{
	CLEANUP(sampler_free) struct sampler *s = xcalloc(1, sizeof(*s));
	pthread_condattr_t monotonic;

	s->plan = *plan;
	s->random = hash_number(hash_seed(), clock_now_ns()) | 1;
	if (open_parts(s, err) < 0)
		return -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (thread_start(&s->thread, run, s) < 0)
		return error_set(err, EAGAIN, "cannot start a thread");
	*ret = take(s);
	return 0;
}

int sampler_stop(struct sampler *s, struct sampler_totals *ret, struct error *err)
{
	int status;

	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	status = sample_file_finish(s->file, clock_now_ns(), err);
	if (ret)
		*ret = s->totals;
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	sampler_free(s);
	return status;
}
