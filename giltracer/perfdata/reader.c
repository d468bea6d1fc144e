/* SPDX-License-Identifier: MIT */
/* Reads a perf.data record by record. */
#include "reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/filemap.h"

/* The number of bytes to map at a time. */
#define WANT_STEP (2U << 20)

struct perfdata {
	struct filemap map; /* empty if the memory was passed by the caller */
	struct perfdata_window window;
	size_t size;
	struct perf_header header;
	struct perf_header_note cut;
};

static int cut_at(struct perfdata *pd, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Records the first cut. Returns 0: there are no more records. */
static int cut_at(struct perfdata *pd, uint64_t offset, const char *fmt, ...)
{
	va_list ap;

	pd->window.pos = pd->window.end;
	if (pd->cut.offset)
		return 0;
	pd->cut.offset = offset;
	va_start(ap, fmt);
	vsnprintf(pd->cut.text, sizeof(pd->cut.text), fmt, ap);
	va_end(ap);
	return 0;
}

static void find_end(struct perfdata *pd)
{
	const struct perf_header *h = &pd->header;

	pd->window.pos = h->data_offset;
	pd->window.end = pd->size;
	if (!h->data_size && !h->pipe) {
		if (pd->window.end > pd->window.pos && !pd->cut.offset)
			pd->cut = (struct perf_header_note){
				pd->window.end,
				"perf did not finish: the header has no size and no event formats; "
				"reading to the end of the file"
			};
		return;
	}
	if (h->data_size <= pd->size - h->data_offset)
		pd->window.end = h->data_offset + h->data_size;
	else if (!pd->cut.offset) {
		pd->cut.offset = pd->size;
		snprintf(pd->cut.text, sizeof(pd->cut.text),
		         "the file is truncated: its records should extend to %#" PRIx64,
		         h->data_offset + h->data_size);
	}
}

static int open_data(struct perfdata *pd, struct error *err)
{
	if (header_read(&pd->header, pd->window.data, pd->size, &pd->cut, err) < 0)
		return -1;
	find_end(pd);
	return 0;
}

int perfdata_open_memory(struct perfdata **ret, const void *data, size_t size, struct error *err)
{
	CLEANUP(perfdata_close) struct perfdata *pd = xcalloc(1, sizeof(*pd));

	pd->window.data = data;
	pd->size = size;
	if (open_data(pd, err) < 0)
		return -1;
	*ret = take(pd);
	return 0;
}

int perfdata_open(struct perfdata **ret, const char *path, struct error *err)
{
	CLEANUP(perfdata_close) struct perfdata *pd = xcalloc(1, sizeof(*pd));

	if (filemap_open(&pd->map, path, err) < 0)
		return -1;
	pd->window.data = pd->map.data;
	pd->size = pd->map.size;
	if (open_data(pd, err) < 0)
		return perfdata_check(pd, err) < 0 ? -1 : error_prefix(err, "%s", path);
	*ret = take(pd);
	return 0;
}

int perfdata_check(const struct perfdata *pd, struct error *err)
{
	return filemap_check(&pd->map, err);
}

void perfdata_close(struct perfdata *pd)
{
	if (!pd)
		return;
	header_done(&pd->header);
	filemap_done(&pd->map);
	free(pd);
}

const uint8_t *perfdata_data(const struct perfdata *pd)
{
	return pd->window.data;
}

/* perf pads the data that follows a TRACING_DATA record to 8 bytes; only its source documents
 * that. */
static uint64_t extra_size(const struct perfdata_record *rec)
{
	struct cursor c = rec->body;

	if (rec->type == PERF_USER_TRACING_DATA)
		return ((uint64_t)cursor_u32(&c) + 7) & ~7ULL;
	if (rec->type == PERF_USER_AUXTRACE)
		return cursor_u64(&c);
	return 0;
}

/* Handles a record of perf itself; most of them belong to the header. */
static int take_in(struct perfdata *pd, const struct perfdata_record *rec)
{
	uint64_t extra_at = rec->offset + rec->size, extra = extra_size(rec);
	struct cursor c = cursor_make(pd->window.data + extra_at, pd->window.end - extra_at);
	struct error err;

	if (rec->type == PERF_USER_COMPRESSED || rec->type == PERF_USER_COMPRESSED2)
		return cut_at(pd, rec->offset,
		              "compressed record (perf record -z), which is not supported");
	if (extra > cursor_left(&c))
		return cut_at(pd, rec->offset,
		              "record of type %s: the %" PRIu64
		              " bytes that follow it are truncated",
		              perfdata_type_name(rec->type), extra);
	pd->window.pos += extra;
	if (header_feed(&pd->header, rec->type, rec->misc, rec->body, cursor_sub(&c, extra), &err) <
	            0 &&
	    !pd->cut.offset) {
		pd->cut.offset = rec->offset;
		snprintf(pd->cut.text, sizeof(pd->cut.text), "%.*s", (int)sizeof(pd->cut.text) - 1,
		         err.text);
	}
	return 1;
}

int perfdata_next(struct perfdata *pd, struct perfdata_record *ret)
{
	uint64_t left = pd->window.end - pd->window.pos;

	if (!left)
		return 0;
	if (left < PERFDATA_RECORD_HEADER)
		return cut_at(pd, pd->window.pos, "%" PRIu64 " bytes are too few for a record",
		              left);
	perfdata_peek(pd->window.data, pd->window.pos, ret);
	if (ret->size < PERFDATA_RECORD_HEADER)
		return cut_at(pd, pd->window.pos, "record of type %" PRIu32 ": bad size %u",
		              ret->type, ret->size);
	if (ret->size > left)
		return cut_at(pd, pd->window.pos,
		              "record of type %" PRIu32 " and %u bytes: only %" PRIu64 " are left",
		              ret->type, ret->size, left);
	pd->window.pos += ret->size;
	return ret->type < PERF_USER_START ? 1 : take_in(pd, ret);
}

struct perfdata_window *perfdata_window(struct perfdata *pd)
{
	return &pd->window;
}

uint64_t perfdata_tell(const struct perfdata *pd)
{
	return pd->window.pos;
}

const struct perf_header *perfdata_header(const struct perfdata *pd)
{
	return &pd->header;
}

uint64_t perfdata_size(const struct perfdata *pd)
{
	return pd->size;
}

const struct perf_header_note *perfdata_cut(const struct perfdata *pd)
{
	return pd->cut.offset ? &pd->cut : NULL;
}

void perfdata_drop(struct perfdata *pd, uint64_t offset)
{
	filemap_drop(&pd->map, offset);
}

uint64_t perfdata_want(struct perfdata *pd)
{
	uint64_t from = pd->window.pos & ~(uint64_t)(WANT_STEP - 1);
	uint64_t left = from < pd->map.size ? pd->map.size - from : 0;

	if (!left)
		return pd->window.end;
#ifdef MADV_POPULATE_READ
	madvise((void *)(uintptr_t)(pd->window.data + from), left < WANT_STEP ? left : WANT_STEP,
	        MADV_POPULATE_READ);
#endif
	return left <= WANT_STEP ? pd->window.end : from + WANT_STEP;
}

const char *perfdata_type_name(uint32_t type)
{
	static const char *const names[] = {
		[1] = "MMAP",
		[2] = "LOST",
		[3] = "COMM",
		[4] = "EXIT",
		[5] = "THROTTLE",
		[6] = "UNTHROTTLE",
		[7] = "FORK",
		[8] = "READ",
		[9] = "SAMPLE",
		[10] = "MMAP2",
		[11] = "AUX",
		[12] = "ITRACE_START",
		[13] = "LOST_SAMPLES",
		[14] = "SWITCH",
		[15] = "SWITCH_CPU_WIDE",
		[16] = "NAMESPACES",
		[17] = "KSYMBOL",
		[18] = "BPF_EVENT",
		[19] = "CGROUP",
		[20] = "TEXT_POKE",
		[21] = "AUX_OUTPUT_HW_ID",
		[64] = "HEADER_ATTR",
		[65] = "HEADER_EVENT_TYPE",
		[66] = "HEADER_TRACING_DATA",
		[67] = "HEADER_BUILD_ID",
		[68] = "FINISHED_ROUND",
		[69] = "ID_INDEX",
		[70] = "AUXTRACE_INFO",
		[71] = "AUXTRACE",
		[72] = "AUXTRACE_ERROR",
		[73] = "THREAD_MAP",
		[74] = "CPU_MAP",
		[75] = "STAT_CONFIG",
		[76] = "STAT",
		[77] = "STAT_ROUND",
		[78] = "EVENT_UPDATE",
		[79] = "TIME_CONV",
		[80] = "HEADER_FEATURE",
		[81] = "COMPRESSED",
		[82] = "FINISHED_INIT",
		[83] = "COMPRESSED2",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}
