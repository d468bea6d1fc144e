/* SPDX-License-Identifier: MIT */
#include "record/flight.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/report_folder.h"
#include "base/str.h"
#include "live/family.h"
#include "preload/format.h"
#include "record/library.h"
#include "session/session.h"

/* Parse a time such as 500ms, 30s or 5m; a number alone is seconds. */
static int flight_parse(uint64_t *ret_ns, const char *text, struct error *err)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1e9 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 } };
	char *end = NULL;
	double value = strspn(text, "0123456789.") ? strtod(text, &end) : 0;

	for (size_t i = 0; end && i < sizeof(units) / sizeof(*units); i++) {
		double ns = value * units[i].ns;

		if (strcmp(end, units[i].name) != 0)
			continue;
		if (ns < 1e6 || ns > FLIGHT_MAX_S * 1e9)
			break;
		*ret_ns = (uint64_t)ns;
		return 0;
	}
	return error_set(err, EINVAL,
	                 "'%.40s': expected a time such as 500ms, 30s or 5m, at most %dm", text,
	                 FLIGHT_MAX_S / 60);
}

/* The first given option that records something of which everything is kept. */
static const char *excluded(const struct record_options *o)
{
	return o->state_detect                             ? "--state-detect"
	       : o->no_gil_detect                          ? "--no-gil-detect"
	       : o->sample_hz                              ? "--sample"
	       : o->events.n                               ? "--event"
	       : o->python_trace == PYTHON_TRACE_VIZTRACER ? "--python-trace viztracer"
	       : o->probes && o->probes != PROBES_PRELOAD  ? "--probes"
	                                                   : NULL;
}

int flight_options(struct record_options *options, struct error *err)
{
	const char *option = options->flight ? excluded(options) : NULL;

	if (!options->flight)
		return 0;
	if (option)
		return error_set(
			err, EINVAL,
			"option %s: has no meaning with --flight, for which the library in the "
			"program records",
			option);
	if (flight_parse(&options->flight_ns, options->flight, err) < 0)
		return error_prefix(err, "option --flight");
	options->probes = PROBES_PRELOAD;
	if (options->max_mib == RECORD_MAX_MIB)
		options->max_mib = FLIGHT_MAX_MIB;
	return 0;
}

/* ---- reports when a condition is true */

static const struct {
	const char *name, *what;
} moments[PRELOAD_MOMENTS] = {
	[PRELOAD_MOMENT_WAIT] = { "gil_wait", "waited for the GIL" },
	[PRELOAD_MOMENT_HOLD] = { "gil_hold", "held the GIL" },
	[PRELOAD_MOMENT_KEPT] = { "gil_kept", "kept the GIL after a request" },
	[PRELOAD_MOMENT_STEP] = { "loop_late", "ran one task or callback of its event loop" },
};

static int parse_when(uint64_t *longest_ns, const char *text, struct error *err)
{
	for (unsigned i = 0; i < PRELOAD_MOMENTS; i++) {
		const char *at = text + strlen(moments[i].name);

		if (!str_has_prefix(text, moments[i].name))
			continue;
		at += strspn(at, " ");
		if (*at++ != '>')
			break;
		return flight_parse(&longest_ns[i], at + strspn(at, " "), err);
	}
	return error_set(
		err, EINVAL,
		"'%.60s': expected gil_wait, gil_hold, gil_kept or loop_late, and a time; for "
		"example gil_wait>200ms",
		text);
}

int flight_watch_open(struct flight_watch *ret, const struct record_options *options,
                      struct error *err)
{
	ret->child = (struct child)CHILD_NONE;
	ret->path = options->reports;
	ret->limit_mib = options->reports_mib;
	if (!options->flight_when)
		return 0;
	if (parse_when(ret->longest_ns, options->flight_when, err) < 0)
		return error_prefix(err, "option --record-when");
	if (ret->longest_ns[PRELOAD_MOMENT_STEP] &&
	    (options->pid || options->python_trace != PYTHON_TRACE_NATIVE))
		return error_set(
			err, EINVAL,
			"option --record-when: loop_late needs the calls of a program that "
			"giltracer starts with --python-trace native");
	if (report_folder_open(&ret->folder, options->reports, err) < 0)
		return -1;
	ret->text = options->flight_when;
	ret->ns_per_tick = 1e9 / (double)ticks_of(NS_PER_SECOND);
	return 0;
}

void flight_watch_ask(struct flight_watch *watch)
{
	watch->asked = true;
}

static int start_report(struct flight_watch *watch, struct error *err)
{
	CLEANUP(free) char *name = report_folder_name(getpid());
	CLEANUP(free) char *path = report_folder_path(name);
	CLEANUP(free) char *number = xasprintf("%d", (int)getpid());
	const char *const argv[] = {
		"giltracer", "snapshot", "-q", "-p", number, "-o", path, NULL
	};

	if (!watch->folder && report_folder_open(&watch->folder, watch->path, err) < 0)
		return -1;
	if (report_folder_spawn(&watch->child, watch->folder, argv, err) < 0)
		return -1;
	watch->name = take(name);
	return 0;
}

static void end_report(struct flight_watch *watch)
{
	if (faccessat(watch->folder, watch->name, R_OK, 0) == 0)
		log_info("%s: report: %s/%s", watch->what, watch->path, watch->name);
	else
		log_warn("%s: no report was made", watch->what);
	child_done(&watch->child);
	watch->child = (struct child)CHILD_NONE;
	free(take(watch->name));
	report_folder_trim(watch->folder, watch->limit_mib);
}

/* How long the library's noticed time was, as it says now. */
static char *describe(const struct flight_watch *watch, const struct preload_control *control)
{
	unsigned moment = __atomic_load_n(&control->moment, __ATOMIC_ACQUIRE) - 1;

	return xasprintf("%s: thread %u of process %u %s for %.1f ms", watch->text,
	                 control->moment_tid, control->moment_pid,
	                 moments[moment % PRELOAD_MOMENTS].what,
	                 (double)control->moment_ticks * watch->ns_per_tick / 1e6);
}

/* The reason is owned by the watch. */
static void report_because(struct flight_watch *watch, char *what)
{
	struct error err;

	free(watch->what);
	watch->what = what;
	if (start_report(watch, &err) < 0)
		log_warn("%s: no report was made: %s", what, err.text);
}

/* What still goes on gets this time to end, so that the report has all of it. */
#define ENDS_WITHIN_NS NS_PER_SECOND

static void report_moment(struct flight_watch *watch, struct preload_control *control, uint64_t now)
{
	watch->noticed_ns = 0;
	if (watch->fired_ns && now - watch->fired_ns < FLIGHT_PAUSE_NS)
		return;
	watch->fired_ns = now;
	report_because(watch, describe(watch, control));
}

static bool is_noticed(const struct preload_control *control)
{
	uint32_t moment = __atomic_load_n(&control->moment, __ATOMIC_ACQUIRE);

	return moment && moment <= PRELOAD_MOMENTS;
}

/* ---- processes that have ended */

/* The longest time between two looks. */
#define TIDY_NS_MAX (5 * NS_PER_SECOND)

static int read_header(struct preload_header *ret, int fd)
{
	return pread(fd, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret) ? 0 : -1;
}

/* "PID.STAMP" of a name of a file; NULL: it is of none of the processes. */
static char *process_of(const char *name)
{
	size_t pid = strspn(name, "0123456789"), stamp = 0;

	if (pid && name[pid] == '.')
		stamp = strspn(name + pid + 1, "0123456789");
	return stamp && name[pid + 1 + stamp] == '.' ? xstrndup(name, pid + 1 + stamp) : NULL;
}

/* Whether its log ends with its end: others were killed or execute another program. */
static bool has_ended(const char *folder, const char *file)
{
	CLEANUP(free) char *path = xasprintf("%s/%s" PRELOAD_LOG_SUFFIX, folder, file);
	CLEANUP(close) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct preload_entry last;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(last) &&
	       pread(fd, &last, sizeof(last), st.st_size - (off_t)sizeof(last)) ==
	               (ssize_t)sizeof(last) &&
	       last.type == PRELOAD_ENDED;
}

static struct flight_process *find_process(struct flight_watch *watch, char *file)
{
	for (size_t i = 0; i < watch->processes.n; i++)
		if (!strcmp(watch->processes.v[i].file, file)) {
			free(file);
			return &watch->processes.v[i];
		}
	*vec_push(&watch->processes) = (struct flight_process){ .file = file };
	return &watch->processes.v[watch->processes.n - 1];
}

/* A process that was never seen alive may be one of a PID namespace of its own. */
static void look_at_process(struct flight_process *p, const struct preloading *preloading,
                            uint64_t now)
{
	if (p->seen)
		return;
	p->seen = true;
	if (p->dead_ns)
		return;
	if (preloading_is_alive(preloading, strtoul(p->file, NULL, 10)) &&
	    !has_ended(preloading->folder, p->file))
		p->lived = true;
	else if (p->lived || has_ended(preloading->folder, p->file))
		p->dead_ns = now;
}

/* What the library has counted for a file in preload_control.used. */
static uint64_t counted(int fd, const char *name)
{
	struct preload_header h;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || read_header(&h, fd) < 0)
		return 0;
	if (str_has_suffix(name, PRELOAD_GIL_SUFFIX))
		return (uint64_t)st.st_size > h.first ? (uint64_t)st.st_size - h.first : 0;
	if (!str_has_suffix(name, PRELOAD_CALLS_SUFFIX) || st.st_size < PRELOAD_CALLS_WINDOW_AT)
		return 0;
	return ((size_t)st.st_size < PRELOAD_CALLS_DATA_AT ? (uint64_t)st.st_size
	                                                   : PRELOAD_CALLS_DATA_AT) -
	       PRELOAD_CALLS_WINDOW_AT + h.written - h.first;
}

static void remove_file(const struct preloading *p, const char *name)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", p->folder, name);
	CLEANUP(close) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t bytes = counted(fd, name);

	if (unlink(path) == 0)
		__atomic_sub_fetch(&p->control->used, bytes, __ATOMIC_RELAXED);
}

/* Forgets processes without files. */
static void forget(struct flight_watch *watch)
{
	for (size_t i = watch->processes.n; i-- > 0;) {
		if (!watch->processes.v[i].seen) {
			free(watch->processes.v[i].file);
			watch->processes.v[i] = watch->processes.v[--watch->processes.n];
		} else {
			watch->processes.v[i].seen = false;
		}
	}
}

/* A program may start processes for ever. */
static void tidy(struct flight_watch *watch, const struct preloading *p, uint64_t kept_ns,
                 uint64_t now)
{
	CLEANUP(closedir) DIR *dir = opendir(p->folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *file = process_of(entry->d_name);
		struct flight_process *process;

		if (!file)
			continue;
		process = find_process(watch, file);
		look_at_process(process, p, now);
		if (process->dead_ns && now - process->dead_ns > kept_ns)
			remove_file(p, entry->d_name);
	}
	forget(watch);
}

void flight_watch_look(struct flight_watch *watch, const struct preloading *preloading,
                       uint64_t kept_ns)
{
	struct preload_control *control = preloading->control;
	uint64_t now = clock_now_ns();

	if (now >= watch->tidy_ns) {
		tidy(watch, preloading, kept_ns, now);
		watch->tidy_ns = now + (kept_ns < TIDY_NS_MAX ? kept_ns : TIDY_NS_MAX);
	}
	if (watch->name && child_ended(&watch->child))
		end_report(watch);
	if (watch->asked && !watch->name) {
		watch->asked = false;
		report_because(watch, xstrdup("SIGUSR1"));
	}
	if (watch->name || !watch->text || !is_noticed(control))
		return;
	if (!watch->noticed_ns)
		watch->noticed_ns = now;
	if (!__atomic_load_n(&control->moment_ended, __ATOMIC_ACQUIRE) &&
	    now - watch->noticed_ns < ENDS_WITHIN_NS)
		return;
	report_moment(watch, control, now);
	__atomic_store_n(&control->moment, 0, __ATOMIC_RELEASE);
}

void flight_watch_finish(struct flight_watch *watch, struct preload_control *control)
{
	if (!watch->name && watch->text && is_noticed(control))
		report_moment(watch, control, clock_now_ns());
	if (!watch->name)
		return;
	child_wait(&watch->child);
	end_report(watch);
}

void flight_watch_done(struct flight_watch *watch)
{
	for (size_t i = 0; i < watch->processes.n; i++)
		free(watch->processes.v[i].file);
	vec_done(&watch->processes);
	if (watch->name)
		child_done(&watch->child);
	if (watch->folder)
		close(watch->folder);
	free(watch->name);
	free(watch->what);
	*watch = (struct flight_watch){ 0 };
}

/* ---- where it is */

#define CONTROL_PATH "/" RECORD_PRELOAD "/" PRELOAD_CONTROL

/* Whether this is the control file of a flight recorder that is on. */
static bool is_on(const char *path)
{
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct preload_control control;

	return fd >= 0 && pread(fd, &control, sizeof(control), 0) == (ssize_t)sizeof(control) &&
	       control.magic == PRELOAD_MAGIC && control.kept_stamps && !control.stopped;
}

/* The session's folder, which the process sees under the path that it has mapped; NULL: none. */
static char *find_in(pid_t pid)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);
	struct procfs_mapping m;
	char *rest = maps;

	while (procfs_next_mapping(&m, &rest)) {
		CLEANUP(free) char *folder = NULL;

		if (*m.path != '/' || !str_has_suffix(m.path, CONTROL_PATH))
			continue;
		folder = xasprintf("/proc/%d/root%s", (int)pid, m.path);
		if (!is_on(folder))
			continue;
		folder[strlen(folder) - strlen(CONTROL_PATH)] = '\0';
		return take(folder);
	}
	return NULL;
}

static char *find(pid_t pid)
{
	char *folder = find_in(pid);
	struct family family = { 0 };

	if (folder)
		return folder;
	family_read(&family, pid);
	for (size_t i = 0; i < family.v.n && !folder; i++)
		folder = find_in(family.v.v[i]);
	vec_done(&family.v);
	return folder;
}

/* ---- copies */

#define COPY_BYTES ((size_t)1 << 20)

/* Copies bytes, as many as there are. */
static int copy_bytes(int to, uint64_t to_at, int from, uint64_t at, uint64_t bytes,
                      struct error *err)
{
	CLEANUP(free) char *buffer = xcalloc(COPY_BYTES, 1);

	while (bytes) {
		ssize_t n = pread(from, buffer, bytes < COPY_BYTES ? bytes : COPY_BYTES, (off_t)at);

		if (n <= 0)
			return n < 0 ? error_errno(err, "read") : 0;
		errno = ENOSPC; /* for a short write */
		if (pwrite(to, buffer, (size_t)n, (off_t)to_at) != n)
			return error_errno(err, "write");
		at += (uint64_t)n;
		to_at += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

/* Without the holes. A part that is dropped meanwhile may have been copied as zeros, so it is left out:
 * the header says so before it is dropped. */
static int copy_events(int to, int from, uint64_t size, struct error *err)
{
	struct preload_header before, after;
	uint64_t at;

	if (read_header(&before, from) < 0)
		return 0; /* it has just been made */
	at = before.first ? before.first : PRELOAD_RECORDS_AT;
	if (size > at && copy_bytes(to, PRELOAD_RECORDS_AT, from, at, size - at, err) < 0)
		return -1;
	if (read_header(&after, from) < 0)
		return 0;
	if (after.first)
		after.first = PRELOAD_RECORDS_AT + (after.first > at ? after.first - at : 0);
	errno = ENOSPC;
	return pwrite(to, &after, sizeof(after), 0) == (ssize_t)sizeof(after)
	               ? 0
	               : error_errno(err, "write");
}

/* The window moves to the data when it is full. */
#define CALLS_TRIES 100

static int copy_calls(int to, int from, uint64_t size, struct error *err)
{
	struct preload_header before, after;
	uint64_t done;

	if (read_header(&before, from) < 0)
		return 0;
	done = before.first;
	for (unsigned i = 0; i < CALLS_TRIES; i++) {
		if (copy_bytes(to, PRELOAD_CALLS_DATA_AT + done, from, PRELOAD_CALLS_DATA_AT + done,
		               before.written - done, err) < 0 ||
		    copy_bytes(to, 0, from, 0,
		               size < PRELOAD_CALLS_DATA_AT ? size : PRELOAD_CALLS_DATA_AT,
		               err) < 0)
			return -1;
		if (read_header(&after, from) < 0 || after.written == before.written)
			break;
		done = before.written;
		before = after;
	}
	return 0;
}

/* @logs, @events: which files */
static int copy_file(const char *to_dir, const char *from_dir, const char *name, struct error *err)
{
	CLEANUP(free) char *to_path = xasprintf("%s/%s", to_dir, name);
	CLEANUP(free) char *from_path = xasprintf("%s/%s", from_dir, name);
	/* Without O_NONBLOCK, a FIFO waits for a writer. */
	CLEANUP(close)
	int from = open(from_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CLEANUP(close) int to = -1;
	struct stat st;
	uint64_t size;
	int ret;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return 0; /* it has gone */
	size = (uint64_t)st.st_size;
	to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return error_errno(err, "%s", to_path);
	if (str_has_suffix(name, PRELOAD_GIL_SUFFIX))
		ret = copy_events(to, from, size, err);
	else if (str_has_suffix(name, PRELOAD_CALLS_SUFFIX))
		ret = copy_calls(to, from, size, err);
	else
		ret = copy_bytes(to, 0, from, 0, size, err);
	return ret < 0 ? error_prefix(err, "%s", to_path) : 0;
}

enum files {
	FILES_EVENTS, /* of threads */
	FILES_LOGS,   /* of processes, and what belongs to them */
};

/* The launcher's log is written by ourselves after it was copied. */
static bool is_one_of(enum files files, const char *name)
{
	bool events = str_has_suffix(name, PRELOAD_GIL_SUFFIX) ||
	              str_has_suffix(name, PRELOAD_CALLS_SUFFIX);

	return events ? files == FILES_EVENTS
	              : files == FILES_LOGS && strcmp(name, PRELOAD_LAUNCHER) != 0 &&
	                        strcmp(name, PRELOAD_CONTROL) != 0;
}

static int copy_files(const char *to, const char *from, enum files files, struct error *err)
{
	CLEANUP(closedir) DIR *dir = opendir(from);
	struct dirent *entry;

	if (!dir)
		return error_errno(err, "%s", from);
	while ((entry = readdir(dir)))
		if (is_one_of(files, entry->d_name) && copy_file(to, from, entry->d_name, err) < 0)
			return -1;
	return 0;
}

static int map_control(struct preload_control **ret, const char *folder, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" PRELOAD_CONTROL, folder);
	CLEANUP(close) int fd = open(path, O_RDWR | O_CLOEXEC);
	void *map = fd < 0 ? MAP_FAILED
	                   : mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return error_errno(err, "%s", path);
	*ret = map;
	return 0;
}

int flight_bring(struct preloading *p, const char *dir, struct error *err)
{
	CLEANUP(free) char *to = xasprintf("%s/" RECORD_PRELOAD, dir);

	if (!p->inside.folder.path)
		return 0;
	if (mkdir(to, 0700) < 0 && errno != EEXIST)
		return error_errno(err, "%s", to);
	if (copy_file(to, p->folder, PRELOAD_CONTROL, err) < 0 ||
	    copy_file(to, p->folder, PRELOAD_LAUNCHER, err) < 0 ||
	    copy_files(to, p->folder, FILES_EVENTS, err) < 0 ||
	    copy_files(to, p->folder, FILES_LOGS, err) < 0)
		return -1;
	free(p->folder);
	p->folder = take(to);
	return 0;
}

/* The events that are copied may refer to what is written to the logs meanwhile, so these are copied
 * again. The end is noted before any event is copied, so that all threads have their events until then. */
static int copy_all(struct preloading *p, const char *from, uint64_t *ret_end_ns, struct error *err)
{
	if (mkdir(p->folder, 0700) < 0)
		return error_errno(err, "%s", p->folder);
	if (copy_file(p->folder, from, PRELOAD_CONTROL, err) < 0 ||
	    copy_file(p->folder, from, PRELOAD_LAUNCHER, err) < 0 ||
	    copy_files(p->folder, from, FILES_LOGS, err) < 0 ||
	    map_control(&p->control, p->folder, err) < 0)
		return -1;
	preloading_note_time(p);
	*ret_end_ns = clock_now_ns();
	preloading_stop(p);
	return copy_files(p->folder, from, FILES_EVENTS, err) < 0 ||
	                       copy_files(p->folder, from, FILES_LOGS, err) < 0
	               ? -1
	               : 0;
}

/* The recorder keeps more meanwhile. */
static int copy_recording(struct preloading *p, const char *from, uint64_t *ret_end_ns,
                          struct error *err)
{
	struct preload_control *control;
	int ret;

	if (map_control(&control, from, err) < 0)
		return -1;
	control->copying = 1;
	ret = copy_all(p, from, ret_end_ns, err);
	control->copying = 0;
	munmap(control, sizeof(*control));
	return ret;
}

int flight_copy(pid_t pid, const char *dir, struct error *err)
{
	CLEANUP(free) char *from = find(pid);
	CLEANUP(free) char *recording = NULL;
	CLEANUP(session_free) struct session *session = NULL;
	CLEANUP(preloading_done) struct preloading p = { 0 };

	if (!from)
		return error_set(
			err, ESRCH,
			"process %d: no flight recorder is on in it (giltracer --flight), or it "
			"is another user's",
			(int)pid);
	if (session_read(&session, from, err) < 0)
		return -1;
	if (!session->pass_count || !session->passes[0].preload)
		return error_set(err, ENODATA, "%s: the session has no recording", from);
	recording = xasprintf("%s/" RECORD_PRELOAD, from);
	p.folder = xasprintf("%s/" RECORD_PRELOAD, dir);
	if (copy_recording(&p, recording, &session->passes[0].stop_ns, err) < 0 ||
	    copy_file(dir, from, "gil.children", err) < 0)
		return -1;
	return session_write(session, dir, err);
}
