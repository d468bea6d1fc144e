/* SPDX-License-Identifier: MIT */
/*
 * What a perf.data says about itself: its events, their ids, names and formats, and the host. In
 * the file layout it stands before and behind the records, in the pipe layout (perf record -o -)
 * in records of its own. Formats: tools/perf/Documentation/perf.data-file-format.txt in Linux.
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
#include "perfdata/cursor.h"
#include "perfdata/perf_sample.h"
#include "perfdata/tracefmt.h"

/* Records that perf itself writes, behind those of the kernel
 * (tools/lib/perf/include/perf/event.h).
 */
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

/* One event of the recording. Fields of attr that the file's perf did not know are 0. */
struct header_event {
	struct perf_event_attr attr;
	struct sample_layout layout;
	char *name; /* as perf calls it, "sched:sched_waking" or "page-faults"; never NULL */
	bool named; /* by the file, not by us */
	const struct tracefmt *format; /* of a tracepoint; NULL if the file has none */
	uint32_t next_waiting; /* another one that waits for the same format; IDMAP_NONE: none */
};

/* Where an event id was counted (PERF_RECORD_ID_INDEX); cpu and tid -1: any. */
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
 * Strings are NULL and numbers 0 where the file does not say.
 * @pipe: pipe layout
 * @data_offset, @data_size: of the records; data_size 0 in the file layout: perf did not finish
 * @changed: indices of events, in the order of what the file said of them: their attributes, names
 *           and formats. In the pipe layout it grows
 * @time_pos, @trailer_time, @id_pos, @trailer_id: those of struct sample_layout where all events
 *             agree, else SAMPLE_NOWHERE
 * @one_trailer: trailers of all events are alike
 * @ids: see header_find_id; id_index has their places by number
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
	struct idmap waiting;      /* events without a format: id -> the last one */
	VEC(struct header_build_id) build_ids;
	VEC(struct header_id) ids;
	struct idmap id_index;
	char *hostname, *osrelease, *version, *arch, *cmdline;
	uint32_t cpus_available, cpus_online;
	uint64_t first_sample_ns, last_sample_ns;
};

/* The first place in a file that makes no sense. */
struct perf_header_note {
	uint64_t offset; /* 0: nothing to say */
	char text[256];
};

/*
 * Read the header of a whole file in memory. header_done ret also after an error. Errors: no
 * perf.data at all, other byte order, compressed. A feature section that makes no sense is none:
 * note says where and why.
 */
int header_read(struct perf_header *ret, const uint8_t *data, size_t size,
                struct perf_header_note *note, struct error *err);
void header_done(struct perf_header *header);

/* Take in a record of the pipe layout. extra is what follows a TRACING_DATA record. Records that
 * say nothing about the header are passed over. -1 and err if it makes no sense. */
int header_feed(struct perf_header *header, uint32_t type, uint16_t misc, struct cursor body,
                struct cursor extra, struct error *err);

/* Records with this id are of the event. */
void header_add_id(struct perf_header *header, uint64_t id, uint32_t event);

/* The entry of an event id, NULL if there is none. */
static inline struct header_id *header_find_id(const struct perf_header *header, uint64_t id)
{
	uint32_t at = idmap_get(&header->id_index, id);

	return at == IDMAP_NONE ? NULL : &header->ids.v[at];
}

/*
 * Index of the event that a record belongs to, UINT32_MAX if that cannot be told: by the id in
 * the record, or the only event there is. is_sample: the body is that of a PERF_RECORD_SAMPLE.
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

/* The layout of a record that is no sample: records that perf made up have no id, and the layout of
 * the first event. There must be one. */
static inline const struct sample_layout *header_trailer_layout(const struct perf_header *header,
                                                                const struct cursor *body)
{
	uint32_t event = header->one_trailer ? 0 : header_event_of(header, false, body);

	return &header->events.v[event == UINT32_MAX ? 0 : event].layout;
}

#endif
