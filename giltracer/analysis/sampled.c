/* SPDX-License-Identifier: MIT */
/* Counts samples by what the thread did, by thread and by place. */
#include "analysis/sampled.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "trace/names.h"
#include "trace/stacks.h"

/* A run of samples in which a thread has a GIL or waits for one. @waiters: number of waiting
 * threads in its samples, summed */
struct gil_run {
	uint32_t pid, gil_of, thread, run;
	uint64_t waiters;
};

/* At this sample, a run begins (by 1) or has ended (by -1). @gil_run: index in gil_runs */
struct gil_edge {
	uint32_t sample;
	int32_t by;
	size_t gil_run;
};

/**
 * The state of sampled_find().
 * @places: key of a place -> its index
 * @next: index in gil_runs of the next run to look up
 * @edges: of the runs of the current GIL, in the order of samples
 * @holders: per sample: by how much the number of threads that hold a GIL differs from the sample
 * before
 */
struct finding {
	const struct samples *samples;
	struct sampled *out;
	struct idmap places;
	struct hash_seed seed;
	VEC(struct gil_run) gil_runs;
	size_t next;
	VEC(struct gil_edge) edges;
	int32_t *holders;
};

enum sampled_what sampled_what_of(const struct sample_run *run)
{
	static const uint8_t whats[SAMPLE_ACTIVITIES] = {
		[SAMPLE_UNKNOWN] = SAMPLED_UNKNOWN, [SAMPLE_RUNNING] = SAMPLED_RUNNING,
		[SAMPLE_LOCK] = SAMPLED_LOCK,       [SAMPLE_NETWORK] = SAMPLED_NETWORK,
		[SAMPLE_POLL] = SAMPLED_POLL,       [SAMPLE_FILE] = SAMPLED_FILE,
		[SAMPLE_SLEEP] = SAMPLED_SLEEP,     [SAMPLE_CHILD] = SAMPLED_CHILD,
		[SAMPLE_OTHER] = SAMPLED_OTHER,
	};

	if (run->gil == SAMPLE_GIL_HOLDS)
		return SAMPLED_HOLDS;
	return run->gil == SAMPLE_GIL_WAITS ? SAMPLED_WAITS
	                                    : (enum sampled_what)whats[run->activity];
}

const char *sampled_what_name(enum sampled_what what)
{
	static const char *const names[SAMPLED_WHATS] = {
		"holds", "waits", "running", "lock",  "network", "poll",
		"file",  "sleep", "child",   "other", "unknown",
	};

	return names[what];
}

uint32_t sampled_model_thread(const struct recording_pass *pass, const struct sample_thread *thread)
{
	const struct model *model = pass->model;
	uint64_t seen_ns = thread->runs.n ? pass->samples->times.v[thread->runs.v[0].sample] : 0;
	uint32_t found = MODEL_NONE;

	for (uint32_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];

		if (t->pid == thread->pid && t->tid == thread->tid &&
		    (found == MODEL_NONE || t->start_ns <= seen_ns))
			found = i;
	}
	return found;
}

struct sampled_stacks sampled_stacks_of(const struct samples *s, const struct sample_thread *thread)
{
	struct sampled_stacks sums = { 0 };
	struct idmap by_key = { 0 };

	for (size_t i = 0; i < thread->runs.n; i++) {
		const struct sample_run *run = &thread->runs.v[i];
		bool torn = run->flags & SAMPLE_TORN;
		enum sampled_what what = sampled_what_of(run);
		uint64_t key = idmap_pair(run->stack, 2 * (uint32_t)what + torn);
		uint32_t n = sample_run_end(s, thread, i) - run->sample, at;

		if (!n || run->flags & SAMPLE_GONE)
			continue;
		if (idmap_add(&by_key, key, (uint32_t)sums.v.n, &at))
			*vec_push(&sums.v) = (struct sampled_stack){ run->stack, what, torn, 0 };
		sums.v.v[at].samples += n;
	}
	idmap_done(&by_key);
	return sums;
}

/* ---- places */

static bool is_library(const char *file)
{
	const char *lib = strstr(file, "/lib/python3");

	return *file == '<' || (lib && !strstr(lib, "-packages/"));
}

/* The innermost function that belongs to the program itself. */
static const struct stack_frame *own_frame(const struct samples *s, uint32_t stack)
{
	while (stack) {
		const struct stack_frame *frame = stacks_get(s->stacks, stack);

		if (!is_library(names_get(s->names, frame->module)))
			return frame;
		stack = frame->parent;
	}
	return NULL;
}

static struct sampled_place place_of(const struct samples *s, const struct sample_run *run)
{
	const struct stack_frame *frame = stacks_get(s->stacks, run->stack);
	const struct stack_frame *own = own_frame(s, run->stack);
	struct sampled_place place = {
		.name = frame->name,
		.file = frame->module,
		.line = frame->line,
		.what = sampled_what_of(run),
	};

	if (own && own != frame) {
		place.caller = own->name;
		place.caller_file = own->module;
		place.caller_line = own->line;
	}
	return place;
}

static bool is_same(const struct sampled_place *a, const struct sampled_place *b)
{
	return a->name == b->name && a->file == b->file && a->caller == b->caller &&
	       a->caller_file == b->caller_file && a->what == b->what;
}

/* Each place has one key: its hash, or the next number that no other place uses. */
static struct sampled_place *find_place(struct finding *f, const struct sampled_place *wanted)
{
	uint64_t key = hash_number(f->seed, idmap_pair(wanted->name, wanted->file));

	key = hash_more(f->seed, key, idmap_pair(wanted->caller, wanted->caller_file));
	key = hash_more(f->seed, key, wanted->what);
	for (;; key++) {
		uint32_t at;

		if (idmap_add(&f->places, key, (uint32_t)f->out->places.n, &at))
			*vec_push(&f->out->places) = *wanted;
		if (is_same(&f->out->places.v[at], wanted))
			return &f->out->places.v[at];
	}
}

/* A majority vote (Boyer and Moore): if more than half of the place's samples have the same lines,
 * these are its lines in the end. */
static void vote(struct sampled_place *place, const struct sampled_place *wanted, uint64_t n)
{
	if (place->line == wanted->line && place->caller_line == wanted->caller_line) {
		place->votes += n;
	} else if (place->votes >= n) {
		place->votes -= n;
	} else {
		place->votes = n - place->votes;
		place->line = wanted->line;
		place->caller_line = wanted->caller_line;
	}
}

static void add_place(struct finding *f, uint32_t thread, const struct sample_run *run, uint64_t n,
                      uint64_t waiters)
{
	struct sampled_place wanted = place_of(f->samples, run), *place;

	if (!run->stack)
		return;
	place = find_place(f, &wanted);
	if (!place->samples)
		place->thread = thread;
	if (!place->samples || place->last_thread != thread)
		place->threads++;
	place->last_thread = thread;
	vote(place, &wanted, n);
	place->samples += n;
	place->waiters += waiters;
}

/* ---- threads that waited while another thread had the same GIL */

/* By GIL, then in the order of the samples' threads. */
static int compare_gil_runs(const void *a, const void *b)
{
	const struct gil_run *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->gil_of != y->gil_of)
		return x->gil_of < y->gil_of ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

static int compare_runs(const void *a, const void *b)
{
	const struct gil_run *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

static int compare_edges(const void *a, const void *b)
{
	const struct gil_edge *x = a, *y = b;

	return (x->sample > y->sample) - (x->sample < y->sample);
}

static void list_gil_runs(struct finding *f)
{
	for (uint32_t i = 0; i < f->samples->threads.n; i++) {
		const struct sample_thread *t = &f->samples->threads.v[i];

		for (uint32_t j = 0; j < t->runs.n; j++)
			if (t->runs.v[j].gil == SAMPLE_GIL_HOLDS ||
			    t->runs.v[j].gil == SAMPLE_GIL_WAITS)
				*vec_push(&f->gil_runs) =
					(struct gil_run){ t->pid, t->runs.v[j].gil_of, i, j, 0 };
	}
}

/* Those of the runs from index from up to end. */
static void list_edges(struct finding *f, size_t from, size_t end)
{
	f->edges.n = 0;
	for (size_t i = from; i < end; i++) {
		const struct gil_run *of = &f->gil_runs.v[i];
		const struct sample_thread *t = &f->samples->threads.v[of->thread];
		uint32_t first = t->runs.v[of->run].sample;
		uint32_t last = sample_run_end(f->samples, t, of->run);

		if (first >= last)
			continue;
		*vec_push(&f->edges) = (struct gil_edge){ first, 1, i };
		*vec_push(&f->edges) = (struct gil_edge){ last, -1, i };
	}
	vec_sort(&f->edges, compare_edges);
}

/* Handles one GIL, whose runs are those from index from up to end. Each of them may have as many
 * samples as there are, so only their edges are visited. */
static void look_at_gil(struct finding *f, size_t from, size_t end)
{
	struct sampled_gil gil = { f->gil_runs.v[from].pid, f->gil_runs.v[from].gil_of, 0 };
	uint64_t waiting = 0, waited = 0, holding = 0;
	uint32_t at = 0;

	list_edges(f, from, end);
	for (size_t i = 0; i < f->edges.n; i++) {
		const struct gil_edge *e = &f->edges.v[i];
		struct gil_run *of = &f->gil_runs.v[e->gil_run];
		const struct sample_thread *t = &f->samples->threads.v[of->thread];

		waited += waiting * (e->sample - at);
		gil.held += holding * (e->sample - at);
		at = e->sample;
		if (t->runs.v[of->run].gil == SAMPLE_GIL_WAITS) {
			waiting += (uint64_t)e->by;
			continue;
		}
		holding += (uint64_t)e->by;
		/* In the end, what was waited up to its end, less what was before it. */
		of->waiters -= (uint64_t)e->by * waited;
		f->holders[e->sample] += e->by;
	}
	*vec_push(&f->out->gils) = gil;
}

/* The number of samples in which any GIL is held. */
static uint64_t count_held(const struct finding *f)
{
	uint64_t held = 0;
	int64_t holding = 0;

	for (size_t i = 0; i < f->samples->times.n; i++) {
		holding += f->holders[i];
		held += holding > 0;
	}
	return held;
}

static void look_at_gils(struct finding *f)
{
	list_gil_runs(f);
	if (!f->gil_runs.n)
		return;
	vec_sort(&f->gil_runs, compare_gil_runs);
	for (size_t from = 0, end; from < f->gil_runs.n; from = end) {
		for (end = from + 1; end < f->gil_runs.n; end++)
			if (f->gil_runs.v[end].pid != f->gil_runs.v[from].pid ||
			    f->gil_runs.v[end].gil_of != f->gil_runs.v[from].gil_of)
				break;
		look_at_gil(f, from, end);
	}
	f->out->held = count_held(f);
	vec_sort(&f->gil_runs, compare_runs);
}

/* The number of waiting threads during a run. Runs are looked up in the order of threads and
 * runs. */
static uint64_t waiters_in(struct finding *f, uint32_t thread, size_t run)
{
	while (f->next < f->gil_runs.n &&
	       (f->gil_runs.v[f->next].thread < thread ||
	        (f->gil_runs.v[f->next].thread == thread && f->gil_runs.v[f->next].run < run)))
		f->next++;
	assert(f->next < f->gil_runs.n);
	return f->gil_runs.v[f->next].waiters;
}

/* ---- threads */

static void add_run(struct finding *f, struct sampled_thread *thread, size_t i)
{
	const struct sample_thread *of = &f->samples->threads.v[thread->of];
	const struct sample_run *run = &of->runs.v[i];
	uint32_t end = sample_run_end(f->samples, of, i), n = end - run->sample;
	enum sampled_what what = sampled_what_of(run);

	if (run->flags & SAMPLE_GONE)
		return;
	thread->samples += n;
	thread->what[what] += n;
	if (!(run->flags & SAMPLE_TORN))
		add_place(f, thread->of, run, n,
		          what == SAMPLED_HOLDS ? waiters_in(f, thread->of, i) : 0);
}

static void add_thread(struct finding *f, const struct recording_pass *pass, uint32_t of)
{
	struct sampled *out = f->out;
	struct sampled_thread thread = {
		.of = of,
		.thread = sampled_model_thread(pass, &f->samples->threads.v[of]),
	};

	for (size_t i = 0; i < f->samples->threads.v[of].runs.n; i++)
		add_run(f, &thread, i);
	out->thread_samples += thread.samples;
	for (unsigned w = 0; w < SAMPLED_WHATS; w++)
		out->what[w] += thread.what[w];
	*vec_push(&out->threads) = thread;
}

static int compare_threads(const void *a, const void *b)
{
	const struct sampled_thread *x = a, *y = b;

	if (x->what[SAMPLED_WAITS] != y->what[SAMPLED_WAITS])
		return x->what[SAMPLED_WAITS] < y->what[SAMPLED_WAITS] ? 1 : -1;
	if (x->what[SAMPLED_HOLDS] != y->what[SAMPLED_HOLDS])
		return x->what[SAMPLED_HOLDS] < y->what[SAMPLED_HOLDS] ? 1 : -1;
	return (x->of > y->of) - (x->of < y->of);
}

/* Among places with equally many samples, those that hold the GIL or wait for it come first. */
static int compare_places(const void *a, const void *b)
{
	const struct sampled_place *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void finish(struct sampled *s)
{
	vec_sort(&s->threads, compare_threads);
	vec_sort(&s->places, compare_places);
	for (uint32_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i].what[SAMPLED_HOLDS] &&
		    (s->busiest == MODEL_NONE ||
		     s->threads.v[i].what[SAMPLED_HOLDS] >
		             s->threads.v[s->busiest].what[SAMPLED_HOLDS]))
			s->busiest = i;
}

struct sampled sampled_find(const struct recording_pass *pass)
{
	const struct samples *s = pass->samples;
	struct sampled out = { .busiest = MODEL_NONE };
	struct finding f = { .samples = s, .out = &out, .seed = hash_seed() };

	if (!s)
		return out;
	out.samples = s->times.n;
	f.holders = xcalloc(s->times.n + 1, sizeof(*f.holders));
	look_at_gils(&f);
	for (uint32_t i = 0; i < s->threads.n; i++)
		add_thread(&f, pass, i);
	free(f.holders);
	vec_done(&f.edges);
	vec_done(&f.gil_runs);
	idmap_done(&f.places);
	finish(&out);
	return out;
}

void sampled_done(struct sampled *sampled)
{
	vec_done(&sampled->gils);
	vec_done(&sampled->threads);
	vec_done(&sampled->places);
}
