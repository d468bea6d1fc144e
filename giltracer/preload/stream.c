/* SPDX-License-Identifier: MIT */
/* Files of records: one for each running thread, reused by later threads when it ends. */
#include "preload/internal.h"
#include "preload/locks.h"
#include "preload/nogil.h"

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

/* A part of a file that is not mapped any more, of a flight recorder. @stream: NULL: the place is free;
 * @end: its end in the file; @stamp: all its records are earlier */
struct part {
	struct stream *_Atomic stream;
	uint64_t end, stamp;
};

#define PARTS_MAX 32768 /* a power of two */

/* A ring, in the order of stamps. Only the thread that dropping admits removes parts. */
static struct {
	struct part v[PARTS_MAX];
	_Atomic uint64_t first, next;
	atomic_flag dropping;
} parts = { .dropping = ATOMIC_FLAG_INIT };

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

/* A flight recorder keeps a part until its last record is too old, so the parts of threads with few
 * events are small. */
#define KEPT_PARTS 8

static size_t next_chunk(const struct stream *s, uint64_t stamp)
{
	if (!s->file_size ||
	    (process_kept() && stamp - s->mapped_stamp > process_kept() / KEPT_PARTS))
		return CHUNK_MIN;
	return s->map_size < CHUNK_MAX ? 2 * s->map_size : CHUNK_MAX;
}

/* ---- parts that a flight recorder drops */

/* A part that finds no place is dropped together with the next part of its file. */
static void add_part(struct stream *s, uint64_t stamp)
{
	uint64_t next = parts.next;
	struct part *p;

	do
		if (next - parts.first >= PARTS_MAX)
			return;
	while (!atomic_compare_exchange_weak(&parts.next, &next, next + 1));
	p = &parts.v[next % PARTS_MAX];
	p->end = s->file_size;
	p->stamp = stamp;
	atomic_store(&p->stream, s);
}

/* The header moves first, so that a reader that looks at it last has read nothing but records. */
static bool drop_part(const struct part *p, struct stream *s)
{
	uint64_t from = s->header->first, page = (uint64_t)sysconf(_SC_PAGESIZE), at;
	char path[sizeof(process.path)];
	long fd;

	path_of(path, s);
	fd = process_open(path, O_RDWR);
	if (fd < 0)
		return false;
	s->header->dropped_stamp = p->stamp;
	__atomic_store_n(&s->header->first, p->end, __ATOMIC_RELEASE);
	at = from ? from : page;
	syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
	        (off_t)(p->end - at));
	syscall(SYS_close, fd);
	__atomic_sub_fetch(&process.control->used, p->end - from, __ATOMIC_RELAXED);
	return true;
}

static void drop_old(uint64_t stamp)
{
	if (atomic_flag_test_and_set(&parts.dropping))
		return;
	while (parts.first != parts.next) {
		struct part *p = &parts.v[parts.first % PARTS_MAX];
		struct stream *s = p->stream; /* NULL: its place is being filled */

		if (!s || (p->stamp + process_kept() >= stamp && !process_is_over()) ||
		    !drop_part(p, s))
			break;
		p->stream = NULL;
		parts.first++;
	}
	atomic_flag_clear(&parts.dropping);
}

/* No thread drops parts of the streams that were there so far when this returns. */
static void forget_parts(void)
{
	while (atomic_flag_test_and_set(&parts.dropping))
		continue;
	while (parts.first != parts.next)
		parts.v[parts.first++ % PARTS_MAX].stream = NULL;
	atomic_flag_clear(&parts.dropping);
}

/* Maps the next part and returns the address of its first record; NULL: there is no more room. */
static uint64_t *map_next(struct stream *s, uint64_t stamp)
{
	size_t bytes = next_chunk(s, stamp), skip = s->file_size ? 0 : PRELOAD_RECORDS_AT;
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
	if (old && process_kept())
		add_part(s, stamp);
	/* A child that another thread forks meanwhile unmaps what the stream says is mapped. */
	s->map = map;
	s->map_size = bytes;
	s->file_size += bytes;
	s->mapped_stamp = stamp;
	if (old)
		munmap(old, old_size);
	if (process_kept())
		drop_old(stamp);
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

/* ---- threads that have streams */

/* By hash: stream_self() << TID_BITS | tid. A thread for which there is no place is unknown; it takes
 * that of no other, which may live for longer. */
#define THREADS_BITS   9
#define THREADS_PLACES 8
#define TID_BITS       22

static struct {
	_Atomic uint64_t place[THREADS_PLACES];
} __attribute__((aligned(64))) threads[1 << THREADS_BITS];

static _Atomic uint64_t *places_of(uintptr_t of)
{
	return threads[of * UINT64_C(0x9e3779b97f4a7c15) >> (64 - THREADS_BITS)].place;
}

pid_t stream_thread(uintptr_t of)
{
	const _Atomic uint64_t *place = places_of(of);

	for (unsigned i = 0; i < THREADS_PLACES; i++) {
		uint64_t entry = place[i];

		if (entry && entry >> TID_BITS == of)
			return (pid_t)(entry % (1u << TID_BITS));
	}
	return 0;
}

static void thread_has_none(const struct self *me)
{
	_Atomic uint64_t *place = places_of(stream_self(me));

	for (unsigned i = 0; i < THREADS_PLACES; i++)
		if (place[i] && place[i] >> TID_BITS == stream_self(me))
			place[i] = 0;
}

static void thread_has_stream(const struct self *me)
{
	const uint64_t entry = (uint64_t)stream_self(me) << TID_BITS | (uint64_t)me->tid;
	_Atomic uint64_t *place = places_of(stream_self(me));

	thread_has_none(me); /* one that had the same memory, and whose end was not noticed */
	for (unsigned i = 0; me->tid < 1 << TID_BITS && i < THREADS_PLACES; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&place[i], &none, entry))
			return;
	}
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
	me->released_at = NULL;
	me->at = s->at;
	me->end = s->at ? end_of(s) : NULL;
	pthread_setspecific(process.key, me);
	thread_has_stream(me);
}

static void count_unwritten(const struct stream *s, uint64_t stamp)
{
	if (!s->header)
		process_unwritten(stamp);
	else if (!s->header->unwritten++)
		s->header->unwritten_stamp = stamp;
}

/* So that this part of the file can be read without the one before it. */
static void repeat(struct self *me, uint64_t stamp)
{
	stream_put(me, PRELOAD_OF_TIME, stamp);
	stream_put(me, PRELOAD_OF_THREAD, (uint64_t)me->tid);
	if (me->gil != UINT32_MAX)
		stream_put(me, PRELOAD_OF_GIL, me->gil);
	stream_put(me, PRELOAD_OF_FRAME, me->frame);
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
	me->released_at = NULL;
	if (process_kept())
		repeat(me, stamp);
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
	bool python;
	void *(*function)(void *);
	void *argument;
};

#define STARTS 64

static void *run_started(void *data)
{
	struct start *s = data;
	void *(*function)(void *) = s->function;
	void *argument = s->argument;
	bool python = s->python;

	self.creator = s->creator;
	atomic_store(&s->used, false);
	if (python)
		nogil_thread_begins();
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
                         void *argument, bool python)
{
	struct start *s = (process.on && !process.sealed) || python ? free_start() : NULL;
	int ret;

	if (!s)
		return create(thread, attr, start, argument);
	s->creator = process_gettid();
	s->python = python;
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
	if (!s)
		return;
	thread_has_none(me);
	if (process.sealed)
		return;
	if (!process.on || me->recording != process.recording) {
		stream_forget(me);
		return;
	}
	locks_end_spin(me);
	stream_put(me, PRELOAD_EXIT, clock_stamp());
	s->at = me->at;
	me->at = me->end = NULL;
	me->stream = NULL;
	atomic_store(&s->owned, false);
}

void stream_again(void)
{
	forget_parts();
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

	atomic_flag_clear(&parts.dropping); /* a thread that does not exist here may drop parts */
	for (struct stream *s = streams; s; s = s->next) {
		if (s->map)
			munmap(s->map, s->map_size);
		if (s->header)
			munmap(s->header, (size_t)page);
	}
	memset((void *)threads, 0, sizeof(threads));
	stream_again();
}
