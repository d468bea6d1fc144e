/* SPDX-License-Identifier: MIT */
#include "trace/from_samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/names.h"

struct from_samples {
	struct source source;
	VEC(struct event) events;
	size_t next;
};

static int next(struct source *source, struct event *ret, struct error *err)
{
	struct from_samples *fs = (struct from_samples *)source;

	(void)err;
	if (fs->next == fs->events.n)
		return 0;
	*ret = fs->events.v[fs->next++];
	fs->source.stats.events++;
	return 1;
}

static void close_source(struct source *source)
{
	struct from_samples *fs = (struct from_samples *)source;

	names_free(fs->source.names);
	vec_done(&fs->events);
	free(fs);
}

static void add(struct from_samples *fs, const struct sample_thread *thread, uint64_t time_ns,
                enum event_type type, uint32_t name)
{
	struct event *ev = vec_push(&fs->events);

	*ev = (struct event){
		.time_ns = time_ns,
		.pid = thread->pid,
		.tid = thread->tid,
		.cpu = -1,
		.type = (uint16_t)type,
	};
	ev->comm.name = name;
}

/* A thread exists from its first sample to the first one that lacks it. */
static void add_thread(struct from_samples *fs, const struct samples *samples,
                       const struct sample_thread *thread)
{
	const char *text = names_get(samples->names, thread->name);
	uint32_t name = names_id(fs->source.names, text, strlen(text));
	const struct sample_run *last;
	uint32_t first;

	if (!thread->runs.n)
		return;
	first = thread->runs.v[0].sample;
	last = &thread->runs.v[thread->runs.n - 1];
	add(fs, thread, first ? samples->times.v[first] : samples->start_ns, EV_COMM, name);
	if (last->flags & SAMPLE_GONE && !samples->gil_only)
		add(fs, thread, samples->times.v[last->sample], EV_EXIT, 0);
}

static int compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

struct source *from_samples(const struct samples *samples)
{
	static const struct source_ops ops = { .next = next, .close = close_source };
	struct from_samples *fs = xcalloc(1, sizeof(*fs));

	fs->source.ops = &ops;
	fs->source.names = names_new();
	for (size_t i = 0; i < samples->threads.n; i++)
		add_thread(fs, samples, &samples->threads.v[i]);
	vec_sort(&fs->events, compare);
	fs->source.stats.records = samples->times.n;
	return &fs->source;
}
