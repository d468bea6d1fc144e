/* SPDX-License-Identifier: MIT */
/*
 * Events -> which thread held which GIL when, which threads waited, and which holder each wait is
 * charged to. One model per recording (pass). Feed it every event in time order, finish it, then
 * read it.
 *
 * Invariants, checked by model_check() on every recording:
 *	per thread  hold + wait + free wait + no_gil + unknown = end - start, to the nanosecond;
 *	            waiting for a lock and stopping the world are parts of no_gil
 *	per GIL     at no instant two holders
 *	per thread  the CPU states add up to the same life
 *	free waits  nobody held the GIL during any of them; they are not waiting, and appear neither
 *	            in blame nor among a GIL's waiters
 *	blame       the rows of a waiter add up to its gil_ns[GIL_WAIT]
 *	lock blame  the same for gil_ns[GIL_LOCK_WAIT] and gil_ns[GIL_STOPPED]
 *	CPU blame   the rows of a thread add up to its cpu_ns[CPU_RUNNABLE]
 *
 * State: 20 bytes per span of a lane and 16 per change of a GIL's owner or number of waiters. A
 * turn of a thread (request, acquire, release, return of drop_gil: 4 events) is 4 spans and 3
 * changes, 128 bytes or 32 per GIL event; a switch in or out or a wake-up is one span, 20 bytes. If
 * all CPUs were recorded, each switch of the machine takes 16 bytes, and so does each move of a
 * thread to another run queue. Nothing else grows with the recording.
 *
 * Times are CLOCK_MONOTONIC in ns. Times in unions of lanes are half-open: [start, end).
 */
#ifndef GILTRACER_MODEL_MODEL_H
#define GILTRACER_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "trace/event.h"

#define MODEL_NONE    UINT32_MAX       /* no thread, no GIL */
#define MODEL_UNKNOWN (UINT32_MAX - 1) /* some thread, or none: records are missing */

enum gil_state {
	GIL_UNKNOWN,     /* before the thread's first event, or records were lost */
	GIL_NO,          /* released: running C code, or asleep */
	GIL_HOLD,        /* acquire -> release */
	GIL_WAIT,        /* request -> acquire; a GIL that was not free throughout */
	GIL_SWITCH_WAIT, /* release while others wait -> return of drop_gil; part of the wait in
	                  * totals */
	GIL_FREE_WAIT,   /* request -> acquire of a GIL that is known to have been free throughout:
	                  * tracing overhead or scheduling delay, not waiting. Distinguished from
	                  * GIL_WAIT at the end */
	/* Without the GIL, in a free-threaded interpreter: */
	GIL_LOCK_WAIT, /* asleep, waiting for a lock that another thread holds */
	GIL_STOPPED,   /* stopped until the thread that stopped the world starts it again */
	GIL_STOPPING,  /* that thread, from its request to stop until it has started the others
	                * again */
	GIL_SPINNING, /* trying again and again to get a lock that another thread holds, on a CPU or
	                * while it has yielded that; part of no_gil like a wait for a lock */
	GIL_STATES,
};

/* Whether a thread in this state is without the GIL. */
static inline bool gil_state_is_without(unsigned state)
{
	return state == GIL_NO || state >= GIL_LOCK_WAIT;
}

enum cpu_state {
	CPU_UNKNOWN,
	CPU_RUNNING,
	CPU_RUNNABLE,
	CPU_SLEEPING,        /* S, or any sleep if prev_state was not recorded */
	CPU_UNINTERRUPTIBLE, /* D */
	CPU_GIL_SLEEP,       /* S(GIL): asleep inside take_gil */
	CPU_STATES,
};

enum span_flags {
	SPAN_INFERRED_END = 1 << 0, /* a hold whose release no probe saw; a sleep whose wake-up was
	                             * not recorded, so that its end may have been RUNNABLE */
	SPAN_INFERRED_START = 1 << 1, /* a hold assumed at the start, or inherited by fork */
	SPAN_OPEN_END = 1 << 2,       /* the span was cut by the end of the recording or of the
	                               * thread */
	SPAN_LOST = 1 << 3,           /* unknown because records are missing */
	SPAN_STOPPED = 1 << 4,        /* a sleep caused by a stop signal or a debugger; unknown,
	                               * because the process was suspended */
	SPAN_ELSEWHERE = 1 << 5, /* a hold that was not released on request, because of a function
	                          * that is unknown and may have returned before the end */
	SPAN_ASKED = 1 << 6,     /* a hold whose frame is that of the release request */
};

/**
 * A stretch of a lane; it ends where the next one starts, the last one at the lane's end. There are
 * so many that four bytes of padding would matter.
 * @state: enum gil_state in a GIL lane, enum cpu_state in a CPU lane
 * @flags: enum span_flags
 * @gil: in a GIL lane
 * @gil.owner_hint: HOLD and WAIT: see owners_of(); otherwise -1
 * @gil.index: HOLD and waits for a GIL: index of the GIL; otherwise MODEL_NONE
 * @gil.lock: LOCK_WAIT and STOPPED: index of the lock, instead of index
 * @gil.frame: id of a Python frame in the source's frames, 0: unknown. HOLD: the frame that ran
 *             when its release was requested, if that is known, otherwise at its end; waits: the waiting frame; LOCK_WAIT, STOPPED, STOPPING: the current frame
 * @cpu: in a CPU lane
 * @cpu.number: RUNNING: number of the CPU; otherwise -1
 * @cpu.waker: index of the thread that woke this one, on the span that follows the wake-up;
 *             otherwise MODEL_NONE
 * @cpu.stack: off CPU: id of a stack in the source's stacks, 0: none
 */
struct span {
	uint64_t start_ns;
	uint8_t state;
	uint8_t flags;
	union {
		struct {
			int16_t owner_hint;
			union {
				uint32_t index, lock;
			};
			uint32_t frame;
		} __attribute__((packed, aligned(2))) gil;
		struct {
			int16_t number;
			uint32_t waker;
			uint32_t stack;
		} __attribute__((packed, aligned(2))) cpu;
	};
} __attribute__((packed, aligned(4)));

/* Contiguous spans; equal neighbours are merged unless both are holds or waits. */
struct lane {
	VEC(struct span) spans;
	uint64_t end_ns;
};

/**
 * A wait for a signal, such as an item of a queue, an event, or the end of a thread, that ended within
 * the recording. It is a part of GIL_NO.
 * @by: the thread that sent the signal, at @sent_ns; MODEL_NONE: none did, so the wait timed out or
 * was interrupted; MODEL_UNKNOWN: one of several
 * @frame: in which it was sent; @waits_in: in which the thread waited; ids in the source's frames, 0:
 * unknown
 */
struct model_signal {
	uint64_t from_ns, to_ns, sent_ns;
	uint32_t by, frame, waits_in;
};

/* A wait for a lock, from from_ns on, that no release ended, and the thread that had the lock when it
 * began. */
struct model_kept {
	uint64_t from_ns;
	uint32_t holder;
};

/**
 * A thread in the recording. gil_ns[] and cpu_ns[] are indexed by the enums and add up to
 * end_ns - start_ns each.
 * @holds, @waits, @free_waits: numbers of HOLD, WAIT and FREE_WAIT spans (switch waits do not
 * count)
 * @gil_events: number of its GIL events, as in struct model; @probe_events: those while uprobes
 * recorded; @probe_turns: requests among these
 * @probe_cost_ns: time that the probes of these events took, see probe_cost.h: an estimate, and a
 *                 lower bound
 * @calls_cost_ns: time that recording its Python calls took: an estimate; 0: unknown or none. Set
 *                 by the reader of the calls
 * @name: last name seen, "" if none; borrowed from the source's names
 * @main: its tid is its pid
 * @slept: it had no CPU throughout the recording, which is proven: see struct model_slept
 * @held: it held the GIL throughout the recording, likewise: there are no GIL events
 * @creator: index of the thread that started it, or that forked its process; MODEL_NONE: unknown
 * @suspended_ns: the part of the unknown time in which its process was stopped by a signal: it
 *                counts for nothing
 * @unseen_runnable_ns: upper bound of the sleep that was in fact runnable time, after wake-ups that
 *                      are missing although all were to be recorded; times shorter than the switch
 *                      from idle do not count
 */
struct model_thread {
	uint32_t pid, tid;
	const char *name;
	bool main, slept, held;
	uint32_t creator;
	uint64_t start_ns, end_ns;

	/* Of a group of threads, this is the sum. */
	uint64_t gil_ns[GIL_STATES];
	uint64_t cpu_ns[CPU_STATES];
	uint64_t holds, waits, free_waits, contended_waits, releases_probed, releases_inferred;
	uint64_t gil_events, probe_events, probe_turns, probe_cost_ns, calls_cost_ns;
	uint64_t suspended_ns;
	uint64_t unseen_runnable_ns;
	uint64_t spins;                             /* number of GIL_SPINNING spans */
	uint64_t lock_waits, stops, worlds_stopped; /* numbers of LOCK_WAIT, STOPPED and STOPPING
	                                             * spans */

	/* The longest, and when it began. Of a group, this is that of the thread with the longest. */
	uint64_t longest_hold_ns, longest_hold_at_ns;
	uint64_t longest_wait_ns, longest_wait_at_ns;
	uint64_t longest_lock_wait_ns, longest_lock_wait_at_ns;
	uint64_t longest_stop_ns, longest_stop_at_ns; /* STOPPED */
	uint64_t longest_stopping_ns, longest_stopping_at_ns;

	struct lane gil;
	struct lane cpu;
	VEC(struct model_signal) signals; /* by time */
	VEC(struct model_kept) kept;      /* likewise */
};

/* Wait of a thread = gil_ns[GIL_WAIT] + gil_ns[GIL_SWITCH_WAIT]. */
static inline uint64_t model_thread_wait_ns(const struct model_thread *t)
{
	return t->gil_ns[GIL_WAIT] + t->gil_ns[GIL_SWITCH_WAIT];
}

/* Its life, without the time in which it was stopped by a signal. */
static inline uint64_t model_thread_life_ns(const struct model_thread *t)
{
	return t->end_ns - t->start_ns - t->suspended_ns;
}

/* All time without the GIL and without a wait for it. */
static inline uint64_t model_thread_no_gil_ns(const struct model_thread *t)
{
	return t->gil_ns[GIL_NO] + t->gil_ns[GIL_LOCK_WAIT] + t->gil_ns[GIL_STOPPED] +
	       t->gil_ns[GIL_STOPPING] + t->gil_ns[GIL_SPINNING];
}

/* One stretch of a GIL's ownership. Stretches are contiguous from the GIL's first to its last known
 * instant. Neighbours may be equal. */
struct gil_owner {
	uint64_t start_ns;
	uint32_t thread;  /* index of the holder; MODEL_NONE: free; MODEL_UNKNOWN: not known */
	uint32_t waiters; /* number of threads that waited for it during all of this stretch */
};

/**
 * @held_ns: time during which a thread held it
 * @wanted_ns: time during which at least one thread was in GIL_WAIT for it
 * @handover_ns: time during which a thread waited and no thread held it, summed over waiters
 */
struct model_gil {
	uint32_t pid;
	uint64_t address;
	uint64_t start_ns, end_ns;
	uint64_t held_ns, wanted_ns, handover_ns;
	VEC(struct gil_owner) owners;
};

/*
 * Wait of waiter charged to holder: the time in which the waiter was in GIL_WAIT for a GIL that the
 * holder held. holder MODEL_NONE: handover; MODEL_UNKNOWN: no thread is known to have held it, but
 * one may have. The holder is never the waiter. A waiter's rows add up to its gil_ns[GIL_WAIT].
 * Switch waits are not charged: the thread waits until any other thread takes the free GIL. Rows of
 * one waiter and holder differ in their GILs.
 *
 * A handover takes as long as it takes to wake the next thread, a fraction of MODEL_HANDOVER_NS.
 * If it takes longer, the next thread was ready, but had no CPU.
 *
 * A recording of n events can have n * n pairs. There are no more rows than MODEL_BLAME_ROWS and
 * MODEL_BLAME_ROWS_PER_EVENT for each GIL event; waiting beyond that is charged to MODEL_UNKNOWN
 * and counted in CAVEAT_COARSE. The work is limited, too: MODEL_WORK pairs of waits and holds, and
 * MODEL_WORK_PER_EVENT for each GIL event, are examined.
 */
#define MODEL_HANDOVER_NS          500000
#define MODEL_BLAME_ROWS           (1 << 20)
#define MODEL_BLAME_ROWS_PER_EVENT 4
#define MODEL_WORK                 (16 << 20)
#define MODEL_WORK_PER_EVENT       1024

struct model_blame {
	uint32_t waiter, holder;
	uint32_t gil; /* index */
	uint64_t wait_ns;
	uint64_t longest_ns;    /* longest single overlap, */
	uint64_t longest_at_ns; /* and where it starts */
	uint64_t no_cpu_ns;     /* holder MODEL_NONE: in handovers to a thread without a CPU */
};

/**
 * Something that threads waited for in their sleep: a PyMutex, or (world) the thread state of a
 * thread that was stopped while another one had stopped the world.
 * @signal: a thread released it that had not taken it
 * @of: the type of the object whose lock it is, @name: that of a variable that refers to it, "" if that is
 *      not known; borrowed from the names. Set by model_finish. Two objects that were at the same address
 *      one after the other are two locks
 * @runtime: it is a lock of the interpreter itself; name is what it protects
 * @waits: number of waits; @wait_ns: summed over the waiters; @spins, @spin_ns: the same for GIL_SPINNING
 * @most_waiters: the largest number of threads that waited at the same time; @wanted_ns: how long any
 *      thread waited; @releases: how often it was released meanwhile
 */
struct model_lock {
	uint32_t pid;
	uint64_t address;
	bool world, runtime, signal;
	const char *of, *name;
	uint64_t waits, wait_ns, longest_ns;
	uint64_t spins, spin_ns;
	uint64_t wanted_ns, releases;
	uint32_t most_waiters;
};

/**
 * A stop of the world of a free-threaded interpreter.
 * @by: the thread that requested it; @frame: its Python frame, id in the source's frames, 0: unknown
 * @collects: for a garbage collection; false: for another reason, or unknown
 * @request_ns: not later than the first thread that it let continue began to be stopped; inferred: that
 * time, because the thread did not have to wait for others, so that the request was not recorded
 * @stopped_ns: when all others had stopped; 0: not seen
 * @start_ns: when it began to let others continue; 0: not seen, so that no thread slept until then
 * @last: the thread that stopped last, if another one waited for that: MODEL_NONE: it is unknown;
 * @last_frame: of that thread: what it ran while it was the only one that others waited for, or else when it
 * stopped
 * @late, @late_frame, @late_ns: the last look at the only thread that had not stopped
 */
struct model_stop {
	uint32_t by, last, late, frame, last_frame, late_frame;
	uint64_t address;
	uint64_t request_ns, stopped_ns, start_ns, late_ns;
	bool collects, inferred;
};

/* More than any program imports. */
#define MODEL_IMPORTS_MAX 4096

/* An extension module that needs the GIL of a free-threaded interpreter. @module: name, borrowed, set by
 * model_finish; @name: its id; @frame: that imported it, id in the source's frames, 0: unknown */
struct model_import {
	const char *module;
	uint32_t name, frame;
};

/*
 * A PyMutex does not record its owner. While a thread sleeps for one, every release is recorded, so
 * each stretch of a wait that ends with a release is charged to the thread that released: in the
 * first stretch the holder of the lock, in the next ones a thread that got the lock in between. by
 * MODEL_NONE: from the last release until the waiter ran; MODEL_UNKNOWN: no release was recorded,
 * for instance if a wait timed out, and it is not known which thread had the lock when it began. Stops
 * of the world are charged likewise, to the thread that started it again. state: GIL_LOCK_WAIT or
 * GIL_STOPPED.
 *
 * The numbers of pairs of waits and releases that are examined, and of rows, are limited as for
 * struct model_blame, with park_events instead of GIL events.
 */
struct model_lock_blame {
	uint32_t waiter, by;
	enum gil_state state;
	uint64_t wait_ns, longest_ns, longest_at_ns;
};

#define MODEL_DEADLOCK_THREADS 16
#define MODEL_ORDERS           65536
#define MODEL_DEADLOCKS        64

/**
 * A thread took a lock while it had another one: the first time, in @frame. Of two locks, the first two
 * threads that took them in this order are known: whatever thread took them the other way round, one of
 * these is another one.
 * @outer, @inner: indices in locks; @again: index of the same order of the second thread
 * @reverse: index of the order in which another thread took both the other way round, of the first such
 * pair of threads
 * MODEL_NONE: none did
 */
struct model_order {
	uint32_t outer, inner, thread, frame, again, reverse;
};

/**
 * Threads each of which waited, from start_ns on, for a lock that the next one had taken last and not
 * released; the last one for a lock of the first. No release ended the first of these waits that ended.
 * @threads: count of them; larger circles are not recorded
 * @end_ns: when a thread gave up its wait, or ended
 * @times: how often the same threads were in it; the times are those of the first
 */
struct model_deadlock {
	uint32_t threads[MODEL_DEADLOCK_THREADS];
	uint32_t count, times;
	uint64_t start_ns, end_ns;
};

/*
 * Time of a thread in CPU_RUNNABLE, charged to the owner of the CPU in whose run queue it waited:
 * by is a thread of this model; MODEL_NONE: another program, whose name is name in the source's
 * cpu_names, or none if that is 0 (the CPU was about to be given away); MODEL_UNKNOWN: not known. A
 * thread's rows add up to its cpu_ns[CPU_RUNNABLE].
 */
struct model_cpu_blame {
	uint32_t thread, by, name;
	uint64_t runnable_ns;
};

/* A part of one wait in run queues. cpu: whose run queue, -1: unknown; by and name as in struct
 * model_cpu_blame. */
struct model_queued {
	uint64_t from_ns, to_ns;
	int32_t cpu;
	uint32_t by, name;
};

#define CAVEAT(code, word, name, shown, quality, sentence) CAVEAT_##code,
enum caveat_code {
#include "model/caveats.def"
	CAVEAT_CODES,
};
#undef CAVEAT

enum caveat_shown { SHOWN_ALWAYS, SHOWN_WITH_STATES, SHOWN_IF_MUCH };
enum caveat_quality { QUALITY_KEEPS, QUALITY_FAIR_AT_MOST, QUALITY_POOR_AT_MOST };

/* caveats.def documents the members. */
struct caveat_kind {
	const char *name;
	enum caveat_shown shown;
	enum caveat_quality quality;
};

extern const struct caveat_kind caveat_kinds[CAVEAT_CODES];

/* A hold that continued for us µs after a release request, not counting time in which its thread
 * was runnable. */
struct model_overdue {
	uint64_t end_ns;
	uint32_t gil;
	uint32_t us;
};

struct model_lost { /* a stretch during which records were lost */
	uint64_t start_ns, end_ns;
	uint64_t count;
	int32_t cpu; /* -1: unknown */
};

struct model_counter_sample {
	uint64_t time_ns, value;
	uint32_t thread, counter;
};

/* An EV_STACK of a thread that held a GIL; record is for source_stack_at. */
struct model_sample {
	uint64_t time_ns, record;
	uint32_t thread;
};

struct model {
	uint64_t start_ns, end_ns;
	VEC(struct model_thread) threads;
	VEC(struct model_gil) gils;
	VEC(struct model_blame) blame;
	VEC(struct model_lock) locks;
	VEC(struct model_lock_blame) lock_blame;
	VEC(struct model_stop)
	stops; /* in the order of their requests or, if those are not known, ends */
	VEC(struct model_order) orders;       /* by time, at most MODEL_ORDERS */
	VEC(struct model_deadlock) deadlocks; /* by start, at most MODEL_DEADLOCKS */
	VEC(struct model_cpu_blame)
	cpu_blame; /* empty unless it was recorded which thread had each
	                                        * CPU */
	VEC(struct model_lost) lost;
	VEC(struct model_overdue) overdue; /* by end; complete if requests_known */
	bool requests_known, checks_late;
	bool idle;              /* all threads slept throughout, or their process was stopped */
	uint64_t probes_end_ns; /* see struct model_options */
	uint64_t stolen_ns;     /* upper bound of the CPU time, all CPUs, taken by a hypervisor */
	uint64_t suspended_ns;  /* time in which the process that was started was stopped */
	VEC(struct model_counter_sample) counts;
	VEC(struct model_sample) samples; /* by time */
	uint64_t caveats[CAVEAT_CODES];
	uint64_t gil_events;  /* REQUEST, ACQUIRE, RELEASE, RELEASED, SAVE of a GIL that is on */
	uint64_t park_events; /* PARK to STARTED_WORLD, and the events above of a GIL that is
	                         * off */
	VEC(struct model_import) imports;
	bool imports_known; /* all of them, from the program's start */
	struct model_private *priv;
};

/* A time in which a process was stopped by a signal. It may be reported late, but not before all
 * threads had stopped. */
struct model_suspension {
	uint64_t from_ns, to_ns;
};

/* A thread that was asleep, uninterruptible or stopped (S, D, T) throughout the recording. no_gil: it
 * neither held a GIL nor waited for one. */
struct model_slept {
	uint32_t pid, tid;
	char state;
	bool no_gil;
};

struct names;
struct stacks;

/**
 * @start_ns, @end_ns: times at which tracing was switched on and off; 0: unknown, use the first and
 * last event
 * @before_known: all events before start_ns are fed, too, so they tell which thread held which GIL, or
 * waited, at start_ns
 * @to_end: the program ended at end_ns, if that is known, and did not continue
 * @start_tid: the thread that switched tracing on, so it holds the GIL at start_ns; 0: unknown
 * @names: of the source; borrowed until model_free. Read only while an EV_COMM is fed and in
 *         model_finish, because the source may add names at any other time, see trace/readahead.h
 * @no_probes: GIL events were not recorded: no thread is assumed to hold a GIL at the start
 * @gil_off: the GIL was off at start_ns, so no thread holds one then
 * @requests_known: the source knows for each release whether it was requested
 * @checks_late: the interpreter checks for release requests only at calls, starts of functions and
 * backward jumps, so that a hold may end in a function that is called after the one that kept the
 * GIL: CPython 3.10 and later
 * @all_releases: every release of a GIL is recorded, except in lost records
 * @stacks: of the source, or NULL; borrowed. With stacks, a sleep under a STACK_TAKE_GIL frame is
 *          CPU_GIL_SLEEP; without, a sleep during a GIL_WAIT
 * @stolen_ns: upper bound of the CPU time, over all CPUs, that a hypervisor took
 * @suspended: when process start_pid was stopped by a signal, by time; borrowed until model_finish
 * @holder_tid: the thread that holds the GIL if there is no GIL event; 0: unknown
 * @slept: threads that slept throughout; borrowed until model_finish
 * @probes_end_ns: when the uprobes that recorded the GIL were removed, because the library had taken
 * over; 0: they were not
 * @turn_ns: what a turn of the GIL takes with uprobes, if nobody waits, as measured; 0: unknown
 * @all_wakeups: all wake-ups were recorded, also those by interrupts and other programs
 */
struct model_options {
	uint64_t start_ns, end_ns;
	uint32_t start_pid, start_tid, holder_tid;
	bool to_end, before_known;
	bool no_probes;
	bool gil_off;
	bool all_releases, requests_known, checks_late;
	uint64_t stolen_ns;
	const struct model_suspension *suspended;
	size_t suspended_count;
	const struct model_slept *slept;
	size_t slept_count;
	uint64_t probes_end_ns, turn_ns;
	const struct names *names;
	const struct stacks *stacks;
	bool all_wakeups;
};

struct model *model_new(const struct model_options *options);
void model_free(struct model *model);

/* Never fails: any sequence of events gives a model whose invariants hold; inconsistent events are
 * counted in caveats. */
void model_feed(struct model *model, const struct event *ev);

/* Closes open spans and computes totals and blame. Call it when the source has ended, since it
 * looks up names; feed nothing afterwards. */
void model_finish(struct model *model);

/* Calls part for the parts of a CPU_RUNNABLE span of the thread's CPU lane, in order of time,
 * without gaps. Call it after model_finish. */
void model_queued_parts(const struct model *model, uint32_t thread, size_t span,
                        void (*part)(void *data, const struct model_queued *part), void *data);

/* Returns 0, or -1 if an invariant is broken; err names thread and time. */
int model_check(const struct model *model, struct error *err);

/* Index of the thread, or MODEL_NONE. If the tid was reused: of the last such thread. */
uint32_t model_find_thread(const struct model *model, uint32_t tid);

/* A stretch of a LOCK_WAIT or STOPPED span, and the thread to which it is charged, as in
 * model_lock_blame. frame: in which that thread released the lock, id in the source's frames; 0:
 * unknown. kept: it did not release it: the wait ended otherwise */
struct model_blocked {
	uint64_t start_ns, end_ns;
	uint32_t by, frame;
	bool kept;
};

struct model_blocked_list {
	VEC(struct model_blocked) v;
};

/* Appends the stretches of a span of the thread, in order of time, none of them empty. Spans in
 * other states have none. work: the number of releases that may still be examined, at first
 * model_blocked_work(); returns false if it is used up, so that the last stretch is MODEL_UNKNOWN
 * for that reason. */
bool model_blocked(const struct model *model, uint32_t thread, size_t span, uint64_t *work,
                   struct model_blocked_list *list);

static inline uint64_t model_blocked_work(const struct model *model)
{
	return MODEL_WORK + model->park_events * MODEL_WORK_PER_EVENT;
}

/* Index of the first row of model->blame whose waiter is not less than this one. The rows are
 * sorted by waiter; with many threads there are very many. */
size_t model_find_blame(const struct model *model, uint32_t waiter);

/* Whether two threads took the two locks in both orders. A signal is no lock in this respect. */
static inline bool model_order_is_inverted(const struct model *m, size_t order)
{
	const struct model_order *o = &m->orders.v[order];

	return o->reverse != MODEL_NONE && !m->locks.v[o->outer].signal &&
	       !m->locks.v[o->inner].signal;
}

#endif
