/* SPDX-License-Identifier: MIT */
/* Record a program into a session folder. */
#include "record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd.h"
#include "record-job.h"

const char *const python_trace_names[] = { "auto", "viztracer", "none", NULL };

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
	uprobes_release(take(job->uprobes));
	if (ret == 0)
		ret = session_write(job->session, job->dir, err);
	if (ret < 0 && access(job->dir, F_OK) < 0 && errno == ENOENT)
		return error_set(err, ENOENT,
		                 "%s: the program removed this folder, and the recording with it "
		                 "(TMPDIR or --keep puts it elsewhere)",
		                 job->dir);
	if (ret < 0 && err->code == ENOSPC)
		error_prefix(err, "no room for the recording (TMPDIR or --keep puts it elsewhere)");
	return ret;
}

static void job_done(struct job *job)
{
	free(job->counters);
	free(job->early);
	free(job->bootstrap);
	free(job->entry);
	python_free(job->python);
	shebang_done(&job->shebang);
	free(job->python_options);
	perf_host_done(&job->host);
	probe_set_free(job->probes);
	session_free(job->session);
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
