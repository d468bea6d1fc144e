/* SPDX-License-Identifier: MIT */
/* The self-contained page: fills share/report/page.html as documented in share/report/FORMAT.md. */
#include "report/html/html.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/facts.h"
#include "base/cleanup.h"
#include "base/datadir.h"
#include "base/str.h"
#include "base/utf8.h"
#include "report/findings.h"
#include "report/html/encode.h"
#include "report/html/meta.h"
#include "report/html/template.h"
#include "report/json.h"
#include "report/phrases.h"
#include "report/report.h"
#include "report/tables.h"
#include "report/words.h"
#include "trace/source.h"

void html_text(const char *text, FILE *out)
{
	CLEANUP(str_done) struct str clean = { 0 };
	uint32_t cp;

	while ((cp = utf8_next(&text))) {
		switch (cp) {
		case '&':
			str_adds(&clean, "&amp;");
			break;
		case '<':
			str_adds(&clean, "&lt;");
			break;
		case '>':
			str_adds(&clean, "&gt;");
			break;
		case '"':
			str_adds(&clean, "&quot;");
			break;
		case '\'':
			str_adds(&clean, "&#39;");
			break;
		default:
			utf8_add(&clean, utf8_is_unsafe(cp) ? UTF8_BAD : cp);
		}
	}
	fputs(str_get(&clean), out);
}

/* The terminal's tables as HTML, with more rows. */

#define NAME_COLUMNS 80
#define OWN_ROWS     20

static void put_headings(const struct table *table, FILE *out)
{
	fputs("<table>\n<caption>", out);
	html_text(phrase(table->caption), out);
	fputs("</caption>\n<thead><tr>", out);
	for (unsigned c = 0; c < table->columns; c++) {
		fputs("<th scope=\"col\">", out);
		html_text(phrase(table->headings[c]), out);
		fputs("</th>", out);
	}
	fputs("</tr></thead>\n<tbody>\n", out);
}

/* The cells of the first column are row headings. */
static void put_row(const struct table *table, const struct row *row, FILE *out)
{
	fputs("<tr>", out);
	for (unsigned c = 0; c < table->columns; c++) {
		const struct cell *cell = &row->cells[c];

		fputs(c ? "<td>" : "<th scope=\"row\">", out);
		if (cell->number)
			fprintf(out, "%.*f", cell->decimals, cell->value);
		else
			html_text(str_get(&cell->text), out);
		fputs(c ? "</td>" : "</th>", out);
	}
	fputs("</tr>\n", out);
}

static void put_note(const char *text, FILE *out)
{
	fputs("<p>", out);
	html_text(text, out);
	fputs("</p>\n", out);
}

void html_table(struct table *table, bool own, FILE *out)
{
	CLEANUP(str_done) struct str left = { 0 };

	if (table->rows.n) {
		fputs(own ? "<div class=\"own\">\n" : "", out);
		put_headings(table, out);
		for (size_t r = 0; r < table->rows.n; r++)
			put_row(table, &table->rows.v[r], out);
		fputs("</tbody>\n</table>\n", out);
		if (table->left) {
			table->say_left(&left, table->left, table->left_ns);
			put_note(str_get(&left), out);
		}
		for (size_t i = 0; i < table->notes.n; i++)
			put_note(str_get(&table->notes.v[i]), out);
		fputs(own ? "</div>\n" : "", out);
	}
	table_done(table);
}

void html_tables(const struct analysis *a, FILE *out)
{
	static const struct {
		void (*make)(struct table *, const struct analysis *, const struct table_limits *);
		bool own;
	} tables[] = {
		{ table_threads, false },        { table_path, true },
		{ table_chains, true },          { table_states, false },
		{ table_lock_waits, false },     { table_places, false },
		{ table_late, false },           { table_gil_waits, false },
		{ table_cpu_waits, false },      { table_overdue, false },
		{ table_holders, false },        { table_sampled_threads, false },
		{ table_sampled_places, false }, { table_tasks, false },
		{ table_without_gil, true },
	};
	const struct table_limits limits = {
		.threads = HTML_ROWS,
		.waits = HTML_ROWS,
		.functions = HTML_ROWS,
		.name_columns = NAME_COLUMNS,
		.all = true,
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct table_limits of = limits;
		struct table table;

		if (tables[i].own)
			of.waits = OWN_ROWS;
		tables[i].make(&table, a, &of);
		html_table(&table, tables[i].own, out);
	}
}

/* The page. */

/* @change: NULL: of one recording */
struct page {
	const struct analysis *analysis;
	const struct change *change;
	const struct rows *rows;
	struct payload *payload;
};

static void put_title(const struct recording *recording, FILE *out)
{
	for (size_t i = 0; recording->command && recording->command[i]; i++) {
		html_text(recording->command[i], out);
		putc(' ', out);
	}
	fputs("· giltracer", out);
}

static void put_caveat(const struct facts_caveat *caveat, bool name_pass, FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 };

	wording_add_note(&text, caveat, name_pass);
	fputs("<li data-code=\"", out);
	html_text(caveat->code, out);
	fputs("\">", out);
	html_text(str_get(&text), out);
	fputs("</li>\n", out);
}

/* Caveats are long, so they are expanded only if they are important. */
static void put_caveats(const struct analysis *a, FILE *out)
{
	CLEANUP(str_done) struct str summary = { 0 };
	uint64_t n = 0;

	for (size_t i = 0; i < a->caveats.n; i++)
		n += !a->caveats.v[i].minor;
	if (!n)
		return;
	if (n == 1)
		say_one_note(&summary);
	else
		say_n_notes(&summary, n);
	fprintf(out, "<details%s><summary>", a->verdict.quality == QUALITY_POOR ? " open" : "");
	html_text(str_get(&summary), out);
	fputs("</summary><ul>", out);
	for (size_t i = 0; i < a->caveats.n; i++)
		if (!a->caveats.v[i].minor)
			put_caveat(&a->caveats.v[i], a->recording->pass_count > 1, out);
	fputs("</ul></details>", out);
}

/* Keeps each number and its unit on one line. */
static void put_prose(const struct str *prose, FILE *out)
{
	CLEANUP(str_done) struct str kept = { 0 };

	for (const char *c = str_get(prose); *c; c++)
		if (*c == ' ' && kept.len && isdigit((unsigned char)c[-1]) &&
		    (c[1] == '%' || str_has_prefix(c + 1, "ms") || str_has_prefix(c + 1, "s)")))
			utf8_add(&kept, UTF8_NBSP);
		else
			str_addc(&kept, *c);
	html_text(str_get(&kept), out);
}

static void put_reasons(const struct analysis *a, const struct reasons *reasons, FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 };

	verdict_add_text(&text, a, reasons);
	put_prose(&text, out);
}

static void put_quality(const struct analysis *a, FILE *out)
{
	CLEANUP(str_done) struct str why = { 0 };

	fprintf(out, "<aside class=\"quality\" data-level=\"%s\">\n<h2>%s</h2><p>",
	        verdict_quality_name(a->verdict.quality), phrase(PHRASE_data_quality));
	verdict_add_text(&why, a, &a->verdict.quality_why);
	html_text(str_get(&why), out);
	fputs("</p>", out);
	put_caveats(a, out);
	fputs("</aside>\n", out);
}

static void put_said(const struct str *text, const char *kind, enum phrase before, FILE *out)
{
	if (!text->len)
		return;
	fprintf(out, "<p class=\"%s\">", kind);
	if (before)
		fprintf(out, "<b>%s</b>", phrase(before));
	put_prose(text, out);
	fputs("</p>", out);
}

static void put_finding(const struct analysis *a, const struct finding *f, FILE *out)
{
	CLEANUP(str_done) struct str title = { 0 }, cost = { 0 }, text = { 0 }, remedy = { 0 };

	finding_add_title(&title, a, f);
	finding_add_cost(&cost, f);
	finding_add_text(&text, a, f);
	finding_add_remedy(&remedy, a, f);
	fprintf(out, "<li data-kind=\"%s\"><h3>", finding_kind_name(f->kind));
	put_prose(&title, out);
	fputs("</h3>", out);
	put_said(&cost, "cost", PHRASE_NONE, out);
	put_said(&text, "text", PHRASE_NONE, out);
	put_said(&remedy, "advice", PHRASE_what_helps, out);
	fputs("</li>\n", out);
}

static void put_findings(const struct analysis *a, FILE *out)
{
	CLEANUP(str_done) struct str left = { 0 };

	if (!a->findings.v.n)
		return;
	fputs("<ol class=\"findings\">\n", out);
	for (size_t i = 0; i < a->findings.v.n; i++)
		put_finding(a, &a->findings.v.v[i], out);
	fputs("</ol>\n", out);
	if (a->findings.left) {
		say_f_left(&left, a->findings.left);
		fprintf(out, "<p>%s</p>\n", str_get(&left));
	}
}

static void put_verdict(const struct analysis *a, FILE *out)
{
	const struct verdict *v = &a->verdict;
	CLEANUP(str_done) struct str context = { 0 }, advice = { 0 };

	fprintf(out, "<h1 class=\"headline\" data-kind=\"%s\">", verdict_kind_name(v->kind));
	put_reasons(a, &v->headline, out);
	fputs("</h1>\n", out);
	verdict_add_text(&context, a, &a->verdict.context);
	put_said(&context, "context", PHRASE_NONE, out);
	put_findings(a, out);
	verdict_add_text(&advice, a, &a->verdict.advice);
	put_said(&advice, "advice", PHRASE_what_helps, out);
	put_quality(a, out);
}

static int fill(enum template_part part, const void *data, FILE *out, struct error *err)
{
	const struct page *page = data;

	switch (part) {
	case TEMPLATE_TITLE:
		put_title(page->analysis->recording, out);
		return 0;
	case TEMPLATE_VERDICT:
		if (page->change)
			change_verdict(page->change, out);
		else
			put_verdict(page->analysis, out);
		return 0;
	case TEMPLATE_TABLES:
		if (page->change)
			change_tables(page->change, out);
		else
			html_tables(page->analysis, out);
		return 0;
	case TEMPLATE_REPORT:
		json_write(page->analysis, META_BLAME_ROWS, out);
		return 0;
	case TEMPLATE_META:
		meta_write(page->analysis, page->rows, page->change, out);
		return 0;
	case TEMPLATE_OVERVIEW:
		overview_write(page->analysis, out);
		return 0;
	case TEMPLATE_BLOCKS:
		payload_write(page->payload, out);
		return 0;
	case TEMPLATE_PARTS:
		break;
	}
	return error_set(err, EINVAL, "unknown part of the template");
}

/* The blocks are made while the other parts are written. */
static int write_page(const struct analysis *a, const struct change *change,
                      const struct template *t, FILE *out, struct error *err)
{
	size_t n = a->recording->pass_count;
	CLEANUP(free) struct rows *rows = xcalloc(n, sizeof(*rows));
	struct page page = { .analysis = a, .change = change, .rows = rows };
	int status;

	for (size_t i = 0; i < n; i++)
		rows_init(&rows[i], &a->recording->passes[i]);
	status = payload_start(&page.payload, a->recording, rows, err);
	if (status == 0)
		status = template_write(t, fill, &page, out, err);
	payload_free(page.payload);
	for (size_t i = 0; i < n; i++)
		rows_done(&rows[i]);
	return status;
}

/* A thread takes a kilobyte of the page, and browsers cannot open one of hundreds of megabytes. */
static int check_size(const struct recording *recording, struct error *err)
{
	size_t threads = 0;

	for (size_t i = 0; i < recording->pass_count; i++)
		threads += recording->passes[i].model->threads.n;
	if (threads <= HTML_MAX_THREADS)
		return 0;
	return error_set(err, E2BIG,
	                 "the recording has %zu threads, but the page can only show %d: write "
	                 "--json or --export, or record less of the program",
	                 threads, HTML_MAX_THREADS);
}

static int write_template(const struct analysis *a, const struct change *change, FILE *out,
                          struct error *err)
{
	CLEANUP(template_done) struct template t = { 0 };
	CLEANUP(free) char *path = NULL;

	if (check_size(a->recording, err) < 0)
		return -1;
	if (datadir_find(&path, "share/report/page.html", err) < 0)
		return -1;
	if (template_load(&t, path, err) < 0)
		return -1;
	return write_page(a, change, &t, out, err);
}

int report_html(const struct analysis *a, FILE *out, struct error *err)
{
	return write_template(a, NULL, out, err);
}

/* The page of B, in which A is a second pass. */
int report_diff_html(const struct change *change, FILE *out, struct error *err)
{
	struct recording_pass passes[2] = { *change->b->pass, *change->a->pass };
	struct recording both = *change->b->recording;
	struct analysis a = *change->b;

	passes[1].kind = passes[0].kind;
	both.passes = passes;
	both.pass_count = 2;
	a.recording = &both;
	a.pass = &passes[0];
	return write_template(&a, change, out, err);
}
