/* SPDX-License-Identifier: MIT */
/*
 * The format of a tracepoint's raw data, parsed from the text that the kernel shows in
 * events/SYSTEM/NAME/format and that perf copies into perf.data (Documentation/trace/events.rst).
 */
#ifndef GILTRACER_PERFDATA_TRACEFMT_H
#define GILTRACER_PERFDATA_TRACEFMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "base/cursor.h"

enum tracefmt_kind {
	TRACEFMT_NUMBER,
	TRACEFMT_CHARS,   /* char name[N]: text within the record */
	TRACEFMT_DYNAMIC, /* __data_loc: u32 of offset | length << 16, from the record's start */
	TRACEFMT_REL,     /* __rel_loc: the same, from the end of the field */
	TRACEFMT_BYTES,   /* an array of another type */
};

/**
 * @offset, @size: bytes, from the start of the raw data
 * @text: the type is char; DYNAMIC and REL point to text then
 */
struct tracefmt_field {
	char *name;
	uint32_t offset, size;
	enum tracefmt_kind kind;
	bool sign, text;
};

/* The common_ fields come first, as in the text. */
struct tracefmt {
	char *group, *name;
	uint64_t id;
	VEC(struct tracefmt_field) fields;
};

/* Parse len bytes of text. An error names the invalid line. Caller frees. */
int tracefmt_parse(struct tracefmt **ret, const char *group, const char *text, size_t len,
                   struct error *err);
void tracefmt_free(struct tracefmt *fmt);

/* The field of this name, or NULL. Borrowed. */
const struct tracefmt_field *tracefmt_find(const struct tracefmt *fmt, const char *name);

/* The value of a NUMBER field in raw data; 0 if the data is too short or the field has another
 * kind. */
uint64_t tracefmt_number(const struct tracefmt_field *field, const struct cursor *raw);

/* The text of a CHARS, DYNAMIC or REL field, with its length in *ret_len, not terminated; NULL if
 * the raw data is too short. Borrowed from the data. */
const char *tracefmt_text(const struct tracefmt_field *field, const struct cursor *raw,
                          size_t *ret_len);

DEFINE_CLEANUP(struct tracefmt *, tracefmt_free);

#endif
