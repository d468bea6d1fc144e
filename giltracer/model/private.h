/* SPDX-License-Identifier: MIT */
/*
 * State of the model while events are fed. Threads and GILs have internal state in addition to
 * their public struct, in arrays with the same indices. The functions of each subject are in the
 * header of its file:
 *
 *	model.c          one event at a time, on a clock that never goes back
 *	thread.h         which threads exist from when to when
 *	gil.h            GIL lanes
 *	owners.h         who holds each GIL, and how many wait
 *	cpu.h            CPU lanes
 *	runqueue_wait.h  who had the CPU that a thread waited for
 *	lost.h           what is unknown because records are missing
 *	suspended.h      the time in which a signal had stopped the process
 *	blame.h          whose hold each wait is charged to
 *	locks.h          what blocks threads where the GIL is off
 *	stats.h          totals
 *	probe_cost.h     what tracing took of each thread's time
 *	invariants.c     the invariants
 *
 * thread, gil, cpu, lost and locks call each other: a loss, a birth or an end concerns all lanes of
 * a thread, and a lock is a state of the GIL lane. They are one module in several files.
 */
#ifndef GILTRACER_MODEL_PRIVATE_H
#define GILTRACER_MODEL_PRIVATE_H

#include "base/idmap.h"
#include "model/model.h"
#include "model/span.h"

enum thread_flags {
	THREAD_ALIVE = 1 << 0,
	THREAD_INHERITED = 1 << 1, /* its hold is the copy that a fork made */
	THREAD_SAVED = 1 << 2,     /* its last release was EV_SAVE; drop_gil may follow */
	THREAD_RELEASED = 1 << 3,  /* its last span began with a release while others waited; it may
	                            * become a switch wait */
	THREAD_CUT = 1 << 4,       /* another thread's acquire ended its hold */
	THREAD_START = 1 << 5,     /* no event of its own has confirmed its hold since the start */
	THREAD_SCHED_OUT = 1 << 6, /* off CPU by EV_SCHED_OUT; EV_SWITCH_OUT may follow */
	THREAD_EXECUTED = 1 << 7,  /* its process runs another program than its parent did */
	THREAD_ASKED = 1 << 8,     /* it was asked to release the GIL that it holds */
};

/* Flags that the thread's next GIL event clears. */
#define THREAD_GIL_FLAGS                                                                 \
	(THREAD_INHERITED | THREAD_SAVED | THREAD_RELEASED | THREAD_CUT | THREAD_START | \
	 THREAD_ASKED)

/* The thread was moved from one CPU's run queue to another's. */
struct cpu_move {
	uint64_t time_ns;
	int32_t from, to;
};

/**
 * State of a thread in a free-threaded interpreter; unused if there is a GIL.
 * @lock: index of the lock that it is parked for, or MODEL_NONE
 * @frame: Python frame where it was stopped; @lock_frame: where it waits for the lock
 * @holder: the thread that had the lock when the wait began; @deadlock: index of the deadlock that the
 * wait is part of; MODEL_NONE: unknown, none
 * @outer: the lock of its last EV_OUTER, until the EV_INNER
 * @stopping: it has stopped the world, or is about to; @stop: index of the last stop that it requested or
 * ended, MODEL_NONE: it has done something else since it ended
 * @spins: it spins for the lock, and is not parked
 * @looks: its last event was an EVF_LOOKS
 * @unsure: it is in LOCK_WAIT, but the release may show that it waits for a signal; @doubted: it does,
 * unless there is a release
 * @started_ns: when it began to start the world again; 0: it has done something else since
 */
struct parking {
	uint32_t lock, event, holder, deadlock, outer;
	uint64_t event_ns;
	uint32_t frame, lock_frame, stop;
	bool stopping, looks, unsure, doubted, spins;
	uint64_t started_ns;
};

/**
 * @proc: index of its process
 * @gil: the GIL that it last requested, held or released, or MODEL_NONE
 * @last_cpu: the CPU that it was last seen on, -1: none
 * @off_span: index of the span that began when it last left a CPU, or MODEL_NONE
 * @off_ns: start of that span
 * @woken_ns: time of its last wake-up while it ran
 * @asked_ns: THREAD_ASKED: when
 * @lost_ns, @cpu_lost_ns: end of the last loss in which records of its GIL events, or of its
 * switches, may be missing, or in which it may have been born
 * @born_after_ns, @seen_ns: if its birth was not recorded, and it did not exist before, it was born
 * after the one and not after the other, the time of its first event; 0 if it was recorded
 * @moves: moves between CPUs, by time
 * @parking: used by locks.c only
 */
struct thread_state {
	uint64_t off_ns;
	uint64_t woken_ns, asked_ns;
	uint64_t lost_ns, cpu_lost_ns;
	uint64_t born_after_ns, seen_ns;
	uint32_t proc;
	uint32_t gil;
	uint32_t off_span;
	int32_t last_cpu;
	uint32_t flags;
	VEC(struct cpu_move) moves;
	struct parking parking;
};

/**
 * State of a GIL while events are fed.
 * @known_ns: time of the first event that proves who held it; before, "no known holder" does not
 * mean free
 * @freed_ns: end of its last hold
 * @next: next GIL of the process, or MODEL_NONE
 * @dirty: past spans were changed, so its owners must be derived from the lanes again
 */
struct gil_tracker {
	uint64_t known_ns, freed_ns;
	uint32_t holder, waiters;
	uint32_t proc, next;
	bool known, dirty;
};

struct lock_release {
	uint64_t time_ns;
	uint32_t thread, frame;
};

/**
 * @waiters: number of threads that are parked for it; @unsure: those of them that are
 * @of: the type of its object, @name: that of a variable that refers to it, ids in the names, looked up
 * by locks_finish; 0: unknown
 * @stopped: of a thread's state: that thread
 * @wanted_since_ns: the start of the first of their waits
 * @releases: releases while there were any waiters
 */
struct lock_tracker {
	uint32_t proc, waiters, unsure, of, name, stopped;
	bool gone;
	uint64_t wanted_since_ns;
	VEC(struct lock_release) releases;
};

/**
 * @first_gil: its newest GIL, or MODEL_NONE
 * @nameless: its GIL whose address is not known yet, or MODEL_NONE
 * @lost: one of its threads was in an unknown state, so no owner of its GILs is certain
 * @python_ns: when it mapped a CPython of whose GIL there has been no event since; 0: never
 * @recorded: it has what records a GIL as soon as there is one
 * @unrecorded: that has made states of its threads unknown
 */
struct process {
	uint32_t pid;
	uint32_t first_gil, nameless;
	bool lost, recorded, unrecorded;
	uint64_t python_ns;
};

/* A thread that was seen before tracing started: its name, unless it has ended by then. With
 * before_known also @gil, its last event of the GIL, of type EV_EXIT if none, and @park, the EV_PARK
 * that has not ended. @without: it has not had the GIL since its beginning */
struct prestart_thread {
	uint32_t pid, tid;
	const char *name;
	bool gone, without;
	struct event gil, park;
};

/* An event that contradicts earlier ones; it counts unless records turn out to be missing there. */
struct anomaly {
	uint64_t time_ns;
	enum caveat_code code;
};

/* The owner of a CPU from start_ns on; by and name as in struct model_cpu_blame. */
struct cpu_owner {
	uint64_t start_ns;
	uint32_t by, name;
};

struct cpu_tracker {
	VEC(struct cpu_owner) owners;
};

/* A loss that was not applied to the lanes yet. @cpu: -1: any. @flags: enum event_flags that hold
 * for everything that is lost. */
struct pending_loss {
	uint64_t since_ns, end_ns;
	int32_t cpu;
	unsigned flags;
};

/*
 * A loss concerns all threads, and a recording of n records could have n / 2 of each. The number of
 * pairs of threads and losses that are processed is bounded, per recording and per event; beyond
 * it, a loss is merged with the next one, and the time in between becomes unknown, too.
 */
#define MODEL_LOSS_WORK           (1 << 20)
#define MODEL_LOSS_WORK_PER_EVENT 16

struct model_private {
	struct model_options options;
	bool started;
	bool saw_switch, saw_sched_out; /* if false, CPU lanes, or S and D, are unknown */
	bool saw_waking;                /* if false, no span is RUNNABLE after a sleep */
	uint32_t start_thread;          /* the thread that switched tracing on, or MODEL_NONE */
	uint64_t now_ns;
	uint32_t last_pid, last_tid, last_thread; /* of the last event */
	struct idmap tids, pids, prestart_tids, gil_keys, lock_keys;
	VEC(struct thread_state) threads;
	VEC(struct gil_tracker) gils;
	VEC(struct lock_tracker) locks;
	struct idmap order_keys; /* of model.orders, by pair of locks */
	VEC(struct process) procs;
	VEC(struct prestart_thread) prestart;
	VEC(struct cpu_tracker) cpus;
	VEC(struct anomaly) anomalies; /* by time */
	uint32_t pythons;              /* number of processes with a python_ns */
	uint64_t events, loss_work;
	bool has_loss;
	struct pending_loss loss;
	struct pending_loss births; /* all losses of births in one; none if its end is 0 */
};

/* perf writes -1 for a thread that is already gone, and 0 is the idle task. */
static inline bool thread_is_nobody(uint32_t id)
{
	return id == 0 || id == UINT32_MAX;
}

/* Key for an address of a process in an idmap. If two keys collide, the second address is at the
 * next free key. */
static inline uint64_t address_key(uint32_t proc, uint64_t address)
{
	struct hash_seed seed = hash_seed();

	return hash_more(seed, hash_number(seed, proc), address);
}

#endif
