/* SPDX-License-Identifier: MIT */
/*
 * The page of exact totals: what the preloaded library counts per thread, in a file that others may
 * read while the program runs. live/totals.c reads it.
 *
 * The library counts if the variable TOTALS_ENV names a folder: absolute, private to the user. Each
 * process that makes a GIL has a file PID.STAMP.totals there; a process that calls exec has a new
 *one, with a higher STAMP, and so has a forked child. The file is:
 *
 *	0                 struct totals_header
 *	TOTALS_WAITED_AT  struct totals_waited[TOTALS_WAITED], of the first GILs
 *	TOTALS_GILS_AT    struct totals_gil[TOTALS_GILS]
 *	TOTALS_SLOTS_AT   struct totals_slot[], as many as header.slots says; the file grows
 *
 * Slots. A thread has a slot from its first use of a GIL to its end, and fills it alone. A slot is
 * never cleared: a thread that starts takes one over from an ended thread of the same GIL and of
 *the same name but for digits, and adds to what is there. A thread that is renamed, or takes
 *another GIL, leaves its slot like one that ends, and takes another. So no number ever shrinks, and
 *the sum of a group of names that differ in digits only is the sum of its slots, whatever has
 *started or ended.
 *
 * Time is in ticks of header.clock; header.mult converts durations (TOTALS_NS), and never changes.
 *
 * Consistency. seq is odd while the slot is being written. A reader copies the slot between two
 *reads of seq (acquire) that are even and equal. Each field is written and read as a whole. A stamp
 *that ends a hold or wait is taken while seq is odd; so whoever reads an even seq later than a
 *stamp T of its own (by more than the few ns in which a store becomes visible) sees everything that
 *ended before T.
 *
 * What a thread does now is not in its totals: at T, if since <= T,
 *	hold at T = hold + (state is TOTALS_HOLD ? T - since : 0), and so for wait
 * If since > T, at least hold - (since - T). For a program that is stopped or killed in the middle
 * of a write, seq stays odd: then hold, wait, ... alone are each right, without what goes on.
 *
 * For whom a thread waits. A thread belongs to a group of its GIL: those of names that differ in digits
 * only. While threads wait, totals_waited.held says how long each group has held their GIL, and
 * nobody; a slot has what that was when its wait began, and at its end adds the differences to
 * wait_for. So wait_for adds up to wait. What held is at T: held[holder] + (T - last) if last <= T;
 * whoever reads it with an even seq later than T, as above, sees every change of holder before T.
 */
#ifndef GILTRACER_PRELOAD_TOTALS_H
#define GILTRACER_PRELOAD_TOTALS_H

#include <stdint.h>

#define TOTALS_ENV     "GILTRACER_TOTALS"
#define TOTALS_DIR_MAX 3800
#define TOTALS_SUFFIX  ".totals"

/* A file of the launcher's in the folder: a uint64_t, mult of the processor's counter. Without it,
 * each process measures for itself, less exactly. */
#define TOTALS_RATE "rate"

#define TOTALS_MAGIC   0x32746f746c746c67 /* "gltltot2" */
#define TOTALS_GILS    256
#define TOTALS_NAME    64
#define TOTALS_BUCKETS 32

#define TOTALS_WAITED_AT 256
#define TOTALS_GILS_AT   4096
#define TOTALS_SLOTS_AT  12288
#define TOTALS_CHUNK     64 /* slots by which the file grows */
#define TOTALS_SLOTS     8192

/* GILs for which it is known for whom threads wait; of all others, for TOTALS_OTHERS. */
#define TOTALS_WAITED 16

/* Groups of threads that are waited for. */
#define TOTALS_GROUPS 16
#define TOTALS_NOBODY 0 /* the GIL was free */
#define TOTALS_OTHERS \
	(TOTALS_GROUPS - 1) /* all that are not among the first, or have no name yet */

/* Bucket i counts durations of less than 2^(TOTALS_BUCKET_BITS + i) ns that are in none before; the
 * last one all others. */
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
 * @pid, @ppid: as the process knows them
 * @slots: how many have been used; some of them may be all zero
 * @left_out: threads that got no slot
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
};

/**
 * A GIL, and those that had its entry before it: two of them are never there at the same time.
 * @number: unique in the process
 * @made: stamp of the first one, 0: the entry is unused; @gone: of the end of the last, 0: it is
 * there
 * @asked: when a holder was first asked to release it, last of all; of the present hold if it is
 * not before it
 */
struct totals_gil {
	uint64_t number;
	uint64_t made, gone;
	uint64_t asked;
};

/**
 * For whom threads wait for a GIL: written with its mutex locked.
 * @last: stamp up to which held is right
 * @holder: index in held of the group that has it now
 * @held: ticks, but only of times in which threads wait
 */
struct totals_waited {
	uint64_t seq, last;
	uint32_t holder, reserved;
	uint64_t held[TOTALS_GROUPS];
	uint64_t fill[5];
};

enum totals_state {
	TOTALS_ENDED, /* no thread has the slot */
	TOTALS_FREE,  /* neither holds the GIL nor waits */
	TOTALS_WAIT,  /* wants the GIL, which another thread had */
	TOTALS_HOLD,
	TOTALS_SWITCH, /* released it since it was asked to, and waits until another thread has it
	                */
};

/**
 * @since: stamp of the last change of state
 * @state: enum totals_state
 * @gil: index in the table of GILs
 * @hold, @wait, @switch_wait: ticks in finished ones
 * @kept: of hold, ticks after the thread was asked to release the GIL
 * @lived: ticks of ended threads; @began: when the present thread took the slot
 * @longest_hold, @longest_wait: ticks; @..._end: stamp of its end
 * @tid: of the present or last thread; @threads: how many have had the slot, 0: never used
 * @name: of that thread: what the kernel calls it, or the program; terminated
 * @group: its index in totals_waited.held, always the same
 * @holder: the group that had the GIL when the present wait began; @compared: seen is of this wait
 * @wait_for: of wait, by group; @seen: totals_waited.held at that time
 * @holds, @waits: histograms of finished ones; switch waits are not in waits
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
};

#endif
