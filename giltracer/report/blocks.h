/* SPDX-License-Identifier: MIT */
/*
 * The bulk of the page: sections gathered into blocks, each block deflated (RFC 1951), in base64
 * (RFC 4648) and in a script element of its own; see share/report/FORMAT.md. Blocks are compressed
 * by worker threads and written in order as they are done, so that memory is bounded by a few
 * blocks.
 */
#ifndef GILTRACER_REPORT_BLOCKS_H
#define GILTRACER_REPORT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "report/columns.h"

struct blocks;

/* out is borrowed; its errors are the owner's to check. workers 0: compress in this
 * thread. ENOMEM is the only error. */
int blocks_new(struct blocks **ret, FILE *out, unsigned workers, struct error *err);

/* Add raw bytes, a full column, or a sparse one to the section at hand. */
void blocks_add(struct blocks *blocks, const void *data, size_t len);
void blocks_add_column(struct blocks *blocks, const struct column *column);
void blocks_add_sparse(struct blocks *blocks, const struct sparse *sparse);

/* End the section: what was added since the last one has n entries. head is the JSON members that
 * tell which one it is, numbers and words of ours alone. */
void blocks_section(struct blocks *blocks, uint32_t n, const char *head, ...)
	__attribute__((format(printf, 3, 4)));

/* Write what is left, wait for the workers, free. */
void blocks_finish(struct blocks *blocks);

#endif
