/* SPDX-License-Identifier: MIT */
/* Tasks of event loops, as JSON. */
#include "report/json/tasks.h"

#include "analysis/tasks.h"
#include "base/cleanup.h"
#include "trace/names.h"

static const char *slices_name(const struct analysis *a, uint32_t id)
{
	return id ? names_get(a->pass->slices->names, id) : NULL;
}

/* The tid of a thread of the slices. */
static void put_tid(struct jsonw *w, const char *key, const struct analysis *a, uint32_t thread)
{
	jsonw_u64(w, key, a->pass->slices->threads[thread].tid);
}

/* A time, written relative to the start of the recording; null if ns is 0. */
static void put_time(struct jsonw *w, const char *key, const struct analysis *a, uint64_t ns)
{
	if (ns)
		jsonw_u64(w, key, ns > a->model->start_ns ? ns - a->model->start_ns : 0);
	else
		jsonw_null(w, key);
}

static void put_line(struct jsonw *w, uint32_t line)
{
	if (line)
		jsonw_u64(w, "line", line);
	else
		jsonw_null(w, "line");
}

static void put_rows(struct jsonw *w, const char *key, const struct analysis *a,
                     const struct task_rows *rows, uint32_t group)
{
	bool waits = rows == &a->tasks.waits;
	const struct task_row *row;
	size_t n;

	row = task_rows_of(rows, group, &n);
	jsonw_array(w, key);
	for (size_t i = 0; i < n; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "function", slices_name(a, row[i].function));
		if (waits)
			put_line(w, row[i].line);
		jsonw_u64(w, "count", row[i].count);
		if (waits)
			jsonw_u64(w, "ns", row[i].ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_step(struct jsonw *w, const struct analysis *a, const struct task_delay *d)
{
	if (d->start_ns == d->end_ns) {
		jsonw_null(w, "longest_step");
		return;
	}
	jsonw_object(w, "longest_step");
	jsonw_u64(w, "task", d->task);
	put_time(w, "at_ns", a, d->start_ns);
	jsonw_u64(w, "ns", d->end_ns - d->start_ns);
	json_tid(w, "loop_tid", a->model, d->thread);
	jsonw_string(w, "function", slices_name(a, d->function));
	jsonw_u64(w, "function_ns", d->busy_ns);
	jsonw_u64(w, "gil_wait_ns", d->gil_ns);
	jsonw_end(w);
}

static void put_delay(struct jsonw *w, const struct analysis *a, const struct task_delay *d)
{
	const struct aio *aio = a->pass->slices->tasks;
	struct function f;

	if (d->start_ns == d->end_ns) {
		jsonw_null(w, "longest_late");
		return;
	}
	f = function_at(a->pass, d->holder_frame);
	jsonw_object(w, "longest_late");
	jsonw_u64(w, "task", d->task);
	put_time(w, "at_ns", a, d->start_ns);
	jsonw_u64(w, "ns", d->end_ns - d->start_ns);
	jsonw_bool(w, "inferred", d->inferred);
	jsonw_string(w, "woken_by",
	             d->step == AIO_NONE ? NULL
	                                 : slices_name(a, aio->steps.v[d->step].waker.function));
	json_tid(w, "loop_tid", a->model, d->thread);
	jsonw_string(w, "function", slices_name(a, d->function));
	jsonw_u64(w, "function_ns", d->busy_ns);
	jsonw_u64(w, "slept_ns", d->slept_ns);
	jsonw_u64(w, "other_steps", d->others);
	jsonw_u64(w, "gil_wait_ns", d->gil_ns);
	json_tid(w, "holder_tid", a->model, d->holder);
	jsonw_string(w, "holder_function", f.name);
	jsonw_end(w);
}

static void put_group(struct jsonw *w, const struct analysis *a, uint32_t i)
{
	const struct task_group *g = &a->tasks.v.v[i];

	jsonw_object(w, NULL);
	jsonw_string(w, "name", str_get(&g->name));
	jsonw_bool(w, "named", g->named);
	jsonw_string(w, "loop", aio_loop_name(g->loop));
	jsonw_u64(w, "tasks", g->tasks);
	jsonw_u64(w, "done", g->done);
	jsonw_u64(w, "raised", g->raised);
	jsonw_u64(w, "steps", g->steps);
	jsonw_u64(w, "life_ns", g->life_ns);
	jsonw_u64(w, "running_ns", g->running_ns);
	jsonw_u64(w, "waiting_ns", g->waiting_ns);
	jsonw_u64(w, "late_ns", g->late_ns);
	jsonw_u64(w, "unknown_ns", g->unknown_ns);
	jsonw_u64(w, "late_inferred_ns", g->inferred_ns);
	jsonw_u64(w, "late_gil_wait_ns", g->gil_ns);
	put_delay(w, a, &g->delay);
	put_step(w, a, &g->step);
	put_rows(w, "waits", a, &a->tasks.waits, i);
	put_rows(w, "woken_by", a, &a->tasks.wakers, i);
	put_rows(w, "created_by", a, &a->tasks.creators, i);
	jsonw_end(w);
}

static const char *end_name(enum aio_end end)
{
	static const char *const names[] = {
		[AIO_ALIVE] = "alive",
		[AIO_DONE] = "done",
		[AIO_RAISED] = "raised",
		[AIO_LOST] = "lost",
	};

	return names[end];
}

static void put_creator(struct jsonw *w, const struct analysis *a, const struct aio_task *t)
{
	if (!t->created) {
		jsonw_null(w, "created_by");
		return;
	}
	jsonw_object(w, "created_by");
	put_tid(w, "tid", a, t->creator.thread);
	if (t->creator.task == AIO_NONE)
		jsonw_null(w, "task");
	else
		jsonw_u64(w, "task", t->creator.task);
	jsonw_string(w, "function", slices_name(a, t->creator.function));
	jsonw_end(w);
}

static void put_task(struct jsonw *w, const struct analysis *a, uint32_t i)
{
	const struct aio_task *t = &a->pass->slices->tasks->v.v[i];

	jsonw_object(w, NULL);
	jsonw_u64(w, "task", i);
	jsonw_u64(w, "group", a->tasks.of[i]);
	jsonw_string(w, "loop", aio_loop_name(t->loop));
	jsonw_u64(w, "pid", t->pid);
	put_tid(w, "tid", a, t->thread);
	jsonw_string(w, "name", slices_name(a, t->name));
	jsonw_string(w, "function", slices_name(a, t->function));
	put_creator(w, a, t);
	put_time(w, "from_ns", a, t->first_ns);
	put_time(w, "first_run_ns", a, t->run_ns);
	put_time(w, "to_ns", a, t->last_ns);
	jsonw_string(w, "end", end_name(t->end));
	jsonw_u64(w, "steps", t->steps);
	jsonw_u64(w, "life_ns", t->last_ns - t->first_ns);
	jsonw_u64(w, "running_ns", t->running_ns);
	jsonw_u64(w, "waiting_ns", t->waiting_ns);
	jsonw_u64(w, "late_ns", t->late_ns);
	jsonw_u64(w, "unknown_ns", t->unknown_ns);
	jsonw_u64(w, "late_inferred_ns", t->inferred_ns);
	jsonw_u64(w, "longest_late_ns", t->longest_late_ns);
	jsonw_string(w, "suspended_in", slices_name(a, t->place));
	put_line(w, t->line);
	jsonw_end(w);
}

size_t tasks_json_most(size_t most)
{
	return most == SIZE_MAX ? most : most / 10;
}

void tasks_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct aio *aio = a->tasks.v.n ? a->pass->slices->tasks : NULL;

	if (!aio) {
		jsonw_null(w, "tasks");
		return;
	}
	jsonw_object(w, "tasks");
	jsonw_u64(w, "count", aio->v.n);
	jsonw_u64(w, "steps", aio->steps.n);
	jsonw_array(w, "groups");
	for (uint32_t i = 0; i < a->tasks.v.n && i < most; i++)
		put_group(w, a, i);
	jsonw_end(w);
	jsonw_array(w, "list");
	for (uint32_t i = 0; i < aio->v.n && i < tasks_json_most(most); i++)
		put_task(w, a, i);
	jsonw_end(w);
	jsonw_end(w);
}

static void put_levels(struct jsonw *w, const struct analysis *a, uint32_t group)
{
	static const char *const names[TASK_STATES] = {
		[TASK_RUNNING] = "running",
		[TASK_LATE] = "late",
		[TASK_WAITING] = "waiting",
		[TASK_UNKNOWN] = "unknown",
	};
	CLEANUP(task_levels_done) struct task_levels levels;

	task_levels_init(&levels, &a->tasks, a->pass, group);
	jsonw_object(w, NULL);
	jsonw_bool(w, "exact", levels.exact);
	jsonw_array(w, "dur");
	for (size_t i = 0; i < levels.v.n; i++)
		jsonw_u64(w, NULL, levels.v.v[i].dur_ns);
	jsonw_end(w);
	for (unsigned s = 0; s < TASK_STATES; s++) {
		jsonw_array(w, names[s]);
		for (size_t i = 0; i < levels.v.n; i++)
			jsonw_u64(w, NULL, levels.v.v[i].ns[s]);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void tasks_meta(struct jsonw *w, const struct analysis *a)
{
	if (!a->tasks.v.n)
		return;
	jsonw_object(w, "tasks");
	jsonw_u64(w, "pass", (size_t)(a->pass - a->recording->passes));
	jsonw_u64(w, "groups", a->tasks.v.n);
	jsonw_array(w, "lanes");
	for (uint32_t i = 0; i < a->tasks.v.n && i < TASK_LANES; i++)
		put_levels(w, a, i);
	jsonw_end(w);
	jsonw_end(w);
}
