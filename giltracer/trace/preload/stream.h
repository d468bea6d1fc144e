/* SPDX-License-Identifier: MIT */
/* The records of one file of the preload library as events, in their order. */
#ifndef GILTRACER_TRACE_PRELOAD_STREAM_H
#define GILTRACER_TRACE_PRELOAD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "perfdata/cursor.h"
#include "trace/event.h"
#include "trace/preload/log.h"

/**
 * @process: that wrote it
 * @tid: of the thread whose records are read; @gil: number of the GIL that they are about; @list:
 * of frames; @stack: of the last release; @asked_stamp, @delay_ns: of the next one
 * @stamp: of the record that preload_stream_next decodes next; UINT64_MAX: there is none
 * @unwritten, @unwritten_stamp: see struct preload_header
 * @unlogged: the log of its process is missing, so it is not read
 * @alive: the thread has begun and not ended
 * @records: read so far; @unknown: of a type that we do not know
 */
struct preload_stream {
	struct filemap map;
	struct cursor at;
	const struct preload_process *process;
	const struct preload_log *log;
	uint32_t tid;
	uint64_t stamp;
	unsigned type;
	uint64_t gil;
	bool waiting, alive, unlogged;
	uint64_t list, asked_stamp, delay_ns;
	uint32_t stack;
	size_t near;
	uint64_t unwritten, unwritten_stamp;
	uint64_t records, unknown;
};

/* Start on data, which is borrowed; the caller fills in map. log must outlive it. */
int preload_stream_begin(struct preload_stream *ret, const struct preload_log *log,
                         const void *data, size_t size, struct error *err);

/* The maximum number of events of a record. */
#define PRELOAD_STREAM_EVENTS 2

/* The events of one record; returns how many there are. */
unsigned preload_stream_next(struct preload_stream *s, struct event ret[PRELOAD_STREAM_EVENTS]);

/* Its records are over: its thread ends at that stamp, which is the next record. Without a thread,
 * nothing. */
void preload_stream_end(struct preload_stream *s, uint64_t stamp);

#endif
