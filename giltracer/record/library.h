/* SPDX-License-Identifier: MIT */
/* The library inside the program: whether it can be loaded; its folder, environment and limit. */
#ifndef GILTRACER_RECORD_LIBRARY_H
#define GILTRACER_RECORD_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "preload/format.h"
#include "session/temp_session.h"

/* ---- the clock of its stamps, read outside the program */

/* The processor's counter or, where that is not used, CLOCK_MONOTONIC in ns. */
uint64_t ticks_now(void);

/* Read both clocks at the same moment. */
void ticks_look(uint64_t *stamp, uint64_t *ns);

/* How many ticks a time has; measuring that takes some milliseconds, unless the time is 0. */
uint64_t ticks_of(uint64_t ns);

/* ---- the library */

struct python;
struct thread_names;

/* The library's folder inside the session's, by pass. */
#define RECORD_PRELOAD        "gil.preload"
#define RECORD_STACKS_PRELOAD "stacks.preload"

/* perf's recording that takes over from uprobes together with the library. */
#define RECORD_SWITCHES "gil.switches.perf.data"

/**
 * Of a program that runs already in another container, whose files it must be able to open.
 * @folder: of the library's folder, which is a session's, too, made there; path NULL: it is not elsewhere
 * @root: its root folder; 0: none; @base: the folder of @folder
 * @own, @preload: @folder and the library's folder, and @session, a name of @own: whoever controls the
 * container can put a link in the place of each, which would lead to our files
 * @library, @seen: the library, which is in it unless it is loaded already, and the library's folder, as the
 * program names them
 * @memory: it must load a copy in memory, because no folder permits that files are executed
 */
struct inside {
	struct temp_session folder;
	int root, base, own, preload;
	char *session, *library, *seen;
	bool memory;
};

/**
 * All zero: it is not used.
 * @library, @folder: absolute
 * @env: variables for the program, NULL-terminated
 * @control: shared with the library; @lock: a lock on its file for the life of this process; 0:
 * none
 */
struct preloading {
	char *library, *folder;
	struct inside inside;
	char *env[3];
	struct preload_control *control;
	int lock;
};

/* Whether the interpreter can be recorded this way; the error says why not. */
int preloading_check(struct preloading *ret, const struct python *python, struct error *err);

/* The same for what the library does only in builds with a GIL. */
int preloading_check_gil(struct preloading *ret, const struct python *python, struct error *err);

/**
 * @dir: of the session, absolute; @name: of the folder in it
 * @pid: of a program that runs already; 0: it is started
 * @max_mib: how much may be recorded; 0: as much as there is room for
 * @kept_ns: only what is newer is kept; 0: all; @longest_ns: see preload_control.longest; NULL: none
 * @frames: how many are recorded of each release
 * @entries: how many of the last Python calls of each process are kept
 * @shortest_us: shorter calls are not shown; @modules: only their functions are shown; NULL: all
 * @calls: Python calls are recorded; @c_calls: calls of C functions, too
 * @mutexes: waits for mutexes of C code are recorded
 * @use: of the GIL; @turn_ns: see struct preload_control; @totals: nothing is recorded, the GIL's time is counted
 * @bootstrap: our part of the program, whose functions are not shown
 */
struct preloading_plan {
	const char *dir, *name;
	pid_t pid;
	unsigned max_mib, frames, entries, shortest_us;
	uint64_t kept_ns;
	const uint64_t *longest_ns;
	const char *modules;
	bool calls, c_calls, mutexes, totals;
	enum preload_use use;
	uint64_t turn_ns;
	const char *bootstrap;
};

/* Make the folder in the session's. A second call, for the next run, makes another one. Error ESTALE:
 * the program can open no file of ours. */
int preloading_prepare(struct preloading *p, const struct preloading_plan *plan, struct error *err);

/* The folder for files of the session that others read while the program runs. */
const char *preloading_session(const struct preloading *p, const char *dir);

/* Writes where each CPython has its frames to this folder, for the library; a child may run another
 * version of Python than the program. */
int preloading_write_offsets(const char *folder, struct error *err);

/* LD_PRELOAD=…, in addition to the variable's present value; the caller frees it. */
char *preloading_variable(const char *library);

/* Write the rate of the processor's counter into a folder of totals, by this reading of ticks_look() and another one. */
int preloading_write_rate(const char *folder, uint64_t from, uint64_t from_ns, struct error *err);

/* Record a reading of both clocks: before the program starts, and after its end. */
void preloading_note_time(const struct preloading *p);

/* For PRELOAD_USE_COUNT: whether, since the last call, a process found that the uprobes that record
 * the GIL cost it too much; what a turn of the GIL takes with them, as measured, 0: it was not; that
 * the library records it from now on. */
bool preloading_finds_slow(const struct preloading *p);
uint64_t preloading_turn_ns(const struct preloading *p);
void preloading_take_over(const struct preloading *p);

/* Record that the thread was alive and without the GIL when the process loaded the library. */
void preloading_note_idle(const struct preloading *p, uint32_t pid, uint32_t tid);

/* When the library's limit was reached, CLOCK_MONOTONIC; 0: not reached. */
uint64_t preloading_full_ns(const struct preloading *p);

/* Reads the names that the library has seen the processes give to their threads. */
void preloading_names(const struct preloading *p, struct thread_names *named);

/* Why the library could not write all records: 1 << enum preload_why; 0: it could. */
unsigned preloading_unwritten(const struct preloading *p);

/* Stop recording. What was recorded after the limit was reached does not count. Notes which
 * processes are still alive. */
void preloading_stop(const struct preloading *p);

/* Whether the process, by its own number, exists and is no zombie, or cannot be examined. */
bool preloading_is_alive(const struct preloading *p, unsigned long pid);

/* Whether the library has seen process pid create a GIL. */
bool preloading_works(const struct preloading *p, uint32_t pid);

void preloading_done(struct preloading *p);

DEFINE_CLEANUP_IN(struct preloading, preloading_done);

#endif
