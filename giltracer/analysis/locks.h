/* SPDX-License-Identifier: MIT */
/* What blocks threads: locks, and stops of the world of a free-threaded interpreter. */
#ifndef GILTRACER_ANALYSIS_LOCKS_H
#define GILTRACER_ANALYSIS_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/facts.h"
#include "analysis/functions.h"
#include "base/vec.h"

/**
 * A place where threads were blocked or blocked others: all spans with one state in one Python
 * function.
 * @state: GIL_LOCK_WAIT, GIL_SPINNING, GIL_STOPPED or GIL_STOPPING
 * @frame: id in the source's frames, 0: not known
 * @of: LOCK_WAIT and SPINNING: the type of the object that the lock belongs to, @name: that of a
 * variable that refers to it, "" if not known; borrowed
 */
struct locks_place {
	unsigned state;
	uint32_t frame;
	const char *of, *name;
	uint64_t count, ns, longest_ns;
};

/**
 * The stops of the world. A stop lasts from the request until others may continue.
 * @collections: those for a garbage collection
 * @waiting_ns: from requests until all others had stopped
 * @latest: the one of which that took longest; NULL: none; borrowed
 */
struct locks_stops {
	uint64_t count, collections, ns, longest_ns, waiting_ns;
	const struct model_stop *latest;
};

struct locks_stops locks_stops(const struct model *model);

/**
 * What held up stops of the world: a thread that was the last one to stop, in one line.
 * @thread: MODEL_NONE: it is not known which one that was; @frame: id in the source's frames, 0: unknown
 * @waiting_ns: from the requests until it had stopped; @longest_ns: of one stop
 */
struct locks_late {
	uint32_t thread, frame;
	uint64_t count, waiting_ns, longest_ns;
};

struct locks_late_list {
	VEC(struct locks_late) v;
};

/* The longest waiting first; the caller frees v. */
struct locks_late_list locks_late(const struct recording_pass *pass);

static inline uint64_t locks_stop_ns(const struct model_stop *stop)
{
	uint64_t end_ns = stop->start_ns ? stop->start_ns : stop->stopped_ns;

	return end_ns > stop->request_ns ? end_ns - stop->request_ns : 0;
}

/* 0: unknown, but short, or the thread did not have to wait. */
static inline uint64_t locks_stop_waiting_ns(const struct model_stop *stop)
{
	return stop->stopped_ns > stop->request_ns ? stop->stopped_ns - stop->request_ns : 0;
}

struct locks_places {
	VEC(struct locks_place) v; /* most time first */
};

/* The places of one thread, or of all for MODEL_NONE. Free with vec_done(&places.v). */
struct locks_places locks_places(const struct recording_pass *pass, uint32_t thread);

/* Whether the pass's GIL was off throughout and lock waits were recorded: reports then show locks
 * instead of the GIL. */
bool locks_of_pass(const struct recording_pass *pass);

enum lock_kind {
	LOCK_UNKNOWN,
	LOCK_PLAIN, /* Lock */
	LOCK_RLOCK,
	LOCK_CONDITION,
	LOCK_SEMAPHORE,
	LOCK_EVENT,
	LOCK_BARRIER,
	LOCK_QUEUE,
	LOCK_THREAD, /* the start or the end of a thread */
	LOCK_IMPORT,
	LOCK_LOGGING, /* of a handler */
	LOCK_FUTURES, /* of concurrent.futures */
	LOCK_ASYNCIO,
	LOCK_KINDS,
};

/**
 * What the frames of a thread that waits for a lock, and the text of the program, say about the lock.
 * @in: where the program waits: the innermost function that is not of Python's library, or the
 * innermost one if there is none
 * @called: the function of the library that this calls; NULL: none
 * @expression: of the lock in that line; NULL: not known; @of: the class, if it is an attribute of self
 * @made: the line of the same file that assigns to it; 0: not known
 */
struct lock_name {
	enum lock_kind kind;
	struct function in;
	const char *called, *expression, *of;
	uint32_t made;
};

/* frame: id in the source's frames. Borrowed from the recording. */
struct lock_name lock_name_of(const struct recording *recording, const struct recording_pass *pass,
                              uint32_t frame);

/* The frame of the function in @in of its name, as far as the frames tell alone. */
uint32_t lock_user_frame(const struct recording_pass *pass, uint32_t frame);

/*
 * What threads did that others waited for: each wait for a lock is followed to the thread that
 * released the lock; if that waited itself meanwhile, for another lock or for the GIL, to the
 * thread that had this; and so on, to a thread that did not wait. The critical path is the chain
 * that begins at the end of the recording.
 */

/* What the last thread of a chain did. */
enum chain_end {
	CHAIN_HELD_GIL,    /* it held the GIL */
	CHAIN_WITHOUT_GIL, /* it was without the GIL: asleep, or in C code */
	CHAIN_FREE,        /* nobody had the lock or the GIL: the next thread was not yet running */
	CHAIN_DEADLOCK,    /* it waited for the thread that waited for it; nobody released a lock */
	CHAIN_UNKNOWN,     /* which thread had the lock, or what that did, is not known */
	CHAIN_ENDS,
};

/**
 * All parts of waits for locks in one line of code that passed while threads did the same.
 * @waits_in: where the threads waited; @at: what the thread at the end of the chain executed, or
 * had executed when it released the GIL; ids in the source's frames, 0: unknown
 * @lock: index in the model's locks; MODEL_NONE: there are several
 * @through: the thread that released the lock waited itself meanwhile
 * @ns: summed over the waiting threads; @asleep_ns: CHAIN_WITHOUT_GIL: the part of it in which the
 * thread is known to have slept; @wait_ns: of all chains of waits in the same lines
 * @parts: number of parts; @longest_ns: of one part, at @longest_at_ns in @waiter
 * @thread: the thread at the end of the chain; MODEL_NONE: there are several, or none
 */
struct chain {
	uint32_t waits_in, at, thread, waiter, lock;
	enum chain_end end;
	bool through, several;
	uint64_t ns, asleep_ns, wait_ns, parts, longest_ns, longest_at_ns;
};

/* @ns: of all of them, which is the time that all threads waited for locks */
struct chains {
	VEC(struct chain) v; /* most time first */
	uint64_t ns;
};

/* Free with vec_done(&chains.v). */
struct chains chains_find(const struct recording_pass *pass);

/* What the critical path waits for. */
enum path_reason {
	PATH_GIL,         /* a thread holds the GIL, and is on a CPU or not known not to be */
	PATH_WITHOUT_GIL, /* a thread is without the GIL, and is on a CPU or not known not to be */
	PATH_ASLEEP,      /* a thread sleeps, and no thread of the program wakes it */
	PATH_TIME_OUT,    /* a thread waits for a lock or a signal that no thread gives it */
	PATH_NO_CPU,      /* a thread is runnable without a CPU */
	PATH_HANDOFF,     /* what a thread waits for is free, and the thread not yet running */
	PATH_UNKNOWN,
	PATH_REASONS,
};

/**
 * A part of the critical path, or all parts of one thread, or of several, in one line of code.
 * @at: what the thread executed, or had executed when it released the GIL; id in the source's
 * frames, 0: unknown
 * @thread: MODEL_NONE: several
 * @from_ns: of a part, or of the longest
 */
struct path_part {
	uint32_t at, thread;
	enum path_reason reason;
	uint64_t from_ns, ns, parts, longest_ns;
};

/**
 * The critical path: from the end of the recording back to its start, through the threads for which
 * others waited. When a thread waited for the GIL, for a lock or for a signal, or was started or
 * woken by another thread, the path continues with that thread. Making a part shorter ends the run
 * sooner, until another path is the longest.
 * @rows: its parts by line of code and reason, most time first
 * @ns: their sum, which is the duration of the recording
 */
struct path {
	VEC(struct path_part) rows;
	uint64_t ns;
};

struct path_parts {
	VEC(struct path_part) v;
};

/* Free with vec_done(&path.rows). ret_parts: all parts, without gaps, the last one first; NULL: there may be as
 * many as GIL events */
struct path path_find(const struct recording_pass *pass, struct path_parts *ret_parts);

#endif
