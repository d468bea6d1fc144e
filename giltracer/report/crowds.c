/* SPDX-License-Identifier: MIT */
/* Puts threads together by name. */
#include "crowds.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/facts.h"
#include "report/utf8.h"

#define NAME_COLUMNS 48

static void add_pattern(struct str *out, const char *name)
{
	while (*name) {
		if (!isdigit((unsigned char)*name)) {
			str_addc(out, *name++);
			continue;
		}
		str_addc(out, '*');
		while (isdigit((unsigned char)*name))
			name++;
	}
}

static uint32_t add_crowd(struct crowds *crowds, const char *name, uint32_t thread)
{
	struct crowd *crowd = vec_push(&crowds->v);

	*crowd = (struct crowd){ .first = thread, .threads = 1 };
	str_adds(&crowd->name, name);
	return (uint32_t)crowds->v.n - 1;
}

static uint32_t find_crowd(struct crowds *crowds, const struct report_pass *pass, const char *name,
                           uint32_t thread)
{
	for (uint32_t i = 0; i < crowds->v.n; i++) {
		struct crowd *crowd = &crowds->v.v[i];

		if (pass->model->threads.v[crowd->first].main ||
		    strcmp(str_get(&crowd->name), name) != 0)
			continue;
		crowd->threads++;
		return i;
	}
	return add_crowd(crowds, name, thread);
}

static void find_crowds(struct crowds *crowds, const struct report_pass *pass)
{
	size_t n = pass->model->threads.n;

	*crowds = (struct crowds){ .of = xcalloc(n + 1, sizeof(*crowds->of)) };
	for (uint32_t i = 0; i < n; i++) {
		CLEANUP(str_done) struct str name = { 0 };

		if (pass->model->threads.v[i].main) {
			crowds->of[i] = add_crowd(crowds, facts_thread_name(pass, i), i);
			continue;
		}
		add_pattern(&name, facts_thread_name(pass, i));
		crowds->of[i] = find_crowd(crowds, pass, str_get(&name), i);
	}
}

static void add_thread(struct model_thread *sum, const struct model_thread *t)
{
	sum->end_ns += t->end_ns - t->start_ns;
	for (unsigned s = 0; s < GIL_STATES; s++)
		sum->gil_ns[s] += t->gil_ns[s];
	for (unsigned s = 0; s < CPU_STATES; s++)
		sum->cpu_ns[s] += t->cpu_ns[s];
	if (t->longest_wait_ns > sum->longest_wait_ns)
		sum->longest_wait_ns = t->longest_wait_ns;
	if (t->longest_hold_ns > sum->longest_hold_ns)
		sum->longest_hold_ns = t->longest_hold_ns;
	if (t->longest_lock_wait_ns > sum->longest_lock_wait_ns)
		sum->longest_lock_wait_ns = t->longest_lock_wait_ns;
	if (t->longest_stop_ns > sum->longest_stop_ns)
		sum->longest_stop_ns = t->longest_stop_ns;
}

static int compare_crowds(const void *a, const void *b)
{
	const struct crowd *x = a, *y = b;
	int order = facts_compare_threads(&x->sum, &y->sum);

	return order ? order : (x->first > y->first) - (x->first < y->first);
}

/* Leave out those that have no threads any more, and put the others in order. */
static void settle(struct crowds *crowds, const struct report_pass *pass)
{
	size_t threads = pass->model->threads.n, kept = 0;
	CLEANUP(free) uint32_t *by_first = xcalloc(threads + 1, sizeof(*by_first));

	for (uint32_t i = 0; i < threads; i++)
		add_thread(&crowds->v.v[crowds->of[i]].sum, &pass->model->threads.v[i]);
	for (uint32_t i = 0; i < threads; i++)
		crowds->of[i] = crowds->v.v[crowds->of[i]].first;
	for (size_t i = 0; i < crowds->v.n; i++) {
		if (crowds->v.v[i].threads)
			crowds->v.v[kept++] = crowds->v.v[i];
		else
			str_done(&crowds->v.v[i].name);
	}
	crowds->v.n = kept;
	if (kept)
		qsort(crowds->v.v, kept, sizeof(*crowds->v.v), compare_crowds);
	for (uint32_t i = 0; i < kept; i++)
		by_first[crowds->v.v[i].first] = i;
	for (uint32_t i = 0; i < threads; i++)
		crowds->of[i] = by_first[crowds->of[i]];
}

void crowds_init(struct crowds *crowds, const struct report_pass *pass)
{
	find_crowds(crowds, pass);
	settle(crowds, pass);
}

void crowds_init_table(struct crowds *crowds, const struct report_pass *pass)
{
	size_t n = pass->model->threads.n, before;

	find_crowds(crowds, pass);
	before = crowds->v.n;
	for (size_t i = 0; i < before; i++)
		if (crowds->v.v[i].threads > 1 &&
		    (n <= CROWDS_FROM || crowds->v.v[i].threads < CROWD_LEAST))
			crowds->v.v[i].threads = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!crowds->v.v[crowds->of[i]].threads)
			crowds->of[i] = add_crowd(crowds, facts_thread_name(pass, i), i);
	settle(crowds, pass);
}

void crowds_done(struct crowds *crowds)
{
	for (size_t i = 0; i < crowds->v.n; i++)
		str_done(&crowds->v.v[i].name);
	vec_done(&crowds->v);
	free(crowds->of);
}

static bool is_unique(const struct report_pass *pass, uint32_t thread)
{
	const char *name = facts_thread_name(pass, thread);

	for (uint32_t i = 0; i < pass->model->threads.n; i++)
		if (i != thread && !strcmp(facts_thread_name(pass, i), name))
			return false;
	return *name;
}

void crowd_add_thread(struct str *out, const struct report_pass *pass, uint32_t thread)
{
	utf8_add_safe(out, facts_thread_name(pass, thread), NAME_COLUMNS);
	if (!is_unique(pass, thread))
		str_addf(out, " (%" PRIu32 ")", pass->model->threads.v[thread].tid);
}
