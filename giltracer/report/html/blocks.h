/* SPDX-License-Identifier: MIT */
/*
 * The bulk of the page: sections collected into blocks, each block deflated (RFC 1951), in base64
 * (RFC 4648), in a script element of its own; see share/report/FORMAT.md. One thread adds sections,
 * several pack blocks, and one writes packed blocks in order; memory is bounded by a few blocks.
 */
#ifndef GILTRACER_REPORT_HTML_BLOCKS_H
#define GILTRACER_REPORT_HTML_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "report/html/columns.h"

struct blocks;

/* workers is the number of threads that pack, in addition to the one that drains. The only error
 * is ENOMEM. */
int blocks_new(struct blocks **ret, unsigned workers, struct error *err);
void blocks_free(struct blocks *blocks);

/* Add raw bytes, a full column, or a sparse one to the present section. */
void blocks_add(struct blocks *blocks, const void *data, size_t len);
void blocks_add_column(struct blocks *blocks, const struct column *column);
void blocks_add_sparse(struct blocks *blocks, const struct sparse *sparse);

/* End the section, whose data has n entries. head: JSON members that identify the section, only
 * numbers and words of ours. */
void blocks_section(struct blocks *blocks, uint32_t n, const char *head, ...)
	__attribute__((format(printf, 3, 4)));

/* Nothing more will be added after this. */
void blocks_end(struct blocks *blocks);

/* Write the blocks to out until blocks_end. Runs in another thread than the one that adds, which
 * waits if it is too far ahead. The caller checks out for errors. */
void blocks_drain(struct blocks *blocks, FILE *out);

/* Nobody will drain: discard everything from now on. */
void blocks_cancel(struct blocks *blocks);

#endif
