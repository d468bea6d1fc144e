/* SPDX-License-Identifier: MIT */
/* The self-contained page: fills share/report/page.html as share/report/FORMAT.md says. */
#include "html.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/datadir.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/locks.h"
#include "report/meta.h"
#include "report/payload.h"
#include "report/template.h"
#include "report/utf8.h"
#include "report/verdict.h"
#include "trace/source.h"

#define FUNCTION_COLUMNS 80
#define BLAME_ROWS       1000

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

static void put_name(const struct report_pass *pass, uint32_t i, FILE *out)
{
	CLEANUP(str_done) struct str id = { 0 };

	html_text(facts_thread_name(pass, i), out);
	facts_add_id(&id, pass, i);
	fprintf(out, " %s", str_get(&id));
}

static void put_headings(const char *caption, const char *const *headings, FILE *out)
{
	fprintf(out, "<table>\n<caption>%s</caption>\n<thead><tr>", caption);
	for (size_t i = 0; headings[i]; i++)
		fprintf(out, "<th scope=\"col\">%s</th>", headings[i]);
	fputs("</tr></thead>\n<tbody>\n", out);
}

static void put_threads(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "thread",          "total ms",        "no gil%",
		                                "has gil%",        "gil wait%",       "unknown%",
		                                "longest wait ms", "longest hold ms", NULL };
	CLEANUP(free) uint32_t *order = facts_thread_order(pass->model);

	put_headings("Threads, most wait first; * is a main thread. Shares are of what is known.",
	             headings, out);
	for (size_t i = 0; i < pass->model->threads.n; i++) {
		const struct model_thread *t = &pass->model->threads.v[order[i]];
		struct facts_shares shares = facts_shares(t);

		fputs("<tr><th scope=\"row\">", out);
		put_name(pass, order[i], out);
		fprintf(out,
		        "</th><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>"
		        "<td>%.3f</td><td>%.3f</td></tr>\n",
		        facts_ms(t->end_ns - t->start_ns), shares.no_gil, shares.hold, shares.wait,
		        shares.unknown, facts_ms(t->longest_wait_ns), facts_ms(t->longest_hold_ns));
	}
	fputs("</tbody>\n</table>\n", out);
}

static void put_lock_threads(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "thread",          "total ms",
		                                "free%",           "lock wait%",
		                                "stopped%",        "stops%",
		                                "unknown%",        "longest lock wait ms",
		                                "longest stop ms", NULL };
	CLEANUP(free) uint32_t *order = facts_thread_order(pass->model);

	put_headings(
		"Threads, most blocked first; * is a main thread. Shares are of what is known.",
		headings, out);
	for (size_t i = 0; i < pass->model->threads.n; i++) {
		const struct model_thread *t = &pass->model->threads.v[order[i]];
		struct locks_shares s = locks_shares(t);

		fputs("<tr><th scope=\"row\">", out);
		put_name(pass, order[i], out);
		fprintf(out,
		        "</th><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>"
		        "<td>%.1f</td><td>%.3f</td><td>%.3f</td></tr>\n",
		        facts_ms(t->end_ns - t->start_ns), s.free, s.lock_wait, s.stopped, s.stops,
		        s.unknown, facts_ms(t->longest_lock_wait_ns), facts_ms(t->longest_stop_ns));
	}
	fputs("</tbody>\n</table>\n", out);
}

static void put_lock_blame(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "let go",     "was blocked until then",
		                                "what",       "wait ms",
		                                "longest ms", NULL };
	CLEANUP(free) uint32_t *order = facts_lock_blame_order(pass->model);

	if (!pass->model->lock_blame.n)
		return;
	put_headings("Who was blocked until whom", headings, out);
	for (size_t i = 0; i < pass->model->lock_blame.n; i++) {
		const struct model_lock_blame *b = &pass->model->lock_blame.v[order[i]];

		fputs("<tr><th scope=\"row\">", out);
		if (b->by >= MODEL_UNKNOWN)
			fputs(b->by == MODEL_NONE ? "nobody (it was free)" : "not seen", out);
		else
			put_name(pass, b->by, out);
		fputs("</th><td>", out);
		put_name(pass, b->waiter, out);
		fprintf(out, "</td><td>%s</td><td>%.1f</td><td>%.3f</td></tr>\n",
		        locks_state_name(b->state), facts_ms(b->wait_ns), facts_ms(b->longest_ns));
	}
	fputs("</tbody>\n</table>\n", out);
}

static void put_states(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "thread", "running%",   "in line%", "asleep%",
		                                "disk%",  "GIL sleep%", "unknown%", NULL };
	CLEANUP(free) uint32_t *order = facts_thread_order(pass->model);

	put_headings("What the threads did on the CPUs. Shares are of what is known.", headings,
	             out);
	for (size_t i = 0; i < pass->model->threads.n; i++) {
		struct facts_states s = facts_states(&pass->model->threads.v[order[i]]);

		fputs("<tr><th scope=\"row\">", out);
		put_name(pass, order[i], out);
		fprintf(out,
		        "</th><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>%.1f</td>"
		        "<td>%.1f</td></tr>\n",
		        s.percent[CPU_RUNNING], s.percent[CPU_RUNNABLE], s.percent[CPU_SLEEPING],
		        s.percent[CPU_UNINTERRUPTIBLE], s.percent[CPU_GIL_SLEEP],
		        s.percent[CPU_UNKNOWN]);
	}
	fputs("</tbody>\n</table>\n", out);
}

/* Of a thousand threads, a million pairs may have waited: what is left out, and how much it is. */
static void put_more_blame(const struct report_pass *pass, const uint32_t *order, FILE *out)
{
	uint64_t wait_ns = 0;

	if (pass->model->blame.n <= BLAME_ROWS)
		return;
	for (size_t i = BLAME_ROWS; i < pass->model->blame.n; i++)
		wait_ns += pass->model->blame.v[order[i]].wait_ns;
	fprintf(out, "<p>And %zu more pairs, which waited %.1f ms in all.</p>\n",
	        pass->model->blame.n - BLAME_ROWS, facts_ms(wait_ns));
}

static void put_blame(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "held the GIL", "waited for it", "wait ms",
		                                "longest ms", NULL };
	CLEANUP(free) uint32_t *order = facts_blame_order(pass->model);

	if (!pass->model->blame.n)
		return;
	put_headings("Who waited for whom", headings, out);
	for (size_t i = 0; i < pass->model->blame.n && i < BLAME_ROWS; i++) {
		const struct model_blame *blame = &pass->model->blame.v[order[i]];

		fputs("<tr><th scope=\"row\">", out);
		if (blame->holder == MODEL_NONE)
			fputs("nobody (handover)", out);
		else if (blame->holder == MODEL_UNKNOWN)
			fputs("unknown (records are missing)", out);
		else
			put_name(pass, blame->holder, out);
		fputs("</th><td>", out);
		put_name(pass, blame->waiter, out);
		fprintf(out, "</td><td>%.1f</td><td>%.3f</td></tr>\n", facts_ms(blame->wait_ns),
		        facts_ms(blame->longest_ns));
	}
	fputs("</tbody>\n</table>\n", out);
	put_more_blame(pass, order, out);
}

/* Late holds only, as in the JSON's "hogs". */
static void put_hogs(const struct report_pass *pass, FILE *out)
{
	static const char *const headings[] = { "function",   "thread",        "others waited ms",
		                                "holds",      "held ms",       "longest ms",
		                                "off cpu ms", "would save ms", NULL };
	const struct hogs *hogs = pass->hogs;

	if (!hogs || !hogs->v.n || !hogs->v.v[0].late_holds)
		return;
	put_headings("Calls that kept the GIL when they were asked to let go", headings, out);
	for (size_t i = 0; i < hogs->v.n && hogs->v.v[i].late_holds; i++) {
		const struct hog *hog = &hogs->v.v[i];
		CLEANUP(str_done) struct str name = { 0 };

		function_add_row(&name, pass, hog, FUNCTION_COLUMNS);
		fputs("<tr><th scope=\"row\">", out);
		html_text(str_get(&name), out);
		fputs("</th><td>", out);
		put_name(pass, hog->thread, out);
		fprintf(out,
		        "</td><td>%.1f</td><td>%" PRIu64
		        "</td><td>%.1f</td><td>%.3f</td><td>%.1f</td><td>",
		        facts_ms(hog->late_wait_ns), hog->late_holds, facts_ms(hog->late_ns),
		        facts_ms(hog->late_longest_ns), facts_ms(hog->off_cpu_ns));
		if (hog->gain_ns == HOGS_NO_GAIN)
			fputs("?</td></tr>\n", out);
		else
			fprintf(out, "%.1f</td></tr>\n", facts_ms(hog->gain_ns));
	}
	fputs("</tbody>\n</table>\n<p>Would save: " FUNCTIONS_GAIN ".</p>\n", out);
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
		if (locks_of_pass(report_main_pass(page->report)))
			put_lock_threads(report_main_pass(page->report), out);
		else
			put_threads(report_main_pass(page->report), out);
		put_states(report_main_pass(page->report), out);
		put_lock_blame(report_main_pass(page->report), out);
		put_blame(report_main_pass(page->report), out);
		put_hogs(report_main_pass(page->report), out);
		return 0;
	case TEMPLATE_REPORT:
		return report_json(page->report, out, err);
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
