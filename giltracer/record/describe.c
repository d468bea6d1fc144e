/* SPDX-License-Identifier: MIT */
/* What the session document contains about the interpreter and the host. */
#include <limits.h>
#include <sched.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "record/describe.h"
#include "record/job.h"

const char *const python_trace_names[] = { "auto", "native", "viztracer", "none", NULL };

static char *timestamp(void)
{
	time_t now = time(NULL);
	struct tm tm;
	char buf[32];

	gmtime_r(&now, &tm);
	strftime(buf, sizeof(buf), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return xstrdup(buf);
}

static char **command_copy(const struct job *job)
{
	struct {
		char **v;
		size_t n, alloc;
	} args = { 0 };

	if (job->program.option)
		*vec_push(&args) = xstrdup(job->program.option);
	*vec_push(&args) = xstrdup(job->program.target);
	for (char *const *arg = job->program.argv; *arg; arg++)
		*vec_push(&args) = xstrdup(*arg);
	*vec_push(&args) = NULL;
	return args.v;
}

/* The CPUs that the program may run on. */
static unsigned usable_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (unsigned)CPU_COUNT(&set);
	return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static void describe_host(struct session *session)
{
	struct utsname host;
	char cwd[PATH_MAX];

	if (uname(&host) == 0) {
		session->kernel = xstrdup(host.release);
		session->arch = xstrdup(host.machine);
	}
	session->cwd = getcwd(cwd, sizeof(cwd)) ? xstrdup(cwd) : NULL;
	session->cpus = usable_cpus();
}

static void describe_probes(struct session *session, const struct probe_set *set)
{
	if (!set)
		return;
	session->build_id = xstrdup(set->build_id);
	session->releases_known = set->releases_known;
	session->functions = xcalloc(set->probes.n, sizeof(*session->functions));
	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *probe = &set->probes.v[i];

		if (probe->ret)
			continue;
		session->functions[session->function_count++] = (struct gil_function){
			.name = xstrdup(probe->function),
			.kind = xstrdup(symbol_kind_name(probe->kind)),
			.offset = probe->offset,
		};
	}
	if (set->note && session->gil_detect)
		session_add_note(session, "probes", 1, set->note);
}

struct session *describe_session(const struct python *python)
{
	struct session *session = session_new();

	session->created = timestamp();
	session->executable = xstrdup(python->executable);
	session->python_version = xstrdup(python->version);
	session->implementation = xstrdup(python->implementation);
	session->free_threaded = python->free_threaded;
	describe_host(session);
	return session;
}

struct session *job_describe(const struct job *job)
{
	struct session *session = describe_session(job->program.python);

	session->command = command_copy(job);
	session->state_detect = job->options->state_detect;
	session->gil_detect = job_wants_gil(job);
	session->one_run = job->options->one_run;
	session->no_children = job->options->no_children;
	session->python_trace = xstrdup(python_trace_names[job->program.python_trace]);
	session->perf_version = job->host.version ? xstrdup(job->host.version) : NULL;
	describe_probes(session, job->events.probes);
	session->releases_known |= !job_uses_uprobes(job);
	return session;
}
