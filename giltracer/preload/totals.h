/* SPDX-License-Identifier: MIT */
/*
 * The page of exact totals: what the preloaded library counts per thread, in a file that other
 * processes may read while the program runs. live/totals.c reads it.
 *
 * The library counts if the variable TOTALS_ENV names a folder: absolute, private to the user. Each
 * process that has created a GIL has a file PID.STAMP.totals there; a process that calls exec has a
 * new one, with a higher STAMP, and so has a forked child. The file is:
 *
 *	0                 struct totals_header
 *	TOTALS_WAITED_AT  struct totals_waited[TOTALS_WAITED], of the first GILs
 *	TOTALS_GILS_AT    struct totals_gil[TOTALS_GILS]
 *	TOTALS_LOCKS_AT   struct totals_lock[TOTALS_LOCKS], where threads wait for locks
 *	TOTALS_SLOTS_AT   struct totals_slot[header.slots]; the file grows
 *
 * Slots. A thread has a slot from its first use of a GIL to its end, and only this thread writes to
 * it. A slot is never cleared: a new thread takes over the slot of an ended thread of the same GIL
 * whose name differs in digits only, and adds to its totals. A thread that is renamed, or takes
 * another GIL, leaves its slot like one that ends, and takes another. So no number ever shrinks,
 * and the sum over a group of names that differ in digits only is the sum of its slots, whatever
 * threads have started or ended.
 *
 * A program that was already running counts into a folder of its observer's until that one leaves; then
 * header.over is set, the file is never written again, and the next observer's folder gets another
 * one. What is read before over is read as 0 is complete.
 *
 * Time is in ticks of header.clock; header.mult converts durations (TOTALS_NS), and never changes.
 *
 * Consistency. seq is odd while the slot is being written. A reader copies the slot between two
 * reads of seq (acquire) that are even and equal. Each field is written and read as a whole. A
 * stamp that ends a hold or wait is taken while seq is odd; so a reader that reads an even seq
 * later than its own stamp T (by more than the few ns in which a store becomes visible) sees
 * everything that ended before T.
 *
 * The present state of a thread is not in its totals: at T, if since <= T,
 *	hold at T = hold + (state is TOTALS_HOLD ? T - since : 0), and so for wait
 * If since > T, at least hold - (since - T). If a program is stopped or killed in the middle of a
 * write, seq stays odd: then hold, wait, ... are each correct, but the present state is not known.
 *
 * Waits by holder. A thread belongs to a group of its GIL: the threads whose names differ in digits
 * only. While threads wait, totals_waited.held contains for how long each group, or nobody, has
 * held their GIL. A slot contains these values at the beginning of its wait, and at the end adds
 * the differences to wait_for, whose sum is thus wait. held at T: held[holder] + (T - last) if
 * last <= T; a reader with an even seq later than T, as above, sees every change of holder before
 * T.
 */
#ifndef GILTRACER_PRELOAD_TOTALS_H
#define GILTRACER_PRELOAD_TOTALS_H

#include <stdint.h>

#define TOTALS_ENV     "GILTRACER_TOTALS"
#define TOTALS_DIR_MAX 3800
#define TOTALS_SUFFIX  ".totals"

/* A file of the launcher's in the folder: a uint64_t, mult of the processor's counter. Without
 * it, each process measures mult itself, less exactly. */
#define TOTALS_RATE "rate"

/* A file of the observer's: an array of struct totals_name, of threads that exist. It puts another one in
 * its place, and then adds to preload_control.names, whenever there are more names. */
#define TOTALS_NAMES "tids"

#define TOTALS_MAGIC   0x33746f746c746c67 /* "gltltot3" */
#define TOTALS_GILS    256
#define TOTALS_NAME    64
#define TOTALS_BUCKETS 32

#define TOTALS_WAITED_AT 256
#define TOTALS_GILS_AT   4096
#define TOTALS_LOCKS_AT  12288
#define TOTALS_SLOTS_AT  16384
#define TOTALS_CHUNK     64 /* slots by which the file grows */
#define TOTALS_SLOTS     8192

/* The number of GILs whose waits are counted by holder; for others, all waits are for
 * TOTALS_OTHERS. */
#define TOTALS_WAITED 16

/* Groups of threads that others wait for. */
#define TOTALS_GROUPS 16
#define TOTALS_NOBODY 0 /* the GIL was free */
#define TOTALS_OTHERS \
	(TOTALS_GROUPS - 1) /* all groups after the first ones, and threads without a name yet */

/* Lines of the program that wait for its locks. */
#define TOTALS_LOCKS      8
#define TOTALS_LOCK_TEXT  128
#define TOTALS_LOCK_OTHER 0 /* all lines after the first ones, and unknown ones */

/* Bucket i counts durations of less than 2^(TOTALS_BUCKET_BITS + i) ns that are in no earlier
 * bucket; the last bucket counts all others. */
#define TOTALS_BUCKET_BITS 10

/* Nanoseconds of a number of ticks, rounded down. */
#define TOTALS_NS(ticks, mult) ((uint64_t)((unsigned __int128)(ticks) * (mult) >> 32))

enum totals_clock {
	TOTALS_CLOCK_MONOTONIC, /* ticks are nanoseconds */
	TOTALS_CLOCK_TSC,
};

/**
 * @mult: nanoseconds of a tick, times 2^32
 * @stamp: when the file was made, as in its name
 * @ns: CLOCK_MONOTONIC at about that time
 * @start_time: of the process in the kernel's ticks since boot (/proc/PID/stat, field 22); 0:
 * unknown
 * @pid, @ppid: in the process's own namespace
 * @slots: how many have been used; some of them may be all zero
 * @left_out: threads without a slot
 * @joined: of a program that was already running: the page ends with its observer; @over: nothing is counted any
 * more
 */
struct totals_header {
	uint64_t magic;
	uint64_t mult;
	uint64_t stamp, ns;
	uint64_t start_time;
	uint32_t clock; /* enum totals_clock */
	uint32_t pid, ppid;
	uint32_t slots;
	uint64_t left_out;
	uint32_t slot_size; /* sizeof(struct totals_slot) */
	uint32_t joined, over;
};

/* The name that the program gave to a thread. */
struct totals_name {
	uint32_t tid;
	char name[TOTALS_NAME];
};

/**
 * A GIL, and its predecessors in this entry, which never exist at the same time.
 * @number: unique in the process
 * @made: stamp of the first one, 0: the entry is unused; @gone: end of the last one, 0: it exists
 * @asked: the last stamp at which a holder was first asked to release it; it concerns the present
 * hold if it is not earlier than that
 */
struct totals_gil {
	uint64_t number;
	uint64_t made, gone;
	uint64_t asked;
};

/**
 * Waits for a GIL by holder: written with its mutex locked.
 * @last: stamp up to which held is correct
 * @holder: index in held of the group that holds the GIL now
 * @held: ticks, but only while threads wait
 */
struct totals_waited {
	uint64_t seq, last;
	uint32_t holder, reserved;
	uint64_t held[TOTALS_GROUPS];
	uint64_t fill[5];
};

/* A line, as FUNCTION (FILE:LINE), terminated; "": none so far. It is complete before a wait for it
 * is counted. */
struct totals_lock {
	char where[TOTALS_LOCK_TEXT];
};

enum totals_state {
	TOTALS_ENDED, /* no thread has the slot */
	TOTALS_FREE,  /* neither holds the GIL nor waits */
	TOTALS_WAIT,  /* wants the GIL, which another thread had */
	TOTALS_HOLD,
	TOTALS_SWITCH, /* released it on request, waits until another thread takes it */
};

/**
 * @since: stamp of the last change of state
 * @state: enum totals_state
 * @gil: index in the table of GILs
 * @hold, @wait, @switch_wait: ticks in completed ones
 * @kept: the part of hold after the thread was asked to release the GIL
 * @lived: ticks of ended threads; @began: when the present thread took the slot
 * @longest_hold, @longest_wait: ticks; @..._end: stamp of its end
 * @tid: of the present or last thread; @threads: how many have had the slot, 0: never used
 * @name: of that thread: the program's name for it, or the kernel's; terminated
 * @group: its index in totals_waited.held, never changes
 * @holder: the group that held the GIL when the present wait began; @compared: seen is valid for
 * this wait
 * @wait_for: wait by group; @seen: totals_waited.held at the beginning of the wait
 * @holds, @waits: histograms of completed ones; switch waits are not in waits
 * @lock_wait: completed waits for locks, by line: that a wait is for a lock, and not for a signal,
 * may be known only when it ends
 */
struct totals_slot {
	uint64_t seq;
	uint64_t since;
	uint32_t state, gil;
	uint64_t hold, wait, switch_wait;
	uint64_t kept;
	uint64_t lived;

	uint64_t began;
	uint64_t longest_hold, longest_hold_end;
	uint64_t longest_wait, longest_wait_end;
	uint32_t tid, threads;
	uint64_t reserved[2];

	char name[TOTALS_NAME];

	uint32_t group, holder, compared, unused;
	uint64_t fill[6];

	uint64_t wait_for[TOTALS_GROUPS], seen[TOTALS_GROUPS];
	uint64_t holds[TOTALS_BUCKETS];
	uint64_t waits[TOTALS_BUCKETS];
	uint64_t lock_wait[TOTALS_LOCKS];
};

#endif
