/* SPDX-License-Identifier: MIT */
/* The process: its folder and unique name for files, and its log. */
#include "preload/count.h"
#include "preload/internal.h"
#include "preload/locks.h"
#include "preload/nogil.h"
#include "preload/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Ticks between two readings of both clocks: about a second on any processor. */
#define PAIR_EVERY 2000000000

/* Readings that a flight recorder keeps: those of more than half an hour. */
#define PAIRS_MAX 4096

static const uint32_t records_gil = PRELOAD_USE_RECORD;

struct process process = { .use = &records_gil };

pid_t process_gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

char *process_put_number(char *ret, uint64_t value)
{
	char digits[24];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*ret++ = digits[--n];
	return ret;
}

char *process_put_file(char *ret, uint64_t pid, uint64_t stamp)
{
	*ret++ = '/';
	ret = process_put_number(ret, pid);
	*ret++ = '.';
	return process_put_number(ret, stamp);
}

void process_file(char *ret, const char *suffix)
{
	memcpy(ret, process.path, process.path_len);
	memcpy(ret + process.path_len, suffix, strlen(suffix) + 1);
}

/* ---- the folder */

/* Its number, unless the program's limit is lower: above those that programs close without looking,
 * and next to the channel's (record/execution.c). */
#define FOLDER_FD 5001

/* A program that is about to lose the right to open the folder by its path keeps it open. It may
 * close it later, and use the number for another file. No other program has a descriptor of ours:
 * it may close or count them. */
static struct {
	size_t path_len;
	_Atomic int fd; /* 0: none */
	dev_t device;
	ino_t inode;
} folder;

static bool is_folder(long fd)
{
	struct stat st;

	return fd > 0 && syscall(SYS_fstat, fd, &st) == 0 && st.st_dev == folder.device &&
	       st.st_ino == folder.inode;
}

static long folder_number(void)
{
	struct rlimit limit;

	if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) == 0 &&
	    limit.rlim_cur <= FOLDER_FD)
		return limit.rlim_cur > 3 ? (long)limit.rlim_cur - 2 : 0;
	return FOLDER_FD;
}

void process_keep(void)
{
	char path[sizeof(process.path)];
	int saved = errno;
	struct stat st;
	long fd, high;

	/* A child of vfork shares the memory of its parent, but not the descriptors. */
	if (!process.on || (pid_t)syscall(SYS_getpid) != process.pid || is_folder(folder.fd))
		return;
	memcpy(path, process.path, folder.path_len);
	path[folder.path_len] = '\0';
	fd = syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, folder_number());
		syscall(SYS_close, fd);
		if (high >= 0 && syscall(SYS_fstat, high, &st) == 0) {
			folder.device = st.st_dev;
			folder.inode = st.st_ino;
			folder.fd = (int)high;
		}
	}
	errno = saved;
}

void process_close(void)
{
	if (is_folder(folder.fd))
		syscall(SYS_close, folder.fd);
	folder.fd = 0;
}

/* Not a file that another user of the folder has put there. */
static long open_in(long dir, const char *name, int flags)
{
	long fd = syscall(SYS_openat, dir, name, (flags & ~O_CREAT) | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0 || errno != ENOENT || !(flags & O_CREAT) || (dir >= 0 && !is_folder(dir)))
		return fd;
	fd = syscall(SYS_openat, dir, name, flags | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == EEXIST)
		return syscall(SYS_openat, dir, name, (flags & ~O_CREAT) | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && process.control && process.control->shared)
		syscall(SYS_fchmod, fd, 0666);
	return fd;
}

static enum preload_why why_not(void)
{
	if (errno == EMFILE || errno == ENFILE)
		return PRELOAD_WHY_FILES;
	if (errno == ENOSPC || errno == EDQUOT)
		return PRELOAD_WHY_ROOM;
	return PRELOAD_WHY_REACH;
}

static void note_why(enum preload_why why)
{
	if (process.control)
		__atomic_or_fetch(&process.control->unwritten_why, 1u << why, __ATOMIC_RELAXED);
}

bool process_before_filter(void)
{
	bool was_on = process.on;

	process.on = false;
	if (process.joined)
		count_stop();
	return was_on;
}

void process_filtered(bool was_on, bool failed)
{
	process.sealed |= process.joined && !failed;
	if (failed || !was_on) {
		process.on = was_on;
		return;
	}
	process.sealed = true;
	calls_end();
	process_unwritten(clock_stamp());
	note_why(PRELOAD_WHY_FILTER);
}

long process_open(const char *path, int flags)
{
	const char *name = path + folder.path_len + 1;
	long fd = folder.fd ? open_in(folder.fd, name, flags) : -1;

	if (fd < 0)
		fd = open_in(AT_FDCWD, path, flags);
	if (fd < 0 && flags & O_CREAT)
		note_why(why_not());
	return fd;
}

/* ---- the log */

static bool write_entry(const char *suffix, const struct preload_entry *entry, const void *text,
                        size_t len, const void *more, size_t more_len)
{
	static const char zeros[8];
	size_t padded = (len + more_len + 7) & ~(size_t)7;
	struct preload_entry head = *entry;
	struct iovec parts[] = {
		{ &head, sizeof(head) },
		{ (void *)(uintptr_t)text, len },
		{ (void *)(uintptr_t)more, more_len },
		{ (void *)(uintptr_t)zeros, padded - len - more_len },
	};
	char path[sizeof(process.path)];
	int saved = errno;
	long fd, end, written = -1;

	if (!process.on || sizeof(head) + padded > PRELOAD_ENTRY_MAX)
		return false;
	head.size = (uint32_t)(sizeof(head) + padded);
	if (!head.stamp)
		head.stamp = clock_stamp();
	process_file(path, suffix);
	fd = process_open(path, O_WRONLY | O_APPEND | O_CREAT);
	if (fd >= 0) {
		end = syscall(SYS_lseek, fd, 0, SEEK_END);
		if (end >= 0 && process_may_extend((uint64_t)end + head.size))
			written = syscall(SYS_writev, fd, parts, 4);
		if (written < 0)
			note_why(PRELOAD_WHY_ROOM);
		syscall(SYS_close, fd);
	}
	errno = saved;
	return written == (long)head.size;
}

bool process_log2(const struct preload_entry *entry, const void *text, size_t len, const void *more,
                  size_t more_len)
{
	if (entry->type == PRELOAD_CALLED || entry->type == PRELOAD_TASK_NAME)
		process.keeps_log = true;
	return write_entry(PRELOAD_LOG_SUFFIX, entry, text, len, more, more_len);
}

bool process_log(const struct preload_entry *entry, const void *text, size_t len)
{
	return process_log2(entry, text, len, NULL, 0);
}

static void overwrite_pair(struct preload_entry *pair, unsigned number)
{
	const off_t at = (off_t)(number % PAIRS_MAX * sizeof(*pair));
	char path[sizeof(process.path)];
	int saved = errno;
	long fd;

	pair->size = sizeof(*pair);
	process_file(path, PRELOAD_PAIRS_SUFFIX);
	fd = process_open(path, O_WRONLY | O_CREAT);
	if (fd >= 0 && process_may_extend((uint64_t)at + sizeof(*pair)))
		syscall(SYS_pwrite64, fd, pair, sizeof(*pair), at);
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved;
}

void process_pair(void)
{
	struct preload_entry best = { .type = PRELOAD_PAIR };
	uint64_t due = process.next_pair;
	unsigned number;

	/* One thread at a time. */
	if (!atomic_compare_exchange_strong(&process.next_pair, &due, UINT64_MAX))
		return;
	clock_look(&best.stamp, &best.value);
	number = process.pairs++;
	if (process_kept() && number)
		overwrite_pair(&best, number - 1);
	else
		process_log(&best, NULL, 0);
	process.next_pair = best.stamp + PAIR_EVERY;
}

/* Noted in memory, since what cannot be written cannot be logged either. */
void process_unwritten(uint64_t stamp)
{
	uint64_t none = 0;

	if (process.control)
		__atomic_compare_exchange_n(&process.control->unwritten_stamp, &none, stamp, false,
		                            __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool process_may_extend(uint64_t size)
{
	struct rlimit limit;

	return syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) < 0 || size <= limit.rlim_cur;
}

bool process_reserve(long fd, uint64_t at, size_t bytes)
{
	if (process_may_extend(at + bytes) &&
	    syscall(SYS_fallocate, fd, 0, (off_t)at, (off_t)bytes) == 0)
		return true;
	note_why(PRELOAD_WHY_ROOM);
	return false;
}

bool process_may_use(size_t bytes, uint64_t stamp)
{
	struct preload_control *control = process.control;
	uint64_t none = 0;

	if (!control)
		return true;
	if (!control->full_stamp &&
	    (__atomic_add_fetch(&control->used, bytes, __ATOMIC_RELAXED) <= control->limit ||
	     control->kept_stamps))
		return true;
	if (__atomic_compare_exchange_n(&control->full_stamp, &none, stamp, false, __ATOMIC_RELAXED,
	                                __ATOMIC_RELAXED))
		__atomic_store_n(&control->full_ns, clock_ns(), __ATOMIC_RELEASE);
	return false;
}

/* A child of vfork shares the memory of its parent, which goes on. */
__attribute__((destructor)) void process_ended(void)
{
	if (!process.on || (pid_t)syscall(SYS_getpid) != process.pid)
		return;
	locks_end_spin(&self);
	process_log(&(struct preload_entry){ .type = PRELOAD_ENDED }, NULL, 0);
}

long process_open_shared(const char *name, int flags)
{
	char path[sizeof(process.path)];

	memcpy(path, process.path, folder.path_len);
	path[folder.path_len] = '/';
	memcpy(path + folder.path_len + 1, name, strlen(name) + 1);
	return process_open(path, flags);
}

void process_append(const char *name, const void *text, size_t len)
{
	int saved = errno;
	long fd = process_open_shared(name, O_WRONLY | O_APPEND | O_CREAT), end;

	if (fd >= 0) {
		end = syscall(SYS_lseek, fd, 0, SEEK_END);
		if (end >= 0 && process_may_extend((uint64_t)end + len))
			syscall(SYS_write, fd, text, len);
		syscall(SYS_close, fd);
	}
	errno = saved;
}

static void map_control(void)
{
	long fd = process_open_shared(PRELOAD_CONTROL, O_RDWR);
	void *map;

	if (fd < 0)
		return;
	/* Another thread may still read the previous mapping, so it is replaced at the same
	 * address. */
	map = mmap(process.control, sizeof(*process.control), PROT_READ | PROT_WRITE,
	           MAP_SHARED | (process.control ? MAP_FIXED : 0), (int)fd, 0);
	syscall(SYS_close, fd);
	if (map == MAP_FAILED)
		return;
	process.control = map;
	process.watches = false;
	for (unsigned i = 0; i < PRELOAD_MOMENTS; i++)
		process.watches |= process.control->longest[i] != 0;
	process.use = &process.control->use;
	process.mutexes = process.control->mutexes;
}

static bool log_process(const char *suffix)
{
	char exe[1024];
	long len = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof(exe));

	const struct preload_entry entry = {
		.type = PRELOAD_PROCESS,
		.stamp = process.stamp,
		.number = process.parents,
		.value = clock_is_tsc ? PRELOAD_CLOCK_TSC : PRELOAD_CLOCK_MONOTONIC,
	};

	return write_entry(suffix, &entry, exe, len > 0 ? (size_t)len : 0, NULL, 0);
}

static bool log_forked(const char *suffix)
{
	const struct preload_entry entry = { .type = PRELOAD_FORKED,
		                             .stamp = process.stamp,
		                             .value = process.forked_by };

	return !process.forked || write_entry(suffix, &entry, NULL, 0, NULL, 0);
}

static bool rename_file(const char *from, const char *to, unsigned flags)
{
	size_t skip = folder.fd ? folder.path_len + 1 : 0;
	long dir = folder.fd ? folder.fd : AT_FDCWD;
	char from_path[sizeof(process.path)], to_path[sizeof(process.path)];

	process_file(from_path, from);
	process_file(to_path, to);
	return syscall(SYS_renameat2, dir, from_path + skip, dir, to_path + skip, flags) == 0;
}

/* Other threads append to the log meanwhile: it exists at any time, and begins with the process. */
bool process_renew_log(void)
{
	int saved = errno;
	bool done;

	if (process.keeps_log)
		return false;
	done = log_process(PRELOAD_NEW_SUFFIX) && log_forked(PRELOAD_NEW_SUFFIX) &&
	       rename_file(PRELOAD_NEW_SUFFIX, PRELOAD_LOG_SUFFIX, RENAME_EXCHANGE);
	if (done)
		rename_file(PRELOAD_NEW_SUFFIX, PRELOAD_OLD_SUFFIX, 0);
	errno = saved;
	return done;
}

/* The path is DIR/PID.STAMP. */
static void begin(void)
{
	char *at = process.path + folder.path_len;

	process.pid = (pid_t)syscall(SYS_getpid);
	process.stamp = clock_stamp();
	process.pairs = 0;
	at = process_put_file(at, (uint64_t)process.pid, process.stamp);
	process.path_len = (size_t)(at - process.path);
	process.parents = (uint64_t)syscall(SYS_getppid) << 32 | (uint32_t)process.pid;
	process.forked = process.keeps_log = false;
	process.on = true;
	if (!log_process(PRELOAD_LOG_SUFFIX))
		process_unwritten(process.stamp);
	process_pair();
}

bool process_begin_in(const char *dir)
{
	if (*dir != '/' || strlen(dir) > PRELOAD_DIR_MAX)
		return false;
	if (!process.has_key && pthread_key_create(&process.key, stream_thread_ended) != 0)
		return false;
	process.has_key = true;
	process_close();
	folder.path_len = strlen(dir);
	memcpy(process.path, dir, folder.path_len);
	clock_begin();
	map_control();
	if (process.control && process.control->totals)
		return count_begin_in(dir);
	begin();
	return true;
}

void process_begin(void)
{
	const char *dir;

	if (process.on)
		return;
	dir = calls_folder();
	if (!dir)
		dir = secure_getenv(PRELOAD_ENV);
	if (dir)
		process_begin_in(dir);
}

static void in_child(void)
{
	struct self parent;

	gils_in_child();
	locks_in_child();
	count_in_child();
	parent = self;
	if (!process.on) {
		if (!process.sealed)
			join_in_child();
		return;
	}
	stream_in_child();
	frames_again();
	nogil_again();
	calls_in_child();
	/* The thread may hold a GIL, and write no record before its release, so its tid is set
	 * here. */
	self = (struct self){ .tid = process_gettid(),
		              .slot = parent.slot,
		              .slot_gil = parent.slot_gil,
		              .slot_number = parent.slot_number,
		              .group = parent.group,
		              .was_counted = true,
		              .recording = process.recording };
	if (!join_in_child())
		return;
	begin();
	process.forked = true;
	process.forked_by = (uint64_t)parent.tid;
	log_forked(PRELOAD_LOG_SUFFIX);
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, in_child);
}
