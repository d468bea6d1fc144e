/* SPDX-License-Identifier: MIT */
/* Files of Python calls: one for each thread that runs, taken over by the next one when it ends. */
#include "preload/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a file grows by: twice as much each time. */
#define CHUNK_MIN ((size_t)16 << 10)
#define CHUNK_MAX ((size_t)512 << 10)

#define BLOCK 64

/**
 * A file of records.
 * @at: while no thread has it
 * @header: mapped for good
 */
struct calls_stream {
	uint64_t *at;
	void *map;
	size_t map_size;
	uint64_t file_size;
	struct preload_header *header;
	struct calls_stream *next;
	unsigned number;
	bool owned, full;
};

struct block {
	struct calls_stream stream[BLOCK];
	unsigned used;
};

__thread struct calls_self calls_self;

static struct {
	struct calls_stream *streams;
	struct block *block;
	unsigned count;
	pthread_key_t key;
	bool begun;
} files;

/* ---- the file */

static void path_of(char *ret, unsigned number)
{
	char suffix[24] = ".", digits[12];
	unsigned n = 0, at = 1;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		suffix[at++] = digits[--n];
	memcpy(suffix + at, PRELOAD_CALLS_SUFFIX, sizeof(PRELOAD_CALLS_SUFFIX));
	process_file(ret, suffix);
}

/* Blocks are reserved before they are mapped: to write where a full disk has none ends a program.
 */
static long open_extended(const struct calls_stream *s, size_t bytes)
{
	char path[sizeof(process.path)];
	long fd;

	path_of(path, s->number);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && syscall(SYS_fallocate, fd, 0, (off_t)s->file_size, (off_t)bytes) < 0) {
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

static size_t next_chunk(const struct calls_stream *s)
{
	if (!s->file_size)
		return CHUNK_MIN;
	return s->map_size < CHUNK_MAX ? 2 * s->map_size : CHUNK_MAX;
}

/* Where the records of what is mapped now begin; NULL: there is no more room. */
static uint64_t *map_next(struct calls_stream *s, uint64_t stamp)
{
	size_t bytes = next_chunk(s), skip = s->file_size ? 0 : PRELOAD_RECORDS_AT;
	void *map = NULL;
	long fd;

	if (!process_may_use(bytes, stamp) || (fd = open_extended(s, bytes)) < 0)
		return NULL;
	map = map_at(fd, s->file_size, bytes);
	if (map && !s->header)
		s->header = map_at(fd, 0, (size_t)sysconf(_SC_PAGESIZE));
	syscall(SYS_close, fd);
	if (!map || !s->header)
		return NULL;
	/* One fault for all: each page by itself costs more than what is written to it. */
	madvise(map, bytes, MADV_POPULATE_WRITE);
	if (s->map)
		munmap(s->map, s->map_size);
	s->map = map;
	s->map_size = bytes;
	s->file_size += bytes;
	return (uint64_t *)((char *)map + skip);
}

static uint64_t *map_end(const struct calls_stream *s)
{
	return (uint64_t *)((char *)s->map + s->map_size);
}

/* The last place is kept for the record that the time is said for. */
static uint64_t *end_of(const struct calls_stream *s)
{
	return s->at ? map_end(s) - 1 : NULL;
}

static void write_header(const struct calls_stream *s)
{
	*s->header = (struct preload_header){
		.magic = PRELOAD_CALLS_MAGIC,
		.process = process.stamp,
		.pid = (uint32_t)process.pid,
		.clock = clock_is_tsc ? PRELOAD_CLOCK_TSC : PRELOAD_CLOCK_MONOTONIC,
	};
}

/* ---- who has which */

static struct calls_stream *new_place(void)
{
	if (!files.block || files.block->used == BLOCK) {
		void *map = mmap(NULL, sizeof(*files.block), PROT_READ | PROT_WRITE,
		                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			return NULL;
		files.block = map;
	}
	return &files.block->stream[files.block->used++];
}

static struct calls_stream *make(uint64_t stamp)
{
	struct calls_stream *s = new_place();

	if (!s)
		return NULL;
	s->number = files.count++;
	s->at = map_next(s, stamp);
	if (s->at)
		write_header(s);
	else
		s->full = true;
	s->next = files.streams;
	files.streams = s;
	return s;
}

static struct calls_stream *find_free(void)
{
	for (struct calls_stream *s = files.streams; s; s = s->next)
		if (!__atomic_load_n(&s->owned, __ATOMIC_ACQUIRE))
			return s;
	return NULL;
}

static void count_unwritten(const struct calls_stream *s, uint64_t stamp)
{
	if (!s->header)
		process_unwritten(stamp);
	else if (!s->header->unwritten++)
		s->header->unwritten_stamp = stamp;
}

static void say(struct calls_self *me, enum preload_say what, uint64_t value)
{
	__atomic_store_n(me->at++, PRELOAD_CALL_WORD(PRELOAD_CALL_SAY, what, value),
	                 __ATOMIC_RELEASE);
}

/* Each chunk can be read by itself: the ones before it may be gone. */
static void begin_chunk(struct calls_self *me, enum preload_say what, uint64_t stamp)
{
	say(me, what, (uint64_t)process_gettid());
	calls_put_time(me, stamp);
}

static bool grow(struct calls_self *me, uint64_t stamp)
{
	struct calls_stream *s = me->stream;

	/* A zero would end the file. */
	while (me->at && me->at < map_end(s))
		say(me, PRELOAD_SAY_TIME, me->high);
	s->at = s->full ? NULL : map_next(s, stamp);
	me->at = s->at;
	me->end = end_of(s);
	if (!s->at) {
		s->full = true;
		count_unwritten(s, stamp);
		return false;
	}
	return true;
}

static bool take_stream(struct calls_self *me, uint64_t stamp)
{
	struct calls_stream *s = find_free();

	if (!s)
		s = make(stamp);
	if (!s)
		return false;
	s->owned = true;
	me->stream = s;
	me->at = s->at;
	me->end = end_of(s);
	pthread_setspecific(files.key, me);
	return true;
}

/* Two records begin a chunk, and one that is to be written follows. */
bool calls_extend(struct calls_self *me, uint64_t stamp)
{
	enum preload_say what = me->stream ? PRELOAD_SAY_THREAD : PRELOAD_SAY_BEGIN;
	int saved = errno;
	bool ok = false;

	if (stamp > process.next_pair)
		process_pair();
	if (me->stream || take_stream(me, stamp)) {
		ok = me->end - me->at > 2 || grow(me, stamp);
		if (ok)
			begin_chunk(me, what, stamp);
	}
	errno = saved;
	return ok;
}

void calls_put_time(struct calls_self *me, uint64_t stamp)
{
	me->high = stamp >> PRELOAD_CALL_STAMP_BITS;
	say(me, PRELOAD_SAY_TIME, me->high);
}

/* Without the GIL: nothing but the owner's word is changed. */
static void thread_ended(void *data)
{
	struct calls_self *me = data;
	struct calls_stream *s = me->stream;

	if (!s)
		return;
	s->at = me->at;
	*me = (struct calls_self){ 0 };
	__atomic_store_n(&s->owned, false, __ATOMIC_RELEASE);
}

bool calls_file_begin(void)
{
	if (!files.begun)
		files.begun = pthread_key_create(&files.key, thread_ended) == 0;
	return files.begun;
}

/* They are the parent's. */
void calls_file_in_child(void)
{
	long page = sysconf(_SC_PAGESIZE);

	for (struct calls_stream *s = files.streams; s; s = s->next) {
		if (s->map)
			munmap(s->map, s->map_size);
		if (s->header)
			munmap(s->header, (size_t)page);
	}
	files.streams = NULL;
	files.block = NULL;
	files.count = 0;
	calls_self = (struct calls_self){ 0 };
}
