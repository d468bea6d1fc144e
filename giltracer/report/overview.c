/* SPDX-License-Identifier: MIT */
/* A coarse picture of the GIL lanes, for the page's first paint. */
#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"
#include "base/cleanup.h"
#include "model/span.h"
#include "report/base64.h"
#include "report/jsonw.h"
#include "report/meta.h"

#define BUCKETS 512
#define THREADS 64
#define FULL    63

enum kind { KIND_HOLD, KIND_WAIT, KIND_FREE_WAIT, KIND_NO, KINDS };

static const int8_t kind_of[GIL_STATES] = {
	[GIL_UNKNOWN] = -1,
	[GIL_NO] = KIND_NO,
	[GIL_HOLD] = KIND_HOLD,
	[GIL_WAIT] = KIND_WAIT,
	[GIL_SWITCH_WAIT] = KIND_WAIT,
	[GIL_FREE_WAIT] = KIND_FREE_WAIT,
	[GIL_LOCK_WAIT] = KIND_WAIT,
	[GIL_STOPPED] = KIND_WAIT,
	[GIL_STOPPING] = KIND_HOLD,
};

/*
 * Buckets of width ns from start_ns on; the last one may end later than the recording.
 * @at: where the span before was, @limit_ns: where that ends
 */
struct buckets {
	uint64_t start_ns, width;
	uint64_t at, limit_ns;
	uint64_t ns[KINDS][BUCKETS];
};

static void seek(struct buckets *b, uint64_t time_ns)
{
	b->at = (time_ns - b->start_ns) / b->width;
	b->limit_ns = b->start_ns + (b->at + 1) * b->width;
}

/* Spans come by time; nearly all are within one bucket. */
static void add(struct buckets *b, enum kind kind, uint64_t from, uint64_t to)
{
	if (from >= b->limit_ns)
		seek(b, from);
	while (from < to && b->at < BUCKETS) {
		uint64_t end = to < b->limit_ns ? to : b->limit_ns;

		b->ns[kind][b->at] += end - from;
		from = end;
		if (from == b->limit_ns)
			seek(b, from);
	}
}

static void add_lane(struct buckets *b, const struct lane *lane)
{
	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		uint64_t end = lane_span_end(lane, i);

		if (kind_of[span->state] >= 0)
			add(b, (enum kind)kind_of[span->state], span->start_ns, end);
	}
}

/* Shares of one bucket in 63rds, which add up to at most 63. */
static void round_bucket(const struct buckets *b, unsigned bucket, unsigned ret[KINDS])
{
	unsigned sum = 0, largest = 0;

	for (unsigned k = 0; k < KINDS; k++) {
		ret[k] = (unsigned)((b->ns[k][bucket] * FULL + b->width / 2) / b->width);
		if (b->ns[k][bucket] && !ret[k])
			ret[k] = 1;
		sum += ret[k];
		if (ret[k] > ret[largest])
			largest = k;
	}
	if (sum > FULL)
		ret[largest] -= sum - FULL;
}

static void put_thread(struct jsonw *w, const struct buckets *b, uint32_t thread)
{
	static const char *const names[KINDS] = { "hold", "wait", "free_wait", "no" };
	char text[KINDS][BUCKETS + 1] = { 0 };
	unsigned shares[KINDS];

	for (unsigned i = 0; i < BUCKETS; i++) {
		round_bucket(b, i, shares);
		for (unsigned k = 0; k < KINDS; k++)
			text[k][i] = base64_alphabet[shares[k]];
	}
	jsonw_object(w, NULL);
	jsonw_u64(w, "thread", thread);
	for (unsigned k = 0; k < KINDS; k++)
		jsonw_string(w, names[k], text[k]);
	jsonw_end(w);
}

void overview_write(const struct analysis *a, FILE *out)
{
	const struct model *model = a->model;
	CLEANUP(free) struct buckets *b = xcalloc(1, sizeof(*b));
	uint64_t dur = model->end_ns - model->start_ns;
	struct jsonw w;

	b->start_ns = model->start_ns;
	b->width = dur / BUCKETS + (dur % BUCKETS != 0);
	if (!b->width)
		b->width = 1;
	jsonw_init(&w, out, 0);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "pass", (uint64_t)(a->pass - a->recording->passes));
	jsonw_u64(&w, "buckets", BUCKETS);
	jsonw_array(&w, "threads");
	for (size_t i = 0; i < model->threads.n && i < THREADS; i++) {
		memset(b->ns, 0, sizeof(b->ns));
		b->limit_ns = 0;
		add_lane(b, &model->threads.v[a->thread_order[i]].gil);
		put_thread(&w, b, a->thread_order[i]);
	}
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_finish(&w);
}
