/* SPDX-License-Identifier: MIT */
/* What the files that read the library's Python calls share. Only they include it. */
#ifndef GILTRACER_TRACE_CALLS_READER_H
#define GILTRACER_TRACE_CALLS_READER_H

#include <stdbool.h>

#include "base/idmap.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/cursor.h"
#include "preload/format.h"
#include "trace/calls/tasks.h"
#include "trace/preload/log.h"
#include "trace/slices.h"

#define NO_SLICE UINT32_MAX
#define NO_NAME  UINT32_MAX

/* Records of one thread in one file. */
struct part {
	struct cursor records;
	uint32_t pid, tid;
	uint32_t process; /* index in the log */
	uint64_t stamp;   /* of its first call */
	bool begins;      /* it has the first record of its thread */
};

/* A call that has not ended. slice: NO_SLICE: it is not shown */
struct open_call {
	uint32_t slice, code;
};

/* The calls of a greenlet that does not run, outermost first: numbers of functions. */
struct greenlet {
	VEC(uint32_t) codes;
};

/**
 * What is known of a process.
 * @ids: of the names of its functions, by index of the function in the log
 * @last_ns: time of its last record
 * @trio: the folder of trio's package, with a slash at its end, not terminated; NULL: unknown
 */
struct process_names {
	VEC(uint32_t) ids;
	uint64_t last_ns;
	const char *trio;
	size_t trio_len;
};

/**
 * A recording that is being read.
 * @maps: its files of calls, into which the parts point
 * @names: by index of the process in the log
 * @open: calls of the current thread that have not ended, outermost first
 * @greenlets: of the current thread, @greenlet_ids: by object
 * @text: scratch
 * @start_ns, @end_ns: of what is to be reported; 0: unknown
 * @overlapping: number of calls that outlast their caller
 * @overflow: older calls were not kept; @cut: there was no room for later ones
 */
struct reader {
	struct preload_log log;
	VEC(struct filemap) maps;
	VEC(struct part) parts;
	VEC(struct process_names) names;
	VEC(struct open_call) open;
	VEC(struct greenlet) greenlets;
	struct idmap greenlet_ids;
	struct calls_tasks tasks;
	struct str text;
	uint64_t start_ns, end_ns, overlapping;
	uint64_t entries, shortest_ns; /* see struct preload_control */
	bool overflow, cut;
	struct slices *ret;
};

/**
 * Calls of a thread.
 * @v: those that are shown; @depth: how many of these are open
 * @last_ns: time of the last record; a later record with an earlier time gets this one
 * @recorded: number of all calls
 */
struct calls {
	VEC(struct slice) v;
	uint16_t max_depth;
	unsigned depth;
	uint64_t last_ns, recorded;
};

static inline unsigned type_of(uint64_t word)
{
	return (unsigned)(word & ((1u << PRELOAD_CALL_TYPE_BITS) - 1));
}

static inline uint32_t number_of(uint64_t word)
{
	return (uint32_t)(word >> PRELOAD_CALL_TYPE_BITS) & ((1u << PRELOAD_CALL_CODE_BITS) - 1);
}

static inline uint64_t value_of(uint64_t word)
{
	return word >> (PRELOAD_CALL_TYPE_BITS + PRELOAD_CALL_CODE_BITS);
}

static inline bool says(uint64_t word, enum preload_say what)
{
	return type_of(word) == PRELOAD_CALL_SAY && number_of(word) == what;
}

/* ---- parts.c */

/* Find the parts of a file of calls. A file to which nothing was written has none. */
int calls_add_records(struct reader *r, const void *data, size_t size, struct error *err);

/* If one thread's records end because there was no more room, all threads end there: what came
 * later is incomplete. */
void calls_note_unwritten(struct reader *r, uint64_t stamp);

/* The stamp of its first call; if there is none, only the upper bits of its last time. */
uint64_t calls_first_stamp(const struct part *part);

/* ---- functions.c */

/* The function of this number; NULL if its process did not describe it. */
const struct preload_code *calls_function(const struct reader *r, const struct part *part,
                                          uint32_t number);

/* Its name; NO_NAME: a function of giltracer itself, which is not shown. */
uint32_t calls_function_name(struct reader *r, const struct part *part, uint32_t number);

/* Find the folder of trio's package among the functions of a process. */
void calls_find_trio(struct process_names *names, const struct preload_process *p);

/* Whether the function belongs to Python's own library or to trio. */
bool calls_is_library(const struct reader *r, const struct part *part,
                      const struct preload_code *code);

/* Whether the function is trio's loop. */
bool calls_is_trio_loop(const struct reader *r, const struct part *part,
                        const struct preload_code *code);

/* Whether the function creates tasks. */
bool calls_creates_task(const struct preload_code *code);

/* Whether the function is the caller to report: one of the program, or a coroutine of Python's own
 * library. */
bool calls_is_caller(const struct reader *r, const struct part *part,
                     const struct preload_code *code);

/* ---- records.c */

/* Add the calls of a part to those of its thread. */
void calls_read_part(struct reader *r, struct calls *calls, const struct part *part);

/* The greenlets of the thread are forgotten. */
void calls_forget_greenlets(struct reader *r);

/* A call that never ended lasts until the end of the recording, or of what is known. */
void calls_close_open(struct reader *r, const struct calls *calls, uint64_t t);

/* ---- kept.c */

/* Apply the filters of the recording to threads; those of each process follow one another.
 * processes: the process of each thread */
void calls_keep_last(struct reader *r, struct slice_thread *threads, const uint32_t *processes,
                     size_t count);

#endif
