/* SPDX-License-Identifier: MIT */
/* The library, loaded into a program that already runs, records the GIL: the program executes a script
 * (live/remote.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/str.h"
#include "base/vec.h"
#include "live/remote.h"
#include "live/snapshot.h"
#include "live/totals.h"
#include "python/target.h"
#include "preload/format.h"
#include "preload/totals.h"
#include "record/engine.h"
#include "record/execution.h"
#include "record/job.h"
#include "record/library.h"
#include "record/notes.h"
#include "record/observer.h"
#include "session/temp_session.h"

/* How long the program's main thread may take to execute the script. */
#define JOINING_TIMEOUT_MS 5000

#define LOOK_EVERY_MS 5

/* After this time, a main thread that does not execute a script of sys.remote_exec()'s is called. */
#define EXEC_TIMEOUT_MS 500

/* After this time, a main thread that waits for a lock is woken; then after twice that, and so on. */
#define WAKE_FIRST_MS 50

/* For a script that has begun: it imports a library, and needs the GIL for that. */
#define BEGUN_TIMEOUT_MS 10000

#define WHY_MAX 4096

#define SCRIPT "join.py"

/* The layout of struct _gil_runtime_state from 3.7 on, as in preload/join.c: interval, last_holder,
 * locked, switch_number, and two pairs of condition and mutex. */
#define GIL_HOLDER 8
#define GIL_LOCKED 16
#define GIL_SIZE   (32 + 2 * (sizeof(pthread_cond_t) + sizeof(pthread_mutex_t)))

/*
 * What the program executes. The library is not an extension module, so its import fails; the
 * exception carries the function to call. The script prints nothing and leaves no name in the
 * program.
 */
static const char script[] =
	"def giltracer(library, folder, memory):\n"
	"    import sys\n"
	"    class Spec:\n"
	"        name = 'giltracer_join'\n"
	"        origin = library.decode('utf-8', 'surrogateescape')\n"
	"    try:\n"
	"        if memory:\n"
	"            file = open(sys.modules['posix'].memfd_create('giltracer'), 'wb', 0)\n"
	"            with open(library, 'rb') as source:\n"
	"                file.write(source.read())\n"
	"            Spec.origin = '/proc/self/fd/%%d' %% file.fileno()\n"
	"        sys.modules['_imp'].create_dynamic(Spec)\n"
	"    except ImportError as e:\n"
	"        why = str(e) if e.args and isinstance(e.args[0], str) else e.args[0](folder)\n"
	"    if why:\n"
	"        with open(folder + b'/refused', 'w') as file:\n"
	"            file.write(why)\n"
	"try:\n"
	"    giltracer(b'%s', b'%s', %d)\n"
	"except KeyboardInterrupt:\n"
	"    __import__('_thread').interrupt_main()\n"
	"except Exception:\n"
	"    pass\n";

/**
 * How the program is made to execute the script: by @exec from 3.14 on, by @call before and if
 * the main thread sleeps.
 * @text: what @call executes; @dir: of the script that @exec executes
 */
struct joining {
	const struct target *target;
	bool calls;
	struct remote_exec exec;
	struct remote_call call;
	char *text;
	const char *dir;
};

static int find(struct joining *ret, const struct target *target, const char *library,
                struct error *err)
{
	const uint32_t *at = target->def->layout.memory;
	const uint32_t before = target->def->layout.free_threaded ? PYTHON_GIL_AFTER_ON : 0;

	*ret = (struct joining){ .target = target };
	ret->calls = at[MEMORY_DEBUGGER] == PYTHON_NO_OFFSET;
	if ((ret->calls ? remote_call_find(&ret->call, target, library, err)
	                : remote_exec_find(&ret->exec, target, err)) < 0)
		return -1;
	if (at[MEMORY_GIL_SIZE] != before + GIL_SIZE || at[MEMORY_HOLDER] != before + GIL_HOLDER ||
	    at[MEMORY_LOCKED] != before + GIL_LOCKED)
		return error_set(err, ENOTSUP, "the library does not support the GIL of Python %s",
		                 target->process.python->version);
	return 0;
}

/* Quoted as in a bytes literal. */
static char *quoted(const char *path)
{
	struct str out = { 0 };

	for (; *path; path++)
		str_addf(&out, "\\x%02x", (unsigned char)*path);
	return str_take(&out);
}

static char *make_script(const struct preloading *p)
{
	const struct inside *inside = &p->inside;
	CLEANUP(free) char *library = quoted(inside->library ? inside->library : p->library);
	CLEANUP(free) char *folder = quoted(inside->seen ? inside->seen : p->folder);

	return xasprintf(script, library, folder, inside->memory);
}

/* The script as a text for PyRun_SimpleString(), which executes it in the namespace of __main__. */
static char *make_text(const char *source)
{
	struct str out = { 0 };

	str_addf(&out, "try:\n    __import__('builtins').exec('");
	for (; *source; source++)
		str_addf(&out,
		         *source == '\n'          ? "\\n"
		         : strchr("\\'", *source) ? "\\%c"
		                                  : "%c",
		         *source);
	str_addf(&out, "', {})\nexcept BaseException:\n    pass\n");
	return str_take(&out);
}

static int write_script(const char *source, const char *path, struct error *err)
{
	CLEANUP(close)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	CLEANUP(fclose) FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (out)
		fd = -1;
	if (!out || fputs(source, out) < 0 || fflush(out) != 0)
		return error_errno(err, "%s", path);
	return 0;
}

/* Returns 1 if the library records, 0 if it does not yet, -1 if it refused. */
static int look(const struct preloading *p, const struct target *target, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/refused", p->folder);
	CLEANUP(free) char *why = NULL;
	struct error ignored;

	if (__atomic_load_n(&p->control->joined_ns, __ATOMIC_ACQUIRE))
		return 1;
	if (file_read_member(&why, NULL, path, WHY_MAX, &ignored) < 0 || !*why)
		return 0;
	return error_set(err, ENOTSUP, "process %d: the library cannot be used: %s",
	                 (int)target->pid, why);
}

static int wait_for(const struct preloading *p, struct joining *j, unsigned ms, bool wakes,
                    struct error *err)
{
	uint64_t now_ns = clock_now_ns(), pause_ms = WAKE_FIRST_MS;
	uint64_t wake_ns = now_ns + pause_ms * NS_PER_MS;
	const uint64_t until_ns = now_ns + ms * NS_PER_MS;
	int ret;

	while ((ret = look(p, j->target, err)) == 0 && (now_ns = clock_now_ns()) < until_ns) {
		if (wakes && now_ns >= wake_ns) {
			remote_call_wake(&j->call, j->text);
			wake_ns = now_ns + (pause_ms *= 2) * NS_PER_MS;
		}
		poll(NULL, 0, LOOK_EVERY_MS);
	}
	return ret;
}

/* Asks until the main thread can be stopped. */
static int ask_call(struct joining *j, struct error *err)
{
	const uint64_t until_ns = clock_now_ns() + JOINING_TIMEOUT_MS * NS_PER_MS;
	int ret;

	while ((ret = remote_call_ask(&j->call, j->text, err)) < 0 && err->code == EAGAIN &&
	       clock_now_ns() < until_ns)
		poll(NULL, 0, LOOK_EVERY_MS);
	return ret;
}

static int ask(const struct preloading *p, struct joining *j, struct error *err)
{
	const char *seen = p->inside.seen;
	CLEANUP(free) char *path = xasprintf("%s/" SCRIPT, preloading_session(p, j->dir));
	CLEANUP(free)
	char *named = seen ? xasprintf("%.*s/" SCRIPT, (int)(strrchr(seen, '/') - seen), seen)
	                   : xstrdup(path);
	CLEANUP(free) char *source = make_script(p);

	if (j->calls) {
		j->text = make_text(source);
		return ask_call(j, err);
	}
	return write_script(source, path, err) < 0 ? -1 : remote_exec_ask(&j->exec, named, err);
}

static bool withdraw(struct joining *j)
{
	return j->calls ? remote_call_withdraw(&j->call, j->text) : remote_exec_withdraw(&j->exec);
}

/* From 3.14 on, the main thread may sleep. Returns as look(). */
static int wait_for_exec(const struct preloading *p, struct joining *j, struct error *err)
{
	struct error ignored;
	int ret = wait_for(p, j, EXEC_TIMEOUT_MS, false, err);

	if (ret || !withdraw(j))
		return ret ? ret : wait_for(p, j, BEGUN_TIMEOUT_MS, false, err);
	j->calls = remote_call_find(&j->call, j->target, p->library, &ignored) == 0;
	return ask(p, j, err);
}

/* Returns as look(). A script that has begun gets more time. */
static int wait_until_joined(const struct preloading *p, struct joining *j, struct error *err)
{
	int ret = j->calls ? 0 : wait_for_exec(p, j, err);

	if (!ret)
		ret = wait_for(p, j, JOINING_TIMEOUT_MS, j->calls, err);
	return ret || withdraw(j) ? ret : wait_for(p, j, BEGUN_TIMEOUT_MS, false, err);
}

static int join(const struct preloading *p, struct joining *j, struct error *err)
{
	int ret = ask(p, j, err) < 0 ? -1 : wait_until_joined(p, j, err);

	if (j->call.stops)
		log_info("the program's main thread was stopped for %.1f ms",
		         (double)j->call.stopped_ns / 1e6);
	if (ret > 0)
		return 0;
	return ret < 0 ? ret
	               : error_set(err, ETIMEDOUT,
	                           "process %d: its main thread, which would have to load the "
	                           "library, executed no Python for %d s",
	                           (int)j->target->pid, JOINING_TIMEOUT_MS / 1000);
}

/* What an earlier process of the program has answered. */
static void forget_answer(const struct preloading *p)
{
	CLEANUP(free) char *path = xasprintf("%s/refused", p->folder);

	__atomic_store_n(&p->control->joined_ns, 0, __ATOMIC_RELEASE);
	unlink(path);
}

/*
 * Load the library, which records from then on; alone: do not record children. Errors: ETIMEDOUT the main
 * thread executes no Python; others: the library cannot be loaded, and the program is unchanged.
 */
static int load(const struct preloading *p, const struct target *target, bool alone,
                struct error *err)
{
	/* The program executes the script with its own rights. The folder of --keep may be in one
	 * of another user, who could give its name to another folder. */
	struct temp_session own = SCRATCH_NONE;
	struct error ignored;
	struct joining j;
	int ret;

	if (find(&j, target, p->library, err) < 0 || temp_session_make(&own, err) < 0)
		return -1;
	forget_answer(p);
	p->control->gil = j.calls ? j.call.gil : j.exec.gil;
	p->control->alone = alone;
	j.dir = own.path;
	ret = join(p, &j, err);
	free(j.text);
	temp_session_remove(&own, &ignored);
	return ret;
}

/* ---- the engine */

static int check(struct job *job, struct error *err)
{
	CLEANUP(target_close) struct target *target = NULL;
	struct joining ignored;

	return target_open(&target, job->pid, err) < 0 || find(&ignored, target, NULL, err) < 0
	               ? -1
	               : job_find_library(job, err);
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
static void note_idle(const struct engine_process *process, const struct snapshot *before)
{
	struct snapshot now;
	struct error ignored;

	if (snapshot_take(&now, process->snapshots, &ignored) < 0)
		return;
	for (size_t i = 0; i < now.threads.n; i++) {
		const struct snapshot_thread *t = &now.threads.v[i];

		if (t->tid && t->tid != (uint32_t)process->pid && t->gil == GIL_NONE &&
		    has_thread(before, t->tid))
			preloading_note_idle(process->plan->preloading,
			                     procfs_own_number(process->pid, 0),
			                     procfs_own_number(process->pid, (pid_t)t->tid));
	}
	snapshot_done(&now);
}

static int join_process(const struct engine_process *process, struct error *err)
{
	struct snapshot before;
	struct error ignored;
	int ret;

	if (!process->target) {
		*err = *process->no_target;
		return -1;
	}
	if (snapshot_take(&before, process->snapshots, &ignored) < 0)
		before = (struct snapshot){ 0 };
	ret = load(process->plan->preloading, process->target, process->plan->no_children, err);
	if (ret == 0)
		note_idle(process, &before);
	snapshot_done(&before);
	return ret;
}

static int start(const struct engine_process *process, uint64_t *start_ns, struct error *err)
{
	const struct preloading *p = process->plan->preloading;

	preloading_note_time(p);
	if (join_process(process, err) < 0) {
		__atomic_store_n(&p->control->stopped, 1, __ATOMIC_RELAXED);
		err->code = ESTALE;
		return -1;
	}
	*start_ns = p->control->joined_ns;
	return 0;
}

/* A process that was forked since then has inherited the library. */
static int add(const struct engine_process *process, struct error *err)
{
	struct preloading ignored = { 0 };

	if (!procfs_is_beside(process->plan->pid, process->pid))
		return error_set(err, EACCES, "process %d is in another container than the program",
		                 (int)process->pid);
	if (preloading_works(process->plan->preloading, procfs_own_number(process->pid, 0)))
		return 0;
	if (process->target && preloading_check(&ignored, process->target->process.python, err) < 0)
		return -1;
	preloading_done(&ignored);
	return join_process(process, err);
}

static void describe(struct session_pass *pass)
{
	static char preload[] = RECORD_PRELOAD;

	pass->preload = preload;
}

const struct engine engine_join = {
	.name = "the library",
	.instead = "GIL events by a library that the program loads (--probes preload), because ",
	.failed = "",
	.no_states = NOTE_STATES_PRELOAD,
	.perf = ENGINE_WITHOUT_PERF,
	.gil = true,
	.knows_releases = true,
	.library = true,
	.check = check,
	.start = start,
	.add = add,
	.describe = describe,
};

/* ---- totals */

/* How long an observer leaves the program alone after it has joined it, and after that has failed. */
#define JOIN_AGAIN_NS (2 * NS_PER_SECOND)
#define FAILED_NS     (60 * NS_PER_SECOND)

/* Names of threads that exist, by the numbers that they have in their own namespace. */
struct told {
	VEC(struct totals_name) names;
};

/**
 * @number: of the process, in its own namespace
 * @told: the names that the library can read
 * @again_ns: when the program may be joined again
 */
struct observer {
	pid_t pid;
	uint32_t number;
	struct target *target;
	struct snapshots *snapshots;
	struct temp_session session;
	struct preloading preloading;
	struct told told;
	uint64_t again_ns;
};

static bool is_told(const struct told *told, const struct totals_name *name)
{
	for (size_t i = 0; i < told->names.n; i++)
		if (!memcmp(&told->names.v[i], name, sizeof(*name)))
			return true;
	return false;
}

/* The file is always another one, so nothing that the program puts in its place is written to. */
static bool put_names(const struct observer *o, const struct told *told)
{
	CLEANUP(free) char *path = xasprintf("%s/" TOTALS_NAMES, o->preloading.folder);
	CLEANUP(free) char *next = xasprintf("%s.next", path);
	const size_t size = told->names.n * sizeof(*told->names.v);
	CLEANUP(close) int fd = -1;

	unlink(next);
	fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, told->names.v, size) == (ssize_t)size &&
	       rename(next, path) == 0;
}

static void write_names(struct observer *o)
{
	struct told now = { 0 };
	struct snapshot s;
	struct error ignored;
	unsigned more = 0;

	if (snapshot_take(&s, o->snapshots, &ignored) < 0)
		return;
	for (size_t i = 0; i < s.threads.n; i++) {
		const struct snapshot_thread *t = &s.threads.v[i];
		struct totals_name name = { 0 };

		if (!t->tid || !t->named)
			continue;
		name.tid = procfs_own_number(o->pid, (pid_t)t->tid);
		snprintf(name.name, sizeof(name.name), "%.*s", TOTALS_NAME - 1, t->name);
		more += !is_told(&o->told, &name);
		*vec_push(&now.names) = name;
	}
	snapshot_done(&s);
	if (more && !put_names(o, &now)) {
		vec_done(&now.names);
		return;
	}
	vec_done(&o->told.names);
	o->told = now;
	if (more)
		__atomic_add_fetch(&o->preloading.control->names, more, __ATOMIC_RELEASE);
}

/* Whether the program is being recorded: by a process that has locked the control file. */
static bool is_recorded(pid_t pid)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);
	struct procfs_mapping m;
	char *rest = maps;

	while (procfs_next_mapping(&m, &rest)) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		CLEANUP(free) char *path = NULL;
		CLEANUP(close) int fd = -1;

		if (*m.path != '/' || !str_has_suffix(m.path, "/" PRELOAD_CONTROL))
			continue;
		path = xasprintf("/proc/%d/root%s", (int)pid, m.path);
		fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
			return true;
	}
	return false;
}

static bool has_page(pid_t pid)
{
	CLEANUP(totals_close) struct totals *page = NULL;
	CLEANUP(free) char *path = totals_path(pid);
	struct error ignored;

	return path && totals_open(&page, path, &ignored) == 0 && !totals_is_over(page);
}

/* Another observer may have been faster. */
static int observe(struct observer *o, struct error *err)
{
	uint32_t *stopped = &o->preloading.control->stopped;

	if (has_page(o->pid))
		return 0;
	o->again_ns = clock_now_ns() + JOIN_AGAIN_NS;
	write_names(o);
	__atomic_store_n(stopped, 0, __ATOMIC_RELAXED);
	if (load(&o->preloading, o->target, true, err) == 0 || has_page(o->pid))
		return 0;
	__atomic_store_n(stopped, 1, __ATOMIC_RELAXED);
	o->again_ns = clock_now_ns() + FAILED_NS;
	return -1;
}

static int prepare(struct observer *o, struct error *err)
{
	struct preloading_plan plan = { .name = RECORD_PRELOAD, .pid = o->pid, .totals = true };
	const struct python *python;
	uint64_t stamp, ns;

	ticks_look(&stamp, &ns);
	if (target_open(&o->target, o->pid, err) < 0)
		return -1;
	python = o->target->process.python;
	if (preloading_check_gil(&o->preloading, python, err) < 0 ||
	    temp_session_make(&o->session, err) < 0)
		return -1;
	o->snapshots = snapshots_new(o->target);
	o->number = procfs_own_number(o->pid, 0);
	plan.dir = o->session.path;
	return preloading_prepare(&o->preloading, &plan, err) < 0
	               ? -1
	               : preloading_write_rate(o->preloading.folder, stamp, ns, err);
}

int observer_open(struct observer **ret, pid_t pid, struct error *err)
{
	CLEANUP(observer_close) struct observer *o = xcalloc(1, sizeof(*o));

	o->pid = pid;
	o->session = (struct temp_session)SCRATCH_NONE;
	if (prepare(o, err) < 0 || observe(o, err) < 0)
		return -1;
	*ret = take(o);
	return 0;
}

void observer_look(struct observer *o)
{
	struct error err;

	write_names(o);
	if (clock_now_ns() < o->again_ns || has_page(o->pid) || is_recorded(o->pid))
		return;
	if (observe(o, &err) < 0)
		log_debug("%s", err.text);
}

const char *observer_folder(const struct observer *o)
{
	return o->preloading.folder;
}

uint32_t observer_number(const struct observer *o)
{
	return o->number;
}

void observer_close(struct observer *o)
{
	struct error ignored;

	if (!o)
		return;
	if (o->preloading.control)
		__atomic_store_n(&o->preloading.control->stopped, 1, __ATOMIC_RELAXED);
	preloading_done(&o->preloading);
	if (o->session.path)
		temp_session_remove(&o->session, &ignored);
	snapshots_free(o->snapshots);
	target_close(o->target);
	vec_done(&o->told.names);
	free(o);
}
