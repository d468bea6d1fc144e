/* SPDX-License-Identifier: MIT */
/* Feature sections of a perf.data header, and the event formats among them. */
#include "perfdata/features.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* HEADER_* of tools/perf/util/header.h, part of the file format. */
enum {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
};

#define BUILD_ID_HAS_SIZE (1 << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */

const char *header_feature_name(unsigned feature)
{
	static const char *const names[] = {
		[1] = "TRACING_DATA",   [2] = "BUILD_ID",       [3] = "HOSTNAME",
		[4] = "OSRELEASE",      [5] = "VERSION",        [6] = "ARCH",
		[7] = "NRCPUS",         [8] = "CPUDESC",        [9] = "CPUID",
		[10] = "TOTAL_MEM",     [11] = "CMDLINE",       [12] = "EVENT_DESC",
		[13] = "CPU_TOPOLOGY",  [14] = "NUMA_TOPOLOGY", [15] = "BRANCH_STACK",
		[16] = "PMU_MAPPINGS",  [17] = "GROUP_DESC",    [18] = "AUXTRACE",
		[19] = "STAT",          [20] = "CACHE",         [21] = "SAMPLE_TIME",
		[22] = "MEM_TOPOLOGY",  [23] = "CLOCKID",       [24] = "DIR_FORMAT",
		[25] = "BPF_PROG_INFO", [26] = "BPF_BTF",       [27] = "COMPRESSED",
		[28] = "CPU_PMU_CAPS",  [29] = "CLOCK_DATA",    [30] = "HYBRID_TOPOLOGY",
		[31] = "PMU_CAPS",
	};

	return feature < sizeof(names) / sizeof(names[0]) ? names[feature] : NULL;
}

static void set_feature(struct perf_header *header, unsigned feature)
{
	header->features[feature / 64] |= 1ULL << (feature % 64);
}

/* u32 length (padded), text. NULL if it is truncated; caller frees. */
static char *read_string(struct cursor *c)
{
	uint32_t size = cursor_u32(c);
	size_t len;
	const char *text = cursor_text_field(c, size, &len);

	return text && !c->bad ? xstrndup(text, len) : NULL;
}

static int read_string_to(char **ret, struct cursor *c, const char *what, struct error *err)
{
	char *text = read_string(c);

	if (!text)
		return error_set(err, EINVAL, "feature %s is truncated", what);
	free(*ret);
	*ret = text;
	return 0;
}

/* Reads words, and joins them by blanks. */
static int read_cmdline(struct perf_header *header, struct cursor *c, struct error *err)
{
	CLEANUP(str_done) struct str line = { 0 };
	uint32_t n = cursor_u32(c);

	for (uint32_t i = 0; i < n; i++) {
		CLEANUP(free) char *word = read_string(c);

		if (!word)
			return error_set(err, EINVAL, "feature CMDLINE is truncated");
		if (i)
			str_addc(&line, ' ');
		str_adds(&line, word);
	}
	free(header->cmdline);
	header->cmdline = str_take(&line);
	return 0;
}

void header_name_event(struct perf_header *header, uint32_t event, const char *name)
{
	struct header_event *e = &header->events.v[event];

	free(e->name);
	e->name = xstrdup(name);
	e->named = true;
	*vec_push(&header->changed) = event;
}

int header_build_id(struct perf_header *header, uint16_t misc, struct cursor body,
                    struct error *err)
{
	struct header_build_id b = { .pid = (int32_t)cursor_u32(&body), .misc = misc };
	const uint8_t *id = cursor_bytes(&body, sizeof(b.id));
	uint8_t size = cursor_u8(&body);
	size_t len;
	const char *path;

	cursor_skip(&body, 3);
	path = cursor_text_field(&body, cursor_left(&body), &len);
	if (body.bad || !id || !path)
		return error_set(err, EINVAL, "build-id is truncated");
	memcpy(b.id, id, sizeof(b.id));
	b.size = misc & BUILD_ID_HAS_SIZE && size <= sizeof(b.id) ? size : sizeof(b.id);
	b.path = xstrndup(path, len);
	*vec_push(&header->build_ids) = b;
	set_feature(header, FEATURE_BUILD_ID);
	return 0;
}

/* A sequence of records of type BUILD_ID; perf does not set their type. */
static int read_build_ids(struct perf_header *header, struct cursor c, struct error *err)
{
	while (cursor_left(&c)) {
		uint16_t misc, size;
		struct cursor body;

		cursor_skip(&c, 4);
		misc = cursor_u16(&c);
		size = cursor_u16(&c);
		body = cursor_sub(&c, size < 8 ? UINT64_MAX : size - 8U);
		if (c.bad)
			return error_set(err, EINVAL, "feature BUILD_ID is truncated");
		if (header_build_id(header, misc, body, err) < 0)
			return -1;
	}
	return 0;
}

/* Names are in the order of the events. If the counts differ, names are matched by id. */
static int read_event_desc(struct perf_header *header, struct cursor *c, struct error *err)
{
	uint32_t n = cursor_u32(c), attr_size = cursor_u32(c);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t ids;
		CLEANUP(free) char *name = NULL;
		struct cursor id_array;
		const struct header_id *entry;

		cursor_skip(c, attr_size);
		ids = cursor_u32(c);
		name = read_string(c);
		id_array = cursor_sub(c, (uint64_t)ids * 8);
		if (c->bad || !name)
			return error_set(err, EINVAL, "feature EVENT_DESC is truncated");
		entry = ids ? header_find_id(header, cursor_u64_at(&id_array, 0)) : NULL;
		if (entry)
			header_name_event(header, entry->event, name);
		else if (!ids && i < header->events.n)
			header_name_event(header, i, name);
	}
	return 0;
}

static int read_numbers(struct perf_header *header, unsigned feature, struct cursor *c,
                        struct error *err)
{
	if (feature == FEATURE_NRCPUS) {
		header->cpus_available = cursor_u32(c);
		header->cpus_online = cursor_u32(c);
	} else {
		header->first_sample_ns = cursor_u64(c);
		header->last_sample_ns = cursor_u64(c);
	}
	if (c->bad)
		return error_set(err, EINVAL, "feature %s is truncated",
		                 header_feature_name(feature));
	return 0;
}

int header_feature(struct perf_header *header, unsigned feature, struct cursor c, struct error *err)
{
	set_feature(header, feature);
	switch (feature) {
	case FEATURE_TRACING_DATA:
		return header_tracing_data(header, c, err);
	case FEATURE_BUILD_ID:
		return read_build_ids(header, c, err);
	case FEATURE_HOSTNAME:
		return read_string_to(&header->hostname, &c, "HOSTNAME", err);
	case FEATURE_OSRELEASE:
		return read_string_to(&header->osrelease, &c, "OSRELEASE", err);
	case FEATURE_VERSION:
		return read_string_to(&header->version, &c, "VERSION", err);
	case FEATURE_ARCH:
		return read_string_to(&header->arch, &c, "ARCH", err);
	case FEATURE_CMDLINE:
		return read_cmdline(header, &c, err);
	case FEATURE_EVENT_DESC:
		return read_event_desc(header, &c, err);
	case FEATURE_NRCPUS:
	case FEATURE_SAMPLE_TIME:
		return read_numbers(header, feature, &c, err);
	default:
		return 0;
	}
}

static void join_format(struct perf_header *header, uint32_t event, const struct tracefmt *format)
{
	struct header_event *e = &header->events.v[event];
	CLEANUP(free) char *name = NULL;

	e->format = format;
	*vec_push(&header->changed) = event;
	if (e->named)
		return;
	name = xasprintf("%s:%s", format->group, format->name);
	header_name_event(header, event, name);
}

/* Sets the event's format, or registers the event to wait for it. */
void header_find_format(struct perf_header *header, uint32_t event)
{
	struct header_event *e = &header->events.v[event];
	uint64_t id = e->attr.config;
	uint32_t format;

	if (e->attr.type != PERF_TYPE_TRACEPOINT)
		return;
	format = idmap_get(&header->format_index, id);
	if (format != IDMAP_NONE) {
		join_format(header, event, header->formats.v[format]);
		return;
	}
	e->next_waiting = idmap_get(&header->waiting, id);
	idmap_set(&header->waiting, id, event);
}

/* If several formats have the same id, all events with that id get the first. */
static void add_format(struct perf_header *header, struct tracefmt *format)
{
	uint64_t id = format->id;
	uint32_t event = idmap_get(&header->waiting, id);

	*vec_push(&header->formats) = format;
	if (idmap_get(&header->format_index, id) != IDMAP_NONE)
		return;
	idmap_set(&header->format_index, id, (uint32_t)header->formats.n - 1);
	for (; event != IDMAP_NONE; event = header->events.v[event].next_waiting)
		join_format(header, event, format);
}

static int read_format(struct perf_header *header, struct cursor *c, const char *group,
                       struct error *err)
{
	struct cursor text = cursor_sub(c, cursor_u64(c));
	struct tracefmt *fmt;

	if (c->bad)
		return error_set(err, EINVAL, "formats of %s are truncated", group);
	if (tracefmt_parse(&fmt, group, (const char *)text.p, cursor_left(&text), err) < 0)
		return -1;
	add_format(header, fmt);
	return 0;
}

/* "name\0", u64 size, data. */
static void skip_named(struct cursor *c)
{
	cursor_text(c, NULL);
	cursor_skip(c, cursor_u64(c));
}

/* Skips version, byte order, page headers and ftrace's own formats, which precede the
 * tracepoints. */
static int skip_preamble(struct cursor *c, struct error *err)
{
	static const uint8_t magic[10] = "\x17\x08\x44tracing";
	const uint8_t *p = cursor_bytes(c, sizeof(magic));
	uint32_t n;

	if (!p || memcmp(p, magic, sizeof(magic)) != 0)
		return error_set(err, EINVAL, "feature TRACING_DATA: bad magic");
	cursor_text(c, NULL);
	cursor_skip(c, 1 + 1 + 4);
	skip_named(c);
	skip_named(c);
	n = cursor_u32(c);
	for (uint32_t i = 0; i < n && !c->bad; i++)
		cursor_skip(c, cursor_u64(c));
	if (c->bad)
		return error_set(err, EINVAL, "feature TRACING_DATA is truncated");
	return 0;
}

static int read_formats(struct perf_header *header, struct cursor *c, struct error *err)
{
	uint32_t systems;

	if (skip_preamble(c, err) < 0)
		return -1;
	systems = cursor_u32(c);
	for (uint32_t i = 0; i < systems && !c->bad; i++) {
		const char *group = cursor_text(c, NULL);
		uint32_t n = cursor_u32(c);

		for (uint32_t j = 0; j < n; j++)
			if (read_format(header, c, group, err) < 0)
				return -1;
	}
	if (c->bad)
		return error_set(err, EINVAL, "feature TRACING_DATA is truncated");
	return 0;
}

/* Formats before a truncation are kept. */
int header_tracing_data(struct perf_header *header, struct cursor c, struct error *err)
{
	set_feature(header, FEATURE_TRACING_DATA);
	return read_formats(header, &c, err);
}
