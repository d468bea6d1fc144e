/* SPDX-License-Identifier: MIT */
/* Reads the recordings of a session, each in threads of its own. */
#include "report/load.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/thread.h"
#include "model/model.h"
#include "report/phrases.h"
#include "session/privacy.h"
#include "trace/calls/from_calls.h"
#include "trace/perf/from_perf.h"
#include "trace/preload/from_preload.h"
#include "trace/from_samples.h"
#include "trace/merge.h"
#include "trace/names.h"
#include "trace/perf/stacks.h"
#include "python/pycode.h"
#include "trace/readahead.h"
#include "trace/samples.h"
#include "trace/slices.h"
#include "trace/stack_merge.h"

/* One file to read, with its destination and its result. */
struct job {
	const struct session *session;
	const struct session_pass *pass;
	const char *dir;
	const struct privacy *privacy;
	struct loaded *loaded;
	struct error err;
	int status;
	pthread_t thread;
	bool threaded;
};

static char *file_in(const char *dir, const char *name)
{
	return *name == '/' ? xstrdup(name) : xasprintf("%s/%s", dir, name);
}

/* Of Python 3; UINT_MAX: unknown. */
static unsigned minor_version(const struct session *session)
{
	unsigned minor = 0;

	return session->python_version && sscanf(session->python_version, "3.%u", &minor) == 1
	               ? minor
	               : UINT_MAX;
}

/* The stacks pass: all stacks of its switches are unwound. */
static bool is_stacks(const struct session_pass *pass)
{
	return pass->kind == PASS_STACKS;
}

/* Whether the event may concern any process: its pid is that of the waker, of the thread that moves
 * another one or leaves the CPU, or of the one that happened to run when records were lost. */
static bool concerns_any(const struct event *ev)
{
	return ev->type == EV_WAKING || ev->type == EV_PICK || ev->type == EV_MOVE ||
	       ev->type == EV_LOST;
}

/* Whether the event may belong to the only process to report, if there is one. */
static bool is_wanted(const struct loaded *loaded, const struct event *ev)
{
	if (loaded->nothing)
		return false;
	return !loaded->only_pid || !ev->pid || ev->pid == loaded->only_pid || concerns_any(ev);
}

static int feed(struct loaded *loaded, struct error *err)
{
	const struct event *ready;
	struct event ev;
	int more;

	while ((more = source_next(loaded->source, &ev, err)) > 0) {
		if (is_wanted(loaded, &ev))
			model_feed(loaded->model, &ev);
		while ((ready = source_ready(loaded->source)))
			if (is_wanted(loaded, ready))
				model_feed(loaded->model, ready);
	}
	return more;
}

static void add_warning(struct loaded *loaded, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void add_warning(struct loaded *loaded, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	*vec_push(&loaded->warnings) = xstrdup(text);
}

/* Adds caveats that only the source counts. */
static void add_source_caveats(struct loaded *loaded)
{
	const struct source_stats *stats = &loaded->source->stats;
	struct model *model = loaded->model;

	model->caveats[CAVEAT_UNKNOWN_RECORDS] += stats->unknown_records;
	if (model->caveats[CAVEAT_UNORDERED] < stats->unordered)
		model->caveats[CAVEAT_UNORDERED] = stats->unordered;
	if (stats->unfinished) {
		model->caveats[CAVEAT_TRUNCATED] += stats->unfinished;
		add_warning(loaded,
		            "%" PRIu64 " files of the preloaded library are incomplete: their last "
		            "records are missing",
		            stats->unfinished);
	}
	if (!stats->truncated_at)
		return;
	model->caveats[CAVEAT_TRUNCATED]++;
	add_warning(loaded, "the recording is truncated at %#" PRIx64 ": %s", stats->truncated_at,
	            stats->truncated_text);
}

static void *check(void *data)
{
	struct loaded *loaded = data;
	struct error err;

	if (model_check(loaded->model, &err) == 0)
		return NULL;
	add_warning(loaded, "%s: numbers may be wrong, please report this", err.text);
	return loaded;
}

/* Both only read the model, so they run simultaneously. */
static void check_and_rank(struct loaded *loaded, unsigned cpus)
{
	pthread_t thread;
	bool threaded = thread_start(&thread, check, loaded) == 0;
	void *broken;

	holds_find(&loaded->holds, loaded->model, loaded->source, cpus);
	if (threaded)
		pthread_join(thread, &broken);
	else
		broken = check(loaded);
	loaded->model->caveats[CAVEAT_BROKEN_IDENTITY] += broken != NULL;
}

static void finish(struct loaded *loaded, unsigned cpus)
{
	model_finish(loaded->model);
	add_source_caveats(loaded);
	check_and_rank(loaded, cpus);
}

/* Adds wake-ups; without them, a sleep lasts until the thread runs again. */
static struct source *with_wakeups(const struct job *job, struct source *source)
{
	CLEANUP(free) char *path = file_in(job->dir, job->pass->wakeups);
	const struct from_perf_options options = { .machine = true, .privacy = job->privacy };
	struct source *wakeups;
	struct error err;

	if (from_perf_open(&wakeups, path, &options, &err) == 0) {
		job->loaded->all_wakeups = true;
		return source_merge(source, wakeups);
	}
	add_warning(job->loaded, "%s: the time between wake-up and running counts as sleep",
	            err.text);
	return source;
}

/* Opens the library's recording, and perf's of the same execution unless that cannot be read. */
static int open_preload(const struct job *job, const char *folder,
                        const struct from_perf_options *options, struct source **ret,
                        struct error *err)
{
	CLEANUP(free) char *path = NULL;
	struct source *perf, *gil;
	struct error ignored;

	job->loaded->locks_known = true;
	if (!job->pass->switches)
		return from_preload_open(ret, folder, NULL, job->privacy, err);
	path = file_in(job->dir, job->pass->switches);
	if (from_perf_open(&perf, path, options, &ignored) < 0) {
		add_warning(job->loaded, "%s: thread states are unknown", ignored.text);
		return from_preload_open(ret, folder, NULL, job->privacy, err);
	}
	if (from_preload_open(&gil, folder, perf, job->privacy, err) < 0) {
		source_close(perf);
		return -1;
	}
	*ret = source_beside(gil, perf);
	return 0;
}

static bool is_native(const struct session *session)
{
	return session->python_trace && !strcmp(session->python_trace, SESSION_TRACE_NATIVE);
}

/* Adds what the library recorded: waits for locks, and what holders ran when they were asked to release
 * the GIL. */
static struct source *with_held(const struct job *job, struct source *perf)
{
	CLEANUP(free) char *path = NULL;
	struct source *held;
	struct error err;

	if (is_stacks(job->pass) || !is_native(job->session) || !job->pass->python_trace)
		return perf;
	path = file_in(job->dir, job->pass->python_trace);
	if (from_preload_open(&held, path, perf, job->privacy, &err) < 0) {
		add_warning(job->loaded,
		            "%s: waits for locks are missing, and a hold of the GIL counts for the "
		            "function in which it ended",
		            err.text);
		return perf;
	}
	job->loaded->locks_known = true;
	return source_with_held(held, perf);
}

/* Adds what the library, and perf with it, recorded after uprobes. */
static int open_handover(const struct job *job, const struct from_perf_options *options,
                         struct source **ret, struct error *err)
{
	const struct session_pass *pass = job->pass;
	CLEANUP(free) char *folder = file_in(job->dir, pass->preload);
	CLEANUP(free) char *path = file_in(job->dir, pass->switches);
	struct from_perf_options with = *options;
	struct source *library, *switches;

	with.with = *ret;
	with.library = true;
	job->loaded->locks_known = true;
	if (from_preload_open(&library, folder, *ret, job->privacy, err) < 0)
		return -1;
	if (from_perf_open(&switches, path, &with, err) < 0) {
		source_close(library);
		return -1;
	}
	*ret = source_handover(*ret, library, switches,
	                       &(struct handover_options){
				       .from_ns = pass->handover_ns,
				       .shared = minor_version(job->session) < 12,
			       });
	return 0;
}

/* Unwinding takes most of the time of the stacks pass, and events refer to stacks, so only other
 * passes read ahead. */
static int open_events(const struct job *job, const char *file, struct error *err)
{
	const struct session *session = job->session;
	const struct session_pass *pass = job->pass;
	struct loaded *loaded = job->loaded;
	bool unwind = is_stacks(pass);
	const struct from_perf_options options = {
		.unwind = unwind,
		.functions = session->functions,
		.function_count = session->function_count,
		.build_id = session->build_id,
		.code = loaded->code,
		.library = pass->preload && !pass->perf_data,
		.late_gil = minor_version(session) == 6,
		.privacy = job->privacy,
	};
	struct source *source;

	if (!file) {
		loaded->source = from_samples(loaded->samples);
		return 0;
	}
	if (pass->perf_data ? from_perf_open(&source, file, &options, err) < 0
	                    : open_preload(job, file, &options, &source, err) < 0)
		return -1;
	if (pass->handover_ns && open_handover(job, &options, &source, err) < 0) {
		source_close(source);
		return -1;
	}
	if (pass->perf_data && !pass->handover_ns)
		source = with_held(job, source);
	if (pass->wakeups)
		source = with_wakeups(job, source);
	loaded->source = unwind ? source : source_ahead(source);
	return 0;
}

/* Without code objects, functions have names but neither files nor lines. */
static void load_code(struct loaded *loaded, const struct session_pass *pass, const char *dir)
{
	CLEANUP(free) char *path = NULL;
	struct error err;

	if (!pass->code_objects)
		return;
	path = file_in(dir, pass->code_objects);
	if (pycode_open(&loaded->code, path, &err) < 0)
		add_warning(loaded, "%s: functions will have neither files nor lines", err.text);
}

/* Fails only if nothing but samples was recorded. */
static int load_samples(struct job *job)
{
	const struct session_pass *pass = job->pass;
	CLEANUP(free) char *path = NULL;
	struct error err;

	if (!pass->samples)
		return 0;
	path = file_in(job->dir, pass->samples);
	if (samples_open(&job->loaded->samples, path, job->privacy, &err) == 0)
		return 0;
	if (!pass->perf_data && !pass->preload) {
		job->err = err;
		return -1;
	}
	add_warning(job->loaded, "%s: no samples", err.text);
	return 0;
}

static bool is_noted(const struct session *session, const char *code)
{
	for (size_t i = 0; i < session->note_count; i++)
		if (!strcmp(session->notes[i].code, code))
			return true;
	return false;
}

/* False if a limit ended the recording, or if it is of a process that already ran. */
static bool lasts_to_end(const struct job *job)
{
	return !is_noted(job->session, "limit") && job->pass->tid;
}

/* Whether the program's own work never began, so that only the start of Python was recorded. */
static bool is_start_only(const struct job *job)
{
	return !job->pass->start_ns &&
	       (is_noted(job->session, "not-loaded") || is_noted(job->session, "not-started"));
}

static int read_events(struct job *job)
{
	const struct session_pass *pass = job->pass;
	struct loaded *loaded = job->loaded;
	const char *file = pass->perf_data ? pass->perf_data : pass->preload;
	CLEANUP(free) char *path = file ? file_in(job->dir, file) : NULL;
	struct model_suspension suspended[SUSPENSIONS_MAX];
	CLEANUP(free) struct model_slept *slept = xcalloc(pass->slept_count, sizeof(*slept));
	struct model_options options = {
		.suspended = suspended,
		.suspended_count = pass->suspended.n,
		.slept = slept,
		.slept_count = pass->slept_count,
		.start_ns = pass->start_ns,
		/* If perf ended after the program, only the time before is certain. */
		.probes_end_ns = pass->uprobes_end_ns ? pass->uprobes_end_ns : pass->handover_ns,
		.turn_ns = pass->turn_ns,
		.end_ns = pass->stop_ns,
		.to_end = lasts_to_end(job),
		.before_known = job->session->flight_ns,
		.start_pid = pass->pid,
		.start_tid = pass->tid,
		.holder_tid = pass->holder_tid,
		.no_probes = is_stacks(pass),
		.gil_off = pass->gil == SESSION_GIL_OFF,
		.requests_known = pass->preload && !pass->perf_data,
		.checks_late = minor_version(job->session) >= 10,
		.stolen_ns = pass->stolen_ns,
		.all_releases = job->session->releases_known,
	};

	for (size_t i = 0; i < pass->suspended.n; i++)
		suspended[i] = (struct model_suspension){ pass->suspended.v[i].from_ns,
			                                  pass->suspended.v[i].to_ns };
	for (size_t i = 0; i < pass->slept_count; i++)
		slept[i] = (struct model_slept){ pass->slept[i].pid, pass->slept[i].tid,
			                         pass->slept[i].state, pass->slept[i].no_gil };
	loaded->nothing = is_start_only(job);
	loaded->only_pid = job->session->no_children ? pass->pid : 0;
	load_code(loaded, pass, job->dir);
	if (load_samples(job) < 0)
		return -1;
	if (open_events(job, path, &job->err) < 0)
		return -1;
	options.names = loaded->source->names;
	options.all_wakeups = loaded->all_wakeups;
	options.stacks = is_stacks(pass) ? loaded->source->stacks : NULL;
	loaded->model = model_new(&options);
	if (feed(loaded, &job->err) < 0)
		return -1;
	finish(loaded, job->session->cpus);
	return 0;
}

static int read_slices(struct job *job)
{
	CLEANUP(free) char *path = NULL;
	CLEANUP(free) char *why = NULL;
	struct from_calls_options options = { .privacy = job->privacy };
	struct loaded *loaded = job->loaded;

	if (!job->pass->python_trace) {
		if (job->pass->python_trace_note)
			str_adds(&loaded->note, job->pass->python_trace_note);
		return 0;
	}
	path = file_in(job->dir, job->pass->python_trace);
	options.start_ns = job->session->flight_ns ? job->pass->start_ns : 0;
	options.end_ns = job->pass->stop_ns;
	if ((is_native(job->session) ? from_calls_read(&loaded->slices, path, &options, &job->err)
	                             : from_viztracer_read(&loaded->slices, path, 0, job->privacy,
	                                                   &job->err)) < 0) {
		why = xstrdup(job->err.text);
		privacy_of_sentence(job->privacy, &why);
		say_trace_unread(&loaded->note, why);
	}
	return 0;
}

static void *run_events(void *data)
{
	struct job *job = data;

	job->status = read_events(job);
	return NULL;
}

static void *run_slices(void *data)
{
	struct job *job = data;

	job->status = read_slices(job);
	return NULL;
}

/* Runs in this thread if no other one can be created. */
static void start(struct job *job, void *(*run)(void *))
{
	job->threaded = thread_start(&job->thread, run, job) == 0;
	if (!job->threaded)
		run(job);
}

static int wait_for(struct job *jobs, size_t count, struct error *err)
{
	int status = 0;

	for (size_t i = 0; i < count; i++) {
		if (jobs[i].threaded)
			pthread_join(jobs[i].thread, NULL);
		if (jobs[i].status < 0 && status == 0) {
			*err = jobs[i].err;
			status = -1;
		}
	}
	return status;
}

/* Up to 3.10, each evaluation of Python code ran one function. */
static bool is_one_to_one(const struct session *session)
{
	return minor_version(session) <= 10;
}

/* Puts Python frames among the native ones, after both files of the pass have been read. */
static void join_python(struct loaded *loaded, const struct session *session,
                        const struct session_pass *pass)
{
	CLEANUP(join_free) struct join *join = NULL;
	struct model *model = loaded->model;

	if (!loaded->slices || !is_stacks(pass))
		return;
	join = join_new(&(struct join_options){ .slices = loaded->slices,
	                                        .names = loaded->source->names,
	                                        .stacks = loaded->source->stacks,
	                                        .one_to_one = is_one_to_one(session) });
	for (size_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];

		for (size_t j = 0; j < t->cpu.spans.n; j++) {
			struct span *span = &t->cpu.spans.v[j];

			span->cpu.stack = join_stack(join, span->cpu.stack, span->start_ns, t->pid,
			                             t->tid);
		}
	}
}

static const char *name_of(const struct idmap *by_id, const struct session_pass *pass, uint32_t pid,
                           uint32_t tid)
{
	uint32_t at = idmap_get(by_id, idmap_pair(pid, tid));

	return at == IDMAP_NONE ? NULL : pass->threads[at].name;
}

/* The program's names for its threads take precedence over the kernel's, and over VizTracer's
 * for threads that VizTracer sees before threading does. */
static void name_threads(struct loaded *loaded, const struct session_pass *pass)
{
	struct names *names = loaded->source->names;
	struct slices *slices = loaded->slices;
	struct idmap by_id = { 0 };

	for (uint32_t i = 0; i < pass->thread_count; i++) {
		const struct session_thread *named = &pass->threads[i];

		if (*named->name)
			idmap_set(&by_id,
			          idmap_pair(named->pid ? named->pid : pass->pid, named->tid), i);
	}
	for (size_t i = 0; i < loaded->model->threads.n; i++) {
		struct model_thread *t = &loaded->model->threads.v[i];
		const char *name = name_of(&by_id, pass, t->pid, t->tid);

		if (name)
			t->name = names_get(names, names_id(names, name, strlen(name)));
	}
	for (size_t i = 0; slices && i < slices->thread_count; i++) {
		struct slice_thread *t = &slices->threads[i];
		const char *name = name_of(&by_id, pass, t->pid, t->tid);

		if (name)
			t->name = names_id(slices->names, name, strlen(name));
	}
	idmap_done(&by_id);
}

/* Estimates the cost of recording calls, limited to the time in which the thread was observed. */
static void cost_calls(struct loaded *loaded)
{
	const struct slices *slices = loaded->slices;

	if (!slices || !slices->call_cost_ps)
		return;
	for (size_t i = 0; i < loaded->model->threads.n; i++) {
		struct model_thread *t = &loaded->model->threads.v[i];
		uint64_t known_ns = t->end_ns - t->start_ns - t->gil_ns[GIL_UNKNOWN];
		const struct slice_thread *calls = slices_find(slices, t->pid, t->tid);
		double ns = calls ? (double)calls->recorded * (double)slices->call_cost_ps / 1000
		                  : 0;

		t->calls_cost_ns = ns < (double)known_ns ? (uint64_t)ns : known_ns;
	}
}

int report_load(struct loaded **ret, const struct session *session, const char *dir,
                const struct privacy *privacy, struct error *err)
{
	size_t count = session->pass_count;
	struct loaded *loaded = xcalloc(count, sizeof(*loaded));
	CLEANUP(free) struct job *jobs = xcalloc(2 * count, sizeof(*jobs));

	for (size_t i = 0; i < 2 * count; i++) {
		jobs[i].session = session;
		jobs[i].pass = &session->passes[i / 2];
		jobs[i].dir = dir;
		jobs[i].privacy = privacy;
		jobs[i].loaded = &loaded[i / 2];
		start(&jobs[i], i % 2 ? run_slices : run_events);
	}
	if (wait_for(jobs, 2 * count, err) < 0) {
		report_unload(loaded, count);
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		name_threads(&loaded[i], &session->passes[i]);
		join_python(&loaded[i], session, &session->passes[i]);
		cost_calls(&loaded[i]);
		if (loaded[i].slices)
			hogs_add_collections(&loaded[i].holds.hogs, loaded[i].model,
			                     loaded[i].source->frames, loaded[i].slices);
	}
	*ret = loaded;
	return 0;
}

void report_unload(struct loaded *loaded, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		model_free(loaded[i].model);
		slices_free(loaded[i].slices);
		source_close(loaded[i].source);
		pycode_close(loaded[i].code);
		samples_close(loaded[i].samples);
		str_done(&loaded[i].note);
		for (size_t k = 0; k < loaded[i].warnings.n; k++)
			free(loaded[i].warnings.v[k]);
		vec_done(&loaded[i].warnings);
		holds_done(&loaded[i].holds);
	}
	free(loaded);
}
