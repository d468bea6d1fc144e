/* SPDX-License-Identifier: MIT */
/* The report for a terminal: the verdict, the tables, and the notes. */
#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/findings.h"
#include "report/phrases.h"
#include "report/report.h"
#include "report/terminal.h"
#include "report/words.h"

#define RUNNABLE_SHARE 5 /* minimum percentage of runnable time for a line about it */

static const struct table_limits limits = {
	.threads = 24,
	.waits = 8,
	.functions = 5,
	.name_columns = 40,
};

static void put_sentence(const struct str *sentence, FILE *out)
{
	if (sentence->len)
		terminal_putf(out, "%s", str_get(sentence));
}

static void put_reasons(const struct analysis *a, const struct reasons *reasons, FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 };

	verdict_add_text(&text, a, reasons);
	put_sentence(&text, out);
}

/* The findings beyond these are on the page. */
#define FINDINGS_SHOWN 6

static void put_finding(const struct analysis *a, const struct finding *f, size_t number, FILE *out)
{
	CLEANUP(str_done) struct str title = { 0 }, cost = { 0 }, text = { 0 }, remedy = { 0 };

	finding_add_title(&title, a, f);
	finding_add_cost(&cost, f);
	finding_add_text(&text, a, f);
	finding_add_remedy(&remedy, a, f);
	terminal_putf(out, "%zu. %s: %s. %s", number, str_get(&title), str_get(&cost),
	              str_get(&text));
	if (remedy.len)
		terminal_putf(out, "   %s%s", phrase(PHRASE_what_helps), str_get(&remedy));
}

static void put_verdict(const struct analysis *a, FILE *out)
{
	const struct findings *findings = &a->findings;
	CLEANUP(str_done) struct str advice = { 0 }, left = { 0 };

	put_reasons(a, &a->verdict.headline, out);
	put_reasons(a, &a->verdict.context, out);
	for (size_t i = 0; i < findings->v.n && i < FINDINGS_SHOWN; i++)
		put_finding(a, &findings->v.v[i], i + 1, out);
	if (findings->v.n > FINDINGS_SHOWN)
		say_f_left(&left, findings->v.n - FINDINGS_SHOWN + findings->left);
	put_sentence(&left, out);
	if (!a->verdict.advice.v.n)
		return;
	say_what_helps(&advice);
	verdict_add_text(&advice, a, &a->verdict.advice);
	put_sentence(&advice, out);
}

static void put_table(const struct analysis *a,
                      void (*fill)(struct table *, const struct analysis *,
                                   const struct table_limits *),
                      FILE *out)
{
	struct table table;

	fill(&table, a, &limits);
	if (table.rows.n)
		putc('\n', out);
	terminal_table(&table, out);
	table_done(&table);
}

static void put_cpu_users(const struct analysis *a, FILE *out)
{
	const struct facts_totals *totals = &a->evidence.totals;
	CLEANUP(str_done) struct str line = { 0 };

	if (facts_percent(totals->cpu_ns[CPU_RUNNABLE], totals->life_ns) < RUNNABLE_SHARE)
		return;
	verdict_add_cpu_users(&line, a);
	if (line.len)
		putc('\n', out);
	put_sentence(&line, out);
}

static void put_caveats(const struct analysis *a, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < a->caveats.n; i++) {
		CLEANUP(str_done) struct str text = { 0 }, safe = { 0 };

		if (a->caveats.v[i].minor)
			continue;
		if (!any)
			putc('\n', out);
		any = true;
		say_note(&text);
		wording_add_note(&text, &a->caveats.v[i], a->recording->pass_count > 1);
		utf8_add_safe(&safe, str_get(&text), 1000);
		put_sentence(&safe, out);
	}
}

int report_text(const struct analysis *a, FILE *out, struct error *err)
{
	const struct recording *recording = a->recording;

	(void)err;
	put_verdict(a, out);
	if (a->verdict.kind != VERDICT_NOTHING) {
		if (recording->gil_detect || a->locks)
			put_table(a, table_threads, out);
		put_table(a, table_path, out);
		put_table(a, table_chains, out);
		if (a->locks) {
			put_table(a, table_lock_waits, out);
			put_table(a, table_places, out);
			put_table(a, table_late, out);
		}
		if (a->verdict.kind != VERDICT_SAMPLED &&
		    (recording->state_detect || !recording->gil_detect))
			put_table(a, table_states, out);
		put_cpu_users(a, out);
		put_table(a, table_gil_waits, out);
		put_table(a, table_overdue, out);
		put_table(a, table_holders, out);
		put_table(a, table_without_gil, out);
		put_table(a, table_tasks, out);
		put_table(a, table_sampled_threads, out);
		put_table(a, table_sampled_places, out);
	}
	put_caveats(a, out);
	return 0;
}
