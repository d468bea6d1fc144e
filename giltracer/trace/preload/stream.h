/* SPDX-License-Identifier: MIT */
/* Decodes the records of one file of the preload library into events, in their order. */
#ifndef GILTRACER_TRACE_PRELOAD_STREAM_H
#define GILTRACER_TRACE_PRELOAD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/filemap.h"
#include "base/cursor.h"
#include "trace/event.h"
#include "trace/preload/log.h"

/**
 * @process: which wrote the file
 * @tid: of the thread that wrote the records; @creator: of the one that created it, 0: unknown; @gil:
 * address of their GIL; @list: number of the list of frames; @known_stack: of list @known_list; @stack: of the last release; @asked_stamp,
 * @delay_ns: of the next release
 * @holder: of the lock or the GIL of the next event; 0: unknown
 * @stamp: of the next record; UINT64_MAX: none; @acquired_stamp: of the acquire that follows it in the same
 * record; 0: none; @before: the last stamp, by which those of turns are completed
 * @unwritten, @unwritten_stamp: see struct preload_header
 * @dropped_stamp: the same; @cut: earlier records were dropped, and none was decoded yet
 * @unlogged: the log of its process is missing, so the file is not read
 * @alive: the thread has begun and not ended; @stops: its next record is the end of its wait for others
 * to stop
 * @records: number of records read; @unknown: of unknown types
 */
struct preload_stream {
	struct filemap map;
	struct cursor at;
	const struct preload_process *process;
	const struct preload_log *log;
	uint32_t tid, creator, holder;
	uint64_t stamp, acquired_stamp, before;
	unsigned type;
	uint64_t gil;
	bool waiting, alive, unlogged, cut, stops;
	uint64_t list, known_list, lock, asked_stamp, delay_ns;
	uint32_t stack, known_stack;
	size_t near;
	uint64_t unwritten, unwritten_stamp, dropped_stamp;
	uint64_t records, unknown;
};

/* Start to read data, which is borrowed; the caller sets map. log must outlive it. */
int preload_stream_begin(struct preload_stream *ret, const struct preload_log *log,
                         const void *data, size_t size, struct error *err);

/* The maximum number of events of a record. */
#define PRELOAD_STREAM_EVENTS 2

/* Decode one record; returns the number of its events. */
unsigned preload_stream_next(struct preload_stream *s, struct event ret[PRELOAD_STREAM_EVENTS]);

/* End the thread at that stamp, as the next record. Does nothing without a thread. */
void preload_stream_end(struct preload_stream *s, uint64_t stamp);

#endif
