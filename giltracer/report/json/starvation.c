/* SPDX-License-Identifier: MIT */
/* Users of the CPUs while threads were runnable, as JSON. */
#include "report/json/starvation.h"

#include "report/json/json.h"

static const char *kind_of(const struct group_blame *row, const char *program)
{
	if (row->longest_waiter == MODEL_NONE)
		return "several";
	if (row->longest_holder == MODEL_UNKNOWN)
		return "unknown";
	if (row->longest_holder == MODEL_NONE)
		return program ? "program" : "nobody";
	return "thread";
}

static void put_row(struct jsonw *w, const struct recording_pass *pass,
                    const struct group_blame *row)
{
	uint32_t by = row->longest_holder;
	const char *program = cpu_users_program(pass, by, row->name);

	jsonw_object(w, NULL);
	json_tid(w, "tid", pass->model, row->longest_waiter);
	json_tid(w, "by_tid", pass->model, by == MODEL_UNKNOWN ? MODEL_NONE : by);
	jsonw_string(w, "by_name", program);
	jsonw_string(w, "by", kind_of(row, program));
	jsonw_u64(w, "runnable_ns", row->wait_ns);
	jsonw_end(w);
}

/* The last row is the sum of the omitted ones. */
static void put_groups(struct jsonw *w, const struct analysis *a, size_t most)
{
	struct group_blame rest = { .longest_waiter = MODEL_NONE,
		                    .longest_holder = MODEL_NONE,
		                    .wait_ns = a->cpu_waits.wait_ns };

	for (size_t i = 0; i < a->cpu_waits.v.n && i < most; i++) {
		put_row(w, a->pass, &a->cpu_waits.v.v[i]);
		rest.wait_ns -= a->cpu_waits.v.v[i].wait_ns;
	}
	if (a->cpu_waits.v.n > most)
		put_row(w, a->pass, &rest);
}

void starvation_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	size_t n = blame_pair_count(a->model, WAIT_FOR_CPU);

	jsonw_array(w, "starvation");
	if (n > most)
		put_groups(w, a, most);
	for (size_t i = 0; n <= most && i < n; i++) {
		struct group_blame pair = blame_pair(a->model, WAIT_FOR_CPU, i);

		put_row(w, a->pass, &pair);
	}
	jsonw_end(w);
}
