/* SPDX-License-Identifier: MIT */
/*
 * The page of totals that the preloaded library keeps (preload/totals.h), read while the program
 * runs, without a system call but to see that it has grown.
 *
 * All numbers are as of one instant, at_ns, and what goes on then is in them. The threads are read
 *one after the other right before it: each number may be too low by the time since its thread was
 *read, which is some microseconds; it is never too high. No number ever shrinks, whoever reads, but if a new reader finds a
 * thread torn. So
 *at any instant the holds of all threads of a GIL <= its age, and hold + wait + switch wait <= life
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
 * A slot: a thread, and those before it of the same name but for digits. In the page's order, which
 * never changes, and from the same index in each snapshot.
 * @used: false: all others are 0
 * @state: what it does; TOTALS_ENDED: there is no thread
 * @since_ns: since when, CLOCK_MONOTONIC
 * @gil: index in gils
 * @hold_ns, @wait_ns, @switch_ns: in total; wait_ns without switch_ns
 * @held_ns, @waited_ns: of hold_ns and wait_ns, those that are over
 * @kept_ns: of hold_ns, after the thread was asked to release the GIL
 * @wait_for_ns: of wait_ns, for which group of threads it waited, TOTALS_NOBODY and TOTALS_OTHERS
 * included: they add up to it
 * @group: its own, among those of its GIL
 * @life_ns: of the thread and those before it, each since its first use of the GIL
 * @longest_...: of those that are over, and when it ended, CLOCK_MONOTONIC
 * @tid: of the present or last thread, as the process knows it; @threads: how many there were
 * @name: any bytes, terminated
 * @holds, @waits: how many in each bucket (TOTALS_BUCKET_BITS), of those that are over
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
};

/* @age_ns: time since the first GIL of this entry; 0: there was none. @gone: it has no GIL now */
struct totals_gil_age {
	uint64_t number, age_ns;
	bool gone;
};

/**
 * @at_ns: the instant, CLOCK_MONOTONIC
 * @age_ns: how long it has been counted
 * @left_out: threads that are not counted, since the page is full
 * @lost: events that are missing; only of a page that is observed
 * @torn: threads that could not be read in a consistent state: what they do now is not in it
 * { 0 } is an empty one, to be done by totals_snapshot_done.
 */
struct totals_snapshot {
	uint64_t at_ns, age_ns;
	uint64_t left_out, lost;
	unsigned torn;
	struct totals_gil_age gils[TOTALS_GILS];
	VEC(struct totals_thread) threads;
};

/* Open the page in a file. ENODATA: it is not a page, or not yet. */
int totals_open(struct totals **ret, const char *path, struct error *err);

/**
 * Who writes a page in this process's memory, in nanoseconds of CLOCK_MONOTONIC. It changes only between end
 * and begin, which brings it up to the instant that it returns.
 * @lost: how many events are missing in it, ever
 * @close: frees data and the page
 */
struct totals_writer {
	uint64_t (*begin)(void *data);
	void (*end)(void *data);
	uint64_t (*lost)(void *data);
	void (*close)(void *data);
	void *data;
};

/* The page of size bytes that writer writes, which is ret's from now on. */
void totals_open_writer(struct totals **ret, const void *page, size_t size,
                        const struct totals_writer *writer);

/* Whether it is such a page: when holders were asked to release their GIL is not known then. */
bool totals_is_observed(const struct totals *t);

/* The path of a process's page, which is in a folder with those of its family; caller frees. Errors
 * are those of process_python_find; ENODATA it keeps no totals. */
int totals_find(char **ret, pid_t pid, struct error *err);

/* That page. */
int totals_open_process(struct totals **ret, pid_t pid, struct error *err);

void totals_close(struct totals *t);

/* The number of the process's parent as the process itself knows it. */
pid_t totals_parent(const struct totals *t);

/* Higher in a page that a later process of the same number made. */
uint64_t totals_stamp(const struct totals *t);

/* When the page was made, CLOCK_MONOTONIC. */
uint64_t totals_began_ns(const struct totals *t);

/* Whether the process that made the page is the one that has the number pid now. */
bool totals_alive(const struct totals *t, pid_t pid);

/* Read the totals now. ret is overwritten, and keeps its memory. False: the file was truncated. */
bool totals_read(struct totals *t, struct totals_snapshot *ret);

/* Whom wait_for_ns of a thread of this GIL means: the first thread of the group, whose name is that of the
 * others but for digits. NULL: nobody, or no group of their own. */
const struct totals_thread *totals_first_of_group(const struct totals_snapshot *snapshot,
                                                  uint32_t gil, uint32_t group);
void totals_snapshot_done(struct totals_snapshot *snapshot);

DEFINE_CLEANUP(struct totals *, totals_close);

#endif
