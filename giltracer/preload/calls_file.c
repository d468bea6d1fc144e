/* SPDX-License-Identifier: MIT */
/* Files of Python calls: each running thread writes to one of its own. When it ends, a new thread
 * continues the file. */
#include "preload/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- a futex, because the library observes the locks of libc */

enum { FREE, LOCKED, WAITED_FOR };

static atomic_int state;

void calls_lock(void)
{
	int expected = FREE, saved = errno;

	if (atomic_compare_exchange_strong(&state, &expected, LOCKED))
		return;
	while (atomic_exchange(&state, WAITED_FOR) != FREE)
		syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, WAITED_FOR, NULL);
	errno = saved;
}

void calls_unlock(void)
{
	int saved = errno;

	if (atomic_exchange(&state, FREE) == WAITED_FOR)
		syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1);
	errno = saved;
}

void calls_lock_in_child(void)
{
	atomic_store(&state, FREE);
}

#define BLOCK 64

/**
 * A file of records.
 * @at: where the next record goes, while no thread owns the file
 * @window: of @window_size bytes, mapped; a larger one may replace it
 * @written: number of bytes in the file after the window
 * @header: stays mapped
 */
struct calls_stream {
	uint64_t *at;
	char *window;
	size_t window_size;
	uint64_t written;
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

/* The records of a full window, which were appended to the file. */
struct stretch {
	struct calls_stream *stream;
	uint64_t end; /* offset in the data after the window */
	uint64_t stamp;
};

#define STRETCHES 65536

/* Guarded by the lock.
 * @stretches: a ring, used from @first to @next; NULL: all records are kept. Each stretch is
 * PRELOAD_CALLS_WINDOW_MAX bytes long.
 * @most: maximum number of stretches to keep */
static struct {
	struct calls_stream *streams;
	struct block *block;
	unsigned count;
	pthread_key_t key;
	bool begun;
	struct stretch *stretches;
	uint64_t first, next, most;
} files;

/* ---- the file */

static long open_file(const struct calls_stream *s)
{
	char path[sizeof(process.path)], suffix[24] = ".", digits[12];
	unsigned number = s->number, n = 0, at = 1;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		suffix[at++] = digits[--n];
	memcpy(suffix + at, PRELOAD_CALLS_SUFFIX, sizeof(PRELOAD_CALLS_SUFFIX));
	process_file(path, suffix);
	return process_open(path, O_RDWR | O_CREAT);
}

static void *map_reserved(long fd, size_t offset, size_t bytes)
{
	void *map = MAP_FAILED;

	if (process_reserve(fd, offset, bytes))
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, (off_t)offset);
	if (map == MAP_FAILED)
		return NULL;
	/* Populate all pages at once: a page fault for each one would cost more than writing to
	 * it. */
	madvise(map, bytes, MADV_POPULATE_WRITE);
	return map;
}

/* Map a window; it replaces a smaller one that is full. */
static bool map_window(struct calls_stream *s, size_t size, uint64_t stamp)
{
	size_t old_size = s->window_size;
	char *window, *old = s->window;
	long fd;

	if (!process_may_use(size - s->window_size, stamp) || (fd = open_file(s)) < 0)
		return false;
	if (!s->header)
		s->header = map_reserved(fd, 0, PRELOAD_CALLS_WINDOW_AT);
	window = s->header ? map_reserved(fd, PRELOAD_CALLS_WINDOW_AT, size) : NULL;
	syscall(SYS_close, fd);
	if (!window)
		return false;
	s->window = window;
	s->window_size = size;
	if (old)
		munmap(old, old_size);
	return true;
}

static bool write_all(long fd, const char *data, size_t size, uint64_t at)
{
	while (size) {
		long n = syscall(SYS_pwrite64, fd, data, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		at += (uint64_t)n;
		size -= (size_t)n;
	}
	return true;
}

/* A window states where in the file its records belong, so that they are not read twice if the
 * process is killed after they were appended and before the window is cleared. */
static void begin_window(struct calls_stream *s)
{
	memset(s->window, 0, s->window_size);
	s->at = (uint64_t *)(void *)s->window;
	*s->at++ = PRELOAD_CALL_WORD(PRELOAD_CALL_SAY, PRELOAD_SAY_WINDOW, s->written);
}

/* Drop the oldest records of all threads to make room for new ones. */
static void drop_oldest(void)
{
	const struct stretch *oldest = &files.stretches[files.first++ % STRETCHES];
	struct calls_stream *s = oldest->stream;
	long fd = open_file(s);

	if (fd < 0)
		return;
	__atomic_store_n(&s->header->first, oldest->end, __ATOMIC_RELEASE);
	if (syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	            (off_t)(PRELOAD_CALLS_DATA_AT + oldest->end - PRELOAD_CALLS_WINDOW_MAX),
	            (off_t)PRELOAD_CALLS_WINDOW_MAX) == 0 &&
	    process.control)
		__atomic_sub_fetch(&process.control->used, PRELOAD_CALLS_WINDOW_MAX,
		                   __ATOMIC_RELAXED);
	syscall(SYS_close, fd);
}

static bool is_old(const struct stretch *stretch, uint64_t stamp)
{
	return process_kept() && stretch->stamp + process_kept() < stamp;
}

static void keep_last(struct calls_stream *s, uint64_t stamp)
{
	if (!files.stretches)
		return;
	calls_lock();
	files.stretches[files.next++ % STRETCHES] = (struct stretch){ s, s->written, stamp };
	while (files.next - files.first > files.most ||
	       is_old(&files.stretches[files.first % STRETCHES], stamp))
		drop_oldest();
	calls_unlock();
}

/* Keep as many calls as the user asked for, of two records each. If the ring is too small for that,
 * all records are kept. */
static void begin_ring(void)
{
	uint64_t entries = process.control ? process.control->entries : 0;
	uint64_t most = entries * 2 * sizeof(uint64_t) / PRELOAD_CALLS_WINDOW_MAX + 1;
	void *map;

	/* The calls of a flight recorder get half of the room. */
	if (process_kept() &&
	    (!entries || most > process.control->limit / 2 / PRELOAD_CALLS_WINDOW_MAX))
		most = process.control->limit / 2 / PRELOAD_CALLS_WINDOW_MAX;
	if ((!entries && !process_kept()) || most >= STRETCHES)
		return;
	map = mmap(NULL, STRETCHES * sizeof(*files.stretches), PROT_READ | PROT_WRITE,
	           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return;
	files.stretches = map;
	files.most = most;
}

/* Append the window's records to those that the file has: writing many at once costs a fifth of
 * mapping as many pages. */
static bool flush(struct calls_stream *s, uint64_t stamp)
{
	uint64_t at = PRELOAD_CALLS_DATA_AT + s->written;
	long fd;
	bool ok;

	if (!process_may_use(s->window_size, stamp) || !process_may_extend(at + s->window_size) ||
	    (fd = open_file(s)) < 0)
		return false;
	ok = write_all(fd, s->window, s->window_size, at);
	syscall(SYS_close, fd);
	if (!ok)
		return false;
	s->written += s->window_size;
	__atomic_store_n(&s->header->written, s->written, __ATOMIC_RELEASE);
	keep_last(s, stamp);
	begin_window(s);
	return true;
}

static uint64_t *window_end(const struct calls_stream *s)
{
	return (uint64_t *)(void *)(s->window + s->window_size);
}

/* The last place is reserved for the record that follows a PRELOAD_SAY_TIME. */
static uint64_t *end_of(const struct calls_stream *s)
{
	return s->at ? window_end(s) - 1 : NULL;
}

static bool make_room(struct calls_stream *s, uint64_t stamp)
{
	size_t used = (size_t)((char *)s->at - s->window);

	if (s->window_size == PRELOAD_CALLS_WINDOW_MAX)
		return flush(s, stamp);
	if (!map_window(s, 4 * s->window_size, stamp))
		return false;
	s->at = (uint64_t *)(void *)(s->window + used);
	return true;
}

static bool open_first(struct calls_stream *s, uint64_t stamp)
{
	if (!map_window(s, PRELOAD_CALLS_WINDOW_MIN, stamp))
		return false;
	*s->header = (struct preload_header){
		.magic = PRELOAD_CALLS_MAGIC,
		.process = process.stamp,
		.pid = (uint32_t)process.pid,
		.clock = clock_is_tsc ? PRELOAD_CLOCK_TSC : PRELOAD_CLOCK_MONOTONIC,
	};
	begin_window(s);
	return true;
}

/* ---- which thread owns which file */

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

static struct calls_stream *make(void)
{
	struct calls_stream *s = new_place();

	if (!s)
		return NULL;
	s->number = files.count++;
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

/* A chunk begins with the thread and the time, so that it can be read after the chunks before it
 * were dropped. */
static void begin_chunk(struct calls_self *me, enum preload_say what, uint64_t stamp)
{
	say(me, what, (uint64_t)process_gettid());
	calls_put_time(me, stamp);
}

static bool grow(struct calls_self *me, uint64_t stamp)
{
	struct calls_stream *s = me->stream;

	/* Fill the window, because a zero would end it. */
	while (!s->full && me->at < window_end(s))
		say(me, PRELOAD_SAY_TIME, me->high);
	s->at = me->at;
	s->full = s->full || !make_room(s, stamp);
	if (s->full) {
		s->at = NULL;
		count_unwritten(s, stamp);
	}
	me->at = s->at;
	me->end = end_of(s);
	return !s->full;
}

static bool take_stream(struct calls_self *me, uint64_t stamp)
{
	struct calls_stream *s;
	bool is_new;

	calls_lock();
	s = find_free();
	is_new = !s;
	if (!s)
		s = make();
	if (s)
		s->owned = true;
	calls_unlock();
	if (!s) {
		process_unwritten(stamp);
		return false;
	}
	if (is_new)
		s->full = !open_first(s, stamp);
	me->stream = s;
	me->at = s->at;
	me->end = end_of(s);
	pthread_setspecific(files.key, me);
	return true;
}

/* A chunk begins with two records, and the record to be written must fit in after them. */
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

void calls_put(struct calls_self *me, enum preload_call_type type, uint32_t number)
{
	uint64_t stamp = clock_stamp();

	if (me->at >= me->end && !calls_extend(me, stamp))
		return;
	if (stamp >> PRELOAD_CALL_STAMP_BITS != me->high)
		calls_put_time(me, stamp);
	calls_put_word(me, PRELOAD_CALL_WORD(type, number, stamp));
}

void calls_say_value(struct calls_self *me, enum preload_say what, uint64_t value)
{
	if (me->at < me->end || calls_extend(me, clock_stamp()))
		say(me, what, value & ((1ull << PRELOAD_CALL_STAMP_BITS) - 1));
}

void calls_say(struct calls_self *me, enum preload_say what)
{
	uint64_t stamp = clock_stamp();

	/* PRELOAD_SAY_TIME comes before it. */
	if (me->end - me->at < 2 && !calls_extend(me, stamp))
		return;
	calls_put_time(me, stamp);
	say(me, what, stamp);
}

/* The thread does not hold the GIL, so this only changes data of the file that it owns. */
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
	if (files.begun)
		return true;
	files.begun = pthread_key_create(&files.key, thread_ended) == 0;
	begin_ring();
	return files.begun;
}

/* The files belong to the parent. */
void calls_file_in_child(void)
{
	for (struct calls_stream *s = files.streams; s; s = s->next) {
		if (s->window)
			munmap(s->window, s->window_size);
		if (s->header)
			munmap(s->header, PRELOAD_CALLS_WINDOW_AT);
	}
	files.streams = NULL;
	files.block = NULL;
	files.count = 0;
	files.first = files.next = 0;
	calls_self = (struct calls_self){ 0 };
}
