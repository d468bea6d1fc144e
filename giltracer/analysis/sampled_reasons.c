/* SPDX-License-Identifier: MIT */
/* Derives the verdict of a recording that consists of samples only. */
#include "analysis/sampled_reasons.h"

#define PLACE_SOME 5   /* percent of the samples: worth a sentence */
#define FEW        100 /* samples: with fewer, shares are off by 10 points and more */
#define TORN_SOME  5   /* percent: worth reporting */

static const struct sampled_place *find_place(const struct sampled *s, bool holds)
{
	for (size_t i = 0; i < s->places.n; i++) {
		enum sampled_what what = s->places.v[i].what;

		if (holds == (what == SAMPLED_HOLDS) && what != SAMPLED_WAITS)
			return &s->places.v[i];
	}
	return NULL;
}

static void add_place(struct reasons *to, enum reason_code code, const struct sampled_place *place,
                      uint64_t whole)
{
	double percent = facts_percent(place ? place->samples : 0, whole);
	struct reason *r;

	if (percent < PLACE_SOME)
		return;
	r = reasons_add(to, code);
	r->percent = percent;
	r->place = place;
}

void sampled_reasons_find(struct verdict *v, const struct analysis *a)
{
	const struct sampled *s = &a->sampled;
	bool known = s->held || s->what[SAMPLED_WAITS];
	struct reason *r = reasons_add(&v->headline,
	                               known ? REASON_SAMPLED : REASON_SAMPLED_NO_GIL);

	r->count = s->samples;
	r->number = (double)s->what[SAMPLED_WAITS] / (double)s->samples;
	if (s->busiest != MODEL_NONE && s->threads.v[s->busiest].thread != MODEL_NONE) {
		const struct sampled_thread *t = &s->threads.v[s->busiest];

		r = reasons_add(&v->because, REASON_SAMPLED_HOLDER);
		r->thread = t->thread;
		r->percent = facts_percent(t->what[SAMPLED_HOLDS], s->samples);
	}
	add_place(&v->because, REASON_SAMPLED_HELD, find_place(s, true), s->what[SAMPLED_HOLDS]);
	add_place(&v->because, REASON_SAMPLED_PLACE, find_place(s, false), s->thread_samples);
	if (!a->pass->gil_recorded)
		reasons_add(&v->advice, ADVICE_EXACT);
}

void sampled_reasons_judge(struct verdict *v, const struct analysis *a)
{
	const struct samples *s = a->pass->samples;
	double missed = facts_percent(s->missed, s->missed + s->times.n);
	double torn = facts_percent(s->torn, s->stacks_read);

	v->quality = a->sampled.samples < FEW || missed >= 50 || torn >= 50 ? QUALITY_POOR
	                                                                    : QUALITY_FAIR;
	reasons_add(&v->quality_why, QUALITY_SAMPLED)->count = s->times.n;
	if (missed >= TORN_SOME)
		reasons_add(&v->quality_why, QUALITY_MISSED)->percent = missed;
	if (torn >= TORN_SOME)
		reasons_add(&v->quality_why, QUALITY_TORN)->percent = torn;
}
