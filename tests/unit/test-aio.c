/* SPDX-License-Identifier: MIT */
/* Tasks of event loops from events: small cases, and random event loops against a simple model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "tap.h"
#include "trace/aio.h"

#define LOOP  0 /* threads */
#define OTHER 1

struct events {
	VEC(struct aio_event) v;
};

static struct aio_event *put(struct events *e, enum aio_event_kind kind, uint64_t t,
                             uint64_t object, bool is_task)
{
	struct aio_event *event = vec_push(&e->v);

	*event = (struct aio_event){
		.kind = (uint8_t)kind, .time_ns = t, .object = object, .is_task = is_task
	};
	return event;
}

static void put_run(struct events *e, uint64_t from, uint64_t to, uint64_t object, enum aio_how how)
{
	struct aio_event *event = put(e, AIO_RUN, from, object, true);

	event->end_ns = to;
	event->how = (uint8_t)how;
}

static struct aio make(struct events *e, uint64_t end_ns)
{
	const struct aio_process process = { 100, end_ns };
	struct aio aio;

	aio_make(&aio, e->v.v, e->v.n, &process);
	vec_done(&e->v);
	return aio;
}

/* "first running waiting late unknown inferred steps end" of each. */
static void is_tasks(struct aio *aio, const char *wanted, const char *what)
{
	char text[512] = "";

	for (size_t i = 0; i < aio->v.n; i++) {
		const struct aio_task *t = &aio->v.v[i];
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%d %d %d %d %d %d %d %d", i ? ", " : "",
		         (int)t->first_ns, (int)t->running_ns, (int)t->waiting_ns, (int)t->late_ns,
		         (int)t->unknown_ns, (int)t->inferred_ns, (int)t->steps, (int)t->end);
	}
	is_str(text, wanted, "%s", what);
	aio_done(aio);
}

static void test_small(void)
{
	struct events e = { 0 };
	struct aio aio;

	put(&e, AIO_READY, 10, 1, true)->creates = true;
	put_run(&e, 15, 20, 1, AIO_SUSPENDED);
	put(&e, AIO_READY, 30, 1, true);
	put_run(&e, 37, 40, 1, AIO_RETURNED);
	aio = make(&e, 100);
	is_tasks(&aio, "10 8 10 12 0 0 2 1", "created, woken, done");

	put_run(&e, 15, 20, 1, AIO_SUSPENDED);
	put_run(&e, 30, 35, 1, AIO_SUSPENDED);
	aio = make(&e, 100);
	is_tasks(&aio, "15 10 65 0 10 0 2 0", "it is not known when it became ready");

	put(&e, AIO_READY, 10, 1, true);
	put_run(&e, 10, 20, 1, AIO_SUSPENDED);
	put(&e, AIO_READY, 15, 1, true);
	put_run(&e, 25, 30, 1, AIO_THREW);
	aio = make(&e, 100);
	is_tasks(&aio, "10 15 0 5 0 0 2 2",
	         "who lets others run is late from the end of its step on");

	put(&e, AIO_READY, 10, 1, true);
	put_run(&e, 10, 20, 1, AIO_SUSPENDED);
	put(&e, AIO_READY, 60, 1, true)->creates = true;
	aio = make(&e, 100);
	is_tasks(&aio, "10 10 0 0 0 0 1 3, 60 0 0 40 0 0 0 0",
	         "another task where one was; one that never ran");

	put(&e, AIO_READY, 10, 1, true);
	put_run(&e, 10, 20, 1, AIO_SUSPENDED);
	put(&e, AIO_READY, 30, 1, true);
	put(&e, AIO_READY, 60, 1, true)->creates = true;
	aio = make(&e, 100);
	is_u64(aio.v.v[0].ready_ns, 0, "for how long one was late that is lost is not known");
	is_tasks(&aio, "10 10 0 0 0 0 1 3, 60 0 0 40 0 0 0 0", "  nor that it was");
}

/* Where nothing tells when a task becomes ready. */
static void test_uvloop(void)
{
	struct events e = { 0 };
	struct aio aio;

	put(&e, AIO_READY, 10, 1, true)->creates = true;
	put_run(&e, 15, 20, 1, AIO_SUSPENDED);
	put_run(&e, 30, 35, 1, AIO_SUSPENDED);
	for (size_t i = 0; i < e.v.n; i++)
		e.v.v[i].loop = AIO_UVLOOP;
	aio = make(&e, 100);
	is_str(aio_loop_name(aio.v.v[0].loop), "uvloop", "a task of uvloop");
	is_u64(aio.steps.v[1].unknown, true, "when it became ready is not known");
	is_tasks(&aio, "10 10 0 5 75 0 2 0", "  nor afterwards whether it waits");

	put(&e, AIO_READY, 10, 1, true)->creates = true;
	put_run(&e, 15, 20, 1, AIO_SUSPENDED);
	put(&e, AIO_READY, 20, 1, true);
	for (size_t i = 0; i < e.v.n; i++)
		e.v.v[i].loop = AIO_UVLOOP;
	aio = make(&e, 100);
	is_tasks(&aio, "10 5 0 85 0 0 1 0", "it only lets others run, and never runs again");
}

/* At the end of a step, with the same time. */
static void test_until(void)
{
	struct events e = { 0 };
	struct aio aio;

	put_run(&e, 10, 20, 1, AIO_SUSPENDED);
	e.v.v[0].until = 2;
	put(&e, AIO_READY, 20, 1, true);
	put(&e, AIO_READY, 20, 2, true);
	aio = make(&e, 100);
	is_u64(aio.v.v[1].creator.task, AIO_NONE, "what comes after a step is not of it");
	aio_done(&aio);

	put_run(&e, 10, 20, 1, AIO_SUSPENDED);
	e.v.v[0].until = 2;
	put(&e, AIO_READY, 20, 2, true);
	aio = make(&e, 100);
	is_u64(aio.v.v[1].creator.task, 0, "what comes before its end is, whatever the time");
	aio_done(&aio);
}

static void test_callbacks(void)
{
	struct events e = { 0 };
	struct aio_event *put_at;
	struct aio aio;

	put(&e, AIO_READY, 10, 1, true);
	put_run(&e, 10, 20, 1, AIO_SUSPENDED);
	put(&e, AIO_READY, 30, 7, false)->function = 5;
	e.v.v[e.v.n - 1].thread = OTHER;
	put(&e, AIO_RUN, 50, 7, false)->end_ns = 60;
	put(&e, AIO_READY, 55, 1, true);
	put_run(&e, 60, 70, 1, AIO_SUSPENDED);
	aio = make(&e, 80);
	is_u64(aio.steps.v[1].known_ns, 55, "when it was woken");
	is_u64(aio.steps.v[1].waker.function, 5, "by whoever put the callback into the queue");
	is_u64(aio.steps.v[1].waker.thread, OTHER, "  in its thread");
	is_tasks(&aio, "10 20 20 30 0 25 2 0", "late since its callback was put into the queue");

	put(&e, AIO_READY, 10, 1, true);
	put_run(&e, 10, 20, 1, AIO_SUSPENDED);
	put_at = put(&e, AIO_DUE, 15, 7, false);
	put_at->end_ns = 40;
	put(&e, AIO_RUN, 70, 7, false)->end_ns = 80;
	put(&e, AIO_READY, 75, 1, true);
	put_run(&e, 80, 90, 1, AIO_SUSPENDED);
	aio = make(&e, 90);
	is_tasks(&aio, "10 20 20 40 0 35 2 0", "late since its timer was due");
}

/* ---- random loops */

#define TASKS 12

struct truth {
	bool alive;
	uint64_t object, first, last, ready, known, end;
	uint64_t running, waiting, late, inferred, steps;
};

/* target: a task, or of a callback the task that it wakes. */
struct item {
	bool is_task;
	uint64_t object, since;
	size_t target;
};

struct world {
	struct events e;
	VEC(struct truth) truth;
	VEC(struct item) queue, timers;
	size_t next;
	uint64_t now, object, since; /* since: of the callback that runs, 0: none does */
	uint32_t seed;
};

static uint32_t draw(struct world *w, uint32_t below)
{
	w->seed = w->seed * 1664525 + 1013904223;
	return (w->seed >> 8) % below;
}

static void ready_task(struct world *w, size_t i)
{
	struct truth *t = &w->truth.v[i];

	put(&w->e, AIO_READY, w->now, t->object, true);
	if (t->ready)
		return;
	t->ready = w->since && w->since < w->now ? w->since : w->now;
	if (t->ready < t->last)
		t->ready = t->last;
	t->known = w->now < t->ready ? t->ready : w->now;
	*vec_push(&w->queue) = (struct item){ .is_task = true, .target = i };
}

static void create(struct world *w)
{
	size_t i = w->truth.n;
	uint64_t object = 100 + draw(w, TASKS);

	/* Memory is used again when a task is done. */
	for (size_t k = 0; k < i; k++)
		if (w->truth.v[k].alive && w->truth.v[k].object == object)
			return;
	*vec_push(&w->truth) =
		(struct truth){ .alive = true, .object = object, .first = w->now, .last = w->now };
	put(&w->e, AIO_READY, w->now, object, true)->creates = true;
	w->truth.v[i].ready = w->truth.v[i].known = w->now;
	*vec_push(&w->queue) = (struct item){ .is_task = true, .target = i };
}

static void call_soon(struct world *w, size_t target, uint32_t thread)
{
	uint64_t since = w->since && thread == LOOP && w->since < w->now ? w->since : w->now;

	put(&w->e, AIO_READY, w->now, ++w->object, false)->thread = thread;
	*vec_push(&w->queue) =
		(struct item){ .object = w->object, .since = since, .target = target };
}

static void call_later(struct world *w, size_t target)
{
	uint64_t due = w->now + 1 + draw(w, 50);

	put(&w->e, AIO_DUE, w->now, ++w->object, false)->end_ns = due;
	*vec_push(&w->timers) =
		(struct item){ .object = w->object, .since = due, .target = target };
}

/* What code does while it runs. */
static void act(struct world *w, size_t self)
{
	size_t target = draw(w, (uint32_t)w->truth.n);

	w->now += 1 + draw(w, 5);
	switch (draw(w, 6)) {
	case 0:
		create(w);
		break;
	case 1:
		/* A task that runs is put into the queue only by itself, at its end. */
		if (target != self && w->truth.v[target].alive && w->truth.v[target].steps)
			ready_task(w, target);
		break;
	case 2:
		call_soon(w, target, LOOP);
		break;
	case 3:
		call_later(w, target);
		break;
	case 4:
		call_soon(w, target, OTHER);
		break;
	default:
		break;
	}
}

static void run_task(struct world *w, size_t i)
{
	struct truth *t = &w->truth.v[i];
	uint64_t from = w->now, object = t->object;
	size_t event = w->e.v.n;
	unsigned how = draw(w, 8);

	t->waiting += t->ready - t->last;
	t->late += from - t->ready;
	t->inferred += t->known - t->ready;
	t->ready = 0;
	t->steps++;
	put_run(&w->e, from, 0, object, how ? AIO_SUSPENDED : AIO_RETURNED);
	for (unsigned n = draw(w, 4); n; n--)
		act(w, i);
	t = &w->truth.v[i];
	if (how == 1)
		put(&w->e, AIO_READY, w->now, object, true);
	w->now += 1 + draw(w, 5);
	w->e.v.v[event].end_ns = w->now;
	t->running += w->now - from;
	t->last = w->now;
	t->alive = how;
	t->end = how ? AIO_ALIVE : AIO_DONE;
	if (how == 1) {
		t->ready = t->known = w->now;
		*vec_push(&w->queue) = (struct item){ .is_task = true, .target = i };
	}
}

static void run_callback(struct world *w, struct item item)
{
	size_t event = w->e.v.n;

	put(&w->e, AIO_RUN, w->now, item.object, false);
	w->since = item.since;
	w->now += draw(w, 5);
	if (w->truth.v[item.target].alive && w->truth.v[item.target].steps)
		ready_task(w, item.target);
	if (draw(w, 2))
		act(w, SIZE_MAX);
	w->since = 0;
	w->now++;
	w->e.v.v[event].end_ns = w->now;
}

/* Timers that are due are put into the queue by the loop, which no event says. */
static void look_at_timers(struct world *w)
{
	for (size_t i = 0; i < w->timers.n;) {
		if (w->timers.v[i].since > w->now) {
			i++;
			continue;
		}
		*vec_push(&w->queue) = w->timers.v[i];
		w->timers.v[i] = w->timers.v[--w->timers.n];
	}
}

static void run(struct world *w, unsigned rounds)
{
	create(w);
	while (rounds--) {
		struct item item;

		w->now += draw(w, 3);
		look_at_timers(w);
		if (w->next == w->queue.n) {
			w->now += 1 + draw(w, 20);
			act(w, SIZE_MAX);
			continue;
		}
		item = w->queue.v[w->next++];
		if (item.is_task)
			run_task(w, item.target);
		else
			run_callback(w, item);
	}
}

static bool is_same(const struct aio_task *t, const struct truth *wanted)
{
	return t->first_ns == wanted->first && t->last_ns == wanted->last &&
	       t->running_ns == wanted->running && t->waiting_ns == wanted->waiting &&
	       t->late_ns == wanted->late && t->inferred_ns == wanted->inferred &&
	       t->steps == wanted->steps && t->end == wanted->end && !t->unknown_ns &&
	       t->running_ns + t->waiting_ns + t->late_ns == t->last_ns - t->first_ns;
}

static void end(struct world *w)
{
	for (size_t i = 0; i < w->truth.n; i++) {
		struct truth *t = &w->truth.v[i];

		if (!t->alive)
			continue;
		t->waiting += (t->ready ? t->ready : w->now) - t->last;
		t->late += t->ready ? w->now - t->ready : 0;
		t->inferred += t->ready ? t->known - t->ready : 0;
		t->last = w->now;
	}
}

static void test_random(void)
{
	size_t tasks = 0, steps = 0;
	uint32_t wrong = 0;

	for (uint32_t seed = 1; seed <= 200 && !wrong; seed++) {
		struct world w = { .seed = seed, .now = 1000, .object = 1000 };
		struct aio aio;

		run(&w, 300);
		end(&w);
		aio = make(&w.e, w.now);
		if (aio.v.n != w.truth.n)
			wrong = seed;
		for (size_t i = 0; i < aio.v.n && !wrong; i++)
			if (!is_same(&aio.v.v[i], &w.truth.v[i]))
				wrong = seed;
		tasks += aio.v.n;
		steps += aio.steps.n;
		aio_done(&aio);
		vec_done(&w.truth);
		vec_done(&w.queue);
		vec_done(&w.timers);
	}
	is_u64(wrong, 0, "200 random event loops: each task's life as the model has it");
	ok(tasks > 4000 && steps > 15000, "  of %zu tasks in %zu steps", tasks, steps);
}

/* Whatever the events are, the parts of each life add up. */
static void test_nonsense(void)
{
	struct world w = { .seed = 7 };
	unsigned wrong = 0;

	for (unsigned round = 0; round < 200; round++) {
		struct aio aio;

		for (unsigned i = 0; i < 100; i++) {
			struct aio_event *event = put(&w.e, draw(&w, 3), draw(&w, 1000),
			                              draw(&w, 5), draw(&w, 2));

			event->end_ns = draw(&w, 1000);
			event->thread = draw(&w, 3);
			event->how = (uint8_t)draw(&w, 4);
			event->creates = !draw(&w, 5);
			event->starts = !draw(&w, 5);
		}
		aio = make(&w.e, draw(&w, 1200));
		for (size_t i = 0; i < aio.v.n; i++) {
			const struct aio_task *t = &aio.v.v[i];

			wrong += t->running_ns + t->waiting_ns + t->late_ns + t->unknown_ns !=
			         t->last_ns - t->first_ns;
			wrong += t->inferred_ns > t->late_ns;
		}
		aio_done(&aio);
	}
	is_u64(wrong, 0, "events without sense: the parts of each life add up");
}

int main(void)
{
	test_small();
	test_callbacks();
	test_uvloop();
	test_until();
	test_random();
	test_nonsense();
	return done_testing();
}
