/* SPDX-License-Identifier: MIT */
/* The page of two recordings: what changed, in words, as two strips on one scale, and in tables. */
#include "report/html/html.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/locks.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/span.h"
#include "report/diff_write.h"
#include "report/findings.h"
#include "report/html/meta.h"
#include "report/phrases.h"
#include "report/words.h"

/* Findings. */

/* The title without numbers of lines, which a change of the program moves. */
static void add_key(struct str *out, const char *title)
{
	for (const char *c = title; *c; c++) {
		str_addc(out, *c);
		if (*c == ':')
			while (isdigit((unsigned char)c[1]))
				c++;
	}
}

static const struct finding *find_titled(const struct analysis *in, const char *title)
{
	for (size_t i = 0; i < in->findings.v.n; i++) {
		CLEANUP(str_done) struct str other = { 0 };

		finding_add_full_title(&other, in, &in->findings.v.v[i]);
		if (!strcmp(str_get(&other), title))
			return &in->findings.v.v[i];
	}
	return NULL;
}

/* The finding with the same title or, if there is none, one in another line that a does not have. */
static const struct finding *find_same(const struct analysis *in, const struct analysis *a,
                                       const struct finding *f)
{
	CLEANUP(str_done) struct str title = { 0 }, key = { 0 };
	const struct finding *same;

	finding_add_full_title(&title, a, f);
	same = find_titled(in, str_get(&title));
	add_key(&key, str_get(&title));
	for (size_t i = 0; !same && i < in->findings.v.n; i++) {
		CLEANUP(str_done) struct str other = { 0 }, other_key = { 0 };

		finding_add_full_title(&other, in, &in->findings.v.v[i]);
		add_key(&other_key, str_get(&other));
		if (!strcmp(str_get(&other_key), str_get(&key)) && !find_titled(a, str_get(&other)))
			same = &in->findings.v.v[i];
	}
	return same;
}

static void put_text(const struct str *text, const char *kind, FILE *out)
{
	if (!text->len)
		return;
	fprintf(out, "<p class=\"%s\">", kind);
	html_text(str_get(text), out);
	fputs("</p>", out);
}

/* The costs, and those of the same finding in the other recording. */
static void put_costs(const struct finding *f, const struct finding *before, FILE *out)
{
	CLEANUP(str_done) struct str cost = { 0 }, old = { 0 }, text = { 0 };

	finding_add_cost(&cost, f);
	if (before) {
		finding_add_cost(&old, before);
		say_d_cost(&text, str_get(&cost), str_get(&old));
	} else {
		say_d_cost_new(&text, str_get(&cost));
	}
	put_text(&text, "cost", out);
}

static void put_finding(const struct change *c, const struct finding *f, FILE *out)
{
	CLEANUP(str_done) struct str title = { 0 }, text = { 0 };

	finding_add_title(&title, c->b, f);
	finding_add_text(&text, c->b, f);
	fprintf(out, "<li data-kind=\"%s\"><h3>", finding_kind_name(f->kind));
	html_text(str_get(&title), out);
	fputs("</h3>", out);
	put_costs(f, find_same(c->a, c->b, f), out);
	put_text(&text, "text", out);
	fputs("</li>\n", out);
}

/* Those of B in their order, which are in the page's document, too, then those of A that are gone. */
static void put_findings(const struct change *c, FILE *out)
{
	if (!c->a->findings.v.n && !c->b->findings.v.n)
		return;
	fputs("<ol class=\"findings\">\n", out);
	for (size_t i = 0; i < c->b->findings.v.n; i++)
		put_finding(c, &c->b->findings.v.v[i], out);
	for (size_t i = 0; i < c->a->findings.v.n; i++) {
		const struct finding *f = &c->a->findings.v.v[i];
		CLEANUP(str_done) struct str title = { 0 }, cost = { 0 }, text = { 0 };

		if (find_same(c->b, c->a, f))
			continue;
		finding_add_title(&title, c->a, f);
		finding_add_cost(&cost, f);
		say_d_gone(&text, str_get(&cost));
		fputs("<li class=\"gone\"><h3>", out);
		html_text(str_get(&title), out);
		fputs("</h3>", out);
		put_text(&text, "cost", out);
		fputs("</li>\n", out);
	}
	fputs("</ol>\n", out);
}

/* Two strips. */

#define COLOURS 6  /* groups of threads that have one */
#define HEIGHT  60 /* of the holders, in a view of GIL_PARTS columns */
#define BELOW   24 /* of the number of waiters */

/* @ns: held in both recordings */
struct colour {
	char *name;
	uint64_t ns;
};

struct colours {
	VEC(struct colour) v;
};

/* COLOURS: it has none of its own. */
static size_t colour_of(const struct colours *colours, const char *name)
{
	for (size_t i = 0; i < colours->v.n && i < COLOURS; i++)
		if (!strcmp(colours->v.v[i].name, name))
			return i;
	return COLOURS;
}

static void add_colours(struct colours *colours, const struct analysis *a)
{
	for (size_t i = 0; i < a->groups.v.n; i++)
		*vec_push(&colours->v) = (struct colour){
			.name = xstrdup(str_get(&a->groups.v.v[i].name)),
			.ns = a->groups.v.v[i].sum.gil_ns[a->locks ? GIL_STOPPING : GIL_HOLD],
		};
}

static int by_name(const void *va, const void *vb)
{
	const struct colour *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

/* A group of both recordings has one colour. */
static void merge_colours(struct colours *colours)
{
	size_t n = 0;

	vec_sort(&colours->v, by_name);
	for (size_t i = 0; i < colours->v.n; i++) {
		struct colour *c = &colours->v.v[i];

		if (n && !strcmp(colours->v.v[n - 1].name, c->name)) {
			colours->v.v[n - 1].ns += c->ns;
			free(c->name);
		} else {
			colours->v.v[n++] = *c;
		}
	}
	colours->v.n = n;
}

static int most_first(const void *va, const void *vb)
{
	const struct colour *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

/* By column: @held: the share of its time, by colour, the last for all other threads; @waiters: their mean
 * number, the largest of which is @most */
struct strip {
	double held[COLOURS + 1][GIL_PARTS], waiters[GIL_PARTS], most;
};

static void strip_init(struct strip *s, const struct analysis *a, const struct colours *colours)
{
	CLEANUP(free) struct gil_parts *parts = xcalloc(1, sizeof(*parts));

	memset(s, 0, sizeof(*s));
	for (uint32_t t = 0; t < a->model->threads.n; t++) {
		size_t colour = colour_of(colours, str_get(&a->groups.v.v[a->groups.of[t]].name));

		gil_parts_init(parts, a->model, t, a->locks);
		for (unsigned i = 0; i < GIL_PARTS; i++) {
			double width = (double)parts->width_ns;

			s->held[colour][i] += (double)parts->ns[PART_HOLD][i] / width;
			s->waiters[i] += (double)parts->ns[PART_WAIT][i] / width;
		}
	}
	for (unsigned i = 0; i < GIL_PARTS; i++)
		s->most = s->waiters[i] > s->most ? s->waiters[i] : s->most;
}

/* A filled area: from its lower edge below[] up by heights[], which is added to below. down: the other way */
static void put_area(const double *heights, double *below, double scale, bool down, FILE *out)
{
	int last = 0;

	fprintf(out, "M0 %d", down ? 0 : HEIGHT);
	for (unsigned i = 0; i < GIL_PARTS; i++) {
		int edge;

		below[i] += heights[i] * scale;
		edge = (int)(below[i] + 0.5);
		edge = down ? edge : HEIGHT - (edge < HEIGHT ? edge : HEIGHT);
		if (!i || edge != last)
			fprintf(out, "H%uV%d", i, edge);
		last = edge;
	}
	fprintf(out, "H%uV%dz", GIL_PARTS, down ? 0 : HEIGHT);
}

static void put_strip(const struct strip *s, const struct analysis *a, double most,
                      uint64_t longest_ns, const char *name, FILE *out)
{
	static const double none[GIL_PARTS];
	size_t gils = a->model->gils.n ? a->model->gils.n : 1;
	double tops[COLOURS + 1][GIL_PARTS], at[GIL_PARTS] = { 0 }, below[GIL_PARTS] = { 0 };

	fprintf(out,
	        "<svg class=\"strip-of\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
	        "role=\"img\" aria-label=\"%s\"><g transform=\"scale(%.5f 1)\">",
	        GIL_PARTS, HEIGHT + BELOW, name,
	        longest_ns ? (double)(a->model->end_ns - a->model->start_ns) / (double)longest_ns
	                   : 1);
	for (unsigned c = 0; c <= COLOURS; c++)
		for (unsigned i = 0; i < GIL_PARTS; i++)
			tops[c][i] = at[i] += s->held[c][i] * HEIGHT / (double)gils;
	for (unsigned c = COLOURS + 1; c-- > 0;) { /* the lower ones cover the higher ones */
		fprintf(out, "<path class=\"c%u\" d=\"", c);
		put_area(none, tops[c], 1, false, out);
		fputs("\"/>", out);
	}
	fprintf(out, "<path class=\"waiters\" transform=\"translate(0 %d)\" d=\"", HEIGHT + 2);
	put_area(s->waiters, below, most > 0 ? (BELOW - 2) / most : 0, true, out);
	fputs("\"/></g></svg>\n", out);
}

static void put_strips(const struct change *c, FILE *out)
{
	const struct analysis *of[2] = { c->a, c->b };
	CLEANUP(free) struct strip *strips = xcalloc(2, sizeof(*strips));
	struct colours colours = { 0 };
	uint64_t longest_ns = 0;
	double most;

	for (unsigned i = 0; i < 2; i++)
		add_colours(&colours, of[i]);
	merge_colours(&colours);
	vec_sort(&colours.v, most_first);
	for (unsigned i = 0; i < 2; i++) {
		strip_init(&strips[i], of[i], &colours);
		longest_ns = later(longest_ns, of[i]->model->end_ns - of[i]->model->start_ns);
	}
	most = strips[0].most > strips[1].most ? strips[0].most : strips[1].most;
	fprintf(out, "<figure class=\"strips\"><figcaption>%s</figcaption>\n",
	        phrase(PHRASE_d_strips));
	for (unsigned i = 0; i < 2; i++) {
		CLEANUP(str_done) struct str text = { 0 };
		const char *name = phrase(i ? PHRASE_d_b : PHRASE_d_a);

		(i ? say_d_strip_b : say_d_strip_a)(&text,
		                                    of[i]->model->end_ns - of[i]->model->start_ns);
		put_text(&text, "strip-name", out);
		put_strip(&strips[i], of[i], most, longest_ns, name, out);
	}
	fputs("<p class=\"strip-key\">", out);
	for (size_t i = 0; i <= COLOURS && i < colours.v.n && colours.v.v[i].ns; i++) {
		fprintf(out, "<span><i class=\"c%zu\"></i> ", i);
		html_text(i < COLOURS ? colours.v.v[i].name : phrase(PHRASE_d_other_threads), out);
		fputs("</span> ", out);
	}
	fputs("</p></figure>\n", out);
	for (size_t i = 0; i < colours.v.n; i++)
		free(colours.v.v[i].name);
	vec_done(&colours.v);
}

void change_verdict(const struct change *c, FILE *out)
{
	static const char *const kinds[] = {
		[DIFF_SAME] = "same", [DIFF_FELL] = "fell", [DIFF_ROSE] = "rose"
	};
	CLEANUP(str_done) struct str headline = { 0 }, caveat = { 0 }, shown = { 0 };

	diff_add_headline(&headline, c->diff);
	diff_add_caveat(&caveat, c->diff);
	say_d_shown(&shown, c->a_path, c->b_path);
	fprintf(out, "<h1 class=\"headline\" data-kind=\"%s\">", kinds[c->diff->verdict]);
	html_text(str_get(&headline), out);
	fputs("</h1>\n", out);
	put_text(&caveat, "context", out);
	put_text(&shown, "context", out);
	put_strips(c, out);
	put_findings(c, out);
}

void change_tables(const struct change *c, FILE *out)
{
	for (enum diff_table i = 0; i < DIFF_TABLES; i++) {
		struct table table;

		diff_table(&table, c->diff, i, false);
		html_table(&table, true, out);
	}
}
