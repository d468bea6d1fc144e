/* SPDX-License-Identifier: MIT */
/* Counts of samples, as JSON. */
#include "report/json/samples.h"

#include "report/json/json.h"
#include "trace/names.h"

static void put_activities(struct jsonw *w, const uint64_t *what)
{
	for (unsigned i = 0; i < SAMPLED_WHATS; i++)
		jsonw_u64(w, sampled_what_name(i), what[i]);
}

/* The interpreter whose GIL a thread used last. */
static uint32_t last_gil_of(const struct sample_thread *thread)
{
	return thread->runs.n ? thread->runs.v[thread->runs.n - 1].gil_of : 0;
}

static void put_thread(struct jsonw *w, const struct analysis *a, const struct sampled_thread *t)
{
	const struct samples *s = a->pass->samples;
	const struct sample_thread *of = &s->threads.v[t->of];

	jsonw_object(w, NULL);
	jsonw_u64(w, "pid", of->pid);
	jsonw_u64(w, "tid", of->tid);
	jsonw_string(w, "name",
	             t->thread == MODEL_NONE ? names_get(s->names, of->name)
	                                     : facts_thread_name(a->pass, t->thread));
	jsonw_u64(w, "gil_of", last_gil_of(of));
	jsonw_u64(w, "samples", t->samples);
	put_activities(w, t->what);
	jsonw_end(w);
}

static void put_gil(struct jsonw *w, const struct sampled_gil *gil)
{
	jsonw_object(w, NULL);
	jsonw_u64(w, "pid", gil->pid);
	jsonw_u64(w, "gil_of", gil->gil_of);
	jsonw_u64(w, "held", gil->held);
	jsonw_end(w);
}

static void put_function(struct jsonw *w, const struct samples *s, uint32_t name, uint32_t file,
                         uint32_t line)
{
	jsonw_string(w, "function", names_get(s->names, name));
	jsonw_string(w, "file", file ? names_get(s->names, file) : NULL);
	if (line)
		jsonw_u64(w, "line", line);
	else
		jsonw_null(w, "line");
}

static void put_place(struct jsonw *w, const struct samples *s, const struct sampled_place *p)
{
	jsonw_object(w, NULL);
	put_function(w, s, p->name, p->file, p->line);
	if (p->caller) {
		jsonw_object(w, "caller");
		put_function(w, s, p->caller, p->caller_file, p->caller_line);
		jsonw_end(w);
	} else {
		jsonw_null(w, "caller");
	}
	jsonw_string(w, "what", sampled_what_name(p->what));
	jsonw_u64(w, "tid", p->threads == 1 ? s->threads.v[p->thread].tid : 0);
	jsonw_u64(w, "threads", p->threads);
	jsonw_u64(w, "samples", p->samples);
	jsonw_u64(w, "waiters", p->waiters);
	jsonw_end(w);
}

void samples_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct samples *s = a->pass->samples;

	if (!s) {
		jsonw_null(w, "samples");
		return;
	}
	jsonw_object(w, "samples");
	jsonw_u64(w, "hz", s->hz);
	jsonw_bool(w, "gil_only", s->gil_only);
	jsonw_u64(w, "count", s->times.n);
	jsonw_u64(w, "missed", s->missed);
	jsonw_u64(w, "stacks", s->stacks_read);
	jsonw_u64(w, "torn", s->torn);
	jsonw_u64(w, "held", a->sampled.held);
	jsonw_array(w, "gils");
	for (size_t i = 0; i < a->sampled.gils.n; i++)
		put_gil(w, &a->sampled.gils.v[i]);
	jsonw_end(w);
	jsonw_array(w, "threads");
	for (size_t i = 0; i < a->sampled.threads.n; i++)
		put_thread(w, a, &a->sampled.threads.v[i]);
	jsonw_end(w);
	jsonw_array(w, "places");
	for (size_t i = 0; i < a->sampled.places.n && i < most; i++)
		put_place(w, s, &a->sampled.places.v[i]);
	jsonw_end(w);
	jsonw_end(w);
}
