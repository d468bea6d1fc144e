/* SPDX-License-Identifier: MIT */
/* speedscope's file format (file-format-schema.json): one evented profile per thread, and
 * another one for its samples. */
#include "export/export.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "export/walk.h"

/* @sampled: its frames follow those of the stacks */
struct speedscope {
	struct jsonw w;
	const struct analysis *a;
	struct sampled_frames sampled;
};

/* Frees place. */
static void put_frame(struct speedscope *s, struct place *place)
{
	jsonw_object(&s->w, NULL);
	jsonw_string(&s->w, "name", place->name);
	if (*place->file)
		jsonw_string(&s->w, "file", place->file);
	if (place->line)
		jsonw_u64(&s->w, "line", place->line);
	jsonw_end(&s->w);
	place_done(place);
}

static void put_frames(struct speedscope *s)
{
	uint32_t n = stacked_frames(s->a);
	struct place place;

	jsonw_object(&s->w, "shared");
	jsonw_array(&s->w, "frames");
	for (uint32_t i = 0; i < n; i++) {
		stacked_place(&place, s->a, i);
		put_frame(s, &place);
	}
	for (uint32_t i = 0; i < s->sampled.v.n; i++) {
		sampled_frames_place(&place, &s->sampled, i);
		put_frame(s, &place);
	}
	jsonw_end(&s->w);
	jsonw_end(&s->w);
}

/* Written without jsonw's checks, because there are millions of events. */
static void put_event(struct speedscope *s, char type, uint64_t at_ns, uint32_t frame)
{
	struct outbuf *out = jsonw_value(&s->w);

	outbuf_adds(out, "{\"type\":\"");
	outbuf_addc(out, type);
	outbuf_adds(out, "\",\"at\":");
	outbuf_add_u64(out, at_ns - s->a->model->start_ns);
	outbuf_adds(out, ",\"frame\":");
	outbuf_add_u64(out, frame);
	outbuf_addc(out, '}');
}

static void put_begin(void *data, uint64_t at_ns, uint32_t frame)
{
	put_event(data, 'O', at_ns, frame);
}

static void put_end(void *data, uint64_t at_ns, uint32_t frame)
{
	put_event(data, 'C', at_ns, frame);
}

static void put_thread(struct speedscope *s, uint32_t thread)
{
	static const struct stacked_ops ops = { put_begin, put_end };
	const struct model *model = s->a->model;

	jsonw_object(&s->w, NULL);
	jsonw_string(&s->w, "type", "evented");
	jsonw_string(&s->w, "name", facts_thread_name(s->a->pass, thread));
	jsonw_string(&s->w, "unit", "nanoseconds");
	jsonw_u64(&s->w, "startValue", 0);
	jsonw_u64(&s->w, "endValue", model->end_ns - model->start_ns);
	jsonw_array(&s->w, "events");
	stacked_thread(s->a, thread, &ops, s);
	jsonw_end(&s->w);
	jsonw_end(&s->w);
}

/* For each run of equal samples, its stack or its number of samples. */
static void put_runs(struct speedscope *s, const struct sample_thread *thread, bool weights)
{
	uint32_t chain[SAMPLED_CHAIN_MAX], from = stacked_frames(s->a);

	jsonw_array(&s->w, weights ? "weights" : "samples");
	for (size_t i = 0; i < thread->runs.n; i++) {
		const struct sample_run *run = &thread->runs.v[i];
		uint32_t times = sample_run_end(s->sampled.samples, thread, i) - run->sample, n;

		if (!times || run->flags & SAMPLE_GONE)
			continue;
		if (weights) {
			jsonw_u64(&s->w, NULL, times);
			continue;
		}
		n = sampled_frames_chain(chain, &s->sampled, run);
		jsonw_array(&s->w, NULL);
		for (uint32_t j = 0; j < n; j++)
			jsonw_u64(&s->w, NULL, from + chain[j]);
		jsonw_end(&s->w);
	}
	jsonw_end(&s->w);
}

/* A profile in numbers of samples instead of times. */
static void put_sampled(struct speedscope *s, const struct sampled_thread *sampled)
{
	const struct sample_thread *thread = &s->sampled.samples->threads.v[sampled->of];
	CLEANUP(free) char *name = sampled_frames_thread(s->a->pass, thread);
	CLEANUP(str_done) struct str text = { 0 };

	str_addf(&text, "%s (samples)", name);
	jsonw_object(&s->w, NULL);
	jsonw_string(&s->w, "type", "sampled");
	jsonw_string(&s->w, "name", str_get(&text));
	jsonw_string(&s->w, "unit", "none");
	jsonw_u64(&s->w, "startValue", 0);
	jsonw_u64(&s->w, "endValue", sampled->samples);
	put_runs(s, thread, false);
	put_runs(s, thread, true);
	jsonw_end(&s->w);
}

/* Threads that waited most are first, because speedscope opens the first profile. */
int export_speedscope(const struct analysis *a, FILE *out, struct error *err)
{
	struct speedscope s = { .a = a };

	(void)err;
	jsonw_init(&s.w, out, 0);
	jsonw_object(&s.w, NULL);
	jsonw_string(&s.w, "$schema", "https://www.speedscope.app/file-format-schema.json");
	sampled_frames_init(&s.sampled, a->pass->samples);
	jsonw_string(&s.w, "exporter", "giltracer " PACKAGE_VERSION);
	put_frames(&s);
	jsonw_array(&s.w, "profiles");
	for (size_t i = 0; stacked_any(a) && i < a->model->threads.n; i++)
		put_thread(&s, a->thread_order[i]);
	for (size_t i = 0; i < a->sampled.threads.n; i++)
		put_sampled(&s, &a->sampled.threads.v[i]);
	jsonw_end(&s.w);
	jsonw_end(&s.w);
	jsonw_finish(&s.w);
	sampled_frames_done(&s.sampled);
	return 0;
}
