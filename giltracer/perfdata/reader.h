/* SPDX-License-Identifier: MIT */
/*
 * A perf.data, pulled record by record in the order of the file:
 *
 *	perfdata_open(&pd, path, &err);
 *	while ((n = perfdata_next(pd, &rec)) > 0)
 *		…
 *	perfdata_close(pd);
 *
 * Records borrow their bytes from the mapping until perfdata_close.
 */
#ifndef GILTRACER_PERFDATA_READER_H
#define GILTRACER_PERFDATA_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/cursor.h"
#include "perfdata/header.h"

/**
 * @offset: offset of its header in the file
 * @type: enum perf_event_type or enum perf_user_record
 * @body: the bytes after the header, without the data that follows a TRACING_DATA or AUXTRACE
 * record
 */
struct perfdata_record {
	uint64_t offset;
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	struct cursor body;
};

/* u32 type, u16 misc, u16 size of the record. */
#define PERFDATA_RECORD_HEADER 8

struct perfdata;

/* Open a file. It is an error, which names the path, if the file is not a perf.data, is compressed
 * or has the other byte order. */
int perfdata_open(struct perfdata **ret, const char *path, struct error *err);

/* The same from memory, which is borrowed until perfdata_close. */
int perfdata_open_memory(struct perfdata **ret, const void *data, size_t size, struct error *err);

void perfdata_close(struct perfdata *pd);

/* Returns 1 and sets *ret, or returns 0 at the end. Information for the header has been processed.
 * A truncated or corrupt file ends there, see perfdata_cut. */
int perfdata_next(struct perfdata *pd, struct perfdata_record *ret);

/* The file in memory, for perfdata_at. */
const uint8_t *perfdata_data(const struct perfdata *pd);

/* The record at an offset, as it is in the file, so its header must be before the end of the file,
 * and its size is to be checked. */
static inline void perfdata_peek(const uint8_t *data, uint64_t offset, struct perfdata_record *ret)
{
	const struct cursor c = { .p = data + offset,
		                  .end = data + offset + PERFDATA_RECORD_HEADER };
	uint16_t size = cursor_u16_in(&c, 6);

	/* Another process may write to the file: what has been checked must not be read again. */
	__asm__("" : "+r"(size));
	ret->offset = offset;
	ret->type = cursor_u32_in(&c, 0);
	ret->misc = cursor_u16_in(&c, 4);
	ret->size = size;
	/* Field by field, because a temporary would be copied while it is still being stored. */
	ret->body.p = c.end;
	ret->body.end = data + offset + size;
	ret->body.bad = false;
}

/* A record that was checked before, by its offset. If the file has changed since then, the record
 * still has a header, which must be before end, and does not extend beyond end. */
static inline void perfdata_at(const uint8_t *data, uint64_t offset, uint64_t end,
                               struct perfdata_record *ret)
{
	uint64_t most = end - offset;

	perfdata_peek(data, offset, ret);
	if (__builtin_expect(ret->size >= PERFDATA_RECORD_HEADER && ret->size <= most, 1))
		return;
	ret->size = ret->size < PERFDATA_RECORD_HEADER ? PERFDATA_RECORD_HEADER : (uint16_t)most;
	ret->body.end = data + offset + ret->size;
}

/* The state of perfdata_next: pos is the offset of the next record, end that after the last one. */
struct perfdata_window {
	const uint8_t *data;
	uint64_t pos, end;
};

struct perfdata_window *perfdata_window(struct perfdata *pd);

/* perfdata_next for callers that read millions of records: returns a valid record of the kernel
 * without a call. */
static inline int perfdata_next_quick(struct perfdata *pd, struct perfdata_window *w,
                                      struct perfdata_record *ret)
{
	uint64_t left = w->end - w->pos;

	if (left >= PERFDATA_RECORD_HEADER) {
		perfdata_peek(w->data, w->pos, ret);
		if (ret->type < PERF_USER_START && ret->size >= PERFDATA_RECORD_HEADER &&
		    ret->size <= left) {
			w->pos += ret->size;
			return 1;
		}
	}
	return perfdata_next(pd, ret);
}

/* An error if the file became shorter while it was read. To be asked at the end. */
int perfdata_check(const struct perfdata *pd, struct error *err);

/* Offset after the last record that perfdata_next returned, and after the data that follows it. */
uint64_t perfdata_tell(const struct perfdata *pd);

/* Grows in the pipe layout; borrowed until perfdata_close. */
const struct perf_header *perfdata_header(const struct perfdata *pd);

/* Size of the file. */
uint64_t perfdata_size(const struct perfdata *pd);

/* The first place where the file is invalid, and the reason; NULL if there is none (so far). */
const struct perf_header_note *perfdata_cut(const struct perfdata *pd);

/* The caller is going to read on: maps the next part of the file at once, if the kernel can.
 * Returns the offset up to which it is mapped; reading further is not an error. */
uint64_t perfdata_want(struct perfdata *pd);

/* The file before offset will not be read again, so its pages can be dropped. */
void perfdata_drop(struct perfdata *pd, uint64_t offset);

/* "SAMPLE" for 9, and so on; NULL if unknown. */
const char *perfdata_type_name(uint32_t type);

DEFINE_CLEANUP(struct perfdata *, perfdata_close);

#endif
