/* SPDX-License-Identifier: MIT */
/* A coarse picture of the GIL lanes, for the first paint of the page. */
#include <stdlib.h>

#include "analysis/gil_parts.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "report/html/blocks.h"
#include "report/html/meta.h"

#define THREADS 64
#define FULL    63

/* Rounds the shares of one part to 63rds, whose sum is at most 63. */
static void round_part(const struct gil_parts *parts, unsigned part, unsigned ret[PART_STATES])
{
	unsigned sum = 0, largest = 0;

	for (unsigned s = 0; s < PART_STATES; s++) {
		uint64_t ns = parts->ns[s][part];

		ret[s] = (unsigned)((ns * FULL + parts->width_ns / 2) / parts->width_ns);
		if (ns && !ret[s])
			ret[s] = 1;
		sum += ret[s];
		if (ret[s] > ret[largest])
			largest = s;
	}
	if (sum > FULL)
		ret[largest] -= sum - FULL;
}

static void put_thread(struct jsonw *w, const struct gil_parts *parts, uint32_t thread)
{
	static const char *const names[PART_STATES] = { "hold", "wait", "free_wait", "no" };
	char text[PART_STATES][GIL_PARTS + 1] = { 0 };
	unsigned shares[PART_STATES];

	for (unsigned i = 0; i < GIL_PARTS; i++) {
		round_part(parts, i, shares);
		for (unsigned s = 0; s < PART_STATES; s++)
			text[s][i] = base64_alphabet[shares[s]];
	}
	jsonw_object(w, NULL);
	jsonw_u64(w, "thread", thread);
	for (unsigned s = 0; s < PART_STATES; s++)
		jsonw_string(w, names[s], text[s]);
	jsonw_end(w);
}

void overview_write(const struct analysis *a, FILE *out)
{
	CLEANUP(free) struct gil_parts *parts = xcalloc(1, sizeof(*parts));
	struct jsonw w;

	jsonw_init(&w, out, 0);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "pass", (uint64_t)(a->pass - a->recording->passes));
	jsonw_u64(&w, "buckets", GIL_PARTS);
	jsonw_array(&w, "threads");
	for (size_t i = 0; i < a->model->threads.n && i < THREADS; i++) {
		gil_parts_init(parts, a->model, a->thread_order[i], a->locks);
		put_thread(&w, parts, a->thread_order[i]);
	}
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_finish(&w);
}
