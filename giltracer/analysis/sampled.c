/* SPDX-License-Identifier: MIT */
#include "analysis/sampled.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "trace/names.h"
#include "trace/stacks.h"

/* The state of sampled_find(). */
struct finding {
	const struct samples *samples;
	struct sampled *out;
	struct idmap places; /* hash of the key -> index */
	struct hash_seed seed;
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

/* The innermost function of the program's own. */
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

/* One key per place: what it hashes to, or the next number that is no other's. */
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

/* Majority vote (Boyer and Moore): if the same lines were found in more than half of the samples of
 * the place, they are its lines in the end. */
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

/* ---- threads that waited while another one of their process had the GIL */

/* Per sample and process: how many wait. waiters[sample] of the processes that have one holder. */
static uint32_t *count_waiters(const struct samples *s, uint32_t pid)
{
	uint32_t *waiters = xcalloc(s->times.n + 1, sizeof(*waiters));

	for (size_t i = 0; i < s->threads.n; i++) {
		const struct sample_thread *thread = &s->threads.v[i];

		for (size_t j = 0; thread->pid == pid && j < thread->runs.n; j++) {
			const struct sample_run *run = &thread->runs.v[j];
			uint32_t end = sample_run_end(s, thread, j);

			for (uint32_t k = run->sample; run->gil == SAMPLE_GIL_WAITS && k < end; k++)
				waiters[k]++;
		}
	}
	return waiters;
}

static uint64_t sum(const uint32_t *v, uint32_t from, uint32_t to)
{
	uint64_t n = 0;

	for (uint32_t i = from; i < to; i++)
		n += v[i];
	return n;
}

/* ---- threads */

static void add_run(struct finding *f, struct sampled_thread *thread, size_t i,
                    const uint32_t *waiters)
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
		          what == SAMPLED_HOLDS ? sum(waiters, run->sample, end) : 0);
}

static void add_thread(struct finding *f, const struct recording_pass *pass, uint32_t of,
                       const uint32_t *waiters)
{
	struct sampled *out = f->out;
	struct sampled_thread thread = {
		.of = of,
		.thread = sampled_model_thread(pass, &f->samples->threads.v[of]),
	};

	for (size_t i = 0; i < f->samples->threads.v[of].runs.n; i++)
		add_run(f, &thread, i, waiters);
	out->thread_samples += thread.samples;
	for (unsigned w = 0; w < SAMPLED_WHATS; w++)
		out->what[w] += thread.what[w];
	*vec_push(&out->threads) = thread;
}

static void add_process(struct finding *f, const struct recording_pass *pass, uint32_t pid)
{
	CLEANUP(free) uint32_t *waiters = count_waiters(f->samples, pid);

	for (uint32_t i = 0; i < f->samples->threads.n; i++)
		if (f->samples->threads.v[i].pid == pid)
			add_thread(f, pass, i, waiters);
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

/* Of places with as many samples, those that hold the GIL or wait for it come first. */
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
	if (s->threads.n)
		qsort(s->threads.v, s->threads.n, sizeof(*s->threads.v), compare_threads);
	if (s->places.n)
		qsort(s->places.v, s->places.n, sizeof(*s->places.v), compare_places);
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
	struct idmap pids = { 0 };
	uint32_t first;

	if (!s)
		return out;
	out.samples = s->times.n;
	for (uint32_t i = 0; i < s->threads.n; i++)
		if (idmap_add(&pids, s->threads.v[i].pid, i, &first))
			add_process(&f, pass, s->threads.v[i].pid);
	idmap_done(&pids);
	out.held = out.what[SAMPLED_HOLDS];
	idmap_done(&f.places);
	finish(&out);
	return out;
}

void sampled_done(struct sampled *sampled)
{
	vec_done(&sampled->threads);
	vec_done(&sampled->places);
}
