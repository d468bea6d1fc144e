/* SPDX-License-Identifier: MIT */
/* Joins native stacks and Python calls, by thread and time. */
#include "trace/stack_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "trace/names.h"
#include "trace/slices.h"
#include "trace/stacks.h"

/* A parsed name of the trace: "Class.method (/path/file.py:12)". */
struct call_name {
	bool known, python;
	uint32_t name, module, line;
};

/* The calls in progress on a thread at a time, outermost first: indices of slices. @next: the
 * first slice that starts later. */
struct sweep {
	uint64_t time_ns;
	size_t next;
	VEC(uint32_t) running;
};

struct join {
	struct join_options options;
	struct join_stats stats;
	struct sweep *sweeps;             /* by thread of the slices */
	struct idmap by_tid;              /* pid, tid -> thread */
	VEC(struct call_name) call_names; /* by name of the slices */
	struct idmap paths;               /* path of calls, name -> longer path */
	struct idmap known;               /* stack, path -> joined stack */
	VEC(uint32_t) native;             /* the present stack, outermost first */
	VEC(uint32_t) python;             /* its calls, outermost first: names of the slices */
};

struct join *join_new(const struct join_options *options)
{
	struct join *join = xcalloc(1, sizeof(*join));
	const struct slices *slices = options->slices;

	join->options = *options;
	join->sweeps = xcalloc(slices->thread_count + 1, sizeof(*join->sweeps));
	for (size_t i = 0; i < slices->thread_count; i++)
		idmap_set(&join->by_tid, idmap_pair(slices->threads[i].pid, slices->threads[i].tid),
		          i);
	return join;
}

void join_free(struct join *join)
{
	if (!join)
		return;
	for (size_t i = 0; i < join->options.slices->thread_count; i++)
		vec_done(&join->sweeps[i].running);
	free(join->sweeps);
	idmap_done(&join->by_tid);
	idmap_done(&join->paths);
	idmap_done(&join->known);
	vec_done(&join->call_names);
	vec_done(&join->native);
	vec_done(&join->python);
	free(join);
}

const struct join_stats *join_stats(const struct join *join)
{
	return &join->stats;
}

/* The start of the line number in "… (FILE:LINE)", with the bracket in *ret_open; NULL if the
 * text has another form. */
static const char *find_place(const char *text, const char **ret_open)
{
	size_t len = strlen(text), at;

	if (len < 5 || text[len - 1] != ')')
		return NULL;
	for (at = len - 1; at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';)
		at--;
	if (at == len - 1 || at < 2 || text[at - 1] != ':')
		return NULL;
	*ret_open = strstr(text, " (");
	return *ret_open && *ret_open < text + at ? text + at : NULL;
}

/* C functions have no file in their name; they are native frames already. */
static const struct call_name *call_name(struct join *join, uint32_t id)
{
	const char *text, *open, *line, *file;
	struct call_name *call;

	while (join->call_names.n <= id)
		*vec_push(&join->call_names) = (struct call_name){ 0 };
	call = &join->call_names.v[id];
	if (call->known)
		return call;
	call->known = true;
	text = names_get(join->options.slices->names, id);
	line = find_place(text, &open);
	if (!line)
		return call;
	for (file = line - 1; file > open + 2 && file[-1] != '/';)
		file--;
	call->python = true;
	call->name = names_id(join->options.names, text, open - text);
	call->module = names_id(join->options.names, file, line - 1 - file);
	call->line = strtoul(line, NULL, 10);
	return call;
}

static uint64_t end_of(const struct slice *s)
{
	return s->start_ns + s->dur_ns;
}

/* Moves a sweep to time_ns. */
static void sweep_to(struct sweep *sweep, const struct slice_thread *thread, uint64_t time_ns)
{
	if (time_ns < sweep->time_ns) {
		sweep->next = 0;
		sweep->running.n = 0;
	}
	sweep->time_ns = time_ns;
	for (; sweep->next < thread->n && thread->v[sweep->next].start_ns <= time_ns;
	     sweep->next++) {
		const struct slice *s = &thread->v[sweep->next];

		while (sweep->running.n &&
		       end_of(&thread->v[sweep->running.v[sweep->running.n - 1]]) <= s->start_ns)
			sweep->running.n--;
		*vec_push(&sweep->running) = sweep->next;
	}
	while (sweep->running.n &&
	       end_of(&thread->v[sweep->running.v[sweep->running.n - 1]]) <= time_ns)
		sweep->running.n--;
}

/* Fills in join->python. Returns an id of that path of calls; 0 if there is none. */
static uint32_t running_calls(struct join *join, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	uint32_t at = idmap_get(&join->by_tid, idmap_pair(pid, tid)), path = 0;
	const struct slice_thread *thread;
	struct sweep *sweep;

	join->python.n = 0;
	if (at == IDMAP_NONE)
		return 0;
	thread = &join->options.slices->threads[at];
	sweep = &join->sweeps[at];
	sweep_to(sweep, thread, time_ns);
	for (size_t i = 0; i < sweep->running.n; i++) {
		uint32_t name = thread->v[sweep->running.v[i]].name, longer;

		if (!call_name(join, name)->python)
			continue;
		*vec_push(&join->python) = name;
		idmap_add(&join->paths, idmap_pair(path, name), join->paths.n + 1, &longer);
		path = longer;
	}
	return path;
}

/* Fills in join->native; returns how many of the frames evaluate Python. *ret_cut: outer frames
 * are missing. */
static size_t native_frames(struct join *join, uint32_t stack, bool *ret_cut)
{
	size_t evals = 0;

	join->native.n = 0;
	for (uint32_t id = stack; id;) {
		const struct stack_frame *f = stacks_get(join->options.stacks, id);

		*vec_push(&join->native) = id;
		evals += !!(f->flags & STACK_EVAL);
		*ret_cut = f->flags & (STACK_TRUNCATED | STACK_BROKEN);
		id = f->parent;
	}
	for (size_t i = 0, j = join->native.n; i + 1 < j--; i++) {
		uint32_t id = join->native.v[i];

		join->native.v[i] = join->native.v[j];
		join->native.v[j] = id;
	}
	return evals;
}

static uint32_t add_native(struct join *join, uint32_t parent, uint32_t id, uint32_t flags)
{
	struct stack_frame frame = *stacks_get(join->options.stacks, id);

	frame.parent = parent;
	frame.flags |= flags;
	return stacks_id(join->options.stacks, &frame);
}

static uint32_t add_python(struct join *join, uint32_t parent, size_t i, uint32_t flags)
{
	const struct call_name *call = call_name(join, join->python.v[i]);

	return stacks_id(join->options.stacks, &(struct stack_frame){
						       .parent = parent,
						       .name = call->name,
						       .module = call->module,
						       .line = call->line,
						       .flags = STACK_PYTHON | flags,
					       });
}

/* Calls [first, end) belong to an evaluation; those before sure are marked STACK_MISMATCH. */
struct share {
	size_t first, end, sure;
};

/* The calls of evaluation eval (0 is the outermost) out of evals. */
static struct share share_of(const struct join *join, size_t eval, size_t evals, bool cut)
{
	size_t calls = join->python.n, inner = evals - 1 - eval;

	if (join->options.one_to_one) {
		size_t end = calls > inner ? calls - inner : 0;

		return (struct share){ end && eval ? end - 1 : 0, end, end ? end - 1 : 0 };
	}
	return (struct share){ inner ? calls : 0, calls, evals > 1 || cut ? calls - 1 : 0 };
}

/* Builds the joined stack, from the outermost frame on. */
static uint32_t build(struct join *join, size_t evals, bool cut)
{
	uint32_t id = 0;
	size_t eval = 0;

	for (size_t i = 0; i < join->native.n; i++) {
		uint32_t native = join->native.v[i];
		struct share on;

		if (!(stacks_get(join->options.stacks, native)->flags & STACK_EVAL)) {
			id = add_native(join, id, native, i || evals ? 0 : STACK_MISMATCH);
			continue;
		}
		on = share_of(join, eval++, evals, cut);
		id = add_native(join, id, native,
		                join->options.one_to_one && on.first == on.end ? STACK_MISMATCH
		                                                               : 0);
		for (size_t call = on.first; call < on.end; call++)
			id = add_python(join, id, call, call < on.sure ? STACK_MISMATCH : 0);
	}
	return id;
}

uint32_t join_stack(struct join *join, uint32_t stack, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	uint32_t path = running_calls(join, time_ns, pid, tid), joined;
	bool cut = false;

	if (!stack || !path) {
		join->stats.bare += stack != 0;
		return stack;
	}
	joined = idmap_get(&join->known, idmap_pair(stack, path));
	if (joined == IDMAP_NONE) {
		size_t evals = native_frames(join, stack, &cut);

		joined = build(join, evals, cut);
		idmap_set(&join->known, idmap_pair(stack, path), joined);
	}
	join->stats.joined++;
	join->stats.mismatched += stacks_any(join->options.stacks, joined, STACK_MISMATCH);
	return joined;
}
