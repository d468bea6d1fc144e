/* SPDX-License-Identifier: MIT */
/* Shares of samples, marked as estimates. */
#include "report/tables/cells.h"
#include "report/words.h"
#include "trace/names.h"

#define LEAST_PERCENT 0.5 /* minimum share of the threads' samples for a row */

static void put_thread(struct row *row, const struct analysis *a, const struct sampled_thread *t,
                       unsigned name_columns)
{
	const struct samples *s = a->pass->samples;
	uint64_t asleep = 0;

	if (t->thread != MODEL_NONE)
		cell_thread(row, 0, a, t->thread, name_columns);
	else
		cell_text(row, 0, names_get(s->names, s->threads.v[t->of].name));
	for (unsigned w = SAMPLED_LOCK; w <= SAMPLED_OTHER; w++)
		asleep += t->what[w];
	cell_number(row, 1, (double)t->samples, 0);
	cell_number(row, 2, facts_percent(t->what[SAMPLED_HOLDS], t->samples), 1);
	cell_number(row, 3, facts_percent(t->what[SAMPLED_WAITS], t->samples), 1);
	cell_number(row, 4, facts_percent(t->what[SAMPLED_RUNNING], t->samples), 1);
	cell_number(row, 5, facts_percent(asleep, t->samples), 1);
	cell_number(row, 6, facts_percent(t->what[SAMPLED_UNKNOWN], t->samples), 1);
}

void table_sampled_threads(struct table *ret, const struct analysis *a,
                           const struct table_limits *limits)
{
	const struct sampled *s = &a->sampled;

	*ret = (struct table){ .caption = PHRASE_c_sampled_threads,
		               .text_columns = 1,
		               .say_left = say_left_sampled };
	TABLE_HEADINGS(ret, PHRASE_h_thread, PHRASE_h_samples, PHRASE_h_est_has_gil,
	               PHRASE_h_est_gil_wait, PHRASE_h_est_running, PHRASE_h_est_blocked,
	               PHRASE_h_unknown);
	for (size_t i = 0; i < s->threads.n; i++) {
		if (i < limits->threads) {
			put_thread(table_add_row(ret), a, &s->threads.v[i], limits->name_columns);
			continue;
		}
		ret->left++;
		ret->left_ns += s->threads.v[i].samples;
	}
}

static void put_place(struct row *row, const struct analysis *a, const struct sampled_place *p,
                      unsigned name_columns)
{
	uint32_t thread = sampled_model_thread(a->pass, &a->pass->samples->threads.v[p->thread]);

	row->cells[0].width = sampled_add_place(&row->cells[0].text, a->pass, p, name_columns);
	cell_text(row, 1, sampled_what_text(p->what));
	if (p->threads == 1 && thread != MODEL_NONE) {
		cell_thread(row, 2, a, thread, name_columns);
	} else {
		say_n_threads(&row->cells[2].text, p->threads);
		row->cells[2].width = (unsigned)row->cells[2].text.len;
	}
	cell_number(row, 3, (double)p->samples, 0);
	cell_number(row, 4, facts_percent(p->samples, a->sampled.thread_samples), 1);
	if (p->what == SAMPLED_HOLDS)
		cell_number(row, 5, (double)p->waiters / (double)p->samples, 1);
	else
		cell_text(row, 5, "");
}

void table_sampled_places(struct table *ret, const struct analysis *a,
                          const struct table_limits *limits)
{
	const struct sampled *s = &a->sampled;

	*ret = (struct table){ .caption = PHRASE_c_sampled_places,
		               .text_columns = 3,
		               .say_left = say_left_sampled };
	TABLE_HEADINGS(ret, PHRASE_h_function, PHRASE_h_what, PHRASE_h_in_thread, PHRASE_h_samples,
	               PHRASE_h_est_share, PHRASE_h_est_waiters);
	for (size_t i = 0; i < s->places.n; i++) {
		const struct sampled_place *p = &s->places.v[i];

		if (i < 2 * limits->waits &&
		    (limits->all || !i ||
		     facts_percent(p->samples, s->thread_samples) >= LEAST_PERCENT)) {
			put_place(table_add_row(ret), a, p, limits->name_columns);
			continue;
		}
		ret->left++;
		ret->left_ns += p->samples;
	}
}
