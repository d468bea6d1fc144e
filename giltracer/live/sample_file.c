/* SPDX-License-Identifier: MIT */
#include "live/sample_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "trace/names.h"
#include "trace/samples.h"
#include "trace/stacks.h"

/* A thread as it was last written. @sample: the sample in which it was last read; @name, @stack:
 * their numbers in the file; @frames: of that stack */
struct written {
	uint64_t sample;
	uint32_t stack, name, gil_of;
	uint8_t how;
	VEC(struct snapshot_frame) frames;
};

/* Ids of names and stacks are assigned in sequence, as are their numbers in the file, so a count
 * tells which are written already. */
struct sample_file {
	FILE *out;
	bool borrowed;
	char *path;
	struct names *names;
	struct stacks *stacks;
	uint32_t names_written, stacks_written;
	struct idmap by_thread;
	VEC(struct written) threads;
	VEC(uint8_t) changes;
	uint32_t change_count;
	uint64_t last_ns, now_ns, sample, bytes, max_bytes;
};

#define HOW_GONE (SAMPLE_GONE << 2)

static void put_number(struct sample_file *f, uint64_t value)
{
	do {
		putc((int)(value & 127) | (value > 127 ? 128 : 0), f->out);
		value >>= 7;
		f->bytes++;
	} while (value);
}

static void add_change(struct sample_file *f, uint64_t value)
{
	do {
		*vec_push(&f->changes) = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
		value >>= 7;
	} while (value);
}

static void put_kind(struct sample_file *f, char kind)
{
	putc(kind, f->out);
	f->bytes++;
}

static void init(struct sample_file *f, FILE *out, uint64_t last_ns, uint64_t max_bytes)
{
	f->out = out;
	f->names = names_new();
	f->stacks = stacks_new(f->names);
	f->names_written = f->stacks_written = 1;
	f->last_ns = last_ns;
	f->max_bytes = max_bytes;
}

void sample_file_header(FILE *out, const struct sample_file_plan *plan)
{
	const uint32_t hz = plan->hz;
	const uint8_t rest[4] = { plan->gil_only };

	fwrite(SAMPLES_MAGIC, 1, 8, out);
	fwrite(&hz, sizeof(hz), 1, out);
	fwrite(rest, sizeof(rest), 1, out);
	fwrite(&plan->start_ns, sizeof(plan->start_ns), 1, out);
}

int sample_file_open(struct sample_file **ret, const struct sample_file_plan *plan,
                     struct error *err)
{
	CLEANUP(sample_file_close) struct sample_file *f = xcalloc(1, sizeof(*f));
	FILE *out = fopen(plan->path, "we");

	if (!out)
		return error_errno(err, "%s", plan->path);
	init(f, out, plan->start_ns, plan->max_bytes);
	f->path = xstrdup(plan->path);
	sample_file_header(out, plan);
	f->bytes = 24;
	*ret = take(f);
	return 0;
}

struct sample_file *sample_file_part(FILE *out, uint64_t last_ns)
{
	struct sample_file *f = xcalloc(1, sizeof(*f));

	init(f, out, last_ns, UINT64_MAX);
	f->borrowed = true;
	return f;
}

/* ---- what samples refer to */

static uint32_t number_of_name(struct sample_file *f, const char *text)
{
	size_t len = strlen(text);
	uint32_t id = names_id(f->names, text, len);

	if (id < f->names_written)
		return id;
	put_kind(f, 'N');
	put_number(f, len);
	fwrite(text, 1, len, f->out);
	f->bytes += len;
	f->names_written++;
	return id;
}

static uint32_t number_of_frame(struct sample_file *f, uint32_t caller,
                                const struct snapshot_frame *frame)
{
	const struct stack_frame wanted = {
		.parent = caller,
		.name = number_of_name(f, frame->code->name),
		.module = number_of_name(f, frame->code->file),
		.line = frame->line,
	};
	uint32_t id = stacks_id(f->stacks, &wanted);

	if (id < f->stacks_written)
		return id;
	put_kind(f, 'F');
	put_number(f, caller);
	put_number(f, wanted.name);
	put_number(f, wanted.module);
	put_number(f, wanted.line);
	f->stacks_written++;
	return id;
}

static uint32_t number_of_stack(struct sample_file *f, const struct snapshot_thread *thread)
{
	uint32_t id = 0;

	for (size_t i = thread->frames.n; i--;)
		id = number_of_frame(f, id, &thread->frames.v[i]);
	return id;
}

/* A thread may get another name after it was first seen. */
static void look_at_name(struct sample_file *f, uint32_t id, const char *text)
{
	uint32_t name = number_of_name(f, text);

	if (name == f->threads.v[id].name)
		return;
	f->threads.v[id].name = name;
	put_kind(f, 'A');
	put_number(f, id);
	put_number(f, name);
}

static uint32_t number_of_thread(struct sample_file *f, pid_t pid,
                                 const struct snapshot_thread *thread)
{
	uint64_t key = idmap_pair((uint32_t)pid, thread->tid);
	uint32_t id = idmap_get(&f->by_thread, key);
	uint32_t name;

	if (id != IDMAP_NONE) {
		look_at_name(f, id, thread->name);
		return id;
	}
	name = number_of_name(f, thread->name);
	put_kind(f, 'T');
	put_number(f, (uint64_t)pid);
	put_number(f, thread->tid);
	put_number(f, name);
	id = (uint32_t)f->threads.n;
	*vec_push(&f->threads) = (struct written){ .how = HOW_GONE, .name = name };
	idmap_set(&f->by_thread, key, id);
	return id;
}

/* ---- samples */

void sample_file_begin(struct sample_file *f, uint64_t time_ns)
{
	f->sample++;
	f->now_ns = time_ns;
	f->changes.n = 0;
	f->change_count = 0;
}

static void change(struct sample_file *f, uint32_t thread, uint8_t how, uint32_t gil_of,
                   uint32_t stack)
{
	struct written *w = &f->threads.v[thread];

	if (w->how == how && w->stack == stack && w->gil_of == gil_of)
		return;
	if (w->gil_of != gil_of) {
		put_kind(f, 'G');
		put_number(f, thread);
		put_number(f, gil_of);
	}
	w->gil_of = gil_of;
	w->how = how;
	w->stack = stack;
	add_change(f, thread);
	add_change(f, how);
	add_change(f, stack);
	f->change_count++;
}

/* Most stacks have not changed since the last sample. */
static uint32_t stack_of(struct sample_file *f, struct written *w,
                         const struct snapshot_thread *thread)
{
	size_t size = thread->frames.n * sizeof(*thread->frames.v);

	if (w->frames.n && w->frames.n == thread->frames.n &&
	    !memcmp(w->frames.v, thread->frames.v, size) && w->how != HOW_GONE)
		return w->stack;
	w->frames.n = 0;
	vec_reserve(&w->frames, thread->frames.n);
	if (size)
		memcpy(w->frames.v, thread->frames.v, size);
	w->frames.n = thread->frames.n;
	return number_of_stack(f, thread);
}

void sample_file_thread(struct sample_file *f, pid_t pid, const struct snapshot_thread *thread)
{
	static const uint8_t gils[] = {
		[GIL_NONE] = SAMPLE_GIL_NONE,
		[GIL_HOLDS] = SAMPLE_GIL_HOLDS,
		[GIL_WAITS] = SAMPLE_GIL_WAITS,
		[GIL_NOT_KNOWN] = SAMPLE_GIL_UNKNOWN,
	};
	uint32_t id = number_of_thread(f, pid, thread);
	uint32_t stack = stack_of(f, &f->threads.v[id], thread);
	uint32_t how = gils[thread->gil] | (thread->torn ? SAMPLE_TORN << 2 : 0) |
	               (uint32_t)thread->activity << 4;

	f->threads.v[id].sample = f->sample;
	change(f, id, (uint8_t)how, thread->gil_of, stack);
}

void sample_file_end(struct sample_file *f)
{
	for (uint32_t i = 0; i < f->threads.n; i++)
		if (f->threads.v[i].sample != f->sample)
			change(f, i, HOW_GONE, f->threads.v[i].gil_of, 0);
	put_kind(f, 'S');
	put_number(f, f->now_ns > f->last_ns ? f->now_ns - f->last_ns : 0);
	put_number(f, f->change_count);
	fwrite(f->changes.v, 1, f->changes.n, f->out);
	f->bytes += f->changes.n;
	f->last_ns = f->now_ns > f->last_ns ? f->now_ns : f->last_ns;
}

void sample_file_forget_codes(struct sample_file *f)
{
	for (size_t i = 0; i < f->threads.n; i++)
		f->threads.v[i].frames.n = 0;
}

void sample_file_missed(struct sample_file *f, uint64_t count)
{
	put_kind(f, 'M');
	put_number(f, count);
}

void sample_file_flush(struct sample_file *f)
{
	fflush(f->out);
}

uint64_t sample_file_bytes(const struct sample_file *f)
{
	return f->bytes;
}

uint64_t sample_file_last_ns(const struct sample_file *f)
{
	return f->last_ns;
}

bool sample_file_is_full(const struct sample_file *f)
{
	return f->bytes >= f->max_bytes;
}

void sample_file_put_end(struct sample_file *f, uint64_t end_ns)
{
	put_kind(f, 'E');
	put_number(f, end_ns > f->last_ns ? end_ns - f->last_ns : 0);
}

int sample_file_finish(struct sample_file *f, uint64_t end_ns, struct error *err)
{
	sample_file_put_end(f, end_ns);
	if (fflush(f->out) != 0)
		return error_errno(err, "%s", f->path);
	/* The reason of an earlier failure is unknown by now. */
	return ferror(f->out) ? error_set(err, EIO, "%s: cannot write", f->path) : 0;
}

void sample_file_close(struct sample_file *f)
{
	if (!f)
		return;
	if (f->out && !f->borrowed)
		fclose(f->out);
	names_free(f->names);
	stacks_free(f->stacks);
	idmap_done(&f->by_thread);
	for (size_t i = 0; i < f->threads.n; i++)
		vec_done(&f->threads.v[i].frames);
	vec_done(&f->threads);
	vec_done(&f->changes);
	free(f->path);
	free(f);
}
