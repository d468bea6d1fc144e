/* SPDX-License-Identifier: MIT */
/* The contents of a preload recording's logs: its processes, their GILs, and the clock. */
#ifndef GILTRACER_TRACE_PRELOAD_LOG_H
#define GILTRACER_TRACE_PRELOAD_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/filemap.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "python/waits.h"

/* A Python function; its texts are borrowed from the log's file. minor: of its CPython version;
 * coroutine: its calls can be suspended; native: a C function, which has no file. */
struct preload_code {
	unsigned minor;
	bool coroutine, native;
	uint32_t first_line;
	uint32_t name_len, file_len, table_len;
	const char *name, *file;
	const uint8_t *table;
};

/* The frames of a release, innermost first: count of struct preload_frame, in the file's format.
 * stack and wait are set by the reader. */
struct preload_list {
	const uint8_t *frames;
	uint32_t count, stack;
	enum python_wait wait;
};

/* PRELOAD_OBJECT. @before: index + 1 of an earlier object whose lock was at the same address, 0: none; @of,
 * @name: ids in the source's names, set by the reader */
struct preload_object {
	uint64_t stamp;
	size_t before;
	const char *text;
	size_t len;
	uint32_t of, name;
	bool runtime;
};

/* PRELOAD_NEEDS_GIL. @frames: number of the list */
struct preload_import {
	const char *text;
	size_t len;
	uint32_t frames;
};

/* A text in a log; not terminated. */
struct preload_name {
	const char *text;
	size_t len;
};

/**
 * A process that created a GIL.
 * @stamp: when it created the first one, which is part of its files' names
 * @parent: pid; @forked: it did not execute a program since its fork; @forked_by: the thread, 0:
 * unknown
 * @ended_stamp: its end; 0: unknown
 * @calls: its Python calls are recorded
 * @lives_on: it outlived the recording, or executed another program
 * @open: streams with more records, maintained by the reader
 * @exe: the program, "" if unknown; owned
 * @gils: addresses
 * @called: functions of Python calls
 * @objects: in the order of the log, which is nearly that of time
 * @code_ids, @list_ids, …: index in codes, lists, … by number
 */
struct preload_process {
	uint32_t pid, parent, forked_by;
	bool forked, lives_on, calls;
	uint64_t stamp, ended_stamp;
	size_t open;
	char *exe;
	VEC(uint64_t) gils;
	VEC(struct preload_code) codes;
	VEC(struct preload_list) lists;
	VEC(struct preload_code) called;
	VEC(struct preload_name) task_names;
	VEC(struct preload_object) objects;
	VEC(struct preload_import) imports;
	struct idmap object_ids;
	struct idmap code_ids, list_ids, called_ids, gil_ids, task_name_ids;
};

/* A long garbage collection, from one stamp to another. */
struct preload_collection {
	uint32_t pid, tid;
	uint64_t from, to;
};

/* A reading of both clocks. */
struct preload_pair {
	uint64_t stamp, ns;
};

/* PRELOAD_IDLE */
struct preload_idle {
	uint32_t pid, tid;
};

/**
 * @processes: by stamp
 * @pairs: by stamp; stamps and times both increase
 * @collections: in the order of the logs
 * @bytes: read
 * @stop_stamp: when the recording ended; UINT64_MAX: with the program
 * @unwritten_stamp: from when on some process could not write; 0: none
 * @alive: pids of processes that existed at the end
 * @aside: threads whose calls were not recorded, because the program profiled them itself
 * @unrecorded: interpreters in which recording could not start
 * @call_cost_ps: the time to record a Python call; 0: unknown
 * @cut: number of logs that end in the middle of an entry, or have an invalid one; @cut_stamp: the
 * earliest
 */
struct preload_log {
	VEC(struct preload_process) processes;
	VEC(struct preload_pair) pairs;
	VEC(struct preload_collection) collections;
	uint64_t bytes;
	uint32_t cut, aside, unrecorded;
	uint64_t unwritten_stamp, stop_stamp, cut_stamp, call_cost_ps;
	struct idmap alive;
	VEC(struct preload_idle) idle;
	struct idmap process_ids; /* index in processes, while the logs are read */
	bool too_many;            /* processes, so that not all were read */
	char *own;                /* folder of giltracer's own code; NULL: unknown */
	VEC(struct filemap) maps;
};

/* Read a log, in addition to others. It is an error if they have too many processes. */
int preload_log_read(struct preload_log *log, const char *path, struct error *err);

/* An error if a log became shorter while it was read. */
int preload_log_check(const struct preload_log *log, struct error *err);

/* The same from memory, which is borrowed until preload_log_done. */
void preload_log_parse(struct preload_log *log, const void *data, size_t size);

/* Sort the contents, after all logs have been read. */
void preload_log_finish(struct preload_log *log);
void preload_log_done(struct preload_log *log);

/* Index in processes, -1: none. */
int preload_log_find(const struct preload_log *log, uint32_t pid, uint64_t stamp);

/* The address of the GIL of that number; 0: unknown. */
uint64_t preload_log_gil(const struct preload_process *p, uint64_t number);

/* The name of the task of that number; NULL: unknown. Borrowed. */
const struct preload_name *preload_log_task_name(const struct preload_process *p, uint64_t number);

/* The object to which the lock at an address belongs at that time; NULL: unknown. */
const struct preload_object *preload_log_object(const struct preload_process *p, uint64_t address,
                                                uint64_t stamp);

/* The index of the function or list of that number, IDMAP_NONE: unknown. */
uint32_t preload_log_code(const struct preload_process *p, uint64_t number);
uint32_t preload_log_list(const struct preload_process *p, uint64_t number);

/* Whether the function belongs to giltracer's own code, which runs the program and is not shown. */
bool preload_log_is_own(const struct preload_log *log, const struct preload_code *code);

/* CLOCK_MONOTONIC of a stamp, interpolated between pairs or extrapolated. *near is the index of
 * the pair for the last stamp, initially 0. */
uint64_t preload_log_time(const struct preload_log *log, uint64_t stamp, size_t *near);

#endif
