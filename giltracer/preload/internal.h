/* SPDX-License-Identifier: MIT */
/*
 * The library that CPython's GIL is watched with from inside the process. It is loaded by
 * LD_PRELOAD in front of libc and sees the calls by which CPython makes, takes and releases a GIL.
 *
 * Rules of all its files: no libc function that another preloaded library may replace where a GIL
 * is taken or released, no memory allocation, no lock that a traced thread may wait for, errno as
 * it was. What cannot be written is counted; the program goes on.
 */
#ifndef GILTRACER_PRELOAD_INTERNAL_H
#define GILTRACER_PRELOAD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "preload/format.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct stream;
struct totals_slot;

/**
 * What the scheduler has on record of a thread, in ns since it began.
 * @at_ns: when this was read; @delay_ns: runnable, not running; @slices: how often it got a CPU, 0
 * if delay_ns and slices are unknown
 */
struct run_state {
	uint64_t at_ns, cpu_ns, delay_ns, slices;
};

/* A frame of a walk, and what tells its code object from another one at that address. Of one that
 * has no code object, code alone counts. */
struct step {
	const char *code;
	uint64_t instruction;
	const char *name, *file, *table;
	uint64_t name_hash;
	uint32_t line;
	bool has_code;
};

#define WALKS      4 /* a power of two */
#define WALK_STEPS 8

/**
 * A walk that was done before.
 * @number: of PRELOAD_FRAMES, 0: there is none
 * @whole: there is no frame behind the last one
 */
struct walked {
	uint32_t number;
	uint16_t count;
	bool whole;
	struct step steps[WALK_STEPS];
};

/**
 * A GIL, from create_gil() to destroy_gil(). mutex NULL: the place is free. What follows is guarded
 * by the GIL's mutex.
 * @number: unique in the process
 * @holder: the thread that has it; @last: the one that had it last
 * @switches: how often another thread got it
 * @walks: of its holders, by the instruction of the innermost frame
 * @asked_stamp: when the holder was asked to release it, 0: it was not; @asked_state: of the
 * holder, shortly before
 */
struct gil {
	pthread_mutex_t *_Atomic mutex;
	pthread_cond_t *cond, *switch_cond;
	uint32_t number;
	struct self *holder;
	const struct self *last;
	uint64_t switches;
	uint64_t asked_stamp;
	struct run_state asked_state;
	struct walked walks[WALKS];
	atomic_uint waiters; /* not guarded */
};

/* The last calls of a thread that made mutexes and condition variables: see gils.c. */
struct init_call {
	void *object;
	const char *caller;
};

/**
 * What a thread knows of itself.
 * @at, @end: where its next record goes, and where what is mapped for it ends
 * @stream: where that is; NULL: not yet, or there is none
 * @taking: the GIL that it wants; @waits: a PRELOAD_REQUEST has said so
 * @gave: a GIL that others want, and is not yet out of drop_gil
 * @tid: once it has a stream; @gil, @frame: what its records are about
 * @busy: the stream is being opened or extended: a signal handler may not
 * @rounds, @count_rounds: how often destructors of the ending thread have run
 * @slot: where it is counted, with slot_gil and slot_number; NULL: it is not
 * @was_counted: it has had one before
 */
struct self {
	uint64_t *at, *end;
	struct stream *stream;
	struct gil *taking;
	bool waits, gave, busy;
	pid_t tid;
	uint32_t gil, frame;
	unsigned conds, rounds, count_rounds, slot_number;
	struct totals_slot *slot;
	const struct gil *slot_gil;
	bool was_counted;
	struct init_call mutex[2], cond;
};

extern __thread struct self self __attribute__((tls_model("initial-exec")));

/* ---- clock.c */

extern bool clock_is_tsc;

void clock_begin(void);
uint64_t clock_ns(void);

/* Both clocks at one moment: a stamp, and CLOCK_MONOTONIC in ns. */
void clock_look(uint64_t *stamp, uint64_t *ns);

static inline uint64_t clock_stamp(void)
{
#if defined(__x86_64__)
	if (LIKELY(clock_is_tsc))
		return __rdtsc();
#endif
	return clock_ns();
}

/* The same, and not before what comes before it in the program: after a lock was taken. */
static inline uint64_t clock_stamp_after(void)
{
#if defined(__x86_64__)
	unsigned cpu;

	if (LIKELY(clock_is_tsc))
		return __rdtscp(&cpu);
#endif
	return clock_ns();
}

/* ---- gils.c */

#define GILS_MAX    256
#define FILTER_SIZE 512

extern uint8_t gils_mutex_filter[FILTER_SIZE], gils_cond_filter[FILTER_SIZE];
extern struct gil gils[GILS_MAX];

struct gil *gils_search_mutex(const pthread_mutex_t *mutex);
struct gil *gils_search_cond(const pthread_cond_t *cond, bool is_switch);

static inline unsigned gils_hash(const void *address)
{
	uintptr_t a = (uintptr_t)address;

	return (unsigned)(a >> 3 ^ a >> 12) % FILTER_SIZE;
}

/* The GIL that the mutex or condition variable belongs to. Nearly every process has one GIL, and
 * the filters keep nearly every other mutex from a search. */
static inline struct gil *gils_of_mutex(const pthread_mutex_t *mutex)
{
	if (gils[0].mutex == mutex)
		return &gils[0];
	return LIKELY(!gils_mutex_filter[gils_hash(mutex)]) ? NULL : gils_search_mutex(mutex);
}

static inline struct gil *gils_of_cond(const pthread_cond_t *cond)
{
	if (gils[0].cond == cond && gils[0].mutex)
		return &gils[0];
	return LIKELY(!gils_cond_filter[gils_hash(cond)]) ? NULL : gils_search_cond(cond, false);
}

void gils_mutex_made(pthread_mutex_t *mutex, const char *caller);
void gils_mutex_gone(pthread_mutex_t *mutex);
void gils_cond_made(pthread_cond_t *cond, const char *caller);
void gils_in_child(void);

/* ---- frames.c */

/* A GIL has been made by CPython, of which symbol() finds the symbols. */
void frames_begin(void *(*symbol)(const char *name));

/* The number of what runs in the thread that is about to release the GIL; 0: unknown. */
uint32_t frames_now(struct gil *g);
void frames_in_child(void);

/* ---- stream.c */

/* A file of records. What its thread has of it is in struct self. */
struct stream {
	uint64_t *at; /* while no thread has it */
	void *map;
	size_t map_size;
	uint64_t file_size;
	struct preload_header *header; /* mapped for good */
	struct stream *next;
	unsigned number;
	atomic_bool owned;
	bool full;
};

/* Room for a record more, or a stream to begin with; false: there is none, which is counted. */
bool stream_extend(struct self *me, uint64_t stamp);
void stream_thread_ended(void *me);
void stream_in_child(void);

/* A signal handler may come in between, and write records of its own. */
static inline void stream_put(struct self *me, enum preload_type type, uint64_t number)
{
	uint64_t *at;

	if (UNLIKELY(me->at >= me->end) && !stream_extend(me, type < PRELOAD_OF_GIL ? number : 0))
		return;
	at = me->at;
	me->at = at + 1;
	atomic_signal_fence(memory_order_seq_cst);
	__atomic_store_n(at, number << PRELOAD_TYPE_BITS | type, __ATOMIC_RELEASE);
}

/* What happens to a GIL. */
static inline void stream_put_gil(struct self *me, enum preload_type type, uint64_t stamp,
                                  const struct gil *g)
{
	if (UNLIKELY(me->gil != g->number)) {
		stream_put(me, PRELOAD_OF_GIL, g->number);
		me->gil = g->number;
	}
	stream_put(me, type, stamp);
}

/* ---- process.c */

/**
 * @on: a GIL was made, and there is a folder to write to
 * @stamp: when that was
 * @path: of its files, up to the suffix
 */
struct process {
	_Atomic bool on;
	pid_t pid;
	uint64_t stamp;
	_Atomic uint64_t next_pair;
	size_t path_len;
	struct preload_control *control;
	pthread_key_t key;
	char path[PRELOAD_DIR_MAX + 128];
};

extern struct process process;

/* A GIL has been made: from now on this process has files. */
void process_begin(void);
void process_in_child(void);

/* Append an entry to the log, with its text, which may be in two parts. */
void process_log(const struct preload_entry *entry, const void *text, size_t len);
void process_log2(const struct preload_entry *entry, const void *text, size_t len, const void *more,
                  size_t more_len);

/* Whether the recording may have so many bytes more. */
bool process_may_use(size_t bytes, uint64_t stamp);

/* Records from stamp on cannot be written, and there is no file to say so. */
void process_unwritten(uint64_t stamp);

/* What relates stamps to CLOCK_MONOTONIC. */
void process_pair(void);

/* The path of the process's files with suffix behind it; ret has room for sizeof(process.path). */
void process_file(char *ret, const char *suffix);

/* "/PID.STAMP", by which a process's files are known, and where that ends; without a final 0. */
char *process_put_file(char *ret, uint64_t pid, uint64_t stamp);

pid_t process_gettid(void);

/* Of a thread of the process, or zeros. */
void process_run_state(struct run_state *ret, pid_t tid);

/* For how long the thread, the caller, was kept from running since then, in ns: in line for a CPU,
 * or while a hypervisor had its CPU. The latter is told only if it has had the CPU all along, as
 * seen by the kernel: otherwise it may have slept. */
uint64_t process_kept_off(const struct run_state *since, pid_t tid);

#endif
