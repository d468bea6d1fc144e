/* SPDX-License-Identifier: MIT */
/*
 * The vocabulary for everything above trace/: what happened to a thread, at which nanosecond of
 * CLOCK_MONOTONIC. A source yields events in the order of time; those of the same time are in the
 * order in which they were recorded.
 */
#ifndef GILTRACER_TRACE_EVENT_H
#define GILTRACER_TRACE_EVENT_H

#include <stdint.h>

enum event_type {
	/* The GIL. tid is the thread it happens to. */
	EV_REQUEST,  /* entry of take_gil; .gil */
	EV_ACQUIRE,  /* return of take_gil; .gil.address is 0 (the request has it) */
	EV_RELEASE,  /* entry of drop_gil; .gil */
	EV_RELEASED, /* return of drop_gil: the end of a switch wait */
	EV_SAVE,     /* entry of PyEval_SaveThread: a release where no drop_gil site was seen */
	EV_ASKED, /* another thread requested that tid release the GIL; .gil.frame: what tid ran then.
	              * It may come later than its time, but before the release */

	/* What blocks in a free-threaded interpreter. */
	EV_PARK,   /* the thread is about to sleep in _PyParkingLot_Park; .park */
	EV_HOLDER, /* .holder has the lock for which tid has begun to wait at the same time */
	EV_OUTER, /* the thread has taken the lock of the next EV_INNER while it has .park.address */
	EV_INNER,      /* see there; .park.frame: where */
	EV_GONE,       /* .park.address is no lock any more */
	EV_PARKED,     /* returns from _PyParkingLot_Park */
	EV_UNPARK,     /* the thread wakes the threads that are parked at .park.address, if any */
	EV_SPIN,       /* the thread tries to get a lock again and again, without sleeping; .park */
	EV_SPUN,       /* it does not any more */
	EV_STOP_WORLD, /* the thread asks all others to stop; .park, of which the address is 0 if it is
	                 * not known how it is told that they have */
	EV_LATE, /* it still waits for one thread only, .park.address, to stop; .park.frame: of that thread */
	EV_STOPPED_WORLD, /* all others have stopped */
	EV_START_WORLD,   /* the thread is about to let them continue; .gil.frame */
	EV_STARTED_WORLD, /* it has let them continue */
	EV_NEEDS_GIL,     /* a module was imported that needs the GIL; .import */

	/* The scheduler. */
	EV_SWITCH_IN,  /* PERF_RECORD_SWITCH: tid is on cpu from now on */
	EV_SWITCH_OUT, /* PERF_RECORD_SWITCH: tid left cpu; EVF_PREEMPT: it was still runnable */
	EV_SCHED_OUT,  /* sched:sched_switch, tid is the one that leaves; .sched */
	EV_WAKING,     /* sched:sched_waking; tid is the waker, .waking.tid the woken */

	/* Lives. */
	EV_FORK, /* tid/pid are the child's; .fork is its creator, whose tid is 0 if unknown. A thread if
	          * pid == parent_pid */
	EV_EXIT,   /* tid ends here */
	EV_COMM,   /* tid has a new name .comm; EVF_EXEC: because it executed another program */
	EV_PYTHON, /* pid has mapped a CPython whose GIL is recorded only if an event of it follows;
	            * EVF_RECORDED: whose GIL is recorded as soon as there is one */

	/* The recording itself. */
	EV_LOST,  /* .lost.count records of cpu (-1: unknown) are missing between .lost.since_ns and
	           * time_ns */
	EV_COUNT, /* a perf counter of tid overflowed or was read; .count */
	EV_STACK, /* a sample with only a stack (cpu-clock); .stack */

	/* The whole machine. */
	EV_PICK, /* cpu goes from tid, of .sched.prev_state, to .sched.next_tid; both may belong
	          * to any program. Repeats an EV_SCHED_OUT if tid is one of ours */
	EV_MOVE, /* .move.tid, of any program, is in the run queue of another CPU from now on,
	          * or will be when it is woken; tid moved it */
};

enum event_flags {
	EVF_PREEMPT = 1 << 0,
	EVF_EXEC = 1 << 1,
	EVF_WAKEUPS = 1 << 2,   /* LOST: only WAKING, PICK and MOVE of the whole machine */
	EVF_NO_GIL = 1 << 3,    /* LOST: no events of the GIL */
	EVF_GIL_ONLY = 1 << 4,  /* LOST: only events of the GIL */
	EVF_RECORDED = 1 << 5,  /* PYTHON: it has probes, or our library */
	EVF_UNWRITTEN = 1 << 6, /* LOST: our library could not write them */
	EVF_MISSED = 1 << 7,    /* PARKED: the release that ended the wait may not be recorded */
	EVF_COLLECTS = 1 << 8,  /* STOP_WORLD: for a garbage collection */
	/* STOPPED_WORLD: the thread stopped waiting, to look for itself: they have, unless another
	 * STOP_WORLD follows */
	EVF_LOOKS = 1 << 9,
	EVF_SIGNAL = 1 << 10, /* UNPARK: of a lock that another thread took: its waiters wait for a
	                       * signal */
	EVF_TURN = 1 << 11,   /* PARK: it waits for its turn, also if that comes as a signal */
	EVF_LEFT = 1 << 12,   /* PARKED: it waits no longer, and has not got the lock */
	/* PARK, SPIN: the lock is one of the interpreter itself; .park.name is what it protects */
	EVF_RUNTIME = 1 << 13,
	EVF_DOUBT = EVF_PREEMPT, /* PARK: for a lock only if a thread releases it */
};

/* Why a thread parks. */
enum park_kind {
	PARK_EVENT, /* waits for an event, not a lock: the end of a thread, an item in a queue */
	PARK_LOCK,  /* waits for a PyMutex that another thread holds */
	PARK_WORLD, /* waits because another thread has stopped the world */
};

/* Linux task states, as in the prev_state field of sched:sched_switch (include/linux/sched.h). */
#define EV_STATE_RUNNING         0x00
#define EV_STATE_INTERRUPTIBLE   0x01
#define EV_STATE_UNINTERRUPTIBLE 0x02
#define EV_STATE_STOPPED         0x0c /* by a signal, or by a debugger */

/**
 * Plain data, 48 bytes. Strings and stacks are ids into tables of the source (see struct
 * trace_names, struct stacks), so that an event can be copied and compared.
 * @time_ns: CLOCK_MONOTONIC
 * @pid, @tid: of the thread it happens to; 0 if unknown
 * @cpu: -1 if unknown
 */
struct event {
	uint64_t time_ns;
	uint32_t pid, tid;
	int32_t cpu;
	uint16_t type;
	uint16_t flags;
	union {
		/*
		 * address: which GIL, 0 if unknown. frame: for ASKED, REQUEST, and for RELEASE if
		 * the source already knows it: the running Python frame, id in the source's frames, 0:
		 * unknown. A thread runs no Python between its release and its next request, whose
		 * frame thus is that of the release, too. overdue_us: for RELEASE, if the source
		 * knows it: for how long the thread kept the GIL after a release request, except
		 * for time without a CPU.
		 */
		struct {
			uint64_t address;
			uint32_t frame;
			uint32_t overdue_us;
		} gil;
		/*
		 * address: of the lock, or of the thread's state if the world is stopped. kind:
		 * enum park_kind. of: the type of the object that the lock belongs to, id in struct
		 * names, 0: unknown; name: of a variable that refers to the object, likewise. frame: the
		 * Python frame that waits or, UNPARK, that releases it, as for gil; 0: unknown
		 */
		struct {
			uint64_t address;
			uint32_t kind, frame;
			uint32_t of, name;
		} park;
		struct {
			uint32_t tid;
		} holder;
		struct {
			uint32_t prev_state; /* bits above */
			uint32_t stack;      /* id in struct stacks, 0: none */
			uint32_t next_tid;   /* who got the cpu; 0: idle, or its id is unknown */
			uint32_t next_name;  /* PICK: its name, id in the source's cpu_names; 0:
			                      * idle, if next_tid is 0, too */
		} sched;
		struct {
			uint32_t tid;
			int32_t cpu; /* the CPU on which it is woken; -1 if unknown */
		} waking;
		struct {
			uint32_t tid;
			int32_t from, to; /* CPUs; -1 if unknown */
		} move;
		struct {
			uint32_t parent_pid, parent_tid;
		} fork;
		struct {
			uint32_t name; /* id in struct names */
		} comm;
		/* name: of the module; 0: from now on, all such modules are known. frame: that imports it,
		 * as for gil */
		struct {
			uint32_t name, frame;
		} import;
		struct {
			uint64_t since_ns;
			uint32_t count;
		} lost;
		struct {
			uint64_t value;
			uint32_t counter; /* index of the counter in the source */
		} count;
		/* stack: 0 if it is to be unwound on request, by source_stack_at with record. */
		struct {
			uint64_t record;
			uint32_t stack;
		} stack;
	};
};

#endif
