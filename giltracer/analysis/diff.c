/* SPDX-License-Identifier: MIT */
/* Compares two recordings and judges the difference. */
#include "analysis/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"

bool diff_is_noise(double a, double b)
{
	double change = fabs(b - a), larger = a > b ? a : b;

	return change < DIFF_POINTS || change < larger * DIFF_PERCENT / 100;
}

static struct diff_side side(const struct summary *s, const struct summary_row *row)
{
	return (struct diff_side){
		.count = row->count,
		.wait_ns = row->wait_ns,
		.hold_ns = row->hold_ns,
		.overdue_wait_ns = row->overdue_wait_ns,
		.wait = facts_percent(row->wait_ns, s->recording_ns),
		.hold = facts_percent(row->hold_ns, s->recording_ns),
	};
}

static struct diff_row *add_row(struct diff_rows *rows, const struct summary_row *row)
{
	struct diff_row *ret = vec_push(&rows->v);

	*ret = (struct diff_row){ .name = row->name, .file = row->file, .line = row->line };
	return ret;
}

static int most_changed_first(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	double cx = fabs(x->change), cy = fabs(y->change);
	int by_name = strcmp(x->name, y->name);

	if (cx != cy)
		return cx < cy ? 1 : -1;
	return by_name ? by_name : strcmp(x->file, y->file);
}

static void compare_rows(struct diff_rows *ret, const struct summary *sa,
                         const struct summary_rows *a, const struct summary *sb,
                         const struct summary_rows *b)
{
	for (size_t i = 0; i < b->v.n; i++)
		add_row(ret, &b->v.v[i])->b = side(sb, &b->v.v[i]);
	for (size_t i = 0; i < a->v.n; i++) {
		const struct summary_row *row = &a->v.v[i];
		uint32_t at = summary_find_row(b, row->name, row->file);

		(at == IDMAP_NONE ? add_row(ret, row) : &ret->v.v[at])->a = side(sa, row);
	}
	for (size_t i = 0; i < ret->v.n; i++) {
		struct diff_row *row = &ret->v.v[i];

		row->change = row->b.wait - row->a.wait;
		row->noise = diff_is_noise(row->a.wait, row->b.wait);
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), most_changed_first);
}

static enum diff_verdict judge(double a, double b)
{
	if (diff_is_noise(a, b))
		return DIFF_SAME;
	return b < a ? DIFF_FELL : DIFF_ROSE;
}

/* Which fact to compare: if threads waited for locks but never for a GIL, waiting for locks. */
static enum fact choose(const struct summary *a, const struct summary *b)
{
	bool gil = a->value[FACT_GIL_WAIT] || b->value[FACT_GIL_WAIT];
	bool locks = a->value[FACT_LOCK_WAIT] || b->value[FACT_LOCK_WAIT];

	if (a->locks_unknown || b->locks_unknown)
		return FACT_GIL_WAIT;
	return locks && !gil ? FACT_LOCK_WAIT : FACT_GIL_WAIT;
}

static const struct diff_row *most_changed(const struct diff *diff)
{
	for (size_t i = 0; i < diff->functions.v.n && diff->verdict != DIFF_SAME; i++) {
		const struct diff_row *row = &diff->functions.v.v[i];

		if (!row->noise && (row->change < 0) == (diff->verdict == DIFF_FELL))
			return row;
	}
	return NULL;
}

void diff_init(struct diff *diff, const struct summary *a, const struct summary *b)
{
	enum fact fact = choose(a, b);

	*diff = (struct diff){
		.a = a,
		.b = b,
		.fact = fact,
		.verdict = judge(a->percent[fact], b->percent[fact]),
		.other_program = a->program && b->program && strcmp(a->program, b->program) != 0,
	};
	compare_rows(&diff->threads, a, &a->threads, b, &b->threads);
	compare_rows(&diff->functions, a, &a->functions, b, &b->functions);
	diff->most_changed = most_changed(diff);
}

void diff_done(struct diff *diff)
{
	vec_done(&diff->threads.v);
	vec_done(&diff->functions.v);
}
