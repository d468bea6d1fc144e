/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto, compressed: time by Python stack. The sample types, if they were recorded,
 * are wait_caused (how long others waited for the GIL meanwhile), hold, wait, lock_wait and samples.
 */
#include "export/export.h"

#include <errno.h>

#ifdef HAVE_PROTOBUF_C
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/locks.h"
#include "analysis/pystack.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "export/walk.h"
#include "model/span.h"
#include "proto/profile.pb-c.h"
#include "report/phrases.h"
#include "trace/names.h"
#include "trace/stacks.h"

/* Without a GIL: CAUSED is unknown, HOLD is stopping the others, WAIT is being blocked. */
enum gil_time { GIL_TIME_CAUSED, GIL_TIME_HOLD, GIL_TIME_WAIT, GIL_TIME_LOCK, GIL_TIMES };

struct gil_time_row {
	uint32_t stack; /* 0: unknown */
	uint64_t ns[GIL_TIMES];
};

/**
 * @rows: the stacks with any time
 * @stacks: in which their ids are; NULL if there are none
 * @calls: the stacks are calls of a trace, not frames read by the probes
 * The rest is private.
 */
struct gil_times {
	VEC(struct gil_time_row) rows;
	const struct stacks *stacks;
	bool calls;
	struct idmap by_stack;
	struct pystack py;
};

static uint32_t mask_of(const struct analysis *a, enum gil_time which)
{
	if (which == GIL_TIME_LOCK)
		return 1u << GIL_LOCK_WAIT;
	if (a->locks)
		return which == GIL_TIME_HOLD ? 1u << GIL_STOPPING
		                              : 1u << GIL_LOCK_WAIT | 1u << GIL_STOPPED;
	return which == GIL_TIME_HOLD ? 1u << GIL_HOLD : 1u << GIL_WAIT | 1u << GIL_SWITCH_WAIT;
}

static void add(struct gil_times *t, uint32_t stack, enum gil_time which, uint64_t ns)
{
	uint32_t at;

	if (!ns)
		return;
	if (idmap_add(&t->by_stack, stack, (uint32_t)t->rows.n, &at))
		*vec_push(&t->rows) = (struct gil_time_row){ .stack = stack };
	t->rows.v[at].ns[which] += ns;
}

/* Adds all time in py as time of this kind, and clears it. */
static void take_charges(struct gil_times *t, enum gil_time which)
{
	for (uint32_t id = 0; id < t->py.ns.n; id++) {
		add(t, id, which, t->py.ns.v[id]);
		t->py.ns.v[id] = 0;
	}
}

static void add_calls(struct gil_times *t, const struct analysis *a, uint32_t thread)
{
	const struct slice_thread *st = pystack_find(a->pass, thread);
	const struct lane *lane = &a->model->threads.v[thread].gil;

	for (enum gil_time which = 0; which < GIL_TIMES; which++) {
		struct stretches s = which == GIL_TIME_CAUSED
		                             ? stretches_blamed(a->model, thread, NULL)
		                             : stretches_of_lane(lane, mask_of(a, which));

		pystack_charge(&t->py, st, &s);
		take_charges(t, which);
		vec_done(&s);
	}
}

static void add_spans(struct gil_times *t, const struct analysis *a, uint32_t thread,
                      enum gil_time which)
{
	const struct lane *lane = &a->model->threads.v[thread].gil;
	uint32_t mask = mask_of(a, which);

	for (size_t i = 0; i < lane->spans.n; i++)
		if (mask >> lane->spans.v[i].state & 1)
			add(t, t->stacks ? lane->spans.v[i].gil.frame : 0, which,
			    lane_span_end(lane, i) - lane->spans.v[i].start_ns);
}

static void add_hogs(struct gil_times *t, const struct analysis *a, uint32_t thread)
{
	const struct hogs *hogs = a->pass->hogs;

	for (size_t i = 0; hogs && i < hogs->v.n; i++) {
		const struct hog *hog = &hogs->v.v[i];

		if (hog->thread != thread)
			continue;
		add(t, hog->frame, GIL_TIME_CAUSED, hog->wait_ns);
		add(t, hog->frame, GIL_TIME_HOLD, hog->hold_ns);
	}
}

/*
 * The times of one thread. With calls, each ns is charged to the call that was running. Else a hold
 * and the waits for it are charged to the function in which the hold ended (see hogs.h), a wait to
 * the function that waited. Borrows from the analysis; free with gil_times_done.
 */
static void gil_times_of(struct gil_times *ret, const struct analysis *a, uint32_t thread)
{
	*ret = (struct gil_times){ .calls = pystack_find(a->pass, thread) != NULL };
	if (ret->calls) {
		pystack_init(&ret->py, a->pass->slices);
		add_calls(ret, a, thread);
		ret->stacks = ret->py.stacks;
		return;
	}
	ret->stacks = functions_frames(a->pass);
	if (a->locks)
		add_spans(ret, a, thread, GIL_TIME_HOLD);
	else
		add_hogs(ret, a, thread);
	add_spans(ret, a, thread, GIL_TIME_WAIT);
	add_spans(ret, a, thread, GIL_TIME_LOCK);
}

static void gil_times_done(struct gil_times *t)
{
	if (t->calls)
		pystack_done(&t->py);
	vec_done(&t->rows);
	idmap_done(&t->by_stack);
}

#define LEVEL 6

enum { VALUE_SAMPLES = GIL_TIMES, VALUES };

/* Appends a message to the list of pointers in a protobuf-c struct, which has room for a power
 * of two of them. All messages are malloced, so that the library can free them. */
#define append(list, n, message)                                                            \
	do {                                                                                \
		if (((n) & ((n)-1)) == 0)                                                   \
			(list) = xreallocarray((list), (n) ? 2 * (n) : 1, sizeof(*(list))); \
		(list)[(n)++] = (message);                                                  \
	} while (0)

/**
 * @strings: id 0 is "", as the format requires
 * @functions: name and file -> id; @locations: function and line -> id
 * @first, @end: the range of known values: those of enum gil_time, then VALUE_SAMPLES
 */
struct pprof {
	const struct analysis *a;
	Perftools__Profiles__Profile *profile;
	struct names *strings;
	struct idmap functions, locations;
	unsigned first, end;
};

static int64_t text(struct pprof *p, const char *s)
{
	return names_id(p->strings, s, strlen(s));
}

static uint32_t function_id(struct pprof *p, const struct place *place)
{
	uint64_t key = idmap_pair((uint32_t)text(p, place->name), (uint32_t)text(p, place->file));
	Perftools__Profiles__Function *f;
	uint32_t id;

	if (!idmap_add(&p->functions, key, p->functions.n + 1, &id))
		return id;
	f = xcalloc(1, sizeof(*f));
	perftools__profiles__function__init(f);
	f->id = id;
	f->name = f->system_name = text(p, place->name);
	f->filename = text(p, place->file);
	append(p->profile->function, p->profile->n_function, f);
	return id;
}

static uint32_t location_id(struct pprof *p, const struct place *place)
{
	uint32_t function = function_id(p, place);
	Perftools__Profiles__Location *location;
	Perftools__Profiles__Line *line;
	uint32_t id;

	if (!idmap_add(&p->locations, idmap_pair(function, place->line), p->locations.n + 1, &id))
		return id;
	line = xcalloc(1, sizeof(*line));
	perftools__profiles__line__init(line);
	line->function_id = function;
	line->line = place->line;
	location = xcalloc(1, sizeof(*location));
	perftools__profiles__location__init(location);
	location->id = id;
	append(location->line, location->n_line, line);
	append(p->profile->location, p->profile->n_location, location);
	return id;
}

/**
 * The stack of a value.
 * @id: in stacks; 0: unknown, and @missing takes its place; @calls: of a trace
 */
struct stack {
	const struct stacks *stacks;
	uint32_t id;
	bool calls;
	const char *missing;
};

/* The innermost frame of a stack, or a placeholder for a thread without any Python frame. */
static uint32_t location_of(struct pprof *p, const struct stack *stack)
{
	const struct stack_frame *frame = stack->id ? stacks_get(stack->stacks, stack->id) : NULL;
	const struct names *names = frame ? stacks_names(stack->stacks) : NULL;
	struct place place;
	uint32_t id;

	if (!frame)
		place_of(&place, stack->missing, NULL, 0);
	else if (stack->calls)
		place_of_call(&place, names_get(names, frame->name));
	else
		place_of(&place, names_get(names, frame->name), names_get(names, frame->module),
		         frame->line);
	id = location_id(p, &place);
	place_done(&place);
	return id;
}

static void add_label(struct pprof *p, Perftools__Profiles__Sample *sample, const char *key,
                      const char *str, int64_t num)
{
	Perftools__Profiles__Label *label = xcalloc(1, sizeof(*label));

	perftools__profiles__label__init(label);
	label->key = text(p, key);
	label->str = str ? text(p, str) : 0;
	label->num = num;
	append(sample->label, sample->n_label, label);
}

/* Adds a sample without labels. */
static Perftools__Profiles__Sample *add_sample(struct pprof *p, struct stack stack,
                                               const int64_t values[VALUES])
{
	Perftools__Profiles__Sample *sample = xcalloc(1, sizeof(*sample));

	perftools__profiles__sample__init(sample);
	do {
		append(sample->location_id, sample->n_location_id, location_of(p, &stack));
		stack.id = stack.id ? stacks_get(stack.stacks, stack.id)->parent : 0;
	} while (stack.id);
	for (unsigned i = p->first; i < p->end; i++)
		if (i != GIL_TIME_LOCK || p->a->pass->locks_known)
			append(sample->value, sample->n_value, values[i]);
	append(p->profile->sample, p->profile->n_sample, sample);
	return sample;
}

static void add_labels(struct pprof *p, Perftools__Profiles__Sample *sample, const char *name,
                       uint32_t tid, uint32_t pid)
{
	add_label(p, sample, "thread", name, 0);
	add_label(p, sample, "tid", NULL, tid);
	add_label(p, sample, "pid", NULL, pid);
}

static void add_thread(struct pprof *p, uint32_t thread)
{
	CLEANUP(free) char *name = place_text(facts_thread_name(p->a->pass, thread));
	const struct model_thread *t = &p->a->model->threads.v[thread];
	struct gil_times times;

	gil_times_of(&times, p->a, thread);
	for (size_t i = 0; i < times.rows.n; i++) {
		const struct gil_time_row *row = &times.rows.v[i];
		struct stack stack = { times.stacks, row->stack, times.calls,
			               phrase(PHRASE_no_python_frame) };
		int64_t values[VALUES] = { 0 };

		for (unsigned j = 0; j < GIL_TIMES; j++)
			values[j] = (int64_t)row->ns[j];
		add_labels(p, add_sample(p, stack, values), name, t->tid, t->pid);
	}
	gil_times_done(&times);
}

static void add_sampled(struct pprof *p, const struct samples *s,
                        const struct sample_thread *thread)
{
	CLEANUP(free) char *name = sampled_frames_thread(p->a->pass, thread);
	struct sampled_stacks sums = sampled_stacks_of(s, thread);

	for (size_t i = 0; i < sums.v.n; i++) {
		const struct sampled_stack *sum = &sums.v.v[i];
		struct stack stack = { s->stacks, sum->stack, false,
			               phrase(sum->torn ? PHRASE_no_stack
			                                : PHRASE_no_python_frame) };
		int64_t values[VALUES] = { [VALUE_SAMPLES] = (int64_t)sum->samples };
		Perftools__Profiles__Sample *sample = add_sample(p, stack, values);

		add_labels(p, sample, name, thread->tid, thread->pid);
		add_label(p, sample, "doing", sampled_what_name(sum->what), 0);
	}
	vec_done(&sums.v);
}

static void add_types(struct pprof *p)
{
	static const char *const types[VALUES] = { "wait_caused", "hold", "wait", "lock_wait",
		                                   "samples" };

	for (unsigned i = p->first; i < p->end; i++) {
		Perftools__Profiles__ValueType *type;

		if (i == GIL_TIME_LOCK && !p->a->pass->locks_known)
			continue;
		type = xcalloc(1, sizeof(*type));
		perftools__profiles__value_type__init(type);
		type->type = text(p, types[i]);
		type->unit = text(p, i == VALUE_SAMPLES ? "count" : "nanoseconds");
		append(p->profile->sample_type, p->profile->n_sample_type, type);
	}
	/* without a GIL, blocked time is the most important */
	p->profile->default_sample_type =
		text(p, types[p->first == GIL_TIME_HOLD ? GIL_TIME_WAIT : p->first]);
}

static void add_strings(struct pprof *p)
{
	for (uint32_t i = 0; i < names_count(p->strings); i++)
		append(p->profile->string_table, p->profile->n_string_table,
		       xstrdup(names_get(p->strings, i)));
}

static int compress(const Perftools__Profiles__Profile *profile, FILE *out, struct error *err)
{
	size_t size = perftools__profiles__profile__get_packed_size(profile), room;
	CLEANUP(free) uint8_t *plain = xcalloc(size, 1);
	CLEANUP(free) uint8_t *packed = NULL;
	struct libdeflate_compressor *gzip = libdeflate_alloc_compressor(LEVEL);

	if (!gzip)
		return error_set(err, ENOMEM, "no memory to compress the profile");
	perftools__profiles__profile__pack(profile, plain);
	room = libdeflate_gzip_compress_bound(gzip, size);
	packed = xcalloc(room, 1);
	size = libdeflate_gzip_compress(gzip, plain, size, packed, room);
	libdeflate_free_compressor(gzip);
	fwrite_unlocked(packed, 1, size, out);
	return 0;
}

int export_pprof(const struct analysis *a, FILE *out, struct error *err)
{
	const struct samples *samples = a->pass->samples;
	struct pprof p = { .a = a,
		           .first = a->locks               ? GIL_TIME_HOLD
		                    : a->model->gil_events ? GIL_TIME_CAUSED
		                                           : VALUE_SAMPLES,
		           .end = samples ? VALUES : GIL_TIMES };
	int status;

	if (p.first >= p.end)
		return error_set(err, ENODATA,
		                 "the session has no events of a GIL, and no samples");
	p.profile = xcalloc(1, sizeof(*p.profile));
	perftools__profiles__profile__init(p.profile);
	p.strings = names_new();
	add_types(&p);
	for (uint32_t i = 0; p.first < GIL_TIMES && i < a->model->threads.n; i++)
		add_thread(&p, i);
	for (size_t i = 0; samples && i < samples->threads.n; i++)
		add_sampled(&p, samples, &samples->threads.v[i]);
	p.profile->duration_nanos = (int64_t)(a->model->end_ns - a->model->start_ns);
	append(p.profile->comment, p.profile->n_comment, text(&p, "giltracer " PACKAGE_VERSION));
	add_strings(&p);
	status = compress(p.profile, out, err);
	perftools__profiles__profile__free_unpacked(p.profile, NULL);
	names_free(p.strings);
	idmap_done(&p.functions);
	idmap_done(&p.locations);
	return status;
}

#else

int export_pprof(const struct analysis *a, FILE *out, struct error *err)
{
	(void)a;
	(void)out;
	return error_set(err, ENOTSUP,
	                 "giltracer was built without protobuf-c, which the pprof format needs "
	                 "(the folded format shows much the same)");
}
#endif
