/* SPDX-License-Identifier: MIT */
/* Which threads and programs had the CPUs, for machines. */
#include "report/starvation_json.h"

#include "report/json.h"

static const char *kind_of(const struct model_cpu_blame *row, const char *program)
{
	if (row->by == MODEL_UNKNOWN)
		return "unknown";
	if (row->by == MODEL_NONE)
		return program ? "program" : "nobody";
	return "thread";
}

static void put_row(struct jsonw *w, const struct recording_pass *pass,
                    const struct model_cpu_blame *row)
{
	const struct model *model = pass->model;
	const char *program = cpu_users_program(pass, row->by, row->name);

	jsonw_object(w, NULL);
	json_tid(w, "tid", model, row->thread);
	json_tid(w, "by_tid", model, row->by == MODEL_UNKNOWN ? MODEL_NONE : row->by);
	jsonw_string(w, "by_name", program);
	jsonw_string(w, "by", row->thread == MODEL_NONE ? "several" : kind_of(row, program));
	jsonw_u64(w, "runnable_ns", row->runnable_ns);
	jsonw_end(w);
}

static void put_groups(struct jsonw *w, const struct analysis *a, size_t most)
{
	struct model_cpu_blame rest = { MODEL_NONE, MODEL_NONE, 0, 0 };

	for (size_t i = 0; i < a->cpu_waits.v.n; i++) {
		const struct group_blame *b = &a->cpu_waits.v.v[i];

		if (i < most)
			put_row(w, a->pass,
			        &(struct model_cpu_blame){ b->longest_waiter, b->longest_holder,
			                                   b->name, b->wait_ns });
		else
			rest.runnable_ns += b->wait_ns;
	}
	if (a->cpu_waits.v.n > most)
		put_row(w, a->pass, &rest);
}

void starvation_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	jsonw_array(w, "starvation");
	if (a->model->cpu_blame.n > most)
		put_groups(w, a, most);
	else
		for (size_t i = 0; i < a->model->cpu_blame.n; i++)
			put_row(w, a->pass, &a->model->cpu_blame.v[i]);
	jsonw_end(w);
}
