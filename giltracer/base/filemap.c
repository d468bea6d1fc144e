/* SPDX-License-Identifier: MIT */
/* Mapped files, and SIGBUS. */
#include "base/filemap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

/**
 * A mapping, for the signal handler.
 * @protection: as for mmap
 * @cut: its file became shorter, or could not be read
 * @foreign: a library's
 */
struct filemap_guard {
	const uint8_t *data;
	size_t size;
	int protection;
	char *path;
	atomic_bool cut;
	bool foreign;
	struct filemap_guard *previous, *next;
};

/* The handler has no argument of ours, so the list of mappings is global. No mapped memory is read
 * while it is locked, so the handler never waits for its own thread. */
static struct filemap_guard *guards;
static atomic_flag locked = ATOMIC_FLAG_INIT;

static void lock(void)
{
	while (atomic_flag_test_and_set_explicit(&locked, memory_order_acquire))
		sched_yield();
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&locked, memory_order_release);
}

/* ---- the signal */

static struct filemap_guard *find(uintptr_t at)
{
	struct filemap_guard *g = guards;

	while (g && (at < (uintptr_t)g->data || at - (uintptr_t)g->data >= g->size))
		g = g->next;
	return g;
}

/* A page that a library maps, such as libelf, may be written to later. But what is written to a file
 * at this moment would be lost: its disk may be full. */
static bool is_write(const void *context)
{
#ifdef __x86_64__
	const ucontext_t *c = context;

	return c->uc_mcontext.gregs[REG_ERR] & 2;
#else
	(void)context;
	return false;
#endif
}

/* Replaces the page at address, and what follows it in a mapping of ours, by zeros. */
static bool replace(const void *address, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)address & ~(page - 1);
	size_t size = page;
	int protection = PROT_READ | PROT_WRITE;
	struct filemap_guard *g;

	lock();
	g = find(at);
	if (g) {
		size = (uintptr_t)g->data + g->size - at;
		protection = g->protection;
		atomic_store(&g->cut, true);
	}
	unlock();
	return (g || !write) && mmap((void *)at, size, protection,
	                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code != BUS_ADRERR || !replace(info->si_addr, is_write(context))) {
		signal(number, SIG_DFL);
		raise(number);
	}
	errno = saved;
}

static void handle(void)
{
	const struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	sigaction(SIGBUS, &action, NULL);
}

void filemap_guard_all(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, handle);
}

/* ---- mappings */

static struct filemap_guard *guard_new(const uint8_t *data, size_t size, int protection,
                                       const char *path)
{
	struct filemap_guard *g = xcalloc(1, sizeof(*g));

	filemap_guard_all();
	g->data = data;
	g->size = size;
	g->protection = protection;
	g->path = xstrdup(path);
	lock();
	g->next = guards;
	if (guards)
		guards->previous = g;
	guards = g;
	unlock();
	return g;
}

static void guard_free(struct filemap_guard *g)
{
	if (!g)
		return;
	lock();
	if (g->next)
		g->next->previous = g->previous;
	*(g->previous ? &g->previous->next : &guards) = g->next;
	unlock();
	free(g->path);
	free(g);
}

static int map_file(struct filemap *ret, int fd, const char *path, size_t max, int protection,
                    int flags, struct error *err)
{
	struct stat st;
	size_t size;
	void *data;

	if (fstat(fd, &st) < 0)
		return error_errno(err, "%s", path);
	size = (uint64_t)st.st_size < max ? (size_t)st.st_size : max;
	if (!size) {
		*ret = (struct filemap){ 0 };
		return 0;
	}
	data = mmap(NULL, size, protection, flags, fd, 0);
	if (data == MAP_FAILED)
		return error_errno(err, "%s: mmap", path);
	*ret = (struct filemap){ .data = data,
		                 .size = size,
		                 .guard = guard_new(data, size, protection, path) };
	return 0;
}

int filemap_open(struct filemap *ret, const char *path, struct error *err)
{
	CLEANUP(close) int fd = file_open_member(path, err);

	return fd < 0 ? -1 : map_file(ret, fd, path, SIZE_MAX, PROT_READ, MAP_PRIVATE, err);
}

int filemap_open_fd(struct filemap *ret, int fd, const char *path, size_t max, struct error *err)
{
	return map_file(ret, fd, path, max, PROT_READ, MAP_SHARED, err);
}

int filemap_open_copy(struct filemap *ret, int fd, const char *path, struct error *err)
{
	return map_file(ret, fd, path, SIZE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE, err);
}

void filemap_watch(struct filemap *ret, const void *data, size_t size, const char *path)
{
	*ret = (struct filemap){ .data = data,
		                 .size = size,
		                 .guard = guard_new(data, size, PROT_READ | PROT_WRITE, path) };
	ret->guard->foreign = true;
}

/* Only advice: if it fails, memory stays in use for longer. */
void filemap_drop_to(struct filemap *map, size_t offset)
{
	size_t end = offset & ~(size_t)(FILEMAP_DROP_STEP - 1);

	madvise((void *)(uintptr_t)(map->data + map->dropped), end - map->dropped, MADV_DONTNEED);
	map->dropped = end;
}

void filemap_done(struct filemap *map)
{
	bool foreign = map->guard && map->guard->foreign;

	guard_free(map->guard);
	if (map->data && !foreign)
		munmap((void *)(uintptr_t)map->data, map->size);
	*map = (struct filemap){ 0 };
}

bool filemap_is_cut(const struct filemap *map)
{
	return map->guard && atomic_load_explicit(&map->guard->cut, memory_order_relaxed);
}

static int cut_error(const char *path, struct error *err)
{
	return error_set(err, EIO, "%s: became shorter while it was read, or cannot be read", path);
}

int filemap_check(const struct filemap *map, struct error *err)
{
	return filemap_is_cut(map) ? cut_error(map->guard->path, err) : 0;
}

int filemap_check_all(struct error *err)
{
	int status = 0;

	lock();
	for (const struct filemap_guard *g = guards; g && status == 0; g = g->next)
		if (atomic_load(&g->cut))
			status = cut_error(g->path, err);
	unlock();
	return status;
}
