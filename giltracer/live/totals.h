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
	uint64_t longest_hold_ns, longest_hold_end_ns;
	uint64_t longest_wait_ns, longest_wait_end_ns;
	uint32_t tid, threads;
	char name[TOTALS_NAME];
	uint64_t holds[TOTALS_BUCKETS], waits[TOTALS_BUCKETS];
};

/* @age_ns: since the first GIL of this entry; 0: there is none. @gone: there is none now */
struct totals_gil_age {
	uint64_t number, age_ns;
	bool gone;
};

/**
 * @at_ns: the instant, CLOCK_MONOTONIC
 * @age_ns: how long it has been counted
 * @left_out: threads that are not counted, since the page is full
 * @torn: threads that could not be read in a consistent state: what they do now is not in it
 * { 0 } is an empty one, to be done by totals_snapshot_done.
 */
struct totals_snapshot {
	uint64_t at_ns, age_ns;
	uint64_t left_out;
	unsigned torn;
	struct totals_gil_age gils[TOTALS_GILS];
	VEC(struct totals_thread) threads;
};

/* The page in a file. ENODATA: it is not (yet) one. */
int totals_open(struct totals **ret, const char *path, struct error *err);

/* The path of a process's page, in a folder with those of its family; caller frees. ESRCH there is
 * no such process, EACCES it may not be looked at, ENODATA it keeps no totals. */
int totals_find(char **ret, pid_t pid, struct error *err);

/* That page. */
int totals_open_process(struct totals **ret, pid_t pid, struct error *err);

void totals_close(struct totals *t);

/* As the process itself knows it, and its parent. */
pid_t totals_pid(const struct totals *t);
pid_t totals_parent(const struct totals *t);

/* Higher in a page that a process of the same number made later. */
uint64_t totals_stamp(const struct totals *t);

/* When the page was made, CLOCK_MONOTONIC. */
uint64_t totals_began_ns(const struct totals *t);

/* Whether the process that made it is the one that has the number pid now. */
bool totals_alive(const struct totals *t, pid_t pid);

/* Now. ret is overwritten, and keeps its memory. False: the file was cut off. */
bool totals_read(struct totals *t, struct totals_snapshot *ret);
void totals_snapshot_done(struct totals_snapshot *snapshot);

DEFINE_CLEANUP(struct totals *, totals_close);

#endif
