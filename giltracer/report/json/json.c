/* SPDX-License-Identifier: MIT */
/* The facts as JSON: schema 1, see share/giltracer.1. */
#include "report/json/json.h"

#include "analysis/facts.h"
#include "analysis/functions.h"
#include "base/cleanup.h"
#include "report/json/functions.h"
#include "report/json/locks.h"
#include "report/patterns.h"
#include "report/json/samples.h"
#include "report/json/tasks.h"
#include "report/json/starvation.h"
#include "report/verdict_text.h"
#include "report/wording.h"
#include "trace/source.h"

static void put_python(struct jsonw *w, const struct recording_python *python,
                       const struct recording_pass *pass)
{
	jsonw_object(w, "python");
	jsonw_string(w, "executable", python->executable);
	jsonw_string(w, "version", python->version);
	jsonw_string(w, "implementation", python->implementation);
	jsonw_string(w, "build_id", python->build_id);
	jsonw_bool(w, "free_threaded", python->free_threaded);
	if (python->free_threaded) {
		jsonw_string(w, "gil", python->gil);
		jsonw_string(w, "gil_module", pass->model->gil_module);
	}
	jsonw_array(w, "gil_functions");
	for (size_t i = 0; i < python->function_count; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "name", python->functions[i].name);
		jsonw_u64(w, "offset", python->functions[i].offset);
		jsonw_string(w, "kind", python->functions[i].kind);
		jsonw_end(w);
	}
	jsonw_end(w);
	jsonw_end(w);
}

static void put_passes(struct jsonw *w, const struct recording *recording)
{
	jsonw_array(w, "passes");
	for (size_t i = 0; i < recording->pass_count; i++) {
		const struct recording_pass *pass = &recording->passes[i];
		struct facts_totals totals = facts_totals(pass->model);

		jsonw_object(w, NULL);
		jsonw_string(w, "name", pass_kind_name(pass->kind));
		jsonw_i64(w, "exit_status", pass->exit_status);
		jsonw_u64(w, "wall_ns", pass->wall_ns);
		jsonw_u64(w, "events", pass->source ? pass->source->stats.events : 0);
		jsonw_u64(w, "lost", pass->source ? pass->source->stats.lost : 0);
		jsonw_u64(w, "releases_probed", totals.releases_probed);
		jsonw_u64(w, "releases_inferred", totals.releases_inferred);
		if (pass->quota.quota_us) {
			jsonw_object(w, "cpu_quota");
			jsonw_u64(w, "quota_ns", pass->quota.quota_us * 1000);
			jsonw_u64(w, "period_ns", pass->quota.period_us * 1000);
			jsonw_u64(w, "periods", pass->quota.periods);
			jsonw_u64(w, "throttled", pass->quota.throttled);
			jsonw_end(w);
		}
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_states(struct jsonw *w, const struct model_thread *t)
{
	jsonw_object(w, "states");
	jsonw_u64(w, "running_ns", t->cpu_ns[CPU_RUNNING]);
	jsonw_u64(w, "runnable_ns", t->cpu_ns[CPU_RUNNABLE]);
	jsonw_u64(w, "sleeping_ns", t->cpu_ns[CPU_SLEEPING]);
	jsonw_u64(w, "uninterruptible_ns", t->cpu_ns[CPU_UNINTERRUPTIBLE]);
	jsonw_u64(w, "gil_sleep_ns", t->cpu_ns[CPU_GIL_SLEEP]);
	jsonw_u64(w, "unknown_ns", t->cpu_ns[CPU_UNKNOWN]);
	jsonw_end(w);
}

/* Null if it is not known. */
static void put_known(struct jsonw *w, const char *key, bool known, uint64_t value)
{
	if (known)
		jsonw_u64(w, key, value);
	else
		jsonw_null(w, key);
}

static void put_lock_waits(struct jsonw *w, const struct model_thread *t, bool known)
{
	put_known(w, "lock_wait_ns", known, t->gil_ns[GIL_LOCK_WAIT]);
	put_known(w, "lock_waits", known, t->lock_waits);
	put_known(w, "longest_lock_wait_ns", known, t->longest_lock_wait_ns);
}

static void put_stops(struct jsonw *w, const struct model_thread *t)
{
	jsonw_u64(w, "stopped_ns", t->gil_ns[GIL_STOPPED]);
	jsonw_u64(w, "stopping_ns", t->gil_ns[GIL_STOPPING]);
	jsonw_u64(w, "stops", t->stops);
	jsonw_u64(w, "worlds_stopped", t->worlds_stopped);
	jsonw_u64(w, "longest_stop_ns", t->longest_stop_ns);
	jsonw_u64(w, "longest_stopping_ns", t->longest_stopping_ns);
}

void json_thread_members(struct jsonw *w, const struct recording_pass *pass, uint32_t thread)
{
	const struct model_thread *t = &pass->model->threads.v[thread];

	jsonw_u64(w, "pid", t->pid);
	jsonw_u64(w, "tid", t->tid);
	jsonw_string(w, "name", facts_thread_name(pass, thread));
	jsonw_bool(w, "main", t->main);
	jsonw_u64(w, "total_ns", t->end_ns - t->start_ns);
	jsonw_u64(w, "hold_ns", t->gil_ns[GIL_HOLD]);
	jsonw_u64(w, "wait_ns", model_thread_wait_ns(t));
	jsonw_u64(w, "switch_wait_ns", t->gil_ns[GIL_SWITCH_WAIT]);
	jsonw_u64(w, "free_wait_ns", t->gil_ns[GIL_FREE_WAIT]);
	jsonw_u64(w, "no_gil_ns", model_thread_no_gil_ns(t));
	jsonw_u64(w, "unknown_ns", t->gil_ns[GIL_UNKNOWN]);
	jsonw_u64(w, "probe_cost_ns", t->probe_cost_ns);
	if (pass->slices && pass->slices->call_cost_ps)
		jsonw_u64(w, "calls_cost_ns", t->calls_cost_ns);
	if (t->suspended_ns)
		jsonw_u64(w, "suspended_ns", t->suspended_ns);
	jsonw_u64(w, "holds", t->holds);
	jsonw_u64(w, "waits", t->waits);
	jsonw_u64(w, "free_waits", t->free_waits);
	jsonw_u64(w, "longest_hold_ns", t->longest_hold_ns);
	jsonw_u64(w, "longest_wait_ns", t->longest_wait_ns);
	put_lock_waits(w, t, pass->locks_known);
	if (pass->free_threaded)
		put_stops(w, t);
	put_states(w, t);
	jsonw_u64(w, "unseen_runnable_ns", t->unseen_runnable_ns);
}

static void put_threads(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "threads");
	for (size_t i = 0; i < a->model->threads.n; i++) {
		jsonw_object(w, NULL);
		json_thread_members(w, a->pass, a->thread_order[i]);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void json_gil_members(struct jsonw *w, const struct model_gil *gil)
{
	jsonw_u64(w, "pid", gil->pid);
	jsonw_hex(w, "address", gil->address);
	jsonw_u64(w, "held_ns", gil->held_ns);
	jsonw_u64(w, "wanted_ns", gil->wanted_ns);
	jsonw_u64(w, "handover_ns", gil->handover_ns);
}

static void put_gils(struct jsonw *w, const struct model *model)
{
	jsonw_array(w, "gils");
	for (size_t i = 0; i < model->gils.n; i++) {
		jsonw_object(w, NULL);
		json_gil_members(w, &model->gils.v[i]);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_blame(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct model *model = a->model;

	jsonw_array(w, "blame");
	for (size_t i = 0; i < model->blame.n && i < most; i++) {
		const struct model_blame *blame = &model->blame.v[a->blame_order[i]];

		jsonw_object(w, NULL);
		json_tid(w, "waiter_tid", model, blame->waiter);
		json_tid(w, "holder_tid", model, blame->holder);
		jsonw_u64(w, "wait_ns", blame->wait_ns);
		if (blame->holder == MODEL_NONE)
			jsonw_u64(w, "no_cpu_ns", blame->no_cpu_ns);
		jsonw_u64(w, "gil", blame->gil);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_counters(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "counters");
	for (size_t i = 0; i < a->counters.v.n; i++) {
		const struct counter_row *row = &a->counters.v.v[i];

		jsonw_object(w, NULL);
		jsonw_string(w, "name", a->pass->source->counters[row->counter]);
		json_tid(w, "tid", a->model, row->thread);
		jsonw_u64(w, "count", row->count);
		jsonw_u64(w, "samples", row->samples);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* The full number of rows of each shortened list. */
static void put_shortened(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct recording_pass *pass = a->pass;
	const struct model *m = a->model;
	const struct {
		const char *key;
		size_t n, most;
	} lists[] = {
		{ "blame", m->blame.n, most },
		{ "lock_blame", m->lock_blame.n, most },
		{ "lock_chains", a->chains.v.n, most },
		{ "critical_path", a->path.rows.n, most },
		{ "starvation", m->cpu_blame.n, most },
		{ "tasks", pass->slices && pass->slices->tasks ? pass->slices->tasks->v.n : 0,
		  tasks_json_most(most) },
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (lists[i].n <= lists[i].most)
			continue;
		if (!any)
			jsonw_object(w, "shortened");
		any = true;
		jsonw_u64(w, lists[i].key, lists[i].n);
	}
	if (any)
		jsonw_end(w);
}

/* Sentences, or null. */
static void put_reasons(struct jsonw *w, const char *key, const struct analysis *a,
                        const struct reasons *reasons)
{
	CLEANUP(str_done) struct str text = { 0 };

	verdict_add_text(&text, a, reasons);
	jsonw_string(w, key, reasons->v.n ? str_get(&text) : NULL);
}

static void put_verdict(struct jsonw *w, const struct analysis *a)
{
	const struct verdict *v = &a->verdict;

	jsonw_object(w, "verdict");
	jsonw_string(w, "kind", verdict_kind_name(v->kind));
	put_reasons(w, "headline", a, &v->headline);
	put_reasons(w, "because", a, &v->because);
	put_reasons(w, "also", a, &v->also);
	put_reasons(w, "advice", a, &v->advice);
	jsonw_string(w, "quality", verdict_quality_name(v->quality));
	jsonw_end(w);
}

static void put_caveats(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "caveats");
	for (size_t i = 0; i < a->caveats.n; i++) {
		const struct facts_caveat *caveat = &a->caveats.v[i];
		CLEANUP(str_done) struct str text = { 0 };

		wording_add_caveat(&text, caveat);
		jsonw_object(w, NULL);
		jsonw_string(w, "code", caveat->code);
		jsonw_u64(w, "count", caveat->count);
		jsonw_string(w, "text", str_get(&text));
		jsonw_string(w, "pass", caveat->pass);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void json_write(const struct analysis *a, size_t most, FILE *out)
{
	const struct recording_pass *pass = a->pass;
	struct jsonw w;

	jsonw_init(&w, out, 2);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "schema", 1);
	jsonw_string(&w, "giltracer", a->recording->version);
	put_verdict(&w, a);
	put_python(&w, &a->recording->python, pass);
	put_passes(&w, a->recording);
	put_threads(&w, a);
	put_gils(&w, a->model);
	put_blame(&w, a, most);
	locks_json(&w, a, most);
	functions_json(&w, a->recording, pass);
	patterns_json(&w, pass);
	starvation_json(&w, a, most);
	put_counters(&w, a);
	samples_json(&w, a, most);
	tasks_json(&w, a, most);
	put_caveats(&w, a);
	put_shortened(&w, a, most);
	jsonw_end(&w);
	jsonw_finish(&w);
}

int report_json(const struct analysis *a, FILE *out, struct error *err)
{
	(void)err;
	json_write(a, SIZE_MAX, out);
	return 0;
}
