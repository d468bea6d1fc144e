/* SPDX-License-Identifier: MIT */
/* Records a program into a session folder. */
#include "record/record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/error.h"
#include "record/job.h"
#include "record/perf.h"

const char *const probes_kind_names[] = { "auto", "uprobes", "preload", "both", "none", NULL };

void record_set_log_level(const struct record_options *options)
{
	if (options->quiet)
		log_set_level(LOG_ERROR);
	else if (options->verbose)
		log_set_level(LOG_DEBUG);
}

static int record_guarded(struct job *job, struct error *err)
{
	int ret = job_prepare_probes(job, err);

	if (ret == 0) {
		job->session = job_describe(job);
		ret = job_run(job, err);
	}
	uprobes_release(take(job->events.uprobes));
	if (ret == 0)
		ret = session_write(job->session, job->dir, err);
	if (ret < 0 && access(job->dir, F_OK) < 0 && errno == ENOENT)
		return error_set(err, ENOENT,
		                 "%s: the program removed this folder, and the recording with it "
		                 "(choose another with TMPDIR or --keep)",
		                 job->dir);
	if (ret < 0 && err->code == ENOSPC)
		error_prefix(err, "no room for the recording (choose another folder with TMPDIR or "
		                  "--keep)");
	return ret;
}

static void job_done(struct job *job)
{
	free(job->events.counters);
	free(job->events.early);
	free(job->program.bootstrap);
	argv_free(job->program.command);
	free(job->program.entry);
	python_free(job->program.python);
	shebang_done(&job->program.shebang);
	free(job->program.python_options);
	perf_limits_done(&job->host);
	preloading_done(&job->events.preloading);
	preloading_done(&job->events.calls);
	probe_set_free(job->events.probes);
	session_free(job->session);
}

void job_free(struct job *job)
{
	if (job)
		job_done(job);
	free(job);
}

int record_session(const struct record_options *options, char *const *argv, const char *dir,
                   const struct signals *signals, struct record_outcome *ret, struct error *err)
{
	struct job job = { .options = options, .dir = dir, .signals = signals, .outcome = ret };
	int failed;

	*ret = (struct record_outcome){ 0 };
	failed = job_prepare(&job, argv, err);
	if (failed == 0)
		failed = record_guarded(&job, err);
	job_done(&job);
	return failed;
}

int record_exit(const struct record_outcome *outcome)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t set;

	if (outcome->failed)
		return EXIT_GILTRACER;
	if (!outcome->signal)
		return outcome->exit_status;
	fflush(stdout);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(outcome->signal, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, outcome->signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(outcome->signal);
	return outcome->exit_status;
}
