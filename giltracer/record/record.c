/* SPDX-License-Identifier: MIT */
/* Records a program into a session folder. */
#include "record/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/datadir.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/str.h"
#include "base/vec.h"
#include "binary/debugfile.h"
#include "binary/image.h"
#include "python/probes.h"
#include "python/python.h"
#include "record/flight.h"
#include "record/job.h"
#include "record/library.h"
#include "record/perf.h"
#include "session/session.h"
#include "system/host.h"
#include "system/uprobes.h"

void record_set_log_level(const struct record_options *options)
{
	if (options->quiet)
		log_set_level(LOG_ERROR);
	else if (options->verbose)
		log_set_level(LOG_DEBUG);
}

/* Removes the probes: without waiting for it, if the program has run. */
static void remove_probes(struct job *job, bool failed)
{
	struct uprobes *uprobes = take(job->events.uprobes);
	pid_t pid = failed || !uprobes ? -1
	                               : uprobes_release_after(uprobes, job->after.perfs.v,
	                                                       job->after.perfs.n);

	if (pid > 0)
		job->outcome->closing = pid;
	else
		uprobes_release(uprobes);
	afterwards_done(&job->after);
}

static int record_guarded(struct job *job, struct error *err)
{
	int ret = job_prepare_engine(job, err);

	if (ret == 0) {
		job->session = job_describe(job);
		ret = job_run(job, err);
	}
	remove_probes(job, ret < 0);
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
	free(job->program.bootstrap);
	free(job->program.stack);
	argv_free(job->program.command);
	free(job->program.entry);
	python_free(job->program.python);
	shebang_done(&job->program.shebang);
	free(job->program.python_options);
	perf_limits_done(&job->host);
	preloading_done(&job->events.library);
	probe_set_free(job->events.probes);
	session_free(job->session);
	flight_watch_done(&job->watch);
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
	struct record_options with_flight = *options;
	struct job job = {
		.options = &with_flight, .dir = dir, .signals = signals, .outcome = ret
	};
	int failed;

	*ret = (struct record_outcome){ 0 };
	if (flight_options(&with_flight, err) < 0 ||
	    flight_watch_open(&job.watch, &with_flight, err) < 0)
		return -1;
	failed = job_prepare(&job, argv, err);
	if (failed == 0)
		failed = record_guarded(&job, err);
	job_done(&job);
	return failed;
}

/* When the first process of a container ends, the kernel kills all others. */
void record_wait_closing(const struct record_outcome *outcome)
{
	if (outcome->closing && sandbox_own_pid_namespace())
		while (waitpid(outcome->closing, NULL, 0) < 0 && errno == EINTR)
			continue;
}

int record_exit(const struct record_outcome *outcome)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t set;

	record_wait_closing(outcome);
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

/* ---- the session's folder */

/* All files of a session; perf renames an existing output to .old. */
static const char *const SESSION_FILES[] = {
	SESSION_FILE,
	SOURCES_FILE,
	"gil.perf.data",
	"gil.perf.data.old",
	"gil.viztracer.json",
	"gil.codes",
	"gil.codes.part",
	"gil.children",
	"gil.samples",
	RECORD_PRELOAD,
	RECORD_STACKS_PRELOAD,
	"stacks.perf.data",
	"stacks.perf.data.old",
	"stacks.viztracer.json",
	"stacks.children",
	"stacks.samples",
	RECORD_SWITCHES,
	RECORD_SWITCHES ".old",
	"gil.wakeups.perf.data",
	"gil.wakeups.perf.data.old",
	"stacks.wakeups.perf.data",
	"stacks.wakeups.perf.data.old",
};

static void remove_files(const char *dir)
{
	struct error ignored;

	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++) {
		CLEANUP(free) char *path = xasprintf("%s/%s", dir, SESSION_FILES[i]);

		if (str_has_suffix(SESSION_FILES[i], ".preload"))
			file_remove_tree(path, &ignored);
		else
			unlink(path);
	}
}

void record_remove_folder(const char *dir)
{
	remove_files(dir);
	rmdir(dir);
}

static bool is_session_file(const char *name)
{
	for (size_t i = 0; i < sizeof(SESSION_FILES) / sizeof(*SESSION_FILES); i++)
		if (!strcmp(name, SESSION_FILES[i]))
			return true;
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A folder with other files is neither written to nor cleared. */
static bool is_ours(const char *dir)
{
	CLEANUP(closedir) DIR *entries = opendir(dir);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (!is_session_file(entry->d_name))
			return false;
	return entries;
}

/* A session contains arguments, code and stacks. */
static int make_private(const char *dir, struct error *err)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return error_errno(err, "%s", dir);
	if (st.st_uid != geteuid())
		return error_set(err, EEXIST, "%s: exists and belongs to another user", dir);
	return chmod(dir, 0700) < 0 ? error_errno(err, "%s", dir) : 0;
}

/* An existing folder is emptied and kept: it may be a mount point, or a link to a folder. */
static int make_folder(const char *dir, struct error *err)
{
	if (mkdir(dir, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return error_errno(err, "%s", dir);
	if (!is_ours(dir))
		return error_set(err, EEXIST,
		                 "%s: exists and contains files that are not part of a session",
		                 dir);
	if (make_private(dir, err) < 0)
		return -1;
	remove_files(dir);
	return 0;
}

int record_make_folder(char **ret, const char *dir, struct error *err)
{
	if (make_folder(dir, err) < 0)
		return -1;
	*ret = realpath(dir, NULL);
	return *ret ? 0 : error_errno(err, "%s", dir);
}

/* ---- what the session document contains about the interpreter and the host */

const char *const locks_kind_names[] = { "python", "all", NULL };
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

/* Where the files that a program names are. */
static void describe_files(struct session *session, pid_t pid)
{
	CLEANUP(free) char *link = procfs_path(pid, 0, "cwd");
	char cwd[PATH_MAX];
	ssize_t n = readlink(link, cwd, sizeof(cwd) - 1);

	free(session->cwd);
	session->cwd = n > 0 ? xstrndup(cwd, (size_t)n) : NULL;
	session->root = procfs_is_elsewhere(pid) ? procfs_path(pid, 0, "root") : NULL;
}

void job_describe_engine(const struct job *job, struct session *session)
{
	session->gil_detect = job->engines[0]->gil;
	session->releases_known |= job->engines[0]->knows_releases;
}

static void describe_probes(struct session *session, const struct probe_set *set)
{
	if (!set)
		return;
	session->build_id = xstrdup(set->build_id);
	session->releases_known |= set->releases_known;
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
	session->one_run = job->options->one_run;
	session->flight_ns = job->options->flight_ns;
	session->no_children = job->options->no_children;
	session->python_trace = xstrdup(python_trace_names[job->program.python_trace]);
	session->perf_version = job->host.version ? xstrdup(job->host.version) : NULL;
	if (job->pid)
		describe_files(session, job->pid);
	job_describe_engine(job, session);
	describe_probes(session, job->events.probes);
	return session;
}

/* ---- the probes */

/*
 * To find the functions in a stripped interpreter takes 0.1 s. Root, who is the only user that places probes,
 * keeps the result in a file below /run. Files of other users, or that others can write to, are not read.
 */
#define PLACES_MAX (1 << 20)

/* For so many interpreters and numbers of frames the places are kept. */
#define PLACES_KEPT 64

static void add_identity(struct str *out, const struct image_identity *id)
{
	str_addf(out, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64, id->dev, id->ino, id->size,
	         id->changed_ns);
}

/* All that the result depends on: the interpreter's file, ours, the definition, and the options. A result that
 * debug information could improve is not kept. */
static char *places_key(const struct python *python, const struct image_identity *library,
                        unsigned frames, const char *suffix)
{
	struct image_identity ours = { 0 }, definition_id = { 0 };
	CLEANUP(str_done) struct str key = { 0 };
	CLEANUP(free)
	char *name = xasprintf("probes/%u.%u%s.yaml", python->major, python->minor,
	                       python->free_threaded ? "t" : "");
	CLEANUP(free) char *definition = NULL;
	struct error ignored;

	if (datadir_find(&definition, name, &ignored) < 0)
		datadir_find(&definition, "probes/newer.yaml", &ignored);
	str_addf(&key, "%s %s %u %s", PACKAGE_VERSION, python->version, frames, suffix);
	image_identify(&ours, "/proc/self/exe");
	if (definition)
		image_identify(&definition_id, definition);
	add_identity(&key, library);
	add_identity(&key, &ours);
	add_identity(&key, &definition_id);
	str_addf(&key, " %s", python->library);
	return str_take(&key);
}

static char *places_path(const char *library, unsigned frames)
{
	CLEANUP(free) char *name = NULL;
	uint64_t hash = 0xcbf29ce484222325;

	for (const char *c = library; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
	name = xasprintf(LEASE_PLACES "%016" PRIx64 "-%u", hash, frames);
	return lease_path(name);
}

/* Only root can have written it. */
static bool is_of_root(int fd, mode_t type)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == 0 &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static json_t *places_load(const char *path)
{
	CLEANUP(free) char *folder = lease_path("");
	CLEANUP(close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(close)
	int fd = dir < 0 ? -1
	                 : openat(dir, strrchr(path, '/') + 1,
	                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || !is_of_root(dir, S_IFDIR) || !is_of_root(fd, S_IFREG) || fstat(fd, &st) < 0 ||
	    st.st_size > PLACES_MAX)
		return NULL;
	return json_loadfd(fd, 0, NULL);
}

static bool read_place(struct probe *ret, json_t *place)
{
	const char *event, *function, *fetch = NULL;
	json_int_t address, offset;
	int kind, is_return;

	if (json_unpack(place, "{s:s s:s s?s s:I s:I s:i s:b}", "event", &event, "function",
	                &function, "fetch", &fetch, "address", &address, "offset", &offset, "kind",
	                &kind, "return", &is_return) < 0)
		return false;
	*ret = (struct probe){ .event = xstrdup(event),
		               .function = xstrdup(function),
		               .fetch = fetch ? xstrdup(fetch) : NULL,
		               .address = (uint64_t)address,
		               .offset = (uint64_t)offset,
		               .kind = kind,
		               .ret = is_return,
		               .sure = true };
	return true;
}

static struct probe_set *places_read(const struct python *python, unsigned frames,
                                     const char *suffix)
{
	struct image_identity identity = { 0 };
	bool found = image_identify(&identity, python->library);
	CLEANUP(free) char *key = places_key(python, &identity, frames, suffix);
	CLEANUP(free) char *path = places_path(python->library, frames);
	json_auto_t *file = found ? places_load(path) : NULL;
	CLEANUP(probe_set_free) struct probe_set *set = xcalloc(1, sizeof(*set));
	const char *of, *build_id, *group;
	json_t *places, *place;
	int releases_known;
	size_t i;

	if (!file ||
	    json_unpack(file, "{s:s s:s s:s s:b s:o}", "key", &of, "build-id", &build_id, "group",
	                &group, "releases-known", &releases_known, "places", &places) < 0 ||
	    strcmp(of, key) != 0)
		return NULL;
	json_array_foreach(places, i, place) if (!read_place(vec_push(&set->probes), place))
	{
		set->probes.n--;
		return NULL;
	}
	set->identity = identity;
	set->path = xstrdup(python->library);
	set->python = xstrdup(python->command);
	set->build_id = xstrdup(build_id);
	set->group = xstrdup(group);
	set->frames = frames;
	set->releases_known = releases_known;
	return set->probes.n ? take(set) : NULL;
}

static json_t *places_of(const struct probe_set *set, const char *key)
{
	json_t *places = json_array();

	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *p = &set->probes.v[i];

		json_array_append_new(places, json_pack("{s:s s:s s:s* s:I s:I s:i s:b}", "event",
		                                        p->event, "function", p->function, "fetch",
		                                        p->fetch, "address", (json_int_t)p->address,
		                                        "offset", (json_int_t)p->offset, "kind",
		                                        (int)p->kind, "return", p->ret));
	}
	return json_pack("{s:s s:s s:s s:b s:o}", "key", key, "build-id", set->build_id, "group",
	                 set->group, "releases-known", set->releases_known, "places", places);
}

static bool is_certain(const struct probe_set *set)
{
	for (size_t i = 0; i < set->probes.n; i++)
		if (!set->probes.v[i].sure)
			return false;
	return !set->note;
}

static void places_write(const struct probe_set *set, const struct python *python,
                         const char *suffix)
{
	CLEANUP(free) char *key = places_key(python, &set->identity, set->frames, suffix);
	CLEANUP(free) char *path = places_path(set->path, set->frames);
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	json_auto_t *file = NULL;
	struct error ignored;

	if (!is_certain(set) || !probe_set_is_current(set) || lease_make_folder(&ignored) < 0 ||
	    filewriter_open(&w, path, &ignored) < 0)
		return;
	file = places_of(set, key);
	if (fchmod(fileno(w.out), 0600) == 0 && file && json_dumpf(file, w.out, JSON_COMPACT) == 0)
		filewriter_commit(&w, &ignored);
	lease_drop_places(PLACES_KEPT);
}

static int resolve(struct probe_set **ret, const struct python *python, unsigned frames,
                   const char *group_suffix, struct error *err)
{
	bool asks = debugfile_asks_server(python->library);
	int failed;

	if (asks)
		log_progress("asking debuginfod for the symbols of %s", python->library);
	failed = probe_set_resolve(ret, python, frames, group_suffix, err);
	if (asks)
		log_progress(NULL);
	return failed;
}

int resolve_probes(struct probe_set **ret, const struct python *python, unsigned frames,
                   struct error *err)
{
	CLEANUP(free) char *group_suffix = lease_suffix();

	return resolve(ret, python, frames, group_suffix, err);
}

int resolve_probes_again(struct probe_set **ret, const struct python *python, unsigned frames,
                         struct error *err)
{
	CLEANUP(free) char *group_suffix = lease_suffix();
	const bool root = geteuid() == 0;

	if (root && (*ret = places_read(python, frames, group_suffix)))
		return 0;
	if (resolve(ret, python, frames, group_suffix, err) < 0)
		return -1;
	if (root)
		places_write(*ret, python, group_suffix);
	return 0;
}
