/* SPDX-License-Identifier: MIT */
/*
 * The page of totals that the preloaded library keeps (preload/totals.h), read while the program
 * runs, without a system call except to notice that it has grown.
 *
 * All numbers are as of one instant, at_ns, and include what is in progress then. The threads are
 * read one after the other right before it, so each number may be too low by the time since its
 * thread was read, some microseconds, but never too high. Numbers never shrink from one reading to
 * the next, even between readers, unless a new reader finds a thread torn. So at any instant the
 * holds of all threads of a GIL <= its age, and hold + wait + switch wait <= life.
 */
#ifndef GILTRACER_LIVE_TOTALS_H
#define GILTRACER_LIVE_TOTALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "preload/totals.h"

struct totals;

/**
 * A slot: a thread, and its predecessors whose names differ in digits only. Slots are in the page's
 * order, which never changes, and have the same index in each snapshot.
 * @used: false: all others are 0
 * @state: the present activity; TOTALS_ENDED: no thread at present
 * @since_ns: when the activity began, CLOCK_MONOTONIC
 * @gil: index in gils
 * @hold_ns, @wait_ns, @switch_ns: in total; wait_ns without switch_ns
 * @held_ns, @waited_ns: the completed part of hold_ns and wait_ns
 * @kept_ns: the part of hold_ns after the thread was asked to release the GIL
 * @wait_for_ns: wait_ns by the group of threads waited for, including TOTALS_NOBODY and
 * TOTALS_OTHERS; the sum is wait_ns
 * @group: its own group, among those of its GIL
 * @life_ns: of the thread and its predecessors, each since its first use of the GIL
 * @longest_...: the longest completed one, and when it ended, CLOCK_MONOTONIC
 * @tid: of the present or last thread, in the process's namespace; @threads: how many there were
 * @name: any bytes, terminated
 * @holds, @waits: how many completed ones are in each bucket (TOTALS_BUCKET_BITS)
 * @lock_wait_ns: completed waits for locks of the program, by line
 */
struct totals_thread {
	bool used;
	enum totals_state state;
	uint64_t since_ns;
	uint32_t gil;
	uint64_t hold_ns, wait_ns, switch_ns, kept_ns, life_ns;
	uint64_t held_ns, waited_ns;
	uint64_t wait_for_ns[TOTALS_GROUPS];
	uint32_t group;
	uint64_t longest_hold_ns, longest_hold_end_ns;
	uint64_t longest_wait_ns, longest_wait_end_ns;
	uint32_t tid, threads;
	char name[TOTALS_NAME];
	uint64_t holds[TOTALS_BUCKETS], waits[TOTALS_BUCKETS];
	uint64_t lock_wait_ns[TOTALS_LOCKS];
};

/* @age_ns: time since the first GIL of this entry; 0: none so far. @gone: no GIL at present */
struct totals_gil_age {
	uint64_t number, age_ns;
	bool gone;
};

/**
 * @at_ns: the instant, CLOCK_MONOTONIC
 * @age_ns: how long totals have been counted
 * @left_out: threads that are not counted, because the page is full
 * @locks: the lines that waited for locks
 * @torn: threads that could not be read in a consistent state; their present activity is not
 * included
 * { 0 } is empty; free with totals_snapshot_done.
 */
struct totals_snapshot {
	uint64_t at_ns, age_ns;
	uint64_t left_out;
	unsigned torn;
	struct totals_gil_age gils[TOTALS_GILS];
	struct totals_lock locks[TOTALS_LOCKS];
	VEC(struct totals_thread) threads;
};

/* Open the page in a file. ENODATA: it is not a page, or not yet complete. */
int totals_open(struct totals **ret, const char *path, struct error *err);

/* Whether the page ends with its observer, though the program goes on. */
bool totals_is_joined(const struct totals *t);

/* Whether nothing is counted there any more: what was read before may be wrong. */
bool totals_is_over(const struct totals *t);

/* The path of the page that a process has at present, in a folder with those of related processes; NULL: none. The
 * caller frees it. */
char *totals_path(pid_t pid);

/* The same; errors are those of process_python_find; ENODATA: the process keeps no totals. */
int totals_find(char **ret, pid_t pid, struct error *err);

/* Open that page. */
int totals_open_process(struct totals **ret, pid_t pid, struct error *err);

void totals_close(struct totals *t);

/* The number of the process's parent in the process's own namespace. */
pid_t totals_parent(const struct totals *t);

/* A number that is higher in a page of a later process with the same pid. */
uint64_t totals_stamp(const struct totals *t);

/* When the page was made, CLOCK_MONOTONIC. */
uint64_t totals_began_ns(const struct totals *t);

/* Whether the process that made the page is the present process pid. */
bool totals_alive(const struct totals *t, pid_t pid);

/* Read the totals now. ret is overwritten, and its memory reused. False: the file was truncated. */
bool totals_read(struct totals *t, struct totals_snapshot *ret);

/* The meaning of an index of wait_for_ns for a GIL: the first thread of that group, whose names
 * differ in digits only. NULL: nobody, or threads without a group of their own. */
const struct totals_thread *totals_first_of_group(const struct totals_snapshot *snapshot,
                                                  uint32_t gil, uint32_t group);
void totals_snapshot_done(struct totals_snapshot *snapshot);

DEFINE_CLEANUP(struct totals *, totals_close);

#endif
