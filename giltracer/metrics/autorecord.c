/* SPDX-License-Identifier: MIT */
/* The server only watches processes and starts giltracer -p, which makes the report. */
#include "metrics/autorecord.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/report_folder.h"
#include "base/str.h"
#include "base/thread.h"

/* ---- the condition */

#define MAX_SECONDS 86400

static const char *const measures[] = {
	[TRIGGER_WAIT] = "gil_wait",
	[TRIGGER_HOLD] = "gil_hold",
	[TRIGGER_KEPT] = "gil_kept",
};

/* ---- parsing */

static void skip_space(const char **at)
{
	while (**at == ' ' || **at == '\t')
		++*at;
}

static bool accept(const char **at, const char *word)
{
	skip_space(at);
	if (!str_has_prefix(*at, word))
		return false;
	*at += strlen(word);
	return true;
}

static bool accept_number(const char **at, unsigned *ret)
{
	unsigned number = 0;

	skip_space(at);
	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); ++*at)
		if (number <= MAX_SECONDS)
			number = number * 10 + (unsigned)(**at - '0');
	*ret = number;
	return true;
}

static int parse_measure(enum trigger_measure *ret, const char **at)
{
	for (unsigned i = 0; i < sizeof(measures) / sizeof(*measures); i++) {
		if (!accept(at, measures[i]))
			continue;
		*ret = (enum trigger_measure)i;
		return 0;
	}
	return -1;
}

int trigger_parse(struct trigger *ret, const char *text, struct error *err)
{
	unsigned percent = 0, number = 0, unit = 0;
	const char *at = text, *problem = NULL;

	if (parse_measure(&ret->measure, &at) < 0)
		problem = "begins with gil_wait, gil_hold or gil_kept";
	else if (!accept(&at, ">"))
		problem = "has '>' after that";
	else if (!accept_number(&at, &percent) || !accept(&at, "%") || percent >= 100)
		problem = "has 0% to 99% after '>'";
	else if (!accept(&at, "for") || !accept_number(&at, &number))
		problem = "contains a duration: for 10s";
	else if (!(unit = *at == 's'   ? 1
	                  : *at == 'm' ? 60
	                               : 0) ||
	         !number || number > MAX_SECONDS / unit)
		problem = "lasts 1s to 86400s, or 1m to 1440m";
	else
		at++;
	skip_space(&at);
	if (!problem && *at)
		problem = "ends with the duration";
	if (problem)
		return error_set(err, EINVAL,
		                 "'%s': a condition %s; for example gil_wait>50%% for 10s", text,
		                 problem);
	ret->percent = percent;
	ret->for_ns = (uint64_t)number * unit * NS_PER_SECOND;
	return 0;
}

/* ---- evaluation */

/* The number of values: of the threads, in the page's order, or of the GILs. None of the totals
 * ever decreases. */
static size_t count_values(const struct trigger *trigger, const struct totals_snapshot *snapshot)
{
	return trigger->measure == TRIGGER_WAIT ? snapshot->threads.n : TOTALS_GILS;
}

static void add_values(const struct trigger *trigger, const struct totals_snapshot *snapshot,
                       uint64_t *values)
{
	for (size_t i = 0; i < snapshot->threads.n; i++) {
		const struct totals_thread *t = &snapshot->threads.v[i];

		if (trigger->measure == TRIGGER_WAIT)
			values[i] = t->wait_ns + t->switch_ns;
		else if (t->gil < TOTALS_GILS)
			values[t->gil] += trigger->measure == TRIGGER_HOLD ? t->hold_ns
			                                                   : t->kept_ns;
	}
}

/* The largest increase of any value; new ones begin at 0. */
static uint64_t largest_increase(struct trigger_state *state, const uint64_t *values, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t before = i < state->values.n ? state->values.v[i] : 0;

		if (values[i] > before && values[i] - before > most)
			most = values[i] - before;
	}
	state->values.n = 0;
	for (size_t i = 0; i < n; i++)
		*vec_push(&state->values) = values[i];
	return most;
}

bool trigger_feed(const struct trigger *trigger, struct trigger_state *state,
                  const struct totals_snapshot *snapshot)
{
	size_t n = count_values(trigger, snapshot);
	CLEANUP(free) uint64_t *values = xcalloc(n + 1, sizeof(*values));
	uint64_t from = state->at_ns, to = snapshot->at_ns, grown;

	add_values(trigger, snapshot, values);
	grown = largest_increase(state, values, n);
	state->at_ns = to;
	if (!from || to <= from)
		return false;
	if ((unsigned __int128)grown * 100 <= (unsigned __int128)(to - from) * trigger->percent) {
		state->holds = false;
		return false;
	}
	if (!state->holds)
		state->since_ns = from;
	state->holds = true;
	return to - state->since_ns >= trigger->for_ns;
}

bool trigger_fire(uint64_t now_ns, uint64_t *last_ns)
{
	if (*last_ns && now_ns - *last_ns < TRIGGER_PAUSE_NS)
		return false;
	*last_ns = now_ns;
	return true;
}

void trigger_state_done(struct trigger_state *state)
{
	vec_done(&state->values);
}

/* How often the condition is checked. */
#define PERIOD_NS NS_PER_SECOND

/* A process that is watched. fired_ns: time of its last recording; 0: never */
struct watched {
	pid_t pid;
	uint64_t stamp;
	uint64_t fired_ns;
	bool seen;
	struct trigger_state state;
};

/**
 * @child: the present recording, of process pid, into the file name of folder; NULL: none
 */
struct autorecord {
	struct autorecord_options options;
	struct trigger trigger;
	struct watch *watch;
	autorecord_say *say;
	VEC(struct watched) watched;
	struct child child;
	pid_t pid;
	char *name;
	int folder;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool ending;
};

/* ---- a recording */

static int record(struct autorecord *a, pid_t pid, struct error *err)
{
	CLEANUP(free) char *name = report_folder_name(pid);
	CLEANUP(free) char *path = report_folder_path(name);
	CLEANUP(free) char *number = xasprintf("%d", (int)pid);
	CLEANUP(free) char *seconds = xasprintf("%u", a->options.duration_s);
	const char *const argv[] = { "giltracer", "-q", "-p", number, "--duration",
		                     seconds,     "-o", path, NULL };

	if (report_folder_spawn(&a->child, a->folder, argv, err) < 0)
		return -1;
	a->pid = pid;
	a->name = take(name);
	return 0;
}

static void recorded(struct autorecord *a)
{
	CLEANUP(free) char *name = take(a->name);
	CLEANUP(free) char *text = NULL;
	bool written = faccessat(a->folder, name, R_OK, 0) == 0;

	text = xasprintf(written ? "process %d: report: %s/%s"
	                         : "process %d: no report was made: %s/%s",
	                 (int)a->pid, a->options.folder, name);
	a->say(!written, text);
	child_done(&a->child);
	a->child = (struct child)CHILD_NONE;
	report_folder_trim(a->folder, a->options.limit_mib);
}

static void fire(struct autorecord *a, pid_t pid)
{
	CLEANUP(free)
	char *text = xasprintf("process %d: %s: recording for %u s", (int)pid, a->options.condition,
	                       a->options.duration_s);
	struct error err;

	a->say(false, text);
	if (record(a, pid, &err) < 0)
		a->say(true, err.text);
}

/* ---- watching */

static struct watched *find(struct autorecord *a, const struct metrics_process *p)
{
	uint64_t stamp = totals_stamp(p->page);

	for (size_t i = 0; i < a->watched.n; i++)
		if (a->watched.v[i].pid == p->pid && a->watched.v[i].stamp == stamp)
			return &a->watched.v[i];
	*vec_push(&a->watched) = (struct watched){ .pid = p->pid, .stamp = stamp };
	return &a->watched.v[a->watched.n - 1];
}

static void forget_ended(struct autorecord *a)
{
	for (size_t i = a->watched.n; i-- > 0;) {
		if (!a->watched.v[i].seen) {
			trigger_state_done(&a->watched.v[i].state);
			a->watched.v[i] = a->watched.v[--a->watched.n];
		} else {
			a->watched.v[i].seen = false;
		}
	}
}

static void look(struct autorecord *a)
{
	watch_update(a->watch);
	for (size_t i = 0; i < a->watch->processes.n; i++) {
		const struct metrics_process *p = a->watch->processes.v[i];
		struct watched *w = find(a, p);

		w->seen = true;
		if (trigger_feed(&a->trigger, &w->state, &p->snapshot) && !a->name &&
		    trigger_fire(p->snapshot.at_ns, &w->fired_ns))
			fire(a, p->pid);
	}
	forget_ended(a);
	if (a->name && child_ended(&a->child))
		recorded(a);
}

/*
 * Asks the recording to end and to write its report; if its process has ended, it does so by
 * itself. SIGUSR1, since SIGINT would interrupt the report. Called by the thread that started it,
 * because it would be killed if that thread ended first.
 */
static void finish(struct autorecord *a)
{
	if (!child_ended(&a->child) && kill(a->pid, 0) == 0)
		kill(a->child.pid, SIGUSR1);
	child_wait(&a->child);
	recorded(a);
}

static void *run(void *data)
{
	struct autorecord *a = data;

	pthread_mutex_lock(&a->lock);
	while (!a->ending) {
		uint64_t until_ns = clock_now_ns() + PERIOD_NS;
		const struct timespec until = { (time_t)(until_ns / NS_PER_SECOND),
			                        (long)(until_ns % NS_PER_SECOND) };

		look(a);
		while (!a->ending &&
		       pthread_cond_timedwait(&a->changed, &a->lock, &until) != ETIMEDOUT)
			continue;
	}
	pthread_mutex_unlock(&a->lock);
	if (a->name)
		finish(a);
	return NULL;
}

int autorecord_check(const struct autorecord_options *options, struct error *err)
{
	struct trigger trigger;

	if (!options->condition || trigger_parse(&trigger, options->condition, err) == 0)
		return 0;
	return error_prefix(err, "option --record-when");
}

int autorecord_start(struct autorecord **ret, const struct autorecord_options *options,
                     struct watch *watch, autorecord_say *say, struct error *err)
{
	struct autorecord *a;
	pthread_condattr_t monotonic;
	CLEANUP(close) int folder = -1;
	struct trigger trigger;

	if (trigger_parse(&trigger, options->condition, err) < 0 ||
	    report_folder_open(&folder, options->folder, err) < 0)
		return -1;
	a = xcalloc(1, sizeof(*a));
	*a = (struct autorecord){ .options = *options,
		                  .trigger = trigger,
		                  .watch = watch,
		                  .say = say,
		                  .folder = folder,
		                  .child = CHILD_NONE };
	if (!a->options.duration_s)
		a->options.duration_s = AUTORECORD_SECONDS;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&a->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (thread_start(&a->thread, run, a) < 0) {
		free(a);
		return error_set(err, EAGAIN, "cannot start a thread for --record-when");
	}
	take_fd(&folder);
	*ret = a;
	return 0;
}

void autorecord_stop(struct autorecord *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->ending = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	for (size_t i = 0; i < a->watched.n; i++)
		trigger_state_done(&a->watched.v[i].state);
	vec_done(&a->watched);
	close(a->folder);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
