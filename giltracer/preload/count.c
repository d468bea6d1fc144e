/* SPDX-License-Identifier: MIT */
/* The page of totals: its file, and the assignment of slots to threads. */
#include "preload/count.h"
#include "preload/nogil.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNKS      (TOTALS_SLOTS / TOTALS_CHUNK)
#define CHUNK_BYTES (TOTALS_CHUNK * sizeof(struct totals_slot))

_Static_assert(sizeof(struct totals_header) <= TOTALS_WAITED_AT, "header");
_Static_assert(TOTALS_WAITED_AT + TOTALS_WAITED * sizeof(struct totals_waited) <= TOTALS_GILS_AT,
               "for whom threads wait");
_Static_assert(sizeof(struct totals_waited) % 64 == 0, "lines of the cache");
_Static_assert(TOTALS_GILS_AT + TOTALS_GILS * sizeof(struct totals_gil) <= TOTALS_LOCKS_AT, "GILs");
_Static_assert(TOTALS_LOCKS_AT + TOTALS_LOCKS * sizeof(struct totals_lock) <= TOTALS_SLOTS_AT,
               "lines that wait for locks");
_Static_assert(TOTALS_GILS == GILS_MAX, "the table of GILs");
_Static_assert(sizeof(struct totals_slot) % 64 == 0, "lines of the cache");
_Static_assert(CHUNK_BYTES % 4096 == 0 && TOTALS_SLOTS_AT % 4096 == 0, "chunks are mapped");

/* How long a process measures its clocks if the launcher did not write a rate. */
#define MEASURE_NS 2000000

struct counting counting;

/**
 * @header, @waited, @gils, @chunk: addresses that stay the same for further pages of the process, since threads
 * that were preempted may still write there; without a page, the memory has no file
 * @key: its destructor runs when a thread ends
 * @next: the first slot that has never been used
 * @filed: the chunk is in the file; @names: hash of each slot's group of names, 0: unused
 * @groups: number of groups, by GIL
 * @owned: a thread may write to the slot, possibly one that has not called us since an earlier page
 * @lock_keys: hashes of locks, 0: unused; the first one stays unused
 */
static struct page {
	struct totals_header *header;
	struct totals_waited *waited;
	struct totals_gil *gils;
	struct totals_lock *locks;
	_Atomic uint64_t lock_keys[TOTALS_LOCKS];
	pthread_key_t key;
	bool has_key;
	size_t dir_len;
	char path[TOTALS_DIR_MAX + 64];
	atomic_uint next;
	struct totals_slot *_Atomic chunk[CHUNKS];
	atomic_bool filed[CHUNKS];
	_Atomic uint64_t names[TOTALS_SLOTS];
	atomic_uint groups[TOTALS_WAITED];
	atomic_bool owned[TOTALS_SLOTS];
} page;

/* ---- the file */

long count_open_file(const char *name)
{
	char path[sizeof(page.path)];

	if (!page.dir_len)
		return -1;
	memcpy(path, page.path, page.dir_len);
	path[page.dir_len] = '/';
	memcpy(path + page.dir_len + 1, name, strlen(name) + 1);
	return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* where: NULL: anywhere */
static void *map_part(void *where, int flags, size_t at, size_t bytes)
{
	long fd = syscall(SYS_openat, AT_FDCWD, page.path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW,
	                  0600);
	void *map = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (process_reserve(fd, at, bytes))
		map = mmap(where, bytes, PROT_READ | PROT_WRITE,
		           MAP_SHARED | (where ? MAP_FIXED : 0), (int)fd, (off_t)at);
	syscall(SYS_close, fd);
	return map == MAP_FAILED ? NULL : map;
}

/* Field 22 of /proc/self/stat: the twentieth after the name, which may contain anything. */
static uint64_t start_time(void)
{
	char text[1024];
	char *at;
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC), n;

	if (fd < 0)
		return 0;
	n = syscall(SYS_read, fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* ---- the clock */

static uint64_t measure_rate(void)
{
	uint64_t stamp[2] = { 0 }, ns[2] = { 0 };

	clock_look(&stamp[0], &ns[0]);
	while (clock_ns() < ns[0] + MEASURE_NS)
		continue;
	clock_look(&stamp[1], &ns[1]);
	return (uint64_t)(((unsigned __int128)(ns[1] - ns[0]) << 32) / (stamp[1] - stamp[0]));
}

static uint64_t find_rate(void)
{
	uint64_t mult = 0;
	long fd;

	if (!clock_is_tsc)
		return (uint64_t)1 << 32;
	if (counting.mult)
		return counting.mult; /* the parent's */
	fd = count_open_file(TOTALS_RATE);
	if (fd >= 0) {
		if (syscall(SYS_read, fd, &mult, sizeof(mult)) != sizeof(mult))
			mult = 0;
		syscall(SYS_close, fd);
	}
	return mult ? mult : measure_rate();
}

/* ---- the page */

/* The file is DIR/PID.STAMP.totals. */
static void begin(void)
{
	char *at = page.path + page.dir_len;
	struct totals_header head = {
		.mult = find_rate(),
		.start_time = start_time(),
		.clock = clock_is_tsc ? TOTALS_CLOCK_TSC : TOTALS_CLOCK_MONOTONIC,
		.pid = (uint32_t)syscall(SYS_getpid),
		.ppid = (uint32_t)syscall(SYS_getppid),
		.slot_size = sizeof(struct totals_slot),
		.joined = counting.told,
	};
	char *map;

	clock_look(&head.stamp, &head.ns);
	at = process_put_file(at, head.pid, head.stamp);
	memcpy(at, TOTALS_SUFFIX, sizeof(TOTALS_SUFFIX));
	map = map_part(page.header, O_CREAT | O_EXCL, 0, TOTALS_SLOTS_AT);
	if (!map)
		return;
	page.header = (struct totals_header *)(void *)map;
	page.waited = (struct totals_waited *)(void *)(map + TOTALS_WAITED_AT);
	page.gils = (struct totals_gil *)(void *)(map + TOTALS_GILS_AT);
	page.locks = (struct totals_lock *)(void *)(map + TOTALS_LOCKS_AT);
	*page.header = head;
	__atomic_store_n(&page.header->magic, TOTALS_MAGIC, __ATOMIC_RELEASE);
	counting.mult = head.mult;
	counting.on = true;
}

static void thread_ended(void *data);

static void begin_in(const char *dir)
{
	int saved = errno;

	if (*dir != '/' || strlen(dir) > TOTALS_DIR_MAX)
		return;
	page.dir_len = strlen(dir);
	memcpy(page.path, dir, page.dir_len);
	if (!page.has_key)
		page.has_key = pthread_key_create(&page.key, thread_ended) == 0;
	clock_begin();
	if (page.has_key)
		begin();
	errno = saved;
}

bool count_begin(void)
{
	const char *dir;

	if (counting.on || page.dir_len)
		return counting.on;
	dir = secure_getenv(TOTALS_ENV);
	if (dir)
		begin_in(dir);
	return counting.on;
}

static void forget_slots(void)
{
	for (unsigned i = 0; i < TOTALS_SLOTS && i < page.next; i++)
		page.names[i] = 0;
	page.next = 0;
	for (unsigned i = 0; i < TOTALS_WAITED; i++)
		page.groups[i] = 0;
	for (unsigned i = 0; i < TOTALS_LOCKS; i++)
		page.lock_keys[i] = 0;
	frames_forget_places();
}

bool count_begin_in(const char *dir)
{
	forget_slots();
	counting.told = true;
	begin_in(dir);
	return counting.on;
}

static void drop_file(void *at, size_t bytes)
{
	mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void count_stop(void)
{
	if (!counting.on)
		return;
	counting.on = false;
	__atomic_store_n(&page.header->over, 1, __ATOMIC_RELEASE);
}

void count_end(void)
{
	int saved = errno;

	if (!counting.on)
		return;
	count_stop();
	drop_file(page.header, TOTALS_SLOTS_AT);
	for (unsigned i = 0; i < CHUNKS; i++)
		if (atomic_exchange(&page.filed[i], false))
			drop_file(page.chunk[i], CHUNK_BYTES);
	errno = saved;
}

void count_gil_made(struct gil *g)
{
	struct totals_gil *entry;

	g->waited = counting.on && g - gils < TOTALS_WAITED ? &page.waited[g - gils] : NULL;
	if (!counting.on)
		return;
	entry = &page.gils[g - gils];
	COUNT_SET(entry->number, g->number);
	COUNT_SET(entry->gone, 0);
	if (!entry->made)
		COUNT_SET(entry->made, clock_stamp());
}

void count_gil_gone(const struct gil *g)
{
	if (counting.on)
		COUNT_SET(page.gils[g - gils].gone, clock_stamp());
}

void count_asked(const struct gil *g)
{
	if (counting.on)
		COUNT_SET(page.gils[g - gils].asked, g->asked_stamp);
}

/* ---- waits for locks */

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	while (*text)
		hash = (hash ^ (uint8_t)*text++) * 1099511628211u;
	return hash ? hash : 1;
}

uint32_t count_lock_line(const char *where)
{
	uint64_t hash = hash_text(where);

	for (uint32_t i = TOTALS_LOCK_OTHER + 1; i < TOTALS_LOCKS; i++) {
		uint64_t key = 0;

		if (atomic_compare_exchange_strong(&page.lock_keys[i], &key, hash))
			strncpy(page.locks[i].where, where, TOTALS_LOCK_TEXT - 1);
		else if (key != hash)
			continue;
		return i;
	}
	return TOTALS_LOCK_OTHER;
}

void count_lock_wait(struct self *me, uint32_t line, uint64_t ticks)
{
	struct count c = { .slot = NULL };

	if (me->slot)
		c = count_open(me, me->slot_gil);
	if (!c.slot)
		return;
	COUNT_ADD(c.slot->lock_wait[line], ticks);
	count_close(&c);
}

/* ---- slots */

static struct totals_slot *slot_at(unsigned i)
{
	struct totals_slot *chunk = page.chunk[i / TOTALS_CHUNK];

	return chunk ? &chunk[i % TOTALS_CHUNK] : NULL;
}

/* Returns the same number for names that differ in digits only. */
static uint64_t hash_name(const char *name, const struct gil *g)
{
	uint64_t hash = 14695981039346656037u ^ (uint64_t)(g - gils);

	while (*name) {
		bool digit = *name >= '0' && *name <= '9';

		hash = (hash ^ (uint8_t)(digit ? '*' : *name)) * 1099511628211u;
		do
			name++;
		while (digit && *name >= '0' && *name <= '9');
	}
	return hash ? hash : 1;
}

static struct totals_slot *find_reusable(struct self *me, uint64_t name)
{
	unsigned n = page.next < TOTALS_SLOTS ? page.next : TOTALS_SLOTS;

	for (unsigned i = 0; i < n; i++) {
		bool no = false;

		if (page.names[i] == name && !page.owned[i] &&
		    atomic_compare_exchange_strong(&page.owned[i], &no, true)) {
			me->slot_number = i;
			return slot_at(i);
		}
	}
	return NULL;
}

/* The first thread that needs a chunk maps it; two threads may do so at the same time. */
static bool map_chunk(unsigned number)
{
	struct totals_slot *none = NULL, *where = page.chunk[number], *map;

	if (page.filed[number])
		return true;
	map = map_part(where, 0, TOTALS_SLOTS_AT + number * CHUNK_BYTES, CHUNK_BYTES);
	if (!map)
		return false;
	if (!where && !atomic_compare_exchange_strong(&page.chunk[number], &none, map))
		munmap(map, CHUNK_BYTES);
	page.filed[number] = true;
	return true;
}

/* A slot that no thread has, or may still write to; TOTALS_SLOTS: there is none. */
static unsigned free_slot(void)
{
	unsigned i;
	bool no;

	do {
		i = page.next < TOTALS_SLOTS ? atomic_fetch_add(&page.next, 1) : TOTALS_SLOTS;
		no = false;
	} while (i < TOTALS_SLOTS && !atomic_compare_exchange_strong(&page.owned[i], &no, true));
	return i < TOTALS_SLOTS ? i : TOTALS_SLOTS;
}

/* The group of an earlier thread of this name, or a new one. */
static uint32_t find_group(const struct gil *g, uint64_t name, unsigned before)
{
	uint32_t group;

	for (unsigned i = 0; i < before; i++) {
		const struct totals_slot *slot = page.names[i] == name ? slot_at(i) : NULL;

		if (slot && slot->group)
			return slot->group;
	}
	if (g - gils >= TOTALS_WAITED || page.groups[g - gils] >= TOTALS_OTHERS - 1)
		return TOTALS_OTHERS;
	group = atomic_fetch_add(&page.groups[g - gils], 1) + 1;
	return group < TOTALS_OTHERS ? group : TOTALS_OTHERS;
}

static struct totals_slot *make_slot(struct self *me, const struct gil *g, uint64_t name)
{
	unsigned i = free_slot();
	uint32_t used = page.header->slots;

	if (i == TOTALS_SLOTS)
		return NULL;
	if (!map_chunk(i / TOTALS_CHUNK)) {
		page.owned[i] = false;
		return NULL;
	}
	COUNT_SET(slot_at(i)->group, find_group(g, name, i));
	page.names[i] = name;
	while (used < i + 1 &&
	       !__atomic_compare_exchange_n(&page.header->slots, &used, i + 1, false,
	                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		continue;
	me->slot_number = i;
	return slot_at(i);
}

/* The names that an observer tells: read again only if there are more. */
static bool find_told(char *ret, struct self *me)
{
	const uint32_t names = __atomic_load_n(&process.control->names, __ATOMIC_ACQUIRE);
	struct totals_name entries[16];
	long fd, n;

	if (me->named || me->names == names)
		return false;
	me->names = names;
	fd = process_open_shared(TOTALS_NAMES, O_RDONLY);
	while (fd >= 0 && (n = syscall(SYS_read, fd, entries, sizeof(entries))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(*entries); i++)
			if (entries[i].tid == (uint32_t)me->tid) {
				memcpy(ret, entries[i].name, TOTALS_NAME - 1);
				me->named = true;
			}
	if (fd >= 0)
		syscall(SYS_close, fd);
	return me->named;
}

static void find_name(char *ret, struct self *me)
{
	memset(ret, 0, TOTALS_NAME);
	me->named = me->tid == (pid_t)page.header->pid;
	if (me->named)
		memcpy(ret, "MainThread", sizeof("MainThread"));
	else if (!counting.told || !(me->names = 0, find_told(ret, me)))
		prctl(PR_GET_NAME, ret);
}

/* The thread was cancelled while it waited. */
static void leave_waiting(struct totals_slot *slot)
{
	uint64_t ticks = count_change(slot, TOTALS_ENDED, clock_stamp());

	COUNT_ADD(slot->wait, ticks);
	COUNT_ADD(slot->wait_for[slot->holder], ticks);
}

static void leave_slot(struct self *me)
{
	struct count c = count_open(me, me->slot_gil);
	uint64_t ticks;

	if (!c.slot)
		return;
	if (c.slot->state == TOTALS_HOLD)
		COUNT_ADD(c.slot->hold, count_change(c.slot, TOTALS_ENDED, clock_stamp()));
	else if (c.slot->state == TOTALS_WAIT)
		leave_waiting(c.slot);
	else
		count_change(c.slot, TOTALS_ENDED, clock_stamp());
	ticks = c.slot->since - c.slot->began;
	COUNT_ADD(c.slot->lived, ticks);
	count_close(&c);
	me->slot = NULL;
	me->group = TOTALS_OTHERS;
	page.owned[me->slot_number] = false;
}

/* Gives the slot to the thread. */
static void enter_slot(struct self *me, const struct gil *g, struct totals_slot *slot,
                       const char *name)
{
	struct count c = { .slot = slot, .seq = slot->seq };
	uint64_t stamp;

	COUNT_SET(slot->seq, c.seq | 1);
	atomic_thread_fence(memory_order_release);
	stamp = clock_stamp();
	COUNT_SET(slot->gil, (uint32_t)(g - gils));
	COUNT_SET(slot->tid, (uint32_t)me->tid);
	COUNT_ADD(slot->threads, 1);
	memcpy(slot->name, name, TOTALS_NAME);
	count_change(slot, TOTALS_FREE, stamp);
	COUNT_SET(slot->began, slot->since);
	count_close(&c);
	me->slot = slot;
	me->group = slot->group;
}

static void take_slot(struct self *me, const struct gil *g, const char *name)
{
	uint64_t hash = hash_name(name, g);
	struct totals_slot *slot = find_reusable(me, hash);

	if (!slot)
		slot = make_slot(me, g, hash);
	if (slot)
		enter_slot(me, g, slot, name);
	else
		__atomic_fetch_add(&page.header->left_out, 1, __ATOMIC_RELAXED);
}

/*
 * ---- threads without a name
 *
 * A new thread is counted here until it has a name or its first hold ends; then its totals are
 * added to a slot for its name. Otherwise each process would have a group for threads before they
 * have their names.
 */

#define NURSERY 64

static struct totals_slot nursery[NURSERY];
static atomic_bool nursery_owned[NURSERY];

static bool is_unnamed(const struct totals_slot *slot)
{
	return slot >= nursery && slot < nursery + NURSERY;
}

static bool enter_nursery(struct self *me)
{
	for (unsigned i = 0; i < NURSERY; i++) {
		bool no = false;

		if (nursery_owned[i] ||
		    !atomic_compare_exchange_strong(&nursery_owned[i], &no, true))
			continue;
		nursery[i] = (struct totals_slot){ .state = TOTALS_FREE };
		nursery[i].since = nursery[i].began = clock_stamp();
		me->slot = &nursery[i];
		me->group = TOTALS_OTHERS;
		return true;
	}
	return false;
}

/* Moves the thread, with its totals, to a slot. */
static void leave_nursery(struct self *me, const struct gil *g, const char *name)
{
	struct totals_slot *from = me->slot, *to;
	struct count c;

	me->slot = NULL;
	me->slot_gil = g;
	take_slot(me, g, name);
	to = me->slot;
	c = count_open(me, g);
	if (to) {
		COUNT_SET(to->since, from->since);
		COUNT_SET(to->state, from->state);
		COUNT_SET(to->began, from->began);
		COUNT_ADD(to->wait, from->wait);
		for (unsigned i = 0; i < TOTALS_BUCKETS; i++)
			COUNT_ADD(to->waits[i], from->waits[i]);
		for (unsigned i = 0; i < TOTALS_GROUPS; i++)
			COUNT_ADD(to->wait_for[i], from->wait_for[i]);
		for (unsigned i = 0; i < TOTALS_LOCKS; i++)
			COUNT_ADD(to->lock_wait[i], from->lock_wait[i]);
		if (from->longest_wait > to->longest_wait) {
			COUNT_SET(to->longest_wait, from->longest_wait);
			COUNT_SET(to->longest_wait_end, from->longest_wait_end);
		}
		count_close(&c);
	}
	nursery_owned[from - nursery] = false;
}

/*
 * A thread that has ended gets no slot again. A thread in the nursery that threading does not name
 * gets its slot, with the kernel's name, during its first hold. The main thread, and threads that
 * have had a slot before, do not pass through the nursery.
 */
void count_take_slot(struct self *me, const struct gil *g)
{
	char name[TOTALS_NAME];
	int saved = errno;

	if (me->slot && is_unnamed(me->slot)) {
		if (me->slot->state != TOTALS_HOLD)
			return;
		find_name(name, me);
		leave_nursery(me, g, name);
		errno = saved;
		return;
	}
	if (me->slot)
		leave_slot(me);
	me->slot_gil = g;
	me->group = TOTALS_OTHERS;
	if (me->count_rounds >= PTHREAD_DESTRUCTOR_ITERATIONS ||
	    pthread_setspecific(page.key, me) != 0)
		return;
	me->tid = process_gettid();
	if (counting.named && !nogil_on && me->tid != (pid_t)page.header->pid && !me->was_counted &&
	    enter_nursery(me)) {
		me->slot_gil = NULL;
	} else {
		find_name(name, me);
		take_slot(me, g, name);
	}
	me->was_counted = true;
	errno = saved;
}

void count_learn_name(struct self *me, const struct gil *g)
{
	char name[TOTALS_NAME] = "";
	int saved = errno;

	if (me->slot && !me->named && find_told(name, me)) {
		leave_slot(me);
		take_slot(me, g, name);
	}
	errno = saved;
}

void count_forget(struct self *me)
{
	struct totals_slot *slot = me->slot;

	me->slot = NULL;
	if (!slot || is_unnamed(slot))
		return;
	memset((char *)slot + sizeof(slot->seq), 0, sizeof(*slot) - sizeof(slot->seq));
	page.owned[me->slot_number] = false;
}

void count_held(struct self *me, struct gil *g)
{
	struct count c = count_open(me, g);

	count_acquired(&c, TOTALS_HOLD, clock_stamp());
	g->group = me->group;
}

void count_nogil_thread(struct self *me)
{
	struct count c = count_open(me, &gils[0]);

	if (c.slot)
		count_close(&c);
}

void count_named(const char *name)
{
	struct self *me = &self;
	struct gil *g = NULL;
	char copy[TOTALS_NAME] = "";
	int saved = errno;
	struct count c;

	if (!counting.on || !me->slot || !*name || (me->slot->state != TOTALS_HOLD && !nogil_on))
		return;
	strncpy(copy, name, sizeof(copy) - 1);
	if (me->slot->state != TOTALS_HOLD) {
		if (strcmp(me->slot->name, copy) != 0 && me->tid != (pid_t)page.header->pid) {
			leave_slot(me);
			take_slot(me, &gils[0], copy);
		}
		errno = saved;
		return;
	}
	for (unsigned i = 0; !g && i < GILS_MAX; i++)
		if (gils[i].mutex && gils[i].holder == me)
			g = &gils[i];
	if (is_unnamed(me->slot)) {
		if (g) {
			leave_nursery(me, g, copy);
			waited_named(me, g);
		}
	} else if (g && strcmp(me->slot->name, copy) != 0 && me->tid != (pid_t)page.header->pid) {
		leave_slot(me);
		take_slot(me, g, copy);
		c = count_open(me, g);
		count_acquired(&c, TOTALS_HOLD, c.slot ? c.slot->since : 0);
		waited_named(me, g);
	}
	errno = saved;
}

/* Destructors of other code may take the GIL once more, in any order, so ours must run last. */
static void thread_ended(void *data)
{
	struct self *me = data;

	if (++me->count_rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
	    pthread_setspecific(page.key, me) == 0)
		return;
	me->count_rounds = PTHREAD_DESTRUCTOR_ITERATIONS;
	if (me->slot && is_unnamed(me->slot))
		nursery_owned[me->slot - nursery] = false;
	else if (!counting.on || me->recording != process.recording)
		count_forget(me);
	else if (me->slot)
		leave_slot(me);
	me->slot = NULL;
}

/* ---- a forked child */

/* Unmaps the parent's page. */
static void unmap(void)
{
	munmap(page.header, TOTALS_SLOTS_AT);
	for (unsigned i = 0; i < CHUNKS; i++) {
		if (page.chunk[i])
			munmap(page.chunk[i], CHUNK_BYTES);
		page.chunk[i] = NULL;
		page.filed[i] = false;
	}
	for (unsigned i = 0; i < TOTALS_SLOTS && i < page.next; i++)
		page.owned[i] = false;
	for (unsigned i = 0; i < NURSERY; i++)
		nursery_owned[i] = false;
	forget_slots();
	page.header = NULL;
	page.waited = NULL;
	page.gils = NULL;
	page.locks = NULL;
}

/* The thread that forked may hold a GIL. */
void count_in_child(void)
{
	struct self *me = &self;

	if (!counting.on)
		return;
	counting.on = false;
	unmap();
	me->slot = NULL;
	me->slot_gil = NULL;
	if (process.joined)
		return;
	begin();
	for (unsigned i = 0; i < GILS_MAX; i++) {
		gils[i].compared = 0;
		gils[i].waited = NULL;
		if (!counting.on || !gils[i].mutex)
			continue;
		count_gil_made(&gils[i]);
		if (gils[i].holder == me)
			count_held(me, &gils[i]);
	}
	if (nogil_on && counting.on)
		count_nogil_thread(me);
}
