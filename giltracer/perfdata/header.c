/* SPDX-License-Identifier: MIT */
/* Magic, events and ids, and the records of the pipe layout with the same information. */
#include "perfdata/header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "perfdata/features.h"

#define MAGIC              0x32454c4946524550ULL /* "PERFILE2" */
#define MAGIC_SWAPPED      0x50455246494c4532ULL
#define MAGIC_V1           0x454c494646524550ULL /* "PERFFILE", before Linux 2.6.33 */
#define FILE_HEADER        104
#define PIPE_HEADER        16
#define SECTION            16
#define FEATURE_COMPRESSED 27
#define UPDATE_NAME        2

void header_done(struct perf_header *header)
{
	for (size_t i = 0; i < header->events.n; i++)
		free(header->events.v[i].name);
	vec_done(&header->events);
	for (size_t i = 0; i < header->formats.n; i++)
		tracefmt_free(header->formats.v[i]);
	vec_done(&header->formats);
	idmap_done(&header->format_index);
	idmap_done(&header->waiting);
	vec_done(&header->changed);
	for (size_t i = 0; i < header->build_ids.n; i++)
		free(header->build_ids.v[i].path);
	vec_done(&header->build_ids);
	vec_done(&header->ids);
	idmap_done(&header->id_index);
	free(header->hostname);
	free(header->osrelease);
	free(header->version);
	free(header->arch);
	free(header->cmdline);
	*header = (struct perf_header){ 0 };
}

void header_add_id(struct perf_header *header, uint64_t id, uint32_t event)
{
	struct header_id *entry = header_find_id(header, id);

	/* The kernel never assigns 0. */
	if (!id)
		return;
	if (!entry) {
		idmap_set(&header->id_index, id, (uint32_t)header->ids.n);
		entry = vec_push(&header->ids);
	}
	*entry = (struct header_id){ .event = event, .cpu = -1, .tid = -1 };
}

/* A name for an event that the file does not name; common ones as in perf. */
static char *default_name(const struct perf_event_attr *attr)
{
	static const char *const software[] = {
		"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
	};
	static const char *const hardware[] = {
		"cycles",
		"instructions",
		"cache-references",
		"cache-misses",
		"branches",
		"branch-misses",
		"bus-cycles",
		"stalled-cycles-frontend",
		"stalled-cycles-backend",
		"ref-cycles",
	};

	if (attr->type == PERF_TYPE_SOFTWARE && attr->config < 12)
		return xstrdup(software[attr->config]);
	if (attr->type == PERF_TYPE_HARDWARE && attr->config < 10)
		return xstrdup(hardware[attr->config]);
	return xasprintf("event-%" PRIu32 ":%#" PRIx64, attr->type, (uint64_t)attr->config);
}

static uint16_t agree(bool first, uint16_t all, uint16_t one)
{
	return first || all == one ? one : SAMPLE_NOWHERE;
}

static bool same_trailer(const struct sample_layout *a, const struct sample_layout *b)
{
	const uint64_t mask = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
	                      PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	return a->trailer == b->trailer && (a->sample_type & mask) == (b->sample_type & mask);
}

/* If all events agree, records can be sorted without looking up their events. */
static void update_common(struct perf_header *h)
{
	const struct sample_layout *l = &h->events.v[h->events.n - 1].layout;
	bool first = h->events.n == 1;

	h->time_pos = agree(first, h->time_pos, l->time_pos);
	h->trailer_time = agree(first, h->trailer_time, l->trailer_time);
	h->id_pos = agree(first, h->id_pos, l->id_pos);
	h->trailer_id = agree(first, h->trailer_id, l->trailer_id);
	h->one_trailer = same_trailer(l, &h->events.v[0].layout) && (first || h->one_trailer);
}

static int add_event(struct perf_header *header, struct cursor attr, struct cursor ids,
                     struct error *err)
{
	struct header_event *e;
	size_t size = cursor_left(&attr);
	const uint8_t *p;

	if (size < PERF_ATTR_SIZE_VER0)
		return error_set(err, EINVAL, "event attribute of %zu bytes is too short", size);
	e = vec_push(&header->events);
	*e = (struct header_event){ 0 };
	if (size > sizeof(e->attr))
		size = sizeof(e->attr);
	p = cursor_bytes(&attr, size);
	if (p)
		memcpy(&e->attr, p, size);
	sample_layout_init(&e->layout, &e->attr);
	e->name = default_name(&e->attr);
	while (cursor_left(&ids) >= 8)
		header_add_id(header, cursor_u64(&ids), (uint32_t)header->events.n - 1);
	update_common(header);
	*vec_push(&header->changed) = (uint32_t)header->events.n - 1;
	header_find_format(header, (uint32_t)header->events.n - 1);
	return 0;
}

static int section(struct cursor *ret, struct cursor *c, struct cursor file, const char *what,
                   struct error *err)
{
	uint64_t offset = cursor_u64(c), size = cursor_u64(c);

	cursor_skip(&file, offset);
	*ret = cursor_sub(&file, size);
	if (c->bad || file.bad)
		return error_set(err, EINVAL,
		                 "%s at %#" PRIx64 " of %" PRIu64 " bytes: beyond the end of file",
		                 what, offset, size);
	return 0;
}

/* No two events share the bytes of their ids, so all ids together are no longer than the file. A
 * file in which they did would cost events times ids. */
static int read_attrs(struct perf_header *header, struct cursor attrs, uint64_t attr_size,
                      struct cursor file, struct error *err)
{
	size_t ids_left = cursor_left(&file);

	if (attr_size < PERF_ATTR_SIZE_VER0 + SECTION)
		return error_set(err, EINVAL, "bad size of attributes, %" PRIu64, attr_size);
	while (cursor_left(&attrs) >= attr_size) {
		struct cursor attr = cursor_sub(&attrs, attr_size - SECTION), ids;

		if (section(&ids, &attrs, file, "ids of an event", err) < 0)
			return -1;
		if (cursor_left(&ids) > ids_left)
			return error_set(err, EINVAL, "the ids of all events exceed the file");
		ids_left -= cursor_left(&ids);
		if (add_event(header, attr, ids, err) < 0)
			return -1;
	}
	return 0;
}

static void note_set(struct perf_header_note *note, uint64_t offset, const struct error *err)
{
	if (note->offset)
		return;
	note->offset = offset;
	memcpy(note->text, err->text, sizeof(note->text) - 1);
}

/* The sections of the features follow the records, in the order of their bits. */
static void read_features(struct perf_header *header, struct cursor file,
                          struct perf_header_note *note)
{
	struct cursor table = file;
	struct error err;

	cursor_skip(&table, header->data_offset);
	cursor_skip(&table, header->data_size);
	for (unsigned i = 0; i < 256; i++) {
		struct cursor c;
		uint64_t at = (uint64_t)(table.p - file.p);

		if (!(header->features[i / 64] >> (i % 64) & 1))
			continue;
		if (section(&c, &table, file, "feature section", &err) < 0) {
			note_set(note, at, &err);
			return;
		}
		if (header_feature(header, i, c, &err) < 0)
			note_set(note, (uint64_t)(c.p - file.p), &err);
	}
}

static int read_file_header(struct perf_header *header, struct cursor c, struct cursor file,
                            struct perf_header_note *note, struct error *err)
{
	uint64_t attr_size = cursor_u64(&c);
	struct cursor attrs, section_at = c;

	cursor_skip(&c, SECTION);
	header->data_offset = cursor_u64(&c);
	header->data_size = cursor_u64(&c);
	cursor_skip(&c, SECTION);
	for (unsigned i = 0; i < 4; i++)
		header->features[i] = cursor_u64(&c);
	if (c.bad)
		return error_set(err, EINVAL, "truncated within the file header");
	if (header->data_offset > cursor_left(&file))
		return error_set(err, EINVAL, "records at %#" PRIx64 ": beyond the end of file",
		                 header->data_offset);
	if (header->features[0] >> FEATURE_COMPRESSED & 1)
		return error_set(err, ENOTSUP,
		                 "compressed (HEADER_COMPRESSED), which is not supported; record "
		                 "without perf record -z");
	if (section(&attrs, &section_at, file, "attributes", err) < 0 ||
	    read_attrs(header, attrs, attr_size, file, err) < 0)
		return -1;
	/* perf writes size and features when it ends: without a size there are no features. */
	if (header->data_size)
		read_features(header, file, note);
	return 0;
}

int header_read(struct perf_header *ret, const uint8_t *data, size_t size,
                struct perf_header_note *note, struct error *err)
{
	struct cursor file = cursor_make(data, size), c = file;
	uint64_t magic = cursor_u64(&c), header_size = cursor_u64(&c);

	*ret = (struct perf_header){ .time_pos = SAMPLE_NOWHERE,
		                     .trailer_time = SAMPLE_NOWHERE,
		                     .id_pos = SAMPLE_NOWHERE,
		                     .trailer_id = SAMPLE_NOWHERE };
	*note = (struct perf_header_note){ 0 };
	if (!size)
		return error_set(err, EINVAL, "the file is empty");
	if (c.bad)
		return error_set(err, EINVAL, "not a perf.data file (only %zu bytes)", size);
	if (magic == MAGIC_SWAPPED)
		return error_set(err, ENOTSUP,
		                 "recorded on a machine of the other byte order, which is not "
		                 "supported");
	if (magic == MAGIC_V1)
		return error_set(err, ENOTSUP, "in the format of perf before Linux 2.6.33");
	if (magic != MAGIC)
		return error_set(err, EINVAL, "not a perf.data file (bad magic)");
	if (header_size == PIPE_HEADER) {
		ret->pipe = true;
		ret->data_offset = PIPE_HEADER;
		ret->data_size = size - PIPE_HEADER;
		return 0;
	}
	if (header_size < FILE_HEADER)
		return error_set(err, EINVAL, "bad size of the file header, %" PRIu64, header_size);
	return read_file_header(ret, c, file, note, err);
}

static int feed_attr(struct perf_header *header, struct cursor body, struct error *err)
{
	struct cursor start = body;
	struct cursor attr;
	uint32_t size;

	/* u32 type, u32 size. */
	cursor_skip(&start, 4);
	size = cursor_u32(&start);
	attr = cursor_sub(&body, size ? size : PERF_ATTR_SIZE_VER0);

	if (body.bad)
		return error_set(err, EINVAL, "event attribute is truncated");
	return add_event(header, attr, body, err);
}

/* An event's name may follow its attribute: u64 type, u64 id, text. */
static int feed_event_update(struct perf_header *header, struct cursor body, struct error *err)
{
	uint64_t type = cursor_u64(&body), id = cursor_u64(&body);
	struct header_id *entry = header_find_id(header, id);
	size_t len;
	const char *text = cursor_text_field(&body, cursor_left(&body), &len);
	CLEANUP(free) char *name = text ? xstrndup(text, len) : NULL;

	if (body.bad || !name)
		return error_set(err, EINVAL, "event update is truncated");
	if (type == UPDATE_NAME && entry)
		header_name_event(header, entry->event, name);
	return 0;
}

static int feed_id_index(struct perf_header *header, struct cursor body, struct error *err)
{
	uint64_t nr = cursor_u64(&body);

	if (body.bad || nr > cursor_left(&body) / 32)
		return error_set(err, EINVAL, "id index is truncated");
	while (nr--) {
		struct header_id *entry = header_find_id(header, cursor_u64(&body));

		cursor_skip(&body, 8);
		if (entry) {
			entry->cpu = (int32_t)cursor_u64(&body);
			entry->tid = (int32_t)cursor_u64(&body);
		} else {
			cursor_skip(&body, 16);
		}
	}
	return 0;
}

int header_feed(struct perf_header *header, uint32_t type, uint16_t misc, struct cursor body,
                struct cursor extra, struct error *err)
{
	switch (type) {
	case PERF_USER_HEADER_ATTR:
		return feed_attr(header, body, err);
	case PERF_USER_TRACING_DATA:
		return header_tracing_data(header, extra, err);
	case PERF_USER_BUILD_ID:
		return header_build_id(header, misc, body, err);
	case PERF_USER_ID_INDEX:
		return feed_id_index(header, body, err);
	case PERF_USER_EVENT_UPDATE:
		return feed_event_update(header, body, err);
	case PERF_USER_HEADER_FEATURE: {
		uint64_t feature = cursor_u64(&body);

		if (body.bad)
			return error_set(err, EINVAL, "feature record is truncated");
		return feature < 256 ? header_feature(header, (unsigned)feature, body, err) : 0;
	}
	default:
		return 0;
	}
}
