/* SPDX-License-Identifier: MIT */
/* Names those who had the CPUs. */
#include "starved.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/crowd_blame.h"
#include "report/facts.h"
#include "report/json.h"
#include "report/terminal.h"
#include "report/utf8.h"
#include "trace/names.h"
#include "trace/source.h"

/* Of the threads' lives, in percent: less than that in line is not worth a line. */
#define WORTH_A_LINE 5
#define NAMED        4

const char *starved_program(const struct report_pass *pass, uint32_t by, uint32_t name)
{
	const struct names *names = pass->source ? pass->source->cpu_names : NULL;

	return by == MODEL_NONE && name && names ? names_get(names, name) : NULL;
}

static void put_row(struct jsonw *w, const struct report_pass *pass,
                    const struct model_starved *row)
{
	const struct model *model = pass->model;

	jsonw_object(w, NULL);
	json_tid(w, "tid", model, row->thread);
	json_tid(w, "by_tid", model, row->by == MODEL_UNKNOWN ? MODEL_NONE : row->by);
	jsonw_string(w, "by_name", starved_program(pass, row->by, row->name));
	jsonw_u64(w, "runnable_ns", row->runnable_ns);
	jsonw_end(w);
}

static void put_crowds(struct jsonw *w, const struct report_pass *pass, size_t most)
{
	struct crowd_blames rows;
	struct crowds crowds;
	struct model_starved rest = { MODEL_NONE, MODEL_NONE, 0, 0 };

	crowds_init_table(&crowds, pass);
	rows = crowds_blame(&crowds, pass->model, CROWD_LINE);
	for (size_t i = 0; i < rows.v.n; i++) {
		const struct crowd_blame *b = &rows.v.v[i];

		if (i < most)
			put_row(w, pass,
			        &(struct model_starved){ b->longest_waiter, b->longest_holder,
			                                 b->name, b->wait_ns });
		else
			rest.runnable_ns += b->wait_ns;
	}
	if (rows.v.n > most)
		put_row(w, pass, &rest);
	vec_done(&rows.v);
	crowds_done(&crowds);
}

void starved_json(struct jsonw *w, const struct report_pass *pass, size_t most)
{
	jsonw_array(w, "starvation");
	if (pass->model->starved.n > most)
		put_crowds(w, pass, most);
	else
		for (size_t i = 0; i < pass->model->starved.n; i++)
			put_row(w, pass, &pass->model->starved.v[i]);
	jsonw_end(w);
}

/**
 * All that one program took. name: NULL: threads of this one.
 */
struct share {
	const char *name;
	uint64_t ns;
};

struct shares {
	VEC(struct share) list;
	uint64_t all_ns;
};

static void add_share(struct shares *shares, const char *name, uint64_t ns)
{
	for (size_t i = 0; i < shares->list.n; i++) {
		struct share *share = &shares->list.v[i];

		if (name && share->name ? !strcmp(name, share->name) : name == share->name) {
			share->ns += ns;
			return;
		}
	}
	*vec_push(&shares->list) = (struct share){ name, ns };
}

static int compare_shares(const void *a, const void *b)
{
	const struct share *sa = a, *sb = b;

	return (sa->ns < sb->ns) - (sa->ns > sb->ns);
}

static struct shares find_shares(const struct report_pass *pass)
{
	struct shares shares = { 0 };

	for (size_t i = 0; i < pass->model->starved.n; i++) {
		const struct model_starved *row = &pass->model->starved.v[i];
		const char *program = starved_program(pass, row->by, row->name);

		shares.all_ns += row->runnable_ns;
		if (program || row->by < MODEL_UNKNOWN)
			add_share(&shares, program, row->runnable_ns);
	}
	if (shares.list.n)
		qsort(shares.list.v, shares.list.n, sizeof(*shares.list.v), compare_shares);
	return shares;
}

static void add_name(struct str *out, const char *name)
{
	uint32_t cp;

	while ((cp = utf8_next(&name)))
		utf8_add(out, utf8_is_unsafe(cp) ? '?' : cp);
}

bool starved_say(struct str *out, const struct report_pass *pass)
{
	struct shares shares = find_shares(pass);

	if (shares.list.n)
		str_adds(out, "While threads stood in line for a CPU, it was had by: ");
	for (size_t i = 0; i < shares.list.n && i < NAMED; i++) {
		const struct share *share = &shares.list.v[i];

		str_adds(out, i ? ", " : "");
		if (share->name)
			add_name(out, share->name);
		else
			str_adds(out, "threads of this program");
		str_addf(out, " %.1f %%", facts_percent(share->ns, shares.all_ns));
	}
	if (shares.list.n)
		str_addc(out, '.');
	vec_done(&shares.list);
	return out->len;
}

double starved_own_percent(const struct report_pass *pass)
{
	struct shares shares = find_shares(pass);
	uint64_t own_ns = 0, told_ns = 0;

	for (size_t i = 0; i < shares.list.n; i++) {
		told_ns += shares.list.v[i].ns;
		if (!shares.list.v[i].name)
			own_ns = shares.list.v[i].ns;
	}
	vec_done(&shares.list);
	return told_ns ? facts_percent(own_ns, told_ns) : -1;
}

void starved_text(const struct report_pass *pass, FILE *out)
{
	struct facts_totals totals = facts_totals(pass->model);
	CLEANUP(str_done) struct str line = { 0 };

	if (facts_percent(totals.cpu_ns[CPU_RUNNABLE], totals.life_ns) >= WORTH_A_LINE &&
	    starved_say(&line, pass)) {
		putc('\n', out);
		terminal_putf(out, "%s", str_get(&line));
	}
}
