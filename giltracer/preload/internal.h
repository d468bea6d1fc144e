/* SPDX-License-Identifier: MIT */
/*
 * The library that watches CPython's GIL from inside the process. It is loaded by LD_PRELOAD in
 * front of libc and sees the calls by which CPython creates, takes and releases a GIL.
 *
 * Rules for all its files, while a GIL is taken or released: no libc function that another
 * preloaded library may replace, no memory allocation, no lock that a traced thread may wait for,
 * errno unchanged. If something cannot be written, that is counted, and the program goes on.
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
#include "preload/totals.h"
#include "python/layout.h"
#include "python/waits.h"

#define EXPORT __attribute__((visibility("default")))

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct stream;
struct totals_slot;
struct totals_waited;

/**
 * An examination of a thread, which began after before_ns and was finished at at_ns.
 * @asleep: it slept meanwhile, and was not stopped
 * @delay_ns: its total time runnable; @slices: how often it got a CPU; 0: unknown
 */
struct holder_look {
	uint64_t before_ns, at_ns, delay_ns, slices;
	bool asleep;
};

/**
 * A holder that was asked to release its GIL.
 * @tid: 0: unknown, so that nothing is proven
 * @asked_ns, @cpu_ns: the time of the first request, and its CPU clock then
 * @look: the last examination; @slept_ns: known time asleep until then
 */
struct holder {
	pid_t tid;
	uint64_t asked_ns, cpu_ns, slept_ns;
	struct holder_look look;
};

/* A frame of a walk, and the values that distinguish its code object from another one at the
 * same address. If there is no code object, only code is compared. */
struct step {
	const char *code;
	uint64_t instruction;
	const char *name, *file, *table;
	uint64_t name_hash;
	uint32_t line;
	bool has_code;
};

/* The number of a list of frames that changed while it was read. */
#define FRAMES_TORN UINT32_MAX

#define WALKS      4 /* a power of two */
#define WALK_STEPS 8

/**
 * A remembered walk. @number: of PRELOAD_FRAMES, 0: none; @generation: of the log that has it
 * @whole: no frame follows the last one
 */
struct walked {
	uint32_t number, generation;
	uint16_t count;
	bool whole;
	struct step steps[WALK_STEPS];
};

/**
 * A GIL, from create_gil() to destroy_gil(). mutex NULL: the entry is free. The other members are
 * protected by the GIL's mutex.
 * @number: unique in the process
 * @holder: the thread that holds it; @last: the last holder
 * @switches: how often another thread got it
 * @walks: of its holders, by the instruction of the innermost frame
 * @group: of the holder, in the page of totals; also read without the mutex
 * @waited: its waits by holder, in the page of totals; NULL: not counted; @compared: the number of
 * waiting threads that use it
 * @asked_stamp: when the holder was asked to release it, 0: never; @asked: the holder since then;
 * @asked_frame: its stack then, FRAMES_TORN: uncertain; @asked_look: as last read, see
 * frames_of_holder()
 * @taken_stamp: when the holder got it; @noticed: that its hold is long; @told: a waiting thread has
 * recorded what the holder does
 * @turns: how often it was taken while uprobes recorded it
 * @taken_for_import: the present hold began while it was on for an import only, see nogil_import()
 */
struct gil {
	pthread_mutex_t *_Atomic mutex;
	pthread_cond_t *cond, *switch_cond;
	uint32_t number;
	struct self *holder;
	const struct self *last;
	uint64_t switches;
	uint64_t asked_stamp, taken_stamp;
	bool noticed, told, taken_for_import;
	struct totals_waited *waited;
	uint32_t compared, group, asked_frame, asked_look;
	uint32_t turns;
	struct holder asked;
	struct walked walks[WALKS];
	atomic_uint waiters; /* not protected */
};

/* The last calls of a thread that initialized mutexes and condition variables: see gils.c. */
struct init_call {
	void *object;
	const char *caller;
};

/**
 * A wait of a thread that does not sleep, which is recorded when it has ended.
 * @lock: its address; 0: none
 */
struct spin {
	uint64_t lock, from, to;
	uint32_t frame;
};

/**
 * The state of a thread.
 * @at, @end: the address of its next record, and the end of the mapped part
 * @released_at: the record of a release, while the next acquire may become part of it; NULL: none
 * @acquired_stamp: of the last acquire that it recorded
 * @stream: its stream; NULL: none yet
 * @taking: the GIL that it requests; @waits: it has written a PRELOAD_REQUEST
 * @requested_stamp: of that; @noticed: that the wait is long
 * @asks: it has waited for an interval; by its next wait, it has asked the holder to release
 * @gave: it has released a GIL that others request, and is still in drop_gil
 * @tid: set when it has, or should have, a stream; before 0; @gil, @frame: of its last records
 * @creator: tid of the thread that created it, 0: unknown
 * @busy: the stream is being opened or extended, which a signal handler must not do
 * @rounds, @count_rounds: how often destructors of the ending thread have run
 * @slot: in which it is counted, with slot_gil and slot_number; NULL: none
 * @group: of the slot
 * @was_counted: it has had a slot before; @named: under the program's name for it; @names: how many the
 * observer had told when its own was sought
 * @has_had_gil: it is one of Python's threads; @stops: it has stopped the world, or is about to;
 * @released_in: without a GIL: its innermost frame, which exists until it takes the GIL again;
 * NULL: unknown
 * @took: the semaphores that it took last, the last one first, and has not posted since; NULL: none
 * @putting_lock: it writes the two records of an event of a lock
 * @waits_for_import: its request of the GIL was recorded as a wait for a lock, see nogil_import()
 * @recording: process.recording when this was written
 * @last: the last event, while uprobes record; PRELOAD_END: none; @last_stamp, @last_gil: its own
 */
struct self {
	uint64_t *at, *end, *released_at;
	uint64_t acquired_stamp;
	struct stream *stream;
	struct gil *taking;
	bool waits, asks, gave, busy, noticed;
	uint64_t requested_stamp;
	pid_t tid, creator;
	uint32_t gil, frame;
	unsigned conds, rounds, count_rounds, slot_number;
	uint32_t group;
	struct totals_slot *slot;
	const struct gil *slot_gil;
	uint32_t names;
	bool was_counted, named, putting_lock, has_had_gil, stops, waits_for_import;
	const char *released_in;
	const void *took[2], *ordered[2];
	struct spin spin;
	struct init_call mutex[2], cond;
	uint32_t recording;
	enum preload_type last;
	uint64_t last_stamp;
	const struct gil *last_gil;
};

extern __thread struct self self __attribute__((tls_model("initial-exec")));

/* ---- clock.c */

extern bool clock_is_tsc;

void clock_begin(void);
uint64_t clock_ns(void);

/* Reads both clocks at the same moment: a stamp, and CLOCK_MONOTONIC in ns. */
void clock_look(uint64_t *stamp, uint64_t *ns);

static inline uint64_t clock_stamp(void)
{
#if defined(__x86_64__)
	if (LIKELY(clock_is_tsc))
		return __rdtsc();
#endif
	return clock_ns();
}

/* The same, but ordered after everything that precedes it in the program: to be used after
 * taking a lock. */
static inline uint64_t clock_stamp_after(void)
{
#if defined(__x86_64__)
	unsigned cpu;

	if (LIKELY(clock_is_tsc))
		return __rdtscp(&cpu);
#endif
	return clock_ns();
}

/* ---- interpose.c */

/* libc's functions, for a GIL's mutex if we lock it ourselves. */
void real_lock(pthread_mutex_t *mutex);
void real_unlock(pthread_mutex_t *mutex);

/* Finds the function that ours replaces, of this version if there are several; NULL: the default
 * one. *ret is unchanged if there is none. */
void real_find(void *ret, const char *name, const char *version);

/* Our functions, terminated by a name of NULL. @needed: any CPython calls it; @nogil: its calls
 * tell something in free-threaded builds only */
struct interposed {
	const char *name;
	void *function;
	bool needed, nogil;
};

extern const struct interposed interposed[];

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

/* The GIL that the mutex or condition variable belongs to. Nearly every process has only one
 * GIL, and the filters save the search for nearly all other mutexes. */
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

/* Of an earlier recording of a program that was already running, whose interpreters may have ended
 * since. */
void gils_forget(void);

/* Writes all of them to the log again. */
void gils_log(void);

/* The GIL that the thread holds; NULL: none. */
const struct gil *gils_held(const struct self *me);

/* Adds a GIL that was created before. held: by the caller, otherwise it is off */
void gils_found(pthread_mutex_t *mutex, pthread_cond_t *cond, pthread_cond_t *switch_cond,
                bool held);

/* CPython's symbol of this name; NULL: it has none. */
void *gils_symbol(const char *name);

/* ---- frames.c */

/* CPython has created a GIL; symbol() finds CPython's symbols. */
void frames_begin(void *(*symbol)(const char *name));

/* The number of the stack of the thread that is about to release the GIL, whose innermost frame is
 * this one; 0: unknown. */
uint32_t frames_now(struct gil *g, const char *frame);

/* The number of the stack of the thread that holds the GIL, for another thread that has locked the
 * GIL's mutex. FRAMES_TORN: it changed while it was read; 0: unknown. */
uint32_t frames_of_holder(const struct gil *g);
/* The same for another thread, by its PyThreadState; 0: it changed while it was read, or is unknown. */
uint32_t frames_of_thread(const char *tstate);
void frames_again(void);

/* Completes the layout of the version that it is of, from the table that the interpreter publishes (from
 * 3.13 on; NULL: none), and from the file PRELOAD_OFFSETS. False: neither has that version. */
bool frames_layout(struct python_layout *layout, const void *published);

/* The innermost frame of this thread, which is about to release the GIL; NULL: unknown, or none.
 * Earlier in the hold, the GIL may name a state that the thread has left, and freed, for another
 * interpreter's. */
const char *frames_innermost(const struct gil *g);

/* The innermost frame of this thread, at any time; NULL: unknown. */
const char *frames_running(const struct self *me);

/* Whether the interpreter ends: it frees the frames of threads that are without a GIL. */
bool frames_end(void);

/* The innermost frame of this thread, which has released the GIL; NULL: unknown. For what is rare:
 * while recording, struct self has it. */
const char *frames_without_gil(void);

/* What this thread waits for, whose innermost frame this is, as far as its frames tell. */
enum python_wait frames_lock_wait(const char *frame);

/* A line in which a thread waits. @where, @entry, @place: if it has no number yet */
struct frames_line {
	uint32_t number;
	char where[TOTALS_LOCK_TEXT];
	_Atomic uint64_t *entry;
	uint64_t place;
};

/* That line, before the wait: an interpreter that ends frees the frames of threads that wait. Its
 * number in the page of totals, which it gets when the wait is counted. */
void frames_find_line(struct frames_line *ret, const char *frame);
uint32_t frames_number_line(struct frames_line *line);

/* The process counts, and symbol() finds CPython's symbols: finds the layout of frames. */
void frames_count_locks(void *(*symbol)(const char *name));

/* The page of totals is another one. */
void frames_forget_places(void);

/* Copies memory that may not be mapped, or that other threads may free. */
bool frames_copy(void *ret, const char *from, size_t size);

/* The number of the stack whose innermost frame is this one, of this thread; 0: unknown. Without a
 * GIL, too. */
uint32_t frames_from(const char *frame);

/* Writes the characters of a str as UTF-8, and returns their number of bytes; 0: it is none. */
size_t frames_text(char *ret, size_t room, const char *str);

/* ---- stream.c */

/* A file of records. The part that its thread uses is in struct self.
 * @mapped_stamp: when the present part was mapped */
struct stream {
	uint64_t *at; /* valid while no thread has it */
	void *map;
	size_t map_size;
	uint64_t file_size, mapped_stamp;
	struct preload_header *header; /* always mapped */
	struct stream *next;
	unsigned number;
	atomic_bool owned;
	bool full;
};

/* Make room for another record, or open a stream first; false: impossible, which is counted. */
bool stream_extend(struct self *me, uint64_t stamp);

/* Differs between the thread-local storages of all threads, whose stacks have 16 KiB or more. */
#define STREAM_SELF_BITS 14

static inline uintptr_t stream_self(const struct self *me)
{
	return (uintptr_t)me >> STREAM_SELF_BITS;
}

/* The thread with a stream whose stream_self() is this; 0: unknown. */
pid_t stream_thread(uintptr_t self);

/* Creates a thread by libc's pthread_create, here given, so that the thread knows its creator.
 * python: it is one of a free-threaded CPython, and is recorded from its beginning on. */
int stream_create_thread(int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                       void *),
                         pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                         void *argument, bool python);
void stream_thread_ended(void *me);
void stream_in_child(void);

/* Another recording begins, with other files. The previous streams are forgotten; each thread
 * unmaps its own. */
void stream_again(void);
void stream_forget(struct self *me);

/* Returns the record; NULL: there is no room for it. A signal handler may interrupt this function
 * and write records of its own. */
static inline uint64_t *stream_put(struct self *me, enum preload_type type, uint64_t number)
{
	uint64_t *at;

	if (UNLIKELY(me->at >= me->end) && !stream_extend(me, type < PRELOAD_OF_GIL ? number : 0))
		return NULL;
	at = me->at;
	me->at = at + 1;
	atomic_signal_fence(memory_order_seq_cst);
	__atomic_store_n(at, number << PRELOAD_TYPE_BITS | type, __ATOMIC_RELEASE);
	return at;
}

/* States the frames of the events that follow. */
static inline void stream_put_frame(struct self *me, uint32_t frame)
{
	if (LIKELY(frame == me->frame))
		return;
	stream_put(me, PRELOAD_OF_FRAME, frame);
	me->frame = frame;
}

/* Writes an event of a GIL. */
static inline uint64_t *stream_put_gil(struct self *me, enum preload_type type, uint64_t stamp,
                                       const struct gil *g)
{
	if (UNLIKELY(me->gil != g->number)) {
		stream_put(me, PRELOAD_OF_GIL, g->number);
		me->gil = g->number;
	}
	return stream_put(me, type, stamp);
}

static inline void stream_put_release(struct self *me, uint64_t stamp, const struct gil *g)
{
	uint64_t *at = stream_put_gil(me, PRELOAD_RELEASE, stamp, g);

	me->released_at = LIKELY(stamp - me->acquired_stamp < PRELOAD_TURN_NEAR) ? at : NULL;
}

/* If the record before it is that of a release a short time ago, that becomes a record of both. */
static inline void stream_put_acquire(struct self *me, uint64_t stamp, const struct gil *g)
{
	uint64_t *at = me->released_at;

	me->acquired_stamp = stamp;
	if (LIKELY(at && at + 1 == me->at && me->gil == g->number)) {
		const uint64_t release = *at >> PRELOAD_TYPE_BITS, since = stamp - release;

		me->released_at = NULL;
		if (LIKELY(since < PRELOAD_TURN_MAX)) {
			__atomic_store_n(at, PRELOAD_TURN_WORD(release, since), __ATOMIC_RELEASE);
			return;
		}
	}
	stream_put_gil(me, PRELOAD_ACQUIRE, stamp, g);
}

/* ---- handover.c */

/* Keeps the event if uprobes record it, and returns true. False: it is to be recorded, and the event
 * that was kept before it has been. */
bool handover_keep(struct self *me, enum preload_type type, uint64_t stamp, const struct gil *g);

/* The GIL was taken while uprobes record it, and its mutex is locked: now and then, compares their
 * cost with the CPU time. */
void handover_turn(struct gil *g);

/* Turns are counted from now on. turn_ns: see struct preload_control */
void handover_begin(uint64_t turn_ns);

/* ---- process.c */

/**
 * @on: a GIL was created, and there is a folder to write to
 * @stamp: the time of that
 * @path: of its files, up to the suffix
 * @watches: there are moments to look for
 * @pairs: number of readings of both clocks
 * @parents: of PRELOAD_PROCESS; @forked, @forked_by: of PRELOAD_FORKED
 * @keeps_log: somebody remembers numbers of its entries
 * @recording: a number that changes with each recording of a program that was already running
 * @joined: the program was already running, and is being recorded
 * @sealed: the program has restricted its system calls: we make no more
 * @use: in control, or a zero
 */
struct process {
	_Atomic bool on;
	bool joined, mutexes, has_key, sealed, watches, forked, keeps_log;
	uint64_t parents, forked_by;
	uint32_t recording;
	pid_t pid;
	uint64_t stamp;
	_Atomic uint64_t next_pair;
	atomic_uint pairs;
	size_t path_len;
	struct preload_control *control;
	const uint32_t *use;
	pthread_key_t key;
	char path[PRELOAD_DIR_MAX + 128];
};

extern struct process process;

/* What the library does about the GIL. */
static inline enum preload_use process_use(void)
{
	return (enum preload_use)__atomic_load_n(process.use, __ATOMIC_ACQUIRE);
}

/* Whether all events of GILs are recorded. Otherwise another engine records them, and the library
 * only the frames of holders at release requests. */
static inline bool process_of_gil(void)
{
	return process.on && LIKELY(process_use() == PRELOAD_USE_RECORD);
}

/* Whether uprobes record the GIL, and the library may take over. */
static inline bool process_counts(void)
{
	return UNLIKELY(process_use() == PRELOAD_USE_COUNT);
}

/* A GIL has been created: this process has files from now on. */
void process_begin(void);

/* The same, in this folder, possibly again. False: impossible. */
bool process_begin_in(const char *dir);

/* Records the end of this process; otherwise its GIL would seem to be held from its last record
 * on. */
void process_ended(void);

/* Append an entry to the log, with its text, which may be in two parts. False: it could not be
 * written. */
bool process_log(const struct preload_entry *entry, const void *text, size_t len);
bool process_log2(const struct preload_entry *entry, const void *text, size_t len, const void *more,
                  size_t more_len);

/* Begins a new log, without GILs, functions and frames; the previous one stays until the next time.
 * False: impossible. */
bool process_renew_log(void);

/* Appends text to a file that all processes share. */
void process_append(const char *name, const void *text, size_t len);

/* Whether a file of ours may become that long. Beyond the program's RLIMIT_FSIZE, the kernel would
 * send a signal to the program. */
bool process_may_extend(uint64_t size);

/* Reserve the blocks of a part of a file before it is mapped: writing to a mapped page for which a
 * full disk has no block would end the program. */
bool process_reserve(long fd, uint64_t at, size_t bytes);

/* Of a flight recorder: for how long records are kept, in ticks of the clock; 0: for ever. */
static inline uint64_t process_kept(void)
{
	return process.control ? process.control->kept_stamps << (process.control->copying & 1) : 0;
}

/* Whether it has more records than there is room for. */
static inline bool process_is_over(void)
{
	const struct preload_control *control = process.control;

	return __atomic_load_n(&control->used, __ATOMIC_RELAXED) >
	       control->limit << (control->copying & 1);
}

/* Whether the recording may grow by this many bytes. A flight recorder always may. */
bool process_may_use(size_t bytes, uint64_t stamp);

/* Notes that records from stamp on cannot be written, for lack of a file. */
void process_unwritten(uint64_t stamp);

/* Opens a file of the folder by its path. With O_CREAT, it is made if necessary, and a failure is
 * noted with its reason. */
long process_open(const char *path, int flags);

/* Keeps the folder open, because the program is about to become another user or to change its root
 * folder. */
void process_keep(void);

/* The program is about to restrict its system calls, and has done so: recording ends, since a call
 * of ours may now end the program. Returns whether it was on; failed: it goes on. */
bool process_before_filter(void);
void process_filtered(bool was_on, bool failed);

void process_close(void);

/* Writes a reading of both clocks. */
void process_pair(void);

/* Opens a file that all processes of the recording share, in the folder of process.path; negative if
 * that fails. */
long process_open_shared(const char *name, int flags);

/* The path of the process's file with this suffix; ret has room for sizeof(process.path). */
void process_file(char *ret, const char *suffix);

/* Writes "/PID.STAMP", which identifies a process's files, without a terminator; returns its
 * end. */
char *process_put_file(char *ret, uint64_t pid, uint64_t stamp);

pid_t process_gettid(void);

/* Writes value in decimal to ret and returns its end; printf may allocate memory. */
char *process_put_number(char *ret, uint64_t value);

/* ---- join.c: a program that was already running */

/* Called when the GIL is released, with its mutex locked: checks whether the recording goes on. */
void join_look(uint64_t stamp);

/* The same while the program counts; the thread has released this GIL. */
void join_counted(struct self *me, const struct gil *g, uint64_t stamp);

/* Initializes the calling thread for this recording. */
void join_thread(struct self *me);

/* Whether a forked child is recorded, too. */
bool join_in_child(void);

/* The state of the calling thread in this recording. */
static inline struct self *join_self(void)
{
	if (UNLIKELY(self.recording != process.recording))
		join_thread(&self);
	return &self;
}

/* Backwards from cond. */
#define GIL_LAST_HOLDER (PYTHON_GIL_COND - PYTHON_GIL_HOLDER)
#define GIL_LOCKED      (PYTHON_GIL_COND - PYTHON_GIL_LOCKED)
#define GIL_ON          (PYTHON_GIL_COND + PYTHON_GIL_AFTER_ON) /* free-threaded builds */

static inline bool join_is_locked(const struct gil *g)
{
	return __atomic_load_n((const int *)((const char *)g->cond - GIL_LOCKED),
	                       __ATOMIC_RELAXED) != 0;
}

/* ---- moments.c: long waits and holds, of which a flight recorder is to report. Called with the
 * mutex of the GIL locked, if process.watches */

/* The thread has waited until stamp, or still waits then. */
void moments_waited(struct self *me, uint64_t stamp, bool ended);

/* The same for the holder, the thread tid. */
void moments_held(struct gil *g, pid_t tid, uint64_t stamp, bool ended);

/* The thread's event loop has run one thing for so many ticks. No mutex is needed. */
void moments_stepped(uint64_t ticks);

/* ---- holder.c: called with the mutex of the GIL locked; tid is its holder, 0: unknown */

/* The holder is about to be asked to release the GIL: for the first time in this hold, or again. */
void holder_asked(struct holder *holder, pid_t tid, const pthread_mutex_t *mutex);
void holder_asked_again(struct holder *holder, pid_t tid, const pthread_mutex_t *mutex);

/* tid, the caller, releases the GIL. Returns the time since asked_ns in which it is not known to
 * have computed or slept, in ns. */
uint64_t holder_excused(const struct holder *holder, pid_t tid);

#endif
