/* SPDX-License-Identifier: MIT */
/* The functions of a pass, as JSON. */
#include "report/json/functions.h"

#include "analysis/functions.h"
#include "report/json/json.h"

static void put_place(struct jsonw *w, const struct function *f)
{
	jsonw_string(w, "function", f->name);
	jsonw_string(w, "file", *f->file ? f->file : NULL);
	if (f->line)
		jsonw_u64(w, "line", f->line);
	else
		jsonw_null(w, "line");
}

static void put_member(struct jsonw *w, const char *key, const struct function *f)
{
	if (!f->name) {
		jsonw_null(w, key);
		return;
	}
	jsonw_object(w, key);
	put_place(w, f);
	jsonw_end(w);
}

static void put_function(struct jsonw *w, const struct recording_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog), caller = function_caller(pass, hog);
	struct function user = function_user(pass, hog);

	put_place(w, &f);
	json_tid(w, "tid", pass->model, hog->thread);
	put_member(w, "caller", &caller);
	put_member(w, "user", &user);
}

static void put_hog(struct jsonw *w, const struct recording *recording,
                    const struct recording_pass *pass, const struct hog *hog)
{
	static const char *const names[] = {
		[GAIN_KNOWN] = NULL,
		[NO_GAIN_UNKNOWN] = "unknown-time",
		[NO_GAIN_LITTLE] = "little",
		[NO_GAIN_DIFFERENT] = "not-reproduced",
		[NO_GAIN_TOO_LONG] = "too-long",
		[NO_GAIN_SLOW_START] = "slow-start",
		[NO_GAIN_NOT_A_CALL] = "not-a-call",
	};
	static const char *const causes[CAUSES] = {
		[CAUSE_CALL] = "call",
		[CAUSE_COLLECTOR] = "collector",
		[CAUSE_IMPORT] = "import",
		[CAUSE_DEALLOCATION] = "deallocation",
	};
	uint64_t gain_ns = 0;
	enum no_gain why = function_gain(pass, hog, &gain_ns);
	struct function of;

	jsonw_object(w, NULL);
	put_function(w, pass, hog);
	jsonw_string(w, "native", function_native(pass, hog));
	jsonw_string(w, "cause", causes[function_cause(pass, hog)]);
	jsonw_bool(w, "inferred", function_is_inferred(pass, hog));
	jsonw_string(w, "source", function_source(recording, pass, hog, &of));
	jsonw_u64(w, "holds", hog->overdue_holds);
	jsonw_u64(w, "hold_ns", hog->overdue_ns);
	jsonw_u64(w, "longest_hold_ns", hog->overdue_longest_ns);
	jsonw_u64(w, "longest_hold_at_ns", hog->overdue_longest_at_ns - pass->model->start_ns);
	jsonw_u64(w, "wait_caused_ns", hog->overdue_wait_ns);
	jsonw_u64(w, "held_off_cpu_ns", hog->off_cpu_ns);
	jsonw_u64(w, "held_asleep_ns", hog->asleep_ns);
	if (why == GAIN_KNOWN)
		jsonw_u64(w, "gain_ns", gain_ns);
	else
		jsonw_null(w, "gain_ns");
	jsonw_string(w, "no_gain", names[why]);
	jsonw_end(w);
}

static void put_all(struct jsonw *w, const struct recording_pass *pass, const struct hog *hog)
{
	jsonw_object(w, NULL);
	put_function(w, pass, hog);
	jsonw_u64(w, "holds", hog->holds);
	jsonw_u64(w, "hold_ns", hog->hold_ns);
	jsonw_u64(w, "longest_hold_ns", hog->longest_ns);
	jsonw_u64(w, "longest_hold_at_ns", hog->longest_at_ns - pass->model->start_ns);
	jsonw_u64(w, "wait_caused_ns", hog->wait_ns);
	jsonw_u64(w, "held_off_cpu_ns", hog->hold_off_cpu_ns);
	jsonw_u64(w, "held_asleep_ns", hog->hold_asleep_ns);
	jsonw_end(w);
}

void functions_json(struct jsonw *w, const struct recording *recording,
                    const struct recording_pass *pass)
{
	size_t n = pass->hogs ? pass->hogs->v.n : 0;

	jsonw_array(w, "hogs");
	for (size_t i = 0; i < n && pass->hogs->v.v[i].overdue_holds; i++)
		put_hog(w, recording, pass, &pass->hogs->v.v[i]);
	jsonw_end(w);
	jsonw_array(w, "functions");
	for (size_t i = 0; i < n; i++)
		if (pass->hogs->v.v[i].wait_ns)
			put_all(w, pass, &pass->hogs->v.v[i]);
	jsonw_end(w);
}
