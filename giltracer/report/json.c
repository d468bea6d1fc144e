/* SPDX-License-Identifier: MIT */
/* The facts for machines: schema 1 of DESIGN.md section 6, see share/giltracer.1. */
#include "json.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "report/counters.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/locks.h"
#include "report/patterns.h"
#include "report/starved.h"
#include "report/verdict.h"
#include "trace/source.h"

void json_tid(struct jsonw *w, const char *key, const struct model *model, uint32_t thread)
{
	if (thread == MODEL_NONE)
		jsonw_null(w, key);
	else
		jsonw_u64(w, key, thread == MODEL_UNKNOWN ? 0 : model->threads.v[thread].tid);
}

static void put_python(struct jsonw *w, const struct report_python *python,
                       const struct report_pass *pass)
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

static void put_passes(struct jsonw *w, const struct report *report)
{
	jsonw_array(w, "passes");
	for (size_t i = 0; i < report->pass_count; i++) {
		const struct report_pass *pass = &report->passes[i];
		struct facts_totals totals = facts_totals(pass->model);

		jsonw_object(w, NULL);
		jsonw_string(w, "name", pass->name);
		jsonw_i64(w, "exit_status", pass->exit_status);
		jsonw_u64(w, "wall_ns", pass->wall_ns);
		jsonw_u64(w, "events", pass->source ? pass->source->stats.events : 0);
		jsonw_u64(w, "lost", pass->source ? pass->source->stats.lost : 0);
		jsonw_u64(w, "releases_probed", totals.releases_probed);
		jsonw_u64(w, "releases_inferred", totals.releases_inferred);
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

static void put_blocked(struct jsonw *w, const struct model_thread *t)
{
	jsonw_u64(w, "lock_wait_ns", t->gil_ns[GIL_LOCK_WAIT]);
	jsonw_u64(w, "stopped_ns", t->gil_ns[GIL_STOPPED]);
	jsonw_u64(w, "stopping_ns", t->gil_ns[GIL_STOPPING]);
	jsonw_u64(w, "lock_waits", t->lock_waits);
	jsonw_u64(w, "stops", t->stops);
	jsonw_u64(w, "worlds_stopped", t->worlds_stopped);
	jsonw_u64(w, "longest_lock_wait_ns", t->longest_lock_wait_ns);
	jsonw_u64(w, "longest_stop_ns", t->longest_stop_ns);
	jsonw_u64(w, "longest_stopping_ns", t->longest_stopping_ns);
}

void json_thread_members(struct jsonw *w, const struct report_pass *pass, uint32_t thread)
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
	jsonw_u64(w, "free_wait_ns", t->free_wait_ns);
	jsonw_u64(w, "no_gil_ns", model_thread_no_gil_ns(t));
	jsonw_u64(w, "unknown_ns", t->gil_ns[GIL_UNKNOWN]);
	jsonw_u64(w, "holds", t->holds);
	jsonw_u64(w, "waits", t->waits);
	jsonw_u64(w, "longest_hold_ns", t->longest_hold_ns);
	jsonw_u64(w, "longest_wait_ns", t->longest_wait_ns);
	if (pass->free_threaded)
		put_blocked(w, t);
	put_states(w, t);
	jsonw_u64(w, "unseen_runnable_ns", t->unseen_runnable_ns);
}

static void put_threads(struct jsonw *w, const struct report_pass *pass)
{
	CLEANUP(free) uint32_t *order = facts_thread_order(pass->model);

	jsonw_array(w, "threads");
	for (size_t i = 0; i < pass->model->threads.n; i++) {
		jsonw_object(w, NULL);
		json_thread_members(w, pass, order[i]);
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

static void put_blame(struct jsonw *w, const struct model *model, size_t most)
{
	CLEANUP(free) uint32_t *order = facts_blame_order(model);

	jsonw_array(w, "blame");
	for (size_t i = 0; i < model->blame.n && i < most; i++) {
		const struct model_blame *blame = &model->blame.v[order[i]];

		jsonw_object(w, NULL);
		json_tid(w, "waiter_tid", model, blame->waiter);
		json_tid(w, "holder_tid", model, blame->holder);
		jsonw_u64(w, "wait_ns", blame->wait_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* How many rows there are of what has not all of them. */
static void put_shortened(struct jsonw *w, const struct report_pass *pass, size_t most)
{
	const struct model *m = pass->model;
	const struct {
		const char *key;
		size_t n;
	} lists[] = {
		{ "blame", m->blame.n },
		{ "lock_blame", pass->free_threaded ? m->lock_blame.n : 0 },
		{ "starvation", m->starved.n },
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (lists[i].n <= most)
			continue;
		if (!any)
			jsonw_object(w, "shortened");
		any = true;
		jsonw_u64(w, lists[i].key, lists[i].n);
	}
	if (any)
		jsonw_end(w);
}

static void put_verdict(struct jsonw *w, const struct report *report)
{
	struct verdict v;

	verdict_init(&v, report);
	jsonw_object(w, "verdict");
	jsonw_string(w, "kind", verdict_kind_name(v.kind));
	jsonw_string(w, "headline", str_get(&v.headline));
	jsonw_string(w, "because", v.because.len ? str_get(&v.because) : NULL);
	jsonw_string(w, "also", v.also.len ? str_get(&v.also) : NULL);
	jsonw_string(w, "advice", v.advice.len ? str_get(&v.advice) : NULL);
	jsonw_string(w, "quality", verdict_quality_name(v.quality));
	jsonw_end(w);
	verdict_done(&v);
}

static void put_caveats(struct jsonw *w, const struct report *report)
{
	struct facts_caveats caveats = facts_caveats(report);

	jsonw_array(w, "caveats");
	for (size_t i = 0; i < caveats.n; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "code", caveats.v[i].code);
		jsonw_u64(w, "count", caveats.v[i].count);
		jsonw_string(w, "text", caveats.v[i].text);
		jsonw_string(w, "pass", caveats.v[i].pass);
		jsonw_end(w);
	}
	jsonw_end(w);
	vec_done(&caveats);
}

void json_write(const struct report *report, size_t most, FILE *out)
{
	const struct report_pass *pass = report_main_pass(report);
	struct jsonw w;

	jsonw_init(&w, out, 2);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "schema", 1);
	jsonw_string(&w, "giltracer", report->version);
	put_verdict(&w, report);
	put_python(&w, &report->python, pass);
	put_passes(&w, report);
	put_threads(&w, pass);
	put_gils(&w, pass->model);
	put_blame(&w, pass->model, most);
	if (pass->free_threaded)
		locks_json(&w, pass, most);
	functions_json(&w, pass);
	patterns_json(&w, pass);
	starved_json(&w, pass, most);
	counters_json(&w, pass);
	put_caveats(&w, report);
	put_shortened(&w, pass, most);
	jsonw_end(&w);
	jsonw_finish(&w);
}

int report_json(const struct report *report, FILE *out, struct error *err)
{
	(void)err;
	json_write(report, SIZE_MAX, out);
	return 0;
}
