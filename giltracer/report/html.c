/* SPDX-License-Identifier: MIT */
/* The self-contained page: fills share/report/page.html as share/report/FORMAT.md says. */
#include "html.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/datadir.h"
#include "report/facts.h"
#include "report/html_tables.h"
#include "report/json.h"
#include "report/meta.h"
#include "report/payload.h"
#include "report/template.h"
#include "report/utf8.h"
#include "report/verdict.h"
#include "trace/source.h"

struct page {
	const struct report *report;
	const struct rows *rows;
	struct payload *payload;
};

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

static void put_title(const struct report *report, FILE *out)
{
	for (size_t i = 0; report->command && report->command[i]; i++) {
		html_text(report->command[i], out);
		putc(' ', out);
	}
	fputs("· giltracer", out);
}

static void put_moment(const struct verdict *v, const struct report *report, FILE *out)
{
	const struct report_pass *pass = report_main_pass(report);
	uint64_t from = v->moment_start_ns - pass->model->start_ns;
	uint64_t to = v->moment_end_ns - pass->model->start_ns;
	uint64_t margin = (to - from) / 2;

	fprintf(out,
	        " <a href=\"#p=%zu&amp;v=%" PRIu64 ",%" PRIu64 "&amp;s=gil.%" PRIu32 ".%" PRIu64
	        "\">The longest of these waits is at %.3f s</a>.",
	        (size_t)(pass - report->passes), from > margin ? from - margin : 0, to + margin,
	        v->moment_thread, from, (double)from / 1e9);
}

static void put_caveat(const struct facts_caveat *caveat, bool name_pass, FILE *out)
{
	fputs("<li data-code=\"", out);
	html_text(caveat->code, out);
	fputs("\">", out);
	if (caveat->pass && name_pass) {
		html_text(caveat->pass, out);
		fputs(" pass: ", out);
	}
	html_text(caveat->text, out);
	if (caveat->count > 1)
		fprintf(out, " (%" PRIu64 " times)", caveat->count);
	fputs("</li>\n", out);
}

/* Many words: shown at once only if they matter. */
static void put_caveats(const struct report *report, bool open, FILE *out)
{
	struct facts_caveats caveats = facts_caveats(report);
	size_t n = 0;

	for (size_t i = 0; i < caveats.n; i++)
		n += !caveats.v[i].minor;
	if (n)
		fprintf(out, "<details%s><summary>%zu note%s on the recording</summary><ul>",
		        open ? " open" : "", n, n == 1 ? "" : "s");
	for (size_t i = 0; i < caveats.n; i++)
		if (!caveats.v[i].minor)
			put_caveat(&caveats.v[i], report->pass_count > 1, out);
	if (n)
		fputs("</ul></details>", out);
	vec_done(&caveats);
}

/* A number and its unit stay on one line. */
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

/* A sentence of the verdict, up to where its paragraph ends. */
static bool put_sentence(const char *kind, const char *before, const struct str *sentence,
                         FILE *out)
{
	if (!sentence->len)
		return false;
	fprintf(out, "<p class=\"%s\">%s", kind, before);
	put_prose(sentence, out);
	return true;
}

static void put_quality(const struct verdict *v, const struct report *report, FILE *out)
{
	fprintf(out, "<aside class=\"quality\" data-level=\"%s\">\n<h2>Data quality</h2><p>",
	        verdict_quality_name(v->quality));
	html_text(str_get(&v->quality_text), out);
	fputs("</p>", out);
	put_caveats(report, v->quality == QUALITY_POOR, out);
	fputs("</aside>\n", out);
}

static void put_verdict(const struct report *report, FILE *out)
{
	struct verdict v;

	verdict_init(&v, report);
	fprintf(out, "<h1 class=\"headline\" data-kind=\"%s\">", verdict_kind_name(v.kind));
	put_prose(&v.headline, out);
	fputs("</h1>\n", out);
	if (put_sentence("because", "", &v.because, out)) {
		if (v.moment)
			put_moment(&v, report, out);
		fputs("</p>\n", out);
	}
	if (put_sentence("also", "", &v.also, out))
		fputs("</p>\n", out);
	if (put_sentence("advice", "<b>What helps:</b> ", &v.advice, out))
		fputs("</p>\n", out);
	put_quality(&v, report, out);
	verdict_done(&v);
}

static int fill(enum template_part part, const void *data, FILE *out, struct error *err)
{
	const struct page *page = data;

	switch (part) {
	case TEMPLATE_TITLE:
		put_title(page->report, out);
		return 0;
	case TEMPLATE_VERDICT:
		put_verdict(page->report, out);
		return 0;
	case TEMPLATE_TABLES:
		html_tables(page->report, out);
		return 0;
	case TEMPLATE_REPORT:
		json_write(page->report, META_BLAME_ROWS, out);
		return 0;
	case TEMPLATE_META:
		meta_write(page->report, page->rows, out);
		return 0;
	case TEMPLATE_OVERVIEW:
		overview_write(page->report, out);
		return 0;
	case TEMPLATE_BLOCKS:
		payload_write(page->payload, out);
		return 0;
	case TEMPLATE_PARTS:
		break;
	}
	return error_set(err, EINVAL, "unknown part of the template");
}

/* The blocks are made while the rest is written. */
static int write_page(const struct report *report, const struct template *t, FILE *out,
                      struct error *err)
{
	CLEANUP(free) struct rows *rows = xcalloc(report->pass_count, sizeof(*rows));
	struct page page = { .report = report, .rows = rows };
	int status;

	for (size_t i = 0; i < report->pass_count; i++)
		rows_init(&rows[i], &report->passes[i]);
	status = payload_start(&page.payload, report, rows, err);
	if (status == 0)
		status = template_write(t, fill, &page, out, err);
	payload_free(page.payload);
	for (size_t i = 0; i < report->pass_count; i++)
		rows_done(&rows[i]);
	return status;
}

int report_html(const struct report *report, FILE *out, struct error *err)
{
	CLEANUP(template_done) struct template t = { 0 };
	CLEANUP(free) char *path = NULL;

	if (datadir_find(&path, "share/report/page.html", err) < 0)
		return -1;
	if (template_load(&t, path, err) < 0)
		return -1;
	return write_page(report, &t, out, err);
}
