/* SPDX-License-Identifier: MIT */
/* Gathers, compresses and writes blocks. */
#include "blocks.h"

#include <assert.h>
#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "report/base64.h"

#define BLOCK_FULL  (1 << 20) /* raw bytes that close a block */
#define WORKERS_MAX 4
#define LEVEL       1

enum block_state { BLOCK_FREE, BLOCK_QUEUED, BLOCK_DONE };

/**
 * @raw: the sections' bytes; @list: their descriptions
 * @packed: deflated; @text: the same in base64
 */
struct block {
	enum block_state state;
	struct str raw, list;
	uint8_t *packed;
	char *text;
	size_t packed_alloc, text_alloc, text_len;
};

struct worker {
	struct blocks *blocks;
	struct libdeflate_compressor *compressor;
	pthread_t thread;
};

/**
 * @ring: @filling is being filled; from @oldest up to it they are queued or done; workers take
 *        them in order at @next
 * @lock: of state, next and stop
 * @section: where the section at hand starts in the raw bytes of the block being filled
 */
struct blocks {
	FILE *out;
	struct block *ring;
	unsigned ring_size;
	uint64_t filling, oldest, next;
	size_t section;
	struct worker workers[WORKERS_MAX];
	unsigned worker_count;
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t queued, done;
	struct libdeflate_compressor *own; /* NULL with workers */
};

static void block_pack(struct block *b, struct libdeflate_compressor *c)
{
	size_t bound = libdeflate_deflate_compress_bound(c, b->raw.len);
	size_t len;

	if (bound > b->packed_alloc) {
		b->packed = xreallocarray(b->packed, bound, 1);
		b->packed_alloc = bound;
	}
	len = libdeflate_deflate_compress(c, b->raw.s, b->raw.len, b->packed, bound);
	assert(len > 0);
	if (base64_size(len) > b->text_alloc) {
		b->text_alloc = base64_size(len);
		b->text = xreallocarray(b->text, b->text_alloc, 1);
	}
	b->text_len = base64_encode(b->text, b->packed, len);
}

static void block_write(struct block *b, FILE *out)
{
	fputs("<script type=\"text/plain\">", out);
	fwrite(b->text, 1, b->text_len, out);
	fprintf(out, "</script>\n<script>gt.push([%s])</script>\n", str_get(&b->list));
	b->raw.len = b->list.len = 0;
	b->state = BLOCK_FREE;
}

static void *work(void *data)
{
	struct worker *worker = data;
	struct blocks *blocks = worker->blocks;
	struct block *b;

	pthread_mutex_lock(&blocks->lock);
	for (;;) {
		while (blocks->next == blocks->filling && !blocks->stop)
			pthread_cond_wait(&blocks->queued, &blocks->lock);
		if (blocks->next == blocks->filling)
			break;
		b = &blocks->ring[blocks->next++ % blocks->ring_size];
		pthread_mutex_unlock(&blocks->lock);
		block_pack(b, worker->compressor);
		pthread_mutex_lock(&blocks->lock);
		b->state = BLOCK_DONE;
		pthread_cond_signal(&blocks->done);
	}
	pthread_mutex_unlock(&blocks->lock);
	return NULL;
}

static int start_worker(struct blocks *blocks)
{
	struct worker *worker = &blocks->workers[blocks->worker_count];

	*worker = (struct worker){ .blocks = blocks };
	worker->compressor = libdeflate_alloc_compressor(LEVEL);
	if (!worker->compressor)
		return -1;
	if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
		libdeflate_free_compressor(worker->compressor);
		return -1;
	}
	blocks->worker_count++;
	return 0;
}

/* Without threads, if none can be had. Signals are for the thread that expects them. */
static void start_workers(struct blocks *blocks, unsigned workers)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (workers > WORKERS_MAX)
		workers = WORKERS_MAX;
	while (blocks->worker_count < workers && start_worker(blocks) == 0)
		;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void stop_workers(struct blocks *blocks)
{
	pthread_mutex_lock(&blocks->lock);
	blocks->stop = true;
	pthread_cond_broadcast(&blocks->queued);
	pthread_mutex_unlock(&blocks->lock);
	for (unsigned i = 0; i < blocks->worker_count; i++) {
		pthread_join(blocks->workers[i].thread, NULL);
		libdeflate_free_compressor(blocks->workers[i].compressor);
	}
}

static void blocks_free(struct blocks *blocks)
{
	stop_workers(blocks);
	for (unsigned i = 0; i < blocks->ring_size; i++) {
		str_done(&blocks->ring[i].raw);
		str_done(&blocks->ring[i].list);
		free(blocks->ring[i].packed);
		free(blocks->ring[i].text);
	}
	if (blocks->own)
		libdeflate_free_compressor(blocks->own);
	free(blocks->ring);
	pthread_mutex_destroy(&blocks->lock);
	pthread_cond_destroy(&blocks->queued);
	pthread_cond_destroy(&blocks->done);
	free(blocks);
}

int blocks_new(struct blocks **ret, FILE *out, unsigned workers, struct error *err)
{
	struct blocks *blocks = xcalloc(1, sizeof(*blocks));

	blocks->out = out;
	blocks->ring_size = 2 * WORKERS_MAX;
	blocks->ring = xcalloc(blocks->ring_size, sizeof(*blocks->ring));
	pthread_mutex_init(&blocks->lock, NULL);
	pthread_cond_init(&blocks->queued, NULL);
	pthread_cond_init(&blocks->done, NULL);
	start_workers(blocks, workers);
	if (!blocks->worker_count)
		blocks->own = libdeflate_alloc_compressor(LEVEL);
	if (!blocks->worker_count && !blocks->own) {
		blocks_free(blocks);
		return error_set(err, ENOMEM, "out of memory");
	}
	*ret = blocks;
	return 0;
}

static struct block *filling(struct blocks *blocks)
{
	return &blocks->ring[blocks->filling % blocks->ring_size];
}

/* Write the oldest block, when it is done. */
static void write_oldest(struct blocks *blocks)
{
	struct block *b = &blocks->ring[blocks->oldest % blocks->ring_size];

	if (blocks->worker_count) {
		pthread_mutex_lock(&blocks->lock);
		while (b->state != BLOCK_DONE)
			pthread_cond_wait(&blocks->done, &blocks->lock);
		pthread_mutex_unlock(&blocks->lock);
	} else {
		block_pack(b, blocks->own);
	}
	block_write(b, blocks->out);
	blocks->oldest++;
}

/* Queue the block being filled and go on with the next one of the ring. */
static void close_block(struct blocks *blocks)
{
	if (!filling(blocks)->raw.len)
		return;
	pthread_mutex_lock(&blocks->lock);
	filling(blocks)->state = BLOCK_QUEUED;
	blocks->filling++;
	pthread_cond_signal(&blocks->queued);
	pthread_mutex_unlock(&blocks->lock);
	blocks->section = 0;
	if (!blocks->worker_count || blocks->filling - blocks->oldest == blocks->ring_size)
		write_oldest(blocks);
}

void blocks_add(struct blocks *blocks, const void *data, size_t len)
{
	str_addn(&filling(blocks)->raw, data, len);
}

void blocks_add_column(struct blocks *blocks, const struct column *column)
{
	blocks_add(blocks, column->v, (size_t)(column->end - column->v));
}

void blocks_add_sparse(struct blocks *blocks, const struct sparse *sparse)
{
	uint8_t count[VARINT_MAX];

	blocks_add(blocks, count, (size_t)(varint_put(count, sparse->count) - count));
	blocks_add_column(blocks, &sparse->gaps);
	blocks_add_column(blocks, &sparse->values);
}

void blocks_section(struct blocks *blocks, uint32_t n, const char *head, ...)
{
	struct block *b = filling(blocks);
	CLEANUP(free) char *text = NULL;
	va_list ap;

	va_start(ap, head);
	text = xvasprintf(head, ap);
	va_end(ap);
	str_addf(&b->list, "%s{%s,\"n\":%u,\"bytes\":%zu}", b->list.len ? "," : "", text, n,
	         b->raw.len - blocks->section);
	blocks->section = b->raw.len;
	if (b->raw.len >= BLOCK_FULL)
		close_block(blocks);
}

void blocks_finish(struct blocks *blocks)
{
	close_block(blocks);
	while (blocks->oldest != blocks->filling)
		write_oldest(blocks);
	blocks_free(blocks);
}
