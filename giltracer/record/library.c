/* SPDX-License-Identifier: MIT */
#include "record/library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/datadir.h"
#include "base/file.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/str.h"
#include "binary/dynamic.h"
#include "live/remote.h"
#include "python/target.h"
#include "python/probedef.h"
#include "python/python.h"
#include "preload/format.h"
#include "preload/totals.h"
#include "record/execution.h"
#include "session/temp_session.h"

/* ---- the clock of the library's stamps, read outside the program */

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

uint64_t ticks_now(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return clock_now_ns();
#endif
}

void ticks_look(uint64_t *stamp, uint64_t *ns)
{
	uint64_t narrowest = UINT64_MAX;

	/* This process may be preempted between the readings: use the pair that was read in the
	 * shortest time. */
	for (int i = 0; i < 10; i++) {
		uint64_t before = ticks_now(), now = clock_now_ns(), after = ticks_now();

		if (after - before >= narrowest)
			continue;
		narrowest = after - before;
		*stamp = before + narrowest / 2;
		*ns = now;
	}
}

#define MEASURE_MS 5

uint64_t ticks_of(uint64_t ns)
{
	uint64_t from, from_ns, to, to_ns;

	if (!ns)
		return 0;
	ticks_look(&from, &from_ns);
	poll(NULL, 0, MEASURE_MS);
	ticks_look(&to, &to_ns);
	return (uint64_t)((double)ns * (double)(to - from) / (double)(to_ns - from_ns));
}

/* The least time between the two readings of the clocks: the rate is then right to some
 * millionths. */
#define APART_NS (20 * NS_PER_MS)

int preloading_write_rate(const char *folder, uint64_t from, uint64_t from_ns, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" TOTALS_RATE, folder);
	CLEANUP(close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint64_t stamp, ns, mult;

	ticks_look(&stamp, &ns);
	if (ns - from_ns < APART_NS) {
		poll(NULL, 0, (int)((APART_NS - (ns - from_ns)) / NS_PER_MS) + 1);
		ticks_look(&stamp, &ns);
	}
	mult = (uint64_t)(((unsigned __int128)(ns - from_ns) << 32) / (stamp - from));
	if (fd < 0 || write(fd, &mult, sizeof(mult)) != (ssize_t)sizeof(mult))
		return error_errno(err, "%s", path);
	return 0;
}

/* ---- the library in a program that we start */

#define LIBRARY "giltracer/preload/" PRELOAD_LIBRARY

/* The library cannot be preloaded into every program. */
static int check_image(const char *path, bool is_program, struct error *err)
{
	struct dynamic dynamic;

	if (dynamic_read(&dynamic, path, err) < 0)
		return -1;
	if (!dynamic.ours)
		return error_set(err, ENOTSUP, "%s is for another architecture than giltracer",
		                 path);
	if (is_program && !*dynamic.interpreter)
		return error_set(err, ENOTSUP,
		                 "%s is linked statically: no library can be preloaded", path);
	if (strstr(dynamic.interpreter, "/ld-musl"))
		return error_set(err, ENOTSUP,
		                 "%s is linked with musl, but the library to preload needs glibc",
		                 path);
	if (dynamic.sanitized)
		return error_set(
			err, ENOTSUP,
			"%s is built with AddressSanitizer, which must be the first library", path);
	return 0;
}

int preloading_check(struct preloading *ret, const struct python *python, struct error *err)
{
	CLEANUP(free) char *library = NULL;

	/* See preload/nogil.c: without its layout the library would record nothing. */
	if (python->free_threaded && !python_is_known_free_threaded(python))
		return error_set(err, ENOTSUP,
		                 "%s is a free-threaded build: the library knows that of 3.13 only",
		                 python->command);
	/* Unless it contains the GIL, the image may be the dynamic linker, which is static. */
	if (check_image(python->image, !strcmp(python->image, python->library), err) < 0 ||
	    check_image(python->library, false, err) < 0 ||
	    datadir_find_library(&library, LIBRARY, err) < 0)
		return -1;
	/* The dynamic linker treats both characters as the end of a name. */
	if (strpbrk(library, " :"))
		return error_set(err, EINVAL,
		                 "%s: a library in a folder with a space or a colon in its name "
		                 "cannot be preloaded",
		                 library);
	ret->library = take(library);
	return 0;
}

int preloading_check_gil(struct preloading *ret, const struct python *python, struct error *err)
{
	if (python->free_threaded)
		return error_set(
			err, ENOTSUP,
			"%s is a free-threaded build: the library records only what blocks "
			"its threads",
			python->command);
	return preloading_check(ret, python, err);
}

/* ---- a program in another container */

/* A link where programs may write would lead to our files. Returns 0 if there is no such folder, or a link. */
static int open_beneath(int in, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
	int fd = (int)syscall(SYS_openat2, in, name, &how, sizeof(how));

	return fd < 0 ? 0 : fd;
}

static char *name_of(int fd)
{
	return xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);
}

static void make_inside_in(struct inside *ret, const char *name, bool executes)
{
	int base = open_beneath(ret->root, name);
	CLEANUP(free) char *path = name_of(base);
	struct temp_session folder = SCRATCH_NONE;
	struct statvfs fs;
	struct error ignored;

	if (!base)
		return;
	if (fstatvfs(base, &fs) < 0 || (executes && fs.f_flag & ST_NOEXEC) ||
	    temp_session_make_in(&folder, path, &ignored) < 0) {
		close(base);
		return;
	}
	ret->folder = folder;
	ret->base = base;
	ret->own = open_beneath(base, strrchr(folder.path, '/') + 1);
	ret->session = ret->own ? name_of(ret->own) : NULL;
	ret->seen = xasprintf("/%s%s/" RECORD_PRELOAD, name, strrchr(folder.path, '/'));
	ret->memory = !executes;
}

static int copy_library(const char *library, const char *path, struct error *err)
{
	CLEANUP(close) int from = open(library, O_RDONLY | O_CLOEXEC);
	CLEANUP(close) int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n = -1;

	while (from >= 0 && to >= 0 && (n = sendfile(to, from, NULL, 1 << 20)) > 0)
		continue;
	return n < 0 ? error_errno(err, "%s", from < 0 ? library : path) : 0;
}

static int make_inside(struct preloading *p, pid_t pid, struct error *err)
{
	static const char *const bases[] = { "tmp", "var/tmp", "dev/shm" };
	const size_t count = sizeof(bases) / sizeof(*bases);
	CLEANUP(free) char *root = procfs_path(pid, 0, "root");
	CLEANUP(free) char *copy = NULL;
	struct inside *inside = &p->inside;

	inside->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (inside->root < 0) {
		inside->root = 0;
		return error_errno(err, "process %d: its files", (int)pid);
	}
	for (size_t i = 0; i < 2 * count && !inside->base; i++)
		make_inside_in(inside, bases[i % count], i < count);
	if (!inside->own)
		return error_set(err, ESTALE,
		                 "process %d is in another container, in which neither /tmp, "
		                 "/var/tmp nor /dev/shm can be written",
		                 (int)pid);
	inside->library = remote_library(pid, p->library);
	if (inside->library)
		return 0;
	inside->library = xasprintf("%.*s" PRELOAD_LIBRARY,
	                            (int)(strlen(inside->seen) - strlen(RECORD_PRELOAD)),
	                            inside->seen);
	copy = xasprintf("%s/" PRELOAD_LIBRARY, inside->session);
	return copy_library(p->library, copy, err);
}

static void drop_inside(struct inside *inside)
{
	struct error ignored;

	if (inside->folder.path)
		temp_session_remove(&inside->folder, &ignored);
	if (inside->preload)
		close(inside->preload);
	if (inside->own)
		close(inside->own);
	if (inside->base)
		close(inside->base);
	if (inside->root)
		close(inside->root);
	free(inside->session);
	free(inside->library);
	free(inside->seen);
}

const char *preloading_session(const struct preloading *p, const char *dir)
{
	return p->inside.session ? p->inside.session : dir;
}

/* A program of root may become another user, who writes to the folder with the descriptor that the
 * library has opened before. Nobody else can reach it: only root can search the session's. */
static int map_control(struct preloading *p, const struct preloading_plan *plan, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" PRELOAD_CONTROL, p->folder);
	CLEANUP(close) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct preload_control control = {
		.magic = PRELOAD_MAGIC,
		.limit = plan->max_mib ? (uint64_t)plan->max_mib << 20 : UINT64_MAX,
		.frames = plan->frames,
		.use = plan->use,
		.kept_stamps = ticks_of(plan->kept_ns),
		.turn_ns = plan->turn_ns,
		.calls = plan->calls,
		.c_calls = plan->c_calls,
		.mutexes = plan->mutexes,
		.totals = plan->totals,
		.entries = plan->entries,
		.shortest_ns = (uint64_t)plan->shortest_us * 1000,
		.shared = geteuid() == 0,
	};
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	void *map;

	for (unsigned i = 0; plan->longest_ns && i < PRELOAD_MOMENTS; i++)
		control.longest[i] = ticks_of(plan->longest_ns[i]);
	if (plan->modules && strlen(plan->modules) >= sizeof(control.modules))
		return error_set(err, EINVAL, "--trace-only: more than %d characters",
		                 PRELOAD_MODULES_MAX - 1);
	if (plan->modules)
		memcpy(control.modules, plan->modules, strlen(plan->modules) + 1);
	if (fd < 0 || write(fd, &control, sizeof(control)) != (ssize_t)sizeof(control))
		return error_errno(err, "%s", path);
	map = mmap(NULL, sizeof(control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return error_errno(err, "%s", path);
	p->control = map;
	if (control.shared && (fchmod(fd, 0666) < 0 || chmod(p->folder, 01777) < 0))
		return error_errno(err, "%s", p->folder);
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
		return error_errno(err, "%s", path);
	p->lock = take_fd(&fd);
	return 0;
}

char *preloading_variable(const char *library)
{
	const char *others = getenv("LD_PRELOAD");

	return others && *others ? xasprintf("LD_PRELOAD=%s:%s", library, others)
	                         : xasprintf("LD_PRELOAD=%s", library);
}

/* ---- files that the library reads from its folder */

int preloading_write_offsets(const char *to, struct error *err)
{
	CLEANUP(free) char *folder = NULL;
	CLEANUP(free) char *path = xasprintf("%s/" PRELOAD_OFFSETS, to);
	CLEANUP(closedir) DIR *dir = NULL;
	CLEANUP(fclose) FILE *out = fopen(path, "wxe"); /* x: no link is followed */
	struct dirent *entry;

	if (!out)
		return error_errno(err, "%s", path);
	if (datadir_find(&folder, "probes", err) < 0 || !(dir = opendir(folder)))
		return 0;
	while ((entry = readdir(dir))) {
		CLEANUP(free) char *file = xasprintf("%s/%s", folder, entry->d_name);
		CLEANUP(probedef_free) struct probedef *def = NULL;

		if (!str_has_suffix(entry->d_name, ".yaml") || probedef_load(&def, file, err) < 0 ||
		    !def->has_frame)
			continue;
		fwrite(&def->layout, sizeof(def->layout), 1, out);
	}
	return fflush(out) || ferror(out) ? error_errno(err, "%s", path) : 0;
}

static int append(const struct preloading *p, const struct preload_entry *entry, const char *text,
                  struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" PRELOAD_LAUNCHER, p->folder);
	CLEANUP(close) int fd = file_open_append(path, err);
	size_t len = entry->size - sizeof(*entry);

	if (fd < 0)
		return -1;
	errno = ENOSPC; /* for a short write */
	if (write(fd, entry, sizeof(*entry)) != (ssize_t)sizeof(*entry) ||
	    (len && write(fd, text, len) != (ssize_t)len))
		return error_errno(err, "%s", path);
	return 0;
}

static int write_own(const struct preloading *p, const char *bootstrap, struct error *err)
{
	struct preload_entry entry = { .type = PRELOAD_OWN };
	size_t len = (size_t)(strrchr(bootstrap, '/') - bootstrap), padded = (len + 8) & ~(size_t)7;
	CLEANUP(free) char *text = xcalloc(padded, 1);

	memcpy(text, bootstrap, len);
	entry.size = (uint32_t)(sizeof(entry) + padded);
	return append(p, &entry, text, err);
}

/* Frees everything but the path of the library. */
static void drop_run(struct preloading *p)
{
	if (p->control)
		munmap(p->control, sizeof(*p->control));
	if (p->lock)
		close(p->lock);
	free(p->folder);
	free(p->env[0]);
	free(p->env[1]);
	drop_inside(&p->inside);
	*p = (struct preloading){ .library = p->library };
}

int preloading_prepare(struct preloading *p, const struct preloading_plan *plan, struct error *err)
{
	drop_run(p);
	if (plan->pid && procfs_is_elsewhere(plan->pid) && make_inside(p, plan->pid, err) < 0)
		return -1;
	p->folder = xasprintf("%s/%s", preloading_session(p, plan->dir), plan->name);
	if (strlen(p->folder) > PRELOAD_DIR_MAX)
		return error_set(err, ENAMETOOLONG, "%s: its name is too long", plan->dir);
	if (mkdir(p->folder, 0700) < 0)
		return error_errno(err, "%s", p->folder);
	if (p->inside.own) {
		p->inside.preload = open_beneath(p->inside.own, plan->name);
		if (!p->inside.preload)
			return error_errno(err, "%s", p->folder);
		free(p->folder);
		p->folder = name_of(p->inside.preload);
	}
	p->env[0] = preloading_variable(p->library);
	p->env[1] = xasprintf("%s=%s",
	                      plan->use == PRELOAD_USE_HELD ? PRELOAD_CALLS_ENV : PRELOAD_ENV,
	                      p->folder);
	if (plan->bootstrap && write_own(p, plan->bootstrap, err) < 0)
		return -1;
	if (preloading_write_offsets(p->folder, err) < 0)
		return -1;
	return map_control(p, plan, err);
}

/* A program that ends before it has compared its clocks twice does not write their rate; these
 * pairs give it. */
void preloading_note_time(const struct preloading *p)
{
	struct preload_entry best = { .size = sizeof(best), .type = PRELOAD_PAIR };
	struct error err;

	if (!p->folder)
		return;
	ticks_look(&best.stamp, &best.value);
	if (append(p, &best, NULL, &err) < 0)
		log_debug("%s", err.text);
}

void preloading_note_idle(const struct preloading *p, uint32_t pid, uint32_t tid)
{
	struct preload_entry entry = {
		.size = sizeof(entry), .type = PRELOAD_IDLE, .number = tid, .value = pid
	};
	struct error err;

	if (append(p, &entry, NULL, &err) < 0)
		log_debug("%s", err.text);
}

uint64_t preloading_full_ns(const struct preloading *p)
{
	return p->control ? __atomic_load_n(&p->control->full_ns, __ATOMIC_ACQUIRE) : 0;
}

void preloading_names(const struct preloading *p, struct thread_names *named)
{
	CLEANUP(free) char *path = xasprintf("%s/" PRELOAD_NAMES, p->folder);

	thread_names_read(named, path);
}

unsigned preloading_unwritten(const struct preloading *p)
{
	return p->control ? __atomic_load_n(&p->control->unwritten_why, __ATOMIC_RELAXED) : 0;
}

bool preloading_finds_slow(const struct preloading *p)
{
	return __atomic_exchange_n(&p->control->slow, 0, __ATOMIC_RELAXED);
}

uint64_t preloading_turn_ns(const struct preloading *p)
{
	return p->control->is_measured ? p->control->turn_ns : 0;
}

void preloading_take_over(const struct preloading *p)
{
	__atomic_store_n(&p->control->use, PRELOAD_USE_RECORD, __ATOMIC_RELEASE);
}

/* False for a zombie, which has no image any more. */
bool preloading_is_alive(const struct preloading *p, unsigned long pid)
{
	CLEANUP(free)
	char *path = p->inside.root
	                     ? xasprintf("/proc/self/fd/%d/proc/%lu/exe", p->inside.root, pid)
	                     : procfs_path((pid_t)pid, 0, "exe");
	char exe;

	return readlink(path, &exe, 1) >= 0 || errno == EACCES;
}

/* The logs are named PID.STAMP.log. */
static int write_alive(const struct preloading *p, struct error *err)
{
	CLEANUP(closedir) DIR *dir = opendir(p->folder);
	struct preload_entry entry = { .size = sizeof(entry), .type = PRELOAD_ALIVE };
	struct dirent *file;

	while (dir && (file = readdir(dir))) {
		if (!str_has_suffix(file->d_name, PRELOAD_LOG_SUFFIX))
			continue;
		entry.number = strtoul(file->d_name, NULL, 10);
		if (entry.number && preloading_is_alive(p, entry.number) &&
		    append(p, &entry, NULL, err) < 0)
			return -1;
	}
	return 0;
}

static int write_unwritten(const struct preloading *p, struct error *err)
{
	struct preload_entry entry = { .size = sizeof(entry), .type = PRELOAD_UNWRITTEN };

	entry.stamp = __atomic_load_n(&p->control->unwritten_stamp, __ATOMIC_RELAXED);
	return entry.stamp ? append(p, &entry, NULL, err) : 0;
}

void preloading_stop(const struct preloading *p)
{
	struct preload_entry entry = { .size = sizeof(entry), .type = PRELOAD_STOP };
	struct error err;

	entry.stamp = preloading_full_ns(p) ? p->control->full_stamp : ticks_now();
	if (write_alive(p, &err) < 0 || write_unwritten(p, &err) < 0 ||
	    append(p, &entry, NULL, &err) < 0)
		log_warn("%s: the recording lacks its end, and the processes that were still alive",
		         err.text);
	__atomic_store_n(&p->control->limit, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->control->stopped, 1, __ATOMIC_RELAXED);
}

bool preloading_works(const struct preloading *p, uint32_t pid)
{
	CLEANUP(closedir) DIR *dir = opendir(p->folder);
	CLEANUP(free) char *prefix = xasprintf("%u.", pid);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (str_has_prefix(entry->d_name, prefix))
			return true;
	return false;
}

void preloading_done(struct preloading *p)
{
	drop_run(p);
	free(p->library);
	*p = (struct preloading){ 0 };
}
