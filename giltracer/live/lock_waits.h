/* SPDX-License-Identifier: MIT */
/*
 * Which threads of a snapshot wait for locks of the program, and which threads have these. A thread
 * that waits for a lock sleeps for a futex, and the line that it executes takes the lock. Which
 * thread has the lock is recorded in an RLock alone (from 3.14 on). Of another one, it can be
 * inferred: if the line that one thread executes is in a block of "with" and the same expression,
 * that thread has it.
 */
#ifndef GILTRACER_LIVE_LOCK_WAITS_H
#define GILTRACER_LIVE_LOCK_WAITS_H

#include "live/snapshot.h"

/**
 * @address: of the lock; 0: unknown
 * @expression: "self._lock"; NULL: the thread does not wait for a lock, as far as known
 * @holder: index of the thread that has it; SIZE_MAX: unknown; @inferred: from the source
 */
struct lock_wait {
	uint64_t address;
	char *expression;
	size_t holder;
	bool inferred;
};

/* The text of a source file; NULL: cannot be read. */
struct lock_source {
	const char *file;
	char *text;
};

/* @waits: one for each thread of the snapshot */
struct lock_waits {
	const struct target *target;
	const struct snapshot *snapshot;
	VEC(struct lock_wait) waits;
	VEC(struct lock_source) sources;
};

/* target and snapshot are borrowed until lock_waits_done. */
void lock_waits_find(struct lock_waits *ret, const struct target *target,
                     const struct snapshot *snapshot);
void lock_waits_done(struct lock_waits *waits);

#endif
