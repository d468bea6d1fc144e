/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the model share. Threads and GILs have, beside their public struct, the state
 * that feeding needs, in arrays of the same indices.
 *
 *	model.c   one event at a time, on a clock that never goes back
 *	thread.c  who exists from when to when
 *	gil.c     GIL lanes, and the owners of each GIL
 *	cpu.c     CPU lanes
 *	lost.c    what is not known for lack of records
 *	starve.c  who had the CPU that a thread waited for
 *	blame.c   whose hold each wait is charged to
 *	locks.c   what blocks where the GIL is off
 *	stats.c   totals
 *	check.c   the invariants
 */
#ifndef GILTRACER_MODEL_INTERNAL_H
#define GILTRACER_MODEL_INTERNAL_H

#include "base/idmap.h"
#include "model/model.h"
#include "model/span.h"

enum thread_flags {
	THREAD_ALIVE = 1 << 0,
	THREAD_INHERITED = 1 << 1, /* its hold is the copy that a fork made */
	THREAD_SAVED = 1 << 2,     /* its last release was EV_SAVE: drop_gil may follow */
	THREAD_RELEASED = 1 << 3,  /* its last span began with a release while others waited: a
	                            * switch wait, perhaps */
	THREAD_CUT = 1 << 4,       /* another thread's acquire ended its hold */
	THREAD_START = 1 << 5,     /* its hold since the start has not met an event of its own */
	THREAD_SCHED_OUT = 1 << 6, /* off CPU by EV_SCHED_OUT; EV_SWITCH_OUT may follow */
	THREAD_ASKED_OFF =
		1 << 7, /* its last request was of a GIL that is off: to be acquired means */
	THREAD_LEFT_OFF = 1 << 8, /* nothing; nor does the return of such a drop_gil */
	THREAD_STOPPING = 1 << 9, /* it has stopped the world, or is about to */
};

/* Those that an event of the thread's own ends. */
#define THREAD_GIL_FLAGS \
	(THREAD_INHERITED | THREAD_SAVED | THREAD_RELEASED | THREAD_CUT | THREAD_START)

/* A thread went from one line to another. */
struct cpu_move {
	uint64_t time_ns;
	int32_t from, to;
};

/**
 * @proc: index of its process
 * @gil: the GIL it had to do with last, or MODEL_NONE
 * @last_cpu: where it was seen last, -1: nowhere
 * @off_span: index of the span that began when it last left a CPU, or MODEL_NONE
 * @off_ns: when that was
 * @woken_ns: when it was last woken while it ran
 * @lost_ns: when the last loss of records that concerned it was over
 * @moves: from CPU to CPU, by time
 * @started_ns: when it began to start the world again, 0: it has done something else since
 * @lock: index of what it is parked for, or MODEL_NONE
 * @frame: Python frame of its last request of a GIL that is off
 */
struct thread_state {
	uint64_t off_ns;
	uint64_t woken_ns;
	uint64_t lost_ns;
	uint64_t started_ns;
	uint32_t proc;
	uint32_t gil;
	uint32_t off_span;
	int32_t last_cpu;
	uint32_t flags;
	VEC(struct cpu_move) moves;
	uint32_t lock;
	uint32_t frame;
};

/**
 * @known_ns: before that, a GIL that nobody is known to hold is not known to be free
 * @freed_ns: when the last hold of it ended
 * @next: next GIL of the process, or MODEL_NONE
 * @dirty: the past was changed: owners must be made again from the lanes
 */
struct gil_book {
	uint64_t known_ns, freed_ns;
	uint32_t holder, waiters;
	uint32_t proc, next;
	bool known, dirty;
};

struct lock_release {
	uint64_t time_ns;
	uint32_t thread;
};

/* @waiters: how many threads are parked for it; @releases: those while there were any */
struct lock_book {
	uint32_t proc, waiters;
	VEC(struct lock_release) releases;
};

/**
 * @first_gil: its newest, or MODEL_NONE
 * @nameless: its GIL whose address is still to be learnt, or MODEL_NONE
 * @lost: a thread of it has been unknown, so that none of its GILs' owners are certain
 */
struct process {
	uint32_t pid;
	uint32_t first_gil, nameless;
	bool lost;
};

/* A thread seen before tracing started: what it is called, if it is still there then. */
struct unborn {
	uint32_t pid, tid;
	const char *name;
	bool gone;
};

/* What contradicts what was before it, unless records turn out to be missing there. */
struct oddity {
	uint64_t time_ns;
	enum caveat_code code;
};

/* From start_ns on the CPU was that thread's; as in struct model_starved. */
struct cpu_owner {
	uint64_t start_ns;
	uint32_t by, name;
};

struct cpu_book {
	VEC(struct cpu_owner) owners;
};

struct model_private {
	struct model_options options;
	bool started;
	bool saw_switch, saw_sched_out; /* else CPU lanes, or S and D, are unknown */
	bool saw_waking;                /* else nothing is RUNNABLE after a sleep */
	uint32_t start_thread;          /* that switched tracing on, or MODEL_NONE */
	uint64_t now_ns;
	uint32_t last_pid, last_tid, last_thread; /* of the last event */
	struct idmap tids, pids, unborn_tids, gil_keys, lock_keys;
	VEC(struct thread_state) threads;
	VEC(struct gil_book) gils;
	VEC(struct lock_book) locks;
	VEC(struct process) procs;
	VEC(struct unborn) unborn;
	VEC(struct cpu_book) cpus;
	VEC(struct oddity) oddities; /* by time */
};

/* perf writes -1 for a thread that is already gone, and 0 is the idle task. */
static inline bool thread_is_nobody(uint32_t id)
{
	return id == 0 || id == UINT32_MAX;
}

/* thread.c. The thread of an event, made if there is none; MODEL_NONE: a thread that has ended, or
 * no thread at all. */
uint32_t thread_of_other(struct model *m, const struct event *ev, uint64_t t);
static inline uint32_t thread_of(struct model *m, const struct event *ev, uint64_t t)
{
	const struct model_private *p = m->priv;

	if (ev->tid == p->last_tid && ev->tid &&
	    (thread_is_nobody(ev->pid) || ev->pid == p->last_pid))
		return p->last_thread;
	return thread_of_other(m, ev, t);
}
uint32_t process_of(struct model *m, uint32_t pid);
uint32_t thread_find(const struct model *m, uint32_t tid);
uint32_t thread_new(struct model *m, uint32_t pid, uint32_t tid, uint64_t t, enum gil_state gil,
                    enum cpu_state cpu);
void thread_before_start(struct model *m, const struct event *ev);
void thread_start_all(struct model *m);
void thread_fork(struct model *m, const struct event *ev, uint64_t t);
void thread_comm(struct model *m, const struct event *ev, uint64_t t);
/* died: the thread ended; else the recording did. */
void thread_exit(struct model *m, uint32_t thread, uint64_t t, bool died);

/* lost.c */
void lost_records(struct model *m, const struct event *ev, uint64_t t);
/* Something happened at t that cannot, unless records before it were lost. Counted at the end. */
void lost_or_odd(struct model *m, enum caveat_code code, uint64_t t);
void lost_finish(struct model *m);
/* The last span is unknown since a loss: what was assumed between that one and those before it is
 * not so. */
void lost_doubt(struct lane *lane);

/* Where to look for an address of a process in an idmap. */
static inline uint32_t address_key(uint32_t proc, uint64_t address)
{
	uint64_t h = (address ^ (uint64_t)proc << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

/* blame.c: charges of one waiter, by holder; the two last are nobody and unknown. */
struct ledger {
	struct model_blame *rows; /* of every possible holder; wait_ns 0: unused */
	VEC(uint32_t) used;
	size_t threads;
};

/* [start, end) of its time is the holder's, a thread, MODEL_NONE or MODEL_UNKNOWN. */
void ledger_charge(struct ledger *l, uint32_t holder, uint64_t start_ns, uint64_t end_ns);

/* gil.c */
uint32_t gil_new(struct model *m, uint32_t proc, uint64_t address, uint64_t t);
void gil_start_hold(struct model *m, uint32_t thread, uint64_t t);
void gil_request(struct model *m, uint32_t thread, uint64_t t, uint64_t address, uint32_t frame);
void gil_acquire(struct model *m, uint32_t thread, uint64_t t);
void gil_release(struct model *m, uint32_t thread, uint64_t t, uint64_t address, bool save);
void gil_released(struct model *m, uint32_t thread, uint64_t t);
void gil_inherit(struct model *m, uint32_t child, uint32_t parent, uint64_t t);
void gil_exec(struct model *m, uint32_t thread, uint64_t t);
void gil_lost(struct model *m, uint32_t thread, uint64_t since_ns, uint64_t t);
void gil_exit(struct model *m, uint32_t thread, uint64_t t, bool died);

/* The thread neither holds nor wants the GIL any more, if it did: it was turned off. What it does
 * without comes next, from the caller. */
void gil_turned_off(struct model *m, uint32_t thread, uint64_t t);
/* After owners_finish(). */
void gil_finish(struct model *m);
/* What the thread does next is done without the GIL: so it had none since a loss of records. */
void gil_prove_without(struct model *m, uint32_t thread, uint64_t t);
/* The thread has no GIL from now on: what it does without. */
void gil_without(struct model *m, uint32_t thread, uint64_t t);

/* locks.c */
void lock_park(struct model *m, uint32_t thread, uint64_t t, const struct event *ev);
void lock_parked(struct model *m, uint32_t thread, uint64_t t);
void lock_unpark(struct model *m, uint32_t thread, uint64_t t, uint64_t address);
void lock_stop_world(struct model *m, uint32_t thread, uint64_t t);
void lock_start_world(struct model *m, uint32_t thread, uint64_t t, uint32_t frame);
void lock_started_world(struct model *m, uint32_t thread, uint64_t t);
/* An event of a GIL that is off: it says which Python runs, and that no GIL is held. */
void lock_gil_off(struct model *m, uint32_t thread, uint64_t t, const struct event *ev);
/* A request: which Python waits for the lock for which the thread is parked, if it is. */
void lock_frame(struct model *m, uint32_t thread, const struct event *ev);
/* The thread is parked no longer, whatever it was parked for. */
void lock_forget(struct model *m, uint32_t thread);
/* The span of a thread that is without the GIL. */
struct span lock_span(struct model *m, uint32_t thread, uint64_t t);
void lock_finish(struct model *m);
void lock_done(struct model *m);

/* owners.c: who holds a GIL and how many wait, change by change. */
void owners_mark(struct model *m, uint32_t gil, uint64_t t);
/* The GIL, thought free since since_ns, was thread's all the while. False: it was not free. */
bool owners_claim(struct model *m, uint32_t gil, uint32_t thread, uint64_t since_ns);
/* Nobody is known to have held the GIL until now. */
void owners_forget(struct model *m, uint32_t gil);
/* Of one GIL, after owners_finish: for tests. */
void owners_rebuild(struct model *m, uint32_t gil);
/* The owner at time_ns: the last one that starts no later. Not before hint: where an earlier time
 * was. */
size_t owners_at(const struct model_gil *g, size_t hint, uint64_t time_ns);

/* A hold or wait that begins now: the low 16 bits of its owner's index. */
static inline int16_t owners_mark_of(const struct model_gil *g)
{
	return (int16_t)(uint16_t)(g->owners.n - 1);
}

/* owners_at() the start of a hold or wait. Its mark is right unless the past was changed, or hint
 * is more than 65535 changes away. */
static inline size_t owners_of(const struct model_gil *g, size_t hint, const struct span *span)
{
	size_t at = hint + (uint16_t)((uint16_t)span->cpu - (uint16_t)hint);

	if (at < g->owners.n && g->owners.v[at].start_ns <= span->start_ns &&
	    (at + 1 == g->owners.n || g->owners.v[at + 1].start_ns > span->start_ns))
		return at;
	return owners_at(g, hint, span->start_ns);
}
void owners_finish(struct model *m);

/* cpu.c */
void cpu_in(struct model *m, uint32_t thread, uint64_t t);
void cpu_out(struct model *m, uint32_t thread, uint64_t t, bool preempt);
void cpu_sched_out(struct model *m, uint32_t thread, uint64_t t, uint32_t prev_state,
                   uint32_t stack);
void cpu_waking(struct model *m, uint32_t waker, uint32_t woken, uint64_t t);
void cpu_seen(struct model *m, uint32_t thread, uint64_t t);
void cpu_lost(struct model *m, uint32_t thread, uint64_t since_ns);
void cpu_finish(struct model *m);

/* Its CPU goes to another one; the events of its own, which may come next, say the same. */
void cpu_preempted(struct model *m, uint32_t thread, uint64_t t);
/* It gets the CPU: what switches to it is on its account, as the kernel has it. */
void cpu_picked(struct model *m, uint32_t thread, uint64_t t, int32_t cpu);

/* starve.c. next: the thread of next_tid, or MODEL_NONE if it is none of ours. */
void starve_pick(struct model *m, const struct event *ev, uint32_t next, uint64_t t);
/* The thread is on that CPU, whether it was seen to be picked or not. */
void starve_in(struct model *m, uint32_t thread, uint64_t t, int32_t cpu);
void starve_move(struct model *m, uint32_t thread, uint64_t t, const struct event *ev);
void starve_lost(struct model *m, int32_t cpu, uint64_t since_ns);
void starve_finish(struct model *m);
void starve_done(struct model *m);

void blame_finish(struct model *m);
void stats_finish(struct model *m);

#endif
