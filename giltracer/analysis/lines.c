/* SPDX-License-Identifier: MIT */
#include "analysis/lines.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/functions.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/stacks.h"

#define NONE UINT32_MAX

/* @of: index of a line by id of a frame */
struct walk {
	const struct model *model;
	struct code_lines *lines;
	uint32_t *of;
	size_t *hints;
};

/* The frame whose line is that of this one. */
static uint32_t lines_frame(const struct recording_pass *pass, uint32_t frame)
{
	const struct stacks *frames = functions_frames(pass);

	for (uint32_t id = frame; id; id = stacks_get(frames, id)->parent) {
		struct function f = function_at(pass, id);

		if (*f.file && !function_in_library(f.file))
			return id;
	}
	return frame;
}

/* Gives each line of code an index. */
static void map_frames(struct walk *w, const struct recording_pass *pass, uint32_t n)
{
	const struct stacks *frames = functions_frames(pass);
	struct idmap seen = { 0 };

	w->of = xcalloc(n, sizeof(*w->of));
	w->of[0] = NONE;
	for (uint32_t id = 1; id < n; id++) {
		uint32_t frame = lines_frame(pass, id), found;
		const struct stack_frame *f = stacks_get(frames, frame);
		uint64_t key = (uint64_t)f->module << 32 | f->line;

		if (!f->line) {
			w->of[id] = NONE;
			continue;
		}
		found = idmap_get(&seen, key);
		if (found == IDMAP_NONE) {
			found = (uint32_t)w->lines->v.n;
			idmap_set(&seen, key, found);
			*vec_push(&w->lines->v) = (struct line_times){ .frame = frame };
		}
		w->of[id] = found;
	}
	idmap_done(&seen);
}

static void keep_worst(struct line_times *line, uint32_t thread, const struct span *s, uint64_t end,
                       uint64_t cost_ns)
{
	if (cost_ns <= line->cost_ns)
		return;
	line->thread = thread;
	line->from_ns = s->start_ns;
	line->to_ns = end;
	line->cost_ns = cost_ns;
}

static void add_span(struct walk *w, uint32_t thread, const struct span *s, uint64_t end)
{
	struct line_times *line = &w->lines->v.v[w->of[s->gil.frame]];
	uint64_t ns = end - s->start_ns;

	switch (s->state) {
	case GIL_HOLD:
		line->held_ns += ns;
		if (s->gil.index >= w->model->gils.n)
			return;
		ns = owners_waited(&w->model->gils.v[s->gil.index], &w->hints[s->gil.index],
		                   s->start_ns, end);
		line->caused_ns += ns;
		break;
	case GIL_WAIT:
		line->waited_ns += ns;
		break;
	case GIL_LOCK_WAIT:
		line->lock_ns += ns;
		break;
	default:
		return;
	}
	keep_worst(line, thread, s, end, ns);
}

/* The time is the waiter's, who may not have waited in this line. */
static void add_chain(struct walk *w, const struct chain *chain)
{
	struct line_times *line;

	if (!chain->at || w->of[chain->at] == NONE)
		return;
	line = &w->lines->v.v[w->of[chain->at]];
	line->lock_caused_ns += chain->ns;
	if (chain->longest_ns <= line->cost_ns)
		return;
	line->thread = chain->waiter;
	line->from_ns = chain->longest_at_ns;
	line->to_ns = chain->longest_at_ns + chain->longest_ns;
	line->cost_ns = chain->longest_ns;
}

static uint64_t costs(const struct line_times *line)
{
	return line->caused_ns + line->waited_ns + line->lock_ns + line->lock_caused_ns;
}

static int compare(const void *va, const void *vb)
{
	const struct line_times *a = va, *b = vb;
	uint64_t x = costs(a), y = costs(b);

	return x != y ? (x < y ? 1 : -1) : (a->frame > b->frame) - (a->frame < b->frame);
}

struct code_lines lines_find(const struct recording_pass *pass, const struct chains *chains)
{
	const struct stacks *frames = functions_frames(pass);
	const struct model *m = pass->model;
	struct code_lines ret = { 0 };
	struct walk w = { .model = m, .lines = &ret };
	uint32_t n = frames ? stacks_count(frames) : 0;

	if (n < 2)
		return ret;
	w.hints = xcalloc(m->gils.n + 1, sizeof(*w.hints));
	map_frames(&w, pass, n);
	for (uint32_t t = 0; t < m->threads.n; t++) {
		const struct lane *lane = &m->threads.v[t].gil;

		memset(w.hints, 0, m->gils.n * sizeof(*w.hints));
		for (size_t i = 0; i < lane->spans.n; i++)
			if (lane->spans.v[i].state > GIL_NO &&
			    w.of[lane->spans.v[i].gil.frame] != NONE)
				add_span(&w, t, &lane->spans.v[i], lane_span_end(lane, i));
	}
	for (size_t i = 0; i < chains->v.n; i++)
		add_chain(&w, &chains->v.v[i]);
	vec_sort(&ret.v, compare);
	while (ret.v.n && !costs(&ret.v.v[ret.v.n - 1]))
		ret.v.n--;
	while (ret.v.n > LINES_MAX) {
		ret.v.n--;
		ret.left++;
	}
	free(w.hints);
	free(w.of);
	return ret;
}
