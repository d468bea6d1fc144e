/* SPDX-License-Identifier: MIT */
/* Collects, compresses and writes blocks. */
#include "report/html/blocks.h"

#include <assert.h>
#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/thread.h"

const char base64_alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static inline char *put_group(char *out, uint32_t bits)
{
	*out++ = base64_alphabet[bits >> 18];
	*out++ = base64_alphabet[bits >> 12 & 63];
	*out++ = base64_alphabet[bits >> 6 & 63];
	*out++ = base64_alphabet[bits & 63];
	return out;
}

/* Write base64_size(len) characters to out, unterminated. Returns their number. */
static size_t base64_encode(char *out, const uint8_t *data, size_t len)
{
	char *p = out;
	size_t i;

	for (i = 0; i + 3 <= len; i += 3)
		p = put_group(p,
		              (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2]);
	if (i < len) {
		uint32_t second = i + 1 < len ? data[i + 1] : 0;

		p = put_group(p, (uint32_t)data[i] << 16 | second << 8);
		p[-1] = '=';
		if (i + 1 == len)
			p[-2] = '=';
	}
	return (size_t)(p - out);
}

#ifdef HAVE_LIBISAL
#else
#endif

#ifdef HAVE_LIBISAL

/* Level 1 would take 5 % less time, for 2 % more bytes. */
#define LEVEL 2

/* igzip's documentation states the header of one stored block as the maximum overhead; each
 * stored block has at most 64 KiB and begins at a byte boundary. */
#define BLOCK_SIZE  65535
#define BLOCK_EXTRA 8

struct deflater {
	struct isal_zstream stream;
	uint8_t level[ISAL_DEF_LVL2_DEFAULT];
};

struct deflater *deflater_new(void)
{
	return xcalloc(1, sizeof(struct deflater));
}

void deflater_free(struct deflater *d)
{
	free(d);
}

size_t deflater_bound(const struct deflater *d, size_t len)
{
	(void)d;
	return len + (len / BLOCK_SIZE + 1) * BLOCK_EXTRA + ISAL_DEF_MAX_HDR_SIZE;
}

size_t deflater_pack(struct deflater *d, void *out, size_t bound, const void *data, size_t len)
{
	struct isal_zstream *s = &d->stream;
	int status;

	assert(len <= UINT32_MAX && bound <= UINT32_MAX);
	isal_deflate_stateless_init(s);
	s->level = LEVEL;
	s->level_buf = d->level;
	s->level_buf_size = sizeof(d->level);
	s->end_of_stream = 1;
	s->next_in = (uint8_t *)(uintptr_t)data;
	s->avail_in = (uint32_t)len;
	s->next_out = out;
	s->avail_out = (uint32_t)bound;
	status = isal_deflate_stateless(s);
	assert(status == COMP_OK);
	(void)status;
	return s->total_out;
}

#else

/* Level 6 would take twice the time, for 4 % fewer bytes. */
#define LEVEL 1

struct deflater *deflater_new(void)
{
	return (struct deflater *)libdeflate_alloc_compressor(LEVEL);
}

void deflater_free(struct deflater *d)
{
	libdeflate_free_compressor((struct libdeflate_compressor *)d);
}

size_t deflater_bound(const struct deflater *d, size_t len)
{
	return libdeflate_deflate_compress_bound((struct libdeflate_compressor *)(uintptr_t)d, len);
}

size_t deflater_pack(struct deflater *d, void *out, size_t bound, const void *data, size_t len)
{
	size_t n = libdeflate_deflate_compress((struct libdeflate_compressor *)d, data, len, out,
	                                       bound);

	assert(n > 0);
	return n;
}

#endif

#define BLOCK_FULL  (1 << 20) /* raw bytes that close a block */
#define WORKERS_MAX 4
#define RING        8

enum block_state { BLOCK_FREE, BLOCK_QUEUED, BLOCK_DONE };

/**
 * @raw: the sections' bytes or, when the block is done, the compressed bytes in base64, which
 * hardly ever need more memory
 * @list: descriptions of the sections
 */
struct block {
	enum block_state state;
	struct str raw, list;
};

/* State for compressing blocks, one at a time. */
struct packer {
	struct deflater *deflater;
	uint8_t *packed;
	size_t alloc;
};

struct worker {
	struct blocks *blocks;
	struct packer packer;
	pthread_t thread;
};

/**
 * Blocks by number, in a ring: the block with number filling is being filled; those from oldest up
 * to it are queued, being packed or done; workers pack the next one in order.
 * @own: for the thread that drains, which helps to pack while it waits
 * @section: the start of the present section in the raw bytes of the block that is being filled
 * @ended: no more blocks are filled; @cancelled: nobody drains; @stop: workers end
 * @changed: signalled if any of these or a block's state changes; all are protected by @lock
 */
struct blocks {
	struct block ring[RING];
	uint64_t filling, oldest, next;
	size_t section;
	struct worker workers[WORKERS_MAX];
	unsigned worker_count;
	struct packer own;
	bool ended, cancelled, stop;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

static struct block *block_at(struct blocks *blocks, uint64_t number)
{
	return &blocks->ring[number % RING];
}

static int packer_init(struct packer *p)
{
	p->deflater = deflater_new();
	return p->deflater ? 0 : -1;
}

static void packer_done(struct packer *p)
{
	deflater_free(p->deflater);
	free(p->packed);
}

static void block_pack(struct block *b, struct packer *p)
{
	size_t bound = deflater_bound(p->deflater, b->raw.len);
	size_t len;

	if (bound > p->alloc) {
		p->packed = xreallocarray(p->packed, bound, 1);
		p->alloc = bound;
	}
	len = deflater_pack(p->deflater, p->packed, bound, b->raw.s, b->raw.len);
	if (base64_size(len) > b->raw.alloc) {
		b->raw.alloc = base64_size(len);
		b->raw.s = xreallocarray(b->raw.s, b->raw.alloc, 1);
	}
	b->raw.len = base64_encode(b->raw.s, p->packed, len);
}

static void block_write(struct block *b, FILE *out)
{
	fputs("<script type=\"text/plain\">", out);
	fwrite(b->raw.s, 1, b->raw.len, out);
	fprintf(out, "</script>\n<script>gt.push([%s])</script>\n", str_get(&b->list));
	b->raw.len = b->list.len = 0;
	b->state = BLOCK_FREE;
}

/* Packs the next queued block; called with the lock held. */
static void pack_next(struct blocks *blocks, struct packer *p)
{
	struct block *b = block_at(blocks, blocks->next++);

	pthread_mutex_unlock(&blocks->lock);
	block_pack(b, p);
	pthread_mutex_lock(&blocks->lock);
	b->state = BLOCK_DONE;
	pthread_cond_broadcast(&blocks->changed);
}

static void *work(void *data)
{
	struct worker *worker = data;
	struct blocks *blocks = worker->blocks;

	pthread_mutex_lock(&blocks->lock);
	while (!blocks->stop) {
		if (blocks->next != blocks->filling)
			pack_next(blocks, &worker->packer);
		else
			pthread_cond_wait(&blocks->changed, &blocks->lock);
	}
	pthread_mutex_unlock(&blocks->lock);
	return NULL;
}

static int start_worker(struct blocks *blocks)
{
	struct worker *worker = &blocks->workers[blocks->worker_count];

	worker->blocks = blocks;
	if (packer_init(&worker->packer) < 0)
		return -1;
	if (thread_start(&worker->thread, work, worker) < 0) {
		packer_done(&worker->packer);
		return -1;
	}
	blocks->worker_count++;
	return 0;
}

int blocks_new(struct blocks **ret, unsigned workers, struct error *err)
{
	struct blocks *blocks = xcalloc(1, sizeof(*blocks));

	pthread_mutex_init(&blocks->lock, NULL);
	pthread_cond_init(&blocks->changed, NULL);
	if (packer_init(&blocks->own) < 0) {
		blocks_free(blocks);
		return error_set(err, ENOMEM, "out of memory");
	}
	if (workers > WORKERS_MAX)
		workers = WORKERS_MAX;
	while (blocks->worker_count < workers && start_worker(blocks) == 0)
		;
	*ret = blocks;
	return 0;
}

static void stop_workers(struct blocks *blocks)
{
	pthread_mutex_lock(&blocks->lock);
	blocks->stop = true;
	pthread_cond_broadcast(&blocks->changed);
	pthread_mutex_unlock(&blocks->lock);
	for (unsigned i = 0; i < blocks->worker_count; i++) {
		pthread_join(blocks->workers[i].thread, NULL);
		packer_done(&blocks->workers[i].packer);
	}
}

void blocks_free(struct blocks *blocks)
{
	if (!blocks)
		return;
	stop_workers(blocks);
	for (unsigned i = 0; i < RING; i++) {
		str_done(&blocks->ring[i].raw);
		str_done(&blocks->ring[i].list);
	}
	packer_done(&blocks->own);
	pthread_mutex_destroy(&blocks->lock);
	pthread_cond_destroy(&blocks->changed);
	free(blocks);
}

/* Queues the block that was being filled, and continues with the next one of the ring when it is
 * free. */
static void close_block(struct blocks *blocks)
{
	struct block *b = block_at(blocks, blocks->filling);

	blocks->section = 0;
	pthread_mutex_lock(&blocks->lock);
	while (blocks->filling - blocks->oldest == RING - 1 && !blocks->cancelled)
		pthread_cond_wait(&blocks->changed, &blocks->lock);
	if (blocks->cancelled) {
		b->raw.len = b->list.len = 0;
	} else {
		b->state = BLOCK_QUEUED;
		blocks->filling++;
		pthread_cond_broadcast(&blocks->changed);
	}
	pthread_mutex_unlock(&blocks->lock);
}

void blocks_add(struct blocks *blocks, const void *data, size_t len)
{
	str_addn(&block_at(blocks, blocks->filling)->raw, data, len);
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
	struct block *b = block_at(blocks, blocks->filling);
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

void blocks_end(struct blocks *blocks)
{
	if (block_at(blocks, blocks->filling)->raw.len)
		close_block(blocks);
	pthread_mutex_lock(&blocks->lock);
	blocks->ended = true;
	pthread_cond_broadcast(&blocks->changed);
	pthread_mutex_unlock(&blocks->lock);
}

void blocks_cancel(struct blocks *blocks)
{
	pthread_mutex_lock(&blocks->lock);
	blocks->cancelled = true;
	pthread_cond_broadcast(&blocks->changed);
	pthread_mutex_unlock(&blocks->lock);
}

/* Waits until the oldest block is done, and helps packing; called with the lock held. False:
 * there are no more blocks. */
static bool wait_for_oldest(struct blocks *blocks)
{
	for (;;) {
		if (blocks->oldest == blocks->filling && blocks->ended)
			return false;
		if (blocks->oldest != blocks->filling &&
		    block_at(blocks, blocks->oldest)->state == BLOCK_DONE)
			return true;
		if (blocks->next != blocks->filling)
			pack_next(blocks, &blocks->own);
		else
			pthread_cond_wait(&blocks->changed, &blocks->lock);
	}
}

void blocks_drain(struct blocks *blocks, FILE *out)
{
	pthread_mutex_lock(&blocks->lock);
	while (wait_for_oldest(blocks)) {
		pthread_mutex_unlock(&blocks->lock);
		block_write(block_at(blocks, blocks->oldest), out);
		pthread_mutex_lock(&blocks->lock);
		blocks->oldest++;
		pthread_cond_broadcast(&blocks->changed);
	}
	pthread_mutex_unlock(&blocks->lock);
}
