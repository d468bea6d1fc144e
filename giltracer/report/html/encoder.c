/* SPDX-License-Identifier: MIT */
/* Handles the columns that all sections share. */
#include "report/html/encoder.h"

#include "trace/stacks.h"

void encoder_clear(struct encoder *e)
{
	for (unsigned i = 0; i < 5; i++)
		column_clear(&e->full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_clear(&e->sparse[i]);
}

void encoder_full(struct encoder *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks_add_column(e->blocks, &e->full[i]);
}

void encoder_sparse(struct encoder *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks_add_sparse(e->blocks, &e->sparse[i]);
}

uint32_t encoder_frames_shift(const struct source *source)
{
	return source && source->stacks ? stacks_count(source->stacks) - 1 : 0;
}
