/* SPDX-License-Identifier: MIT */
/*
 * The bulk of the page: sections gathered into blocks, each block deflated (RFC 1951), in base64
 * (RFC 4648) and in a script element of its own; see share/report/FORMAT.md. One thread adds, some
 * pack, one writes in order what is packed; memory is bounded by a few blocks.
 */
#ifndef GILTRACER_REPORT_HTML_BLOCKS_H
#define GILTRACER_REPORT_HTML_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "report/html/columns.h"

struct blocks;

/* workers threads pack, in addition to the one that drains. ENOMEM is the only error. */
int blocks_new(struct blocks **ret, unsigned workers, struct error *err);
void blocks_free(struct blocks *blocks);

/* Add raw bytes, a full column, or a sparse one to the section at hand. */
void blocks_add(struct blocks *blocks, const void *data, size_t len);
void blocks_add_column(struct blocks *blocks, const struct column *column);
void blocks_add_sparse(struct blocks *blocks, const struct sparse *sparse);

/* End the section: what was added since the last one has n entries. head is the JSON members that
 * tell which one it is, numbers and words of ours alone. */
void blocks_section(struct blocks *blocks, uint32_t n, const char *head, ...)
	__attribute__((format(printf, 3, 4)));

/* Nothing more will be added. */
void blocks_end(struct blocks *blocks);

/* Write the blocks to out until blocks_end. Runs in another thread than the one that adds, which
 * waits when it is too far ahead. The caller checks out for errors. */
void blocks_drain(struct blocks *blocks, FILE *out);

/* Nobody will drain: what is added from now on is discarded. */
void blocks_cancel(struct blocks *blocks);

#endif
