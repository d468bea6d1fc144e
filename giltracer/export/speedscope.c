/* SPDX-License-Identifier: MIT */
/* speedscope's file format (file-format-schema.json): one evented profile per thread. */
#include "export/export.h"
#include "export/stacked.h"
#include "report/jsonw.h"

struct speedscope {
	struct jsonw w;
	const struct analysis *a;
};

static void put_frames(struct speedscope *s)
{
	uint32_t n = stacked_frames(s->a);

	jsonw_object(&s->w, "shared");
	jsonw_array(&s->w, "frames");
	for (uint32_t i = 0; i < n; i++) {
		struct place place;

		stacked_place(&place, s->a, i);
		jsonw_object(&s->w, NULL);
		jsonw_string(&s->w, "name", place.name);
		if (*place.file)
			jsonw_string(&s->w, "file", place.file);
		if (place.line)
			jsonw_u64(&s->w, "line", place.line);
		jsonw_end(&s->w);
		place_done(&place);
	}
	jsonw_end(&s->w);
	jsonw_end(&s->w);
}

static void put_event(struct speedscope *s, const char *type, uint64_t at_ns, uint32_t frame)
{
	jsonw_object(&s->w, NULL);
	jsonw_string(&s->w, "type", type);
	jsonw_u64(&s->w, "at", at_ns - s->a->model->start_ns);
	jsonw_u64(&s->w, "frame", frame);
	jsonw_end(&s->w);
}

static void put_begin(void *data, uint64_t at_ns, uint32_t frame)
{
	put_event(data, "O", at_ns, frame);
}

static void put_end(void *data, uint64_t at_ns, uint32_t frame)
{
	put_event(data, "C", at_ns, frame);
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

/* Threads that waited most come first: speedscope opens the first profile. */
int export_speedscope(const struct analysis *a, FILE *out, struct error *err)
{
	struct speedscope s = { .a = a };

	(void)err;
	jsonw_init(&s.w, out, 0);
	jsonw_object(&s.w, NULL);
	jsonw_string(&s.w, "$schema", "https://www.speedscope.app/file-format-schema.json");
	jsonw_string(&s.w, "exporter", "giltracer " PACKAGE_VERSION);
	put_frames(&s);
	jsonw_array(&s.w, "profiles");
	for (size_t i = 0; i < a->model->threads.n; i++)
		put_thread(&s, a->thread_order[i]);
	jsonw_end(&s.w);
	jsonw_end(&s.w);
	jsonw_finish(&s.w);
	return 0;
}
