/* SPDX-License-Identifier: MIT */
/* Reads ahead by a limited number of batches. */
#include "trace/readahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/thread.h"

/* Large enough that the cost of waking the other thread does not matter. */
#define BATCH_EVENTS 8192
#define BATCHES      8

/**
 * @end: 0 if more follow, 1 at the end, -1 with @err if reading failed after these events
 */
struct batch {
	struct event *v;
	size_t n;
	int end;
	struct error err;
};

/**
 * @filled, @emptied: how many batches the reader has filled and the consumer has finished with
 * @given: source.at to source.end belong to the present batch
 * @lock: for filled, emptied, stop
 */
struct readahead {
	struct source source;
	struct source *inner;
	struct batch ring[BATCHES];
	uint64_t filled, emptied;
	bool given, threaded, stop, over;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more, room;
};

/* Names must not be looked up while others are added, so a batch ends after an EV_COMM. */
static void fill(struct readahead *a, struct batch *b)
{
	b->end = 0;
	for (b->n = 0; b->n < BATCH_EVENTS; b->n++) {
		int more = source_next(a->inner, &b->v[b->n], &b->err);

		if (more <= 0) {
			b->end = more < 0 ? -1 : 1;
			return;
		}
		if (b->v[b->n].type == EV_COMM) {
			b->n++;
			return;
		}
	}
}

/* Whether the reader may continue: there is room, and the consumer is not looking up names. */
static bool may_fill(const struct readahead *a, bool names_busy)
{
	return names_busy ? a->emptied == a->filled : a->filled - a->emptied < BATCHES;
}

static void *read_ahead(void *data)
{
	struct readahead *a = data;
	bool names_busy = false;
	int end = 0;

	pthread_mutex_lock(&a->lock);
	while (!end) {
		struct batch *b = &a->ring[a->filled % BATCHES];

		while (!may_fill(a, names_busy) && !a->stop)
			pthread_cond_wait(&a->room, &a->lock);
		if (a->stop)
			break;
		pthread_mutex_unlock(&a->lock);
		fill(a, b);
		end = b->end;
		names_busy = b->n && b->v[b->n - 1].type == EV_COMM;
		pthread_mutex_lock(&a->lock);
		a->filled++;
		pthread_cond_signal(&a->more);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static void finish_batch(struct readahead *a)
{
	a->given = false;
	pthread_mutex_lock(&a->lock);
	a->emptied++;
	pthread_cond_signal(&a->room);
	pthread_mutex_unlock(&a->lock);
}

static struct batch *wait_for_batch(struct readahead *a)
{
	pthread_mutex_lock(&a->lock);
	while (a->filled == a->emptied)
		pthread_cond_wait(&a->more, &a->lock);
	pthread_mutex_unlock(&a->lock);
	return &a->ring[a->emptied % BATCHES];
}

static void join(struct readahead *a)
{
	if (!a->threaded)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->room);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	a->threaded = false;
}

/* The reader has ended, so its results can be read. */
static int finish(struct readahead *a, const struct batch *b, struct error *err)
{
	join(a);
	a->over = true;
	a->source.stats = a->inner->stats;
	a->source.counters = a->inner->counters;
	a->source.counter_count = a->inner->counter_count;
	if (b->end < 0)
		*err = b->err;
	return b->end < 0 ? -1 : 0;
}

static int readahead_next(struct source *source, struct event *ret, struct error *err)
{
	struct readahead *a = (struct readahead *)source;
	struct batch *b = &a->ring[a->emptied % BATCHES];

	if (a->over)
		return 0;
	if (a->given && !b->end)
		finish_batch(a);
	if (!a->given)
		b = wait_for_batch(a);
	if (a->given || !b->n)
		return finish(a, b, err);
	a->given = true;
	source->at = b->v;
	source->end = b->v + b->n;
	*ret = *source->at++;
	return 1;
}

static void readahead_close(struct source *source)
{
	struct readahead *a = (struct readahead *)source;

	join(a);
	source_close(a->inner);
	for (unsigned i = 0; i < BATCHES; i++)
		free(a->ring[i].v);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->more);
	pthread_cond_destroy(&a->room);
	free(a);
}

static uint32_t readahead_stack_at(struct source *source, uint64_t record)
{
	struct readahead *a = (struct readahead *)source;

	join(a);
	return source_stack_at(a->inner, record);
}

struct source *source_ahead(struct source *inner)
{
	static const struct source_ops ops = {
		.next = readahead_next,
		.close = readahead_close,
		.stack_at = readahead_stack_at,
	};
	struct readahead *a = xcalloc(1, sizeof(*a));

	a->inner = inner;
	a->source = (struct source){
		.ops = &ops,
		.names = inner->names,
		.stacks = inner->stacks,
		.frames = inner->frames,
		.cpu_names = inner->cpu_names,
		.by_perf = inner->by_perf,
	};
	for (unsigned i = 0; i < BATCHES; i++)
		a->ring[i].v = xcalloc(BATCH_EVENTS, sizeof(*a->ring[i].v));
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->more, NULL);
	pthread_cond_init(&a->room, NULL);
	a->threaded = thread_start(&a->thread, read_ahead, a) == 0;
	if (a->threaded)
		return &a->source;
	a->inner = NULL;
	readahead_close(&a->source);
	return inner;
}
