/* SPDX-License-Identifier: MIT */
#include "report/patterns.h"

#include "analysis/functions.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/json.h"
#include "report/pattern_text.h"
#include "report/terminal.h"

static size_t count(const struct recording_pass *pass)
{
	return pass->patterns ? pass->patterns->v.n : 0;
}

/* Not every call that keeps the GIL is one that could release it. */
static const char *advice(const struct recording_pass *pass, const struct pattern *p)
{
	static const enum phrase causes[CAUSES] = {
		[CAUSE_CALL] = PHRASE_hog_advice,
		[CAUSE_COLLECTOR] = PHRASE_advise_collector,
		[CAUSE_IMPORT] = PHRASE_advise_import,
		[CAUSE_DEALLOCATION] = PHRASE_advise_deallocation,
	};

	return p->kind == PATTERN_HOG ? phrase(causes[functions_cause(pass, p->thread)])
	                              : pattern_advice(p->kind);
}

void patterns_json(struct jsonw *w, const struct recording_pass *pass)
{
	jsonw_array(w, "patterns");
	for (size_t i = 0; i < count(pass); i++) {
		const struct pattern *p = &pass->patterns->v.v[i];
		CLEANUP(str_done) struct str text = { 0 };

		pattern_text(pass->model, p, &text);
		jsonw_object(w, NULL);
		jsonw_string(w, "code", pattern_name(p->kind));
		jsonw_string(w, "title", pattern_title(p->kind));
		json_tid(w, "tid", pass->model, p->thread);
		json_tid(w, "other_tid", pass->model, p->other);
		jsonw_u64(w, "count", p->count);
		jsonw_u64(w, "ns", p->ns);
		jsonw_u64(w, "longest_ns", p->longest_ns);
		jsonw_string(w, "function", p->function);
		jsonw_string(w, "text", str_get(&text));
		jsonw_string(w, "advice", advice(pass, p));
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* The number of further patterns of the same kind, which cost less. */
static size_t count_alike(const struct recording_pass *pass, size_t at)
{
	size_t n = 0;

	for (size_t i = at + 1; i < count(pass); i++)
		n += pass->patterns->v.v[i].kind == pass->patterns->v.v[at].kind;
	return n;
}

static bool is_first(const struct recording_pass *pass, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (pass->patterns->v.v[i].kind == pass->patterns->v.v[at].kind)
			return false;
	return true;
}

void patterns_text(const struct recording_pass *pass, FILE *out)
{
	for (size_t i = 0; i < count(pass); i++) {
		const struct pattern *p = &pass->patterns->v.v[i];
		CLEANUP(str_done) struct str text = { 0 }, safe = { 0 };
		size_t alike = count_alike(pass, i);

		if (p->kind == PATTERN_HOG || !is_first(pass, i))
			continue;
		pattern_text(pass->model, p, &text);
		utf8_add_safe(&safe, str_get(&text), 1000);
		if (alike)
			say_more_alike(&safe, alike);
		putc('\n', out);
		terminal_putf(out, "%s: %s", pattern_title(p->kind), str_get(&safe));
		terminal_putf(out, "%s", advice(pass, p));
	}
}
