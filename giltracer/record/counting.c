/* SPDX-License-Identifier: MIT */
/* Runs a program with the library counting. */
#include "record/counting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"
#include "preload/totals.h"
#include "record/group_signals.h"
#include "record/job.h"
#include "record/ticks.h"

/* The least time between the two readings of the clocks: the rate is then right to some
 * millionths. */
#define APART_NS (20 * NS_PER_MS)

/* Writes the rate of the processor's counter, which all processes of the program use. */
static int write_rate(const struct counting *counting, const char *folder, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" TOTALS_RATE, folder);
	CLEANUP(close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint64_t stamp, ns, mult;

	ticks_look(&stamp, &ns);
	if (ns - counting->ns < APART_NS) {
		const struct timespec rest = {
			.tv_nsec = (long)(APART_NS - (ns - counting->ns)),
		};

		nanosleep(&rest, NULL);
		ticks_look(&stamp, &ns);
	}
	mult = (uint64_t)(((unsigned __int128)(ns - counting->ns) << 32) /
	                  (stamp - counting->stamp));
	if (fd < 0 || write(fd, &mult, sizeof(mult)) != (ssize_t)sizeof(mult))
		return error_errno(err, "%s", path);
	return 0;
}

int counting_prepare(struct counting *ret, const struct record_options *options, char *const *argv,
                     struct error *err)
{
	int failed;

	ret->job = xcalloc(1, sizeof(*ret->job));
	ret->job->options = options;
	ticks_look(&ret->stamp, &ret->ns);
	failed = job_find_program(ret->job, argv, err);
	if (failed < 0)
		return failed;
	return preloading_check(&ret->job->events.preloading, ret->job->program.python, err);
}

/* ---- the program */

/* The caller frees the array, but not its strings. */
static const char **argv_of(const struct job *job)
{
	VEC(const char *) args = { 0 };

	*vec_push(&args) = job->program.python->command;
	for (const char *const *option = job->program.python_options; option && *option; option++)
		*vec_push(&args) = *option;
	if (job->program.option)
		*vec_push(&args) = job->program.option;
	*vec_push(&args) = job->program.target;
	for (char *const *arg = job->program.argv; *arg; arg++)
		*vec_push(&args) = *arg;
	*vec_push(&args) = NULL;
	return args.v;
}

/* A signal to the whole group has reached the program already; one to giltracer alone is passed
 * on. */
static void pass_on(struct child *program, struct group_signals *group,
                    const struct signals *signals)
{
	struct signalfd_siginfo info;

	while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int signal = (int)info.ssi_signo;

		if (signal != SIGCHLD && !group_signals_saw(group, signal) && !child_ended(program))
			kill(program->pid, signal);
	}
}

static void watch(struct child *program, struct group_signals *group, const struct signals *signals)
{
	while (!child_ended(program)) {
		struct pollfd fd = { .fd = signals->fd, .events = POLLIN };

		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			break;
		pass_on(program, group, signals);
	}
	child_wait(program);
}

static int run(const struct counting *counting, const char *folder, const struct signals *signals,
               struct child *program, struct group_signals *group, struct error *err)
{
	const struct job *job = counting->job;
	CLEANUP(free) char *preload = preloading_variable(job->events.preloading.library);
	CLEANUP(free) char *totals = xasprintf(TOTALS_ENV "=%s", folder);
	CLEANUP(free) const char **argv = argv_of(job);
	char *env[] = { preload, totals, NULL };
	const struct child_spec spec = {
		.file = job->program.python->command,
		.argv = (char *const *)(uintptr_t)argv,
		.env = env,
		.mask = &signals->old,
	};

	if (write_rate(counting, folder, err) < 0 || group_signals_start(group, err) < 0)
		return -1;
	if (child_spawn(program, &spec, err) < 0) {
		error_prefix(err, "%s", spec.file);
		return err->code == ENOENT   ? -EXIT_NOT_FOUND
		       : err->code == EACCES ? -EXIT_CANNOT_RUN
		                             : -1;
	}
	watch(program, group, signals);
	return 0;
}

int counting_run(const struct counting *counting, const char *folder, const struct signals *signals,
                 struct record_outcome *ret, struct error *err)
{
	struct child program = CHILD_NONE;
	struct group_signals group = GROUP_SIGNALS_NONE;
	int failed = run(counting, folder, signals, &program, &group, err);

	*ret = (struct record_outcome){ 0 };
	if (failed == 0 && WIFSIGNALED(program.status))
		ret->signal = WTERMSIG(program.status);
	else if (failed == 0)
		ret->exit_status = WEXITSTATUS(program.status);
	child_done(&program);
	group_signals_done(&group);
	return failed;
}

void counting_done(struct counting *counting)
{
	if (counting->job)
		job_free(counting->job);
	counting->job = NULL;
}
