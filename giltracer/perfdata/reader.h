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
#include "perfdata/cursor.h"
#include "perfdata/header.h"

/**
 * @offset: of its header, from the start of the file
 * @type: enum perf_event_type or enum perf_user_record
 * @body: behind the header; does not include what follows a TRACING_DATA or AUXTRACE record
 */
struct perfdata_record {
	uint64_t offset;
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	struct cursor body;
};

/* u32 type, u16 misc, u16 size of all. */
#define PERFDATA_RECORD_HEADER 8

struct perfdata;

/* A file that is no perf.data at all, compressed or of the other byte order is an error that
 * names the path. */
int perfdata_open(struct perfdata **ret, const char *path, struct error *err);

/* The same from memory, which is borrowed until perfdata_close. */
int perfdata_open_memory(struct perfdata **ret, const void *data, size_t size, struct error *err);

void perfdata_close(struct perfdata *pd);

/* 1 and *ret filled in, or 0 at the end. What the record says about the header has been taken in.
 * A file that is cut or corrupt ends there, see perfdata_cut. */
int perfdata_next(struct perfdata *pd, struct perfdata_record *ret);

/* The file in memory, for perfdata_at. */
const uint8_t *perfdata_data(const struct perfdata *pd);

/* A record that perfdata_next gave, again: by its offset. */
static inline void perfdata_at(const uint8_t *data, uint64_t offset, struct perfdata_record *ret)
{
	const struct cursor c = { .p = data + offset,
		                  .end = data + offset + PERFDATA_RECORD_HEADER };

	ret->offset = offset;
	ret->type = cursor_u32_in(&c, 0);
	ret->misc = cursor_u16_in(&c, 4);
	ret->size = cursor_u16_in(&c, 6);
	/* Field by field: a temporary would be copied while it is still being stored. */
	ret->body.p = c.end;
	ret->body.end = data + offset + ret->size;
	ret->body.bad = false;
}

/* What perfdata_next works on: pos is the next record's offset, end that behind the last one. */
struct perfdata_window {
	const uint8_t *data;
	uint64_t pos, end;
};

struct perfdata_window *perfdata_window(struct perfdata *pd);

/* perfdata_next for who pulls millions: a sound record of the kernel is passed without a call. */
static inline int perfdata_next_quick(struct perfdata *pd, struct perfdata_window *w,
                                      struct perfdata_record *ret)
{
	uint64_t left = w->end - w->pos;

	if (left >= PERFDATA_RECORD_HEADER) {
		perfdata_at(w->data, w->pos, ret);
		if (ret->type < PERF_USER_START && ret->size >= PERFDATA_RECORD_HEADER &&
		    ret->size <= left) {
			w->pos += ret->size;
			return 1;
		}
	}
	return perfdata_next(pd, ret);
}

/* Offset behind the record that perfdata_next gave last, and what follows it. */
uint64_t perfdata_tell(const struct perfdata *pd);

/* Grows in the pipe layout; borrowed until perfdata_close. */
const struct perf_header *perfdata_header(const struct perfdata *pd);

/* Size of the file. */
uint64_t perfdata_size(const struct perfdata *pd);

/* Where the file stopped making sense, and why; NULL if it did not (so far). */
const struct perf_header_note *perfdata_cut(const struct perfdata *pd);

/* Who reads on is about to: maps the next stretch of the file at once, where the kernel can.
 * Returns the offset up to which it is mapped; reading further is no error. */
uint64_t perfdata_want(struct perfdata *pd);

/* Nobody will look at what is before offset any more: its pages may go. */
void perfdata_drop(struct perfdata *pd, uint64_t offset);

/* "SAMPLE" for 9, and so on; NULL if unknown. */
const char *perfdata_type_name(uint32_t type);

DEFINE_CLEANUP(struct perfdata *, perfdata_close);

#endif
