/* SPDX-License-Identifier: MIT */
/* Runs the thread that encodes the passes, section by section. */
#include "report/html/payload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/locks.h"
#include "base/alloc.h"
#include "base/thread.h"
#include "report/html/encoder.h"

static void put_pass(struct encoder *e, const struct recording *recording, const struct rows *rows,
                     size_t index)
{
	e->index = index;
	e->pass = &recording->passes[index];
	e->model = e->pass->model;
	e->locks = locks_of_pass(e->pass);
	e->rows = &rows[index];
	encode_lanes(e);
	encode_slices(e);
	encode_stacks(e);
	encode_counters(e);
	encode_queued(e);
	encode_released(e);
	encode_lost(e);
	encode_samples(e);
}

struct payload {
	const struct recording *recording;
	const struct rows *rows;
	struct blocks *blocks;
	pthread_t thread;
};

static void *encode(void *data)
{
	const struct payload *p = data;
	size_t main_pass = (size_t)(recording_main_pass(p->recording) - p->recording->passes);
	struct encoder e = { .blocks = p->blocks };

	for (unsigned i = 0; i < 5; i++)
		column_init(&e.full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_init(&e.sparse[i]);
	put_pass(&e, p->recording, p->rows, main_pass);
	for (size_t i = 0; i < p->recording->pass_count; i++)
		if (i != main_pass)
			put_pass(&e, p->recording, p->rows, i);
	blocks_end(p->blocks);
	for (unsigned i = 0; i < 5; i++)
		column_done(&e.full[i]);
	for (unsigned i = 0; i < 3; i++)
		sparse_done(&e.sparse[i]);
	return NULL;
}

int payload_start(struct payload **ret, const struct recording *recording, const struct rows *rows,
                  struct error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct payload *p = xcalloc(1, sizeof(*p));

	p->recording = recording;
	p->rows = rows;
	if (blocks_new(&p->blocks, cpus > 1 ? (unsigned)cpus - 1 : 0, err) < 0) {
		free(p);
		return -1;
	}
	if (thread_start(&p->thread, encode, p) < 0) {
		blocks_free(p->blocks);
		free(p);
		return error_set(err, EAGAIN, "cannot start a thread");
	}
	*ret = p;
	return 0;
}

void payload_write(struct payload *payload, FILE *out)
{
	blocks_drain(payload->blocks, out);
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	blocks_cancel(p->blocks);
	pthread_join(p->thread, NULL);
	blocks_free(p->blocks);
	free(p);
}
