/* SPDX-License-Identifier: MIT */
/* The library inside the program: whether it can be, and its folder, environment and limit. */
#ifndef GILTRACER_RECORD_PRELOADING_H
#define GILTRACER_RECORD_PRELOADING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct preload_control;
struct python;

/* Its folder in the session's, by the pass. */
#define RECORD_PRELOAD        "gil.preload"
#define RECORD_STACKS_PRELOAD "stacks.preload"

/**
 * All zero: it is not used.
 * @library, @folder: absolute
 * @env: for the program, NULL-terminated
 * @control: shared with the library; @lock: on its file, as long as this process lives; 0: none
 */
struct preloading {
	char *library, *folder;
	char *env[3];
	struct preload_control *control;
	int lock;
};

/* Whether the interpreter can be traced so; an error says why not. */
int preloading_check(struct preloading *ret, const struct python *python, struct error *err);

/**
 * @dir: of the session, absolute; @name: of the folder in it
 * @max_mib: how much may be recorded; 0: as much as there is room for
 * @frames: of each release
 * @entries: how many of the last Python calls of each process are kept
 * @shortest_us: of shorter ones, nothing is shown; @modules: of other modules' functions neither;
 * NULL: of all
 * @c_calls: those of functions in C, too
 * @calls_only: it does not see the GIL
 * @bootstrap: our part of the program, of which nothing is shown
 */
struct preloading_plan {
	const char *dir, *name;
	unsigned max_mib, frames, entries, shortest_us;
	const char *modules;
	bool c_calls, calls_only;
	const char *bootstrap;
};

/* Make the folder in the session's. Again, for the next run: another folder. */
int preloading_prepare(struct preloading *p, const struct preloading_plan *plan, struct error *err);

/* LD_PRELOAD=…, with what is in it already; caller frees. */
char *preloading_variable(const char *library);

/* What the clocks say now: before the program starts, and after its end. */
void preloading_note_time(const struct preloading *p);

/* When its limit was reached, CLOCK_MONOTONIC; 0: it was not. */
uint64_t preloading_full_ns(const struct preloading *p);

/* Nothing more is to be recorded, and nothing since the limit was reached counts. Notes which processes
 * live on. */
void preloading_stop(const struct preloading *p);

/* Whether process pid has made a GIL that the library knows. */
bool preloading_works(const struct preloading *p, uint32_t pid);

void preloading_done(struct preloading *p);

#endif
