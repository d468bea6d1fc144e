/* SPDX-License-Identifier: MIT */
/*
 * The metadata of a perf.data: its events with their ids, names and formats, and the host. In the
 * file layout it precedes and follows the records, in the pipe layout (perf record -o -) it is in
 * records of its own. Format: tools/perf/Documentation/perf.data-file-format.txt in Linux.
 */
#ifndef GILTRACER_PERFDATA_HEADER_H
#define GILTRACER_PERFDATA_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

#include "base/error.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "base/cursor.h"
#include "perfdata/perf_sample.h"
#include "perfdata/tracefmt.h"

/* Types of records that perf itself writes; they follow those of the kernel
 * (tools/lib/perf/include/perf/event.h). */
enum perf_user_record {
	PERF_USER_START = 64,
	PERF_USER_HEADER_ATTR = 64,
	PERF_USER_HEADER_EVENT_TYPE = 65,
	PERF_USER_TRACING_DATA = 66,
	PERF_USER_BUILD_ID = 67,
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_ID_INDEX = 69,
	PERF_USER_AUXTRACE_INFO = 70,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_EVENT_UPDATE = 78,
	PERF_USER_HEADER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_FINISHED_INIT = 82,
	PERF_USER_COMPRESSED2 = 83,
};

/* One event of the recording. Fields of attr that are unknown to the perf that wrote the file are
 * 0. */
struct header_event {
	struct perf_event_attr attr;
	struct sample_layout layout;
	char *name; /* as in perf, "sched:sched_waking" or "page-faults"; never NULL */
	bool named; /* the name is from the file */
	const struct tracefmt *format; /* of a tracepoint; NULL if the file contains none */
	uint32_t next_waiting;         /* index of another event that waits for this format, or
	                        * IDMAP_NONE */
};

/* The CPU and thread that an event id was counted for (PERF_RECORD_ID_INDEX); -1: any. */
struct header_id {
	uint32_t event; /* index in events */
	int32_t cpu, tid;
};

struct header_build_id {
	int32_t pid; /* -1: any */
	uint8_t size;
	uint8_t id[20];
	uint16_t misc; /* PERF_RECORD_MISC_CPUMODE_MASK: kernel or user */
	char *path;
};

/**
 * Strings are NULL and numbers 0 if the file does not contain them.
 * @pipe: pipe layout
 * @data_offset, @data_size: of the records; data_size is 0 in the file layout if perf did not
 * finish
 * @changed: an event's index for each piece of information in the file: attribute, name or format,
 *           in that order. In the pipe layout it grows
 * @time_pos, @trailer_time, @id_pos, @trailer_id: as in struct sample_layout if all events agree,
 *             otherwise SAMPLE_NOWHERE
 * @one_trailer: the trailers of all events have the same layout
 * @ids: see header_find_id; id_index: id -> index in ids
 */
struct perf_header {
	bool pipe;
	uint64_t data_offset, data_size;
	uint64_t features[4];
	VEC(uint32_t) changed;
	uint16_t time_pos, trailer_time, id_pos, trailer_id;
	bool one_trailer;
	VEC(struct header_event) events;
	VEC(struct tracefmt *) formats;
	struct idmap format_index; /* by id */
	struct idmap waiting;      /* events without a format: id -> the last of them */
	VEC(struct header_build_id) build_ids;
	VEC(struct header_id) ids;
	struct idmap id_index;
	char *hostname, *osrelease, *version, *arch, *cmdline;
	uint32_t cpus_available, cpus_online;
	uint64_t first_sample_ns, last_sample_ns;
};

/* The first invalid place in a file. */
struct perf_header_note {
	uint64_t offset; /* 0: none */
	char text[256];
};

/*
 * Read the header of a complete file in memory. Call header_done on ret even after an error.
 * Errors: not a perf.data, other byte order, compressed. An invalid feature section is not an
 * error: note has its place and the reason.
 */
int header_read(struct perf_header *ret, const uint8_t *data, size_t size,
                struct perf_header_note *note, struct error *err);
void header_done(struct perf_header *header);

/* Read a record of the pipe layout. extra: the data that follows a TRACING_DATA record. Records
 * that do not belong to the header are ignored. -1 and err if the record is invalid. */
int header_feed(struct perf_header *header, uint32_t type, uint16_t misc, struct cursor body,
                struct cursor extra, struct error *err);

/* Assigns an id to an event. */
void header_add_id(struct perf_header *header, uint64_t id, uint32_t event);

/* The entry of an event id, or NULL. */
static inline struct header_id *header_find_id(const struct perf_header *header, uint64_t id)
{
	uint32_t at = idmap_get(&header->id_index, id);

	return at == IDMAP_NONE ? NULL : &header->ids.v[at];
}

/*
 * Index of the event that a record belongs to, UINT32_MAX if unknown: by the id in the record, or
 * the only event. is_sample: the body is that of a PERF_RECORD_SAMPLE.
 */
static inline uint32_t header_event_of(const struct perf_header *header, bool is_sample,
                                       const struct cursor *body)
{
	const struct header_id *id;

	if (header->events.n == 1)
		return 0;
	id = NULL;
	if (is_sample && header->id_pos != SAMPLE_NOWHERE)
		id = header_find_id(header, cursor_u64_at(body, header->id_pos));
	else if (!is_sample && header->trailer_id != SAMPLE_NOWHERE)
		id = header_find_id(header, cursor_u64_back(body, header->trailer_id));
	return id ? id->event : UINT32_MAX;
}

/* The layout of a record that is not a sample. Records that perf synthesized have no id, and the
 * layout of the first event. There must be at least one event. */
static inline const struct sample_layout *header_trailer_layout(const struct perf_header *header,
                                                                const struct cursor *body)
{
	uint32_t event = header->one_trailer ? 0 : header_event_of(header, false, body);

	return &header->events.v[event == UINT32_MAX ? 0 : event].layout;
}

#endif
