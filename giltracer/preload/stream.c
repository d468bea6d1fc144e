/* SPDX-License-Identifier: MIT */
/* Files of records: one for each running thread, reused by later threads when it ends. */
#include "preload/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The step by which a file grows; it doubles each time. */
#define CHUNK_MIN ((size_t)16 << 10)
#define CHUNK_MAX ((size_t)512 << 10)

#define BLOCK 64

/* Streams are never freed, so the list needs no lock. */
static struct stream *_Atomic streams;
static atomic_uint stream_count;

struct block {
	struct stream stream[BLOCK];
	atomic_uint used;
};

static struct block *_Atomic blocks;

/* ---- the file */

static void path_of(char *ret, const struct stream *s)
{
	char suffix[24] = ".";
	char digits[12];
	unsigned value = s->number, n = 0, at = 1;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		suffix[at++] = digits[--n];
	memcpy(suffix + at, PRELOAD_GIL_SUFFIX, sizeof(PRELOAD_GIL_SUFFIX));
	process_file(ret, suffix);
}

static long open_extended(const struct stream *s, size_t bytes)
{
	char path[sizeof(process.path)];
	long fd;

	path_of(path, s);
	fd = process_open(path, O_RDWR | O_CREAT);
	if (fd >= 0 && !process_reserve(fd, s->file_size, bytes)) {
		syscall(SYS_close, fd);
		return -1;
	}
	return fd;
}

static void *map_at(long fd, uint64_t offset, size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, (off_t)offset);

	return map == MAP_FAILED ? NULL : map;
}

static size_t next_chunk(const struct stream *s)
{
	if (!s->file_size)
		return CHUNK_MIN;
	return s->map_size < CHUNK_MAX ? 2 * s->map_size : CHUNK_MAX;
}

/* Maps the next part and returns the address of its first record; NULL: there is no more room. */
static uint64_t *map_next(struct stream *s, uint64_t stamp)
{
	size_t bytes = next_chunk(s), skip = s->file_size ? 0 : PRELOAD_RECORDS_AT;
	void *map = NULL, *old = s->map;
	size_t old_size = s->map_size;
	long fd;

	if (!process_may_use(bytes, stamp) || (fd = open_extended(s, bytes)) < 0)
		return NULL;
	map = map_at(fd, s->file_size, bytes);
	if (map && !s->header)
		s->header = map_at(fd, 0, (size_t)sysconf(_SC_PAGESIZE));
	syscall(SYS_close, fd);
	if (map && !s->header) {
		munmap(map, bytes);
		map = NULL;
	}
	if (!map)
		return NULL;
	/* One call for all pages: a page fault for each costs more than the writing. */
	madvise(map, bytes, MADV_POPULATE_WRITE);
	/* A child that another thread forks meanwhile unmaps what the stream says is mapped. */
	s->map = map;
	s->map_size = bytes;
	s->file_size += bytes;
	if (old)
		munmap(old, old_size);
	return (uint64_t *)((char *)map + skip);
}

static uint64_t *end_of(const struct stream *s)
{
	return (uint64_t *)((char *)s->map + s->map_size);
}

static void write_header(const struct stream *s)
{
	*s->header = (struct preload_header){
		.magic = PRELOAD_MAGIC,
		.process = process.stamp,
		.pid = (uint32_t)process.pid,
		.clock = clock_is_tsc ? PRELOAD_CLOCK_TSC : PRELOAD_CLOCK_MONOTONIC,
	};
}

/* ---- assignment of streams to threads */

static struct stream *new_place(void)
{
	struct block *block = blocks;
	unsigned i = block ? atomic_fetch_add(&block->used, 1) : BLOCK;

	if (i < BLOCK)
		return &block->stream[i];
	block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	             0);
	if (block == MAP_FAILED)
		return NULL;
	block->used = 1;
	blocks = block;
	return &block->stream[0];
}

static struct stream *make(uint64_t stamp)
{
	struct stream *s = new_place();

	if (!s)
		return NULL;
	s->number = atomic_fetch_add(&stream_count, 1);
	s->owned = true;
	s->at = map_next(s, stamp);
	if (s->at)
		write_header(s);
	else
		s->full = true;
	s->next = streams;
	while (!atomic_compare_exchange_weak(&streams, &s->next, s))
		continue;
	return s;
}

static struct stream *reuse(void)
{
	for (struct stream *s = streams; s; s = s->next) {
		bool no = false;

		if (!s->owned && atomic_compare_exchange_strong(&s->owned, &no, true))
			return s;
	}
	return NULL;
}

/* A thread's first record identifies the thread. */
static void begin(struct self *me, struct stream *s)
{
	me->stream = s;
	me->at = s->at;
	me->end = s->at ? end_of(s) : NULL;
	pthread_setspecific(process.key, me);
}

static void count_unwritten(const struct stream *s, uint64_t stamp)
{
	if (!s->header)
		process_unwritten(stamp);
	else if (!s->header->unwritten++)
		s->header->unwritten_stamp = stamp;
}

static bool grow(struct self *me, uint64_t stamp)
{
	struct stream *s = me->stream;
	uint64_t *at = s->full ? NULL : map_next(s, stamp);

	if (!at) {
		s->full = true;
		count_unwritten(s, stamp);
		return false;
	}
	me->at = at;
	me->end = end_of(s);
	return true;
}

static bool open_one(struct self *me, uint64_t stamp)
{
	struct stream *s = reuse();

	me->tid = process_gettid();
	if (!s)
		s = make(stamp);
	if (!s) {
		process_unwritten(stamp);
		return false;
	}
	begin(me, s);
	if (me->at >= me->end && !grow(me, stamp))
		return false;
	stream_put(me, PRELOAD_OF_THREAD, (uint64_t)me->tid);
	if (me->creator)
		stream_put(me, PRELOAD_OF_CREATOR, (uint64_t)me->creator);
	stream_put(me, PRELOAD_THREAD, stamp);
	/* The GIL and the frame of the previous thread do not apply, so both are written again. */
	me->gil = UINT32_MAX;
	me->frame = 0;
	return me->at < me->end || grow(me, stamp);
}

bool stream_extend(struct self *me, uint64_t stamp)
{
	int saved = errno;
	bool ok;

	if (!process.on || me->busy)
		return false;
	me->busy = true;
	if (!stamp)
		stamp = clock_stamp();
	if (stamp > process.next_pair)
		process_pair();
	ok = me->stream ? grow(me, stamp) : open_one(me, stamp);
	me->busy = false;
	errno = saved;
	return ok;
}

/* ---- which thread created a thread */

/* What a thread that has not run yet is to execute. */
struct start {
	atomic_bool used;
	pid_t creator;
	void *(*function)(void *);
	void *argument;
};

#define STARTS 64

static void *run_started(void *data)
{
	struct start *s = data;
	void *(*function)(void *) = s->function;
	void *argument = s->argument;

	self.creator = s->creator;
	atomic_store(&s->used, false);
	return function(argument);
}

/* If many threads are being created, the creators of some are unknown. */
static struct start *free_start(void)
{
	static struct start starts[STARTS];

	for (unsigned i = 0; i < STARTS; i++)
		if (!starts[i].used && !atomic_exchange(&starts[i].used, true))
			return &starts[i];
	return NULL;
}

int stream_create_thread(int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                       void *),
                         pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                         void *argument)
{
	struct start *s = process.on && !process.sealed ? free_start() : NULL;
	int ret;

	if (!s)
		return create(thread, attr, start, argument);
	s->creator = process_gettid();
	s->function = start;
	s->argument = argument;
	ret = create(thread, attr, run_started, s);
	if (ret)
		atomic_store(&s->used, false);
	return ret;
}

void stream_thread_ended(void *data)
{
	struct self *me = data;
	struct stream *s = me->stream;

	/* Destructors of other code may take the GIL once more, in any order: ours must run
	 * last. */
	if (++me->rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
	    pthread_setspecific(process.key, me) == 0)
		return;
	if (!s || process.sealed)
		return;
	if (!process.on || me->recording != process.recording) {
		stream_forget(me);
		return;
	}
	stream_put(me, PRELOAD_EXIT, clock_stamp());
	s->at = me->at;
	me->at = me->end = NULL;
	me->stream = NULL;
	atomic_store(&s->owned, false);
}

void stream_again(void)
{
	streams = NULL;
	blocks = NULL;
	stream_count = 0;
}

void stream_forget(struct self *me)
{
	struct stream *s = me->stream;

	me->at = me->end = NULL;
	me->stream = NULL;
	if (s && s->map)
		munmap(s->map, s->map_size);
	if (s && s->header)
		munmap(s->header, (size_t)sysconf(_SC_PAGESIZE));
}

/* Streams belong to the parent, and are forgotten. */
void stream_in_child(void)
{
	long page = sysconf(_SC_PAGESIZE);

	for (struct stream *s = streams; s; s = s->next) {
		if (s->map)
			munmap(s->map, s->map_size);
		if (s->header)
			munmap(s->header, (size_t)page);
	}
	stream_again();
}
