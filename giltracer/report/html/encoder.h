/* SPDX-License-Identifier: MIT */
/* Shared by the encoders of a pass; the sections are documented in share/report/FORMAT.md. */
#ifndef GILTRACER_REPORT_HTML_ENCODER_H
#define GILTRACER_REPORT_HTML_ENCODER_H

#include <stdbool.h>

#include "report/html/blocks.h"
#include "report/html/payload.h"
#include "trace/names.h"
#include "trace/source.h"

/* A pass being encoded into blocks, with the columns that all sections share. */
struct encoder {
	struct blocks *blocks;
	const struct recording_pass *pass;
	const struct model *model;
	const struct rows *rows;
	size_t index; /* of the pass */
	bool locks;   /* there are locks instead of a GIL */
	struct column full[5];
	struct sparse sparse[3];
};

/* Start a section with empty columns. */
void encoder_clear(struct encoder *e);

/* Add the first n columns to the section. */
void encoder_full(struct encoder *e, unsigned n);
void encoder_sparse(struct encoder *e, unsigned n);

/* The difference of ids of the source's frames on the page, where they follow its stacks. */
uint32_t encoder_frames_shift(const struct source *source);

/* Names by id, or the count names in ids. */
void encode_names(struct encoder *e, const char *table, const struct names *names,
                  const uint32_t *ids, uint32_t count);

/* Encode all items of each kind in the encoder's pass. */
void encode_lanes(struct encoder *e);
void encode_slices(struct encoder *e);
void encode_stacks(struct encoder *e);
void encode_counters(struct encoder *e);
void encode_queued(struct encoder *e);
void encode_released(struct encoder *e);
void encode_lost(struct encoder *e);
void encode_samples(struct encoder *e);

#endif
