/* SPDX-License-Identifier: MIT */
#include "report/patterns.h"

#include "base/cleanup.h"
#include "model/patterns.h"
#include "report/utf8.h"

static size_t count(const struct report_pass *pass)
{
	return pass->patterns ? pass->patterns->v.n : 0;
}

static void put_thread(struct jsonw *w, const char *key, const struct model *m, uint32_t thread)
{
	if (thread == MODEL_NONE)
		jsonw_null(w, key);
	else
		jsonw_u64(w, key, m->threads.v[thread].tid);
}

void patterns_json(struct jsonw *w, const struct report_pass *pass)
{
	jsonw_array(w, "patterns");
	for (size_t i = 0; i < count(pass); i++) {
		const struct pattern *p = &pass->patterns->v.v[i];
		CLEANUP(str_done) struct str text = { 0 };

		pattern_text(pass->model, p, &text);
		jsonw_object(w, NULL);
		jsonw_string(w, "code", pattern_name(p->kind));
		jsonw_string(w, "title", pattern_title(p->kind));
		put_thread(w, "tid", pass->model, p->thread);
		put_thread(w, "other_tid", pass->model, p->other);
		jsonw_u64(w, "count", p->count);
		jsonw_u64(w, "ns", p->ns);
		jsonw_u64(w, "longest_ns", p->longest_ns);
		jsonw_string(w, "function", p->function);
		jsonw_string(w, "text", str_get(&text));
		jsonw_string(w, "advice", pattern_advice(p->kind));
		jsonw_end(w);
	}
	jsonw_end(w);
}

void patterns_text(const struct report_pass *pass, FILE *out)
{
	for (size_t i = 0; i < count(pass); i++) {
		const struct pattern *p = &pass->patterns->v.v[i];
		CLEANUP(str_done) struct str text = { 0 }, safe = { 0 };

		pattern_text(pass->model, p, &text);
		utf8_add_safe(&safe, str_get(&text), 1000);
		fprintf(out, "\n  %s: %s\n  %s\n", pattern_title(p->kind), str_get(&safe),
		        pattern_advice(p->kind));
	}
}
