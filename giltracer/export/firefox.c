/* SPDX-License-Identifier: MIT */
/*
 * The Firefox profiler's processed profile, version 47: stacks with their durations, and the states
 * of the GIL as markers; samples are in threads of their own. Its tables are lists of columns, so a
 * thread is walked once per column, without keeping any of them.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/jsonw.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/walk.h"
#include "model/span.h"

#define GECKO_VERSION     29
#define PROCESSED_VERSION 47
#define NO_STACK          UINT32_MAX

enum category { CATEGORY_PYTHON, CATEGORY_HOLD, CATEGORY_WAIT, CATEGORY_OTHER };
enum column { COLUMN_STACK, COLUMN_TIME, COLUMN_WEIGHT };

struct node {
	uint32_t prefix, frame; /* NO_STACK: none; index in used */
};

/**
 * A thread while it is written.
 * @sampled: the frames of a sampled thread; NULL: the frames are those of stacked_frames()
 * @used: frames, in the order of their first use; @index: the reverse
 * @nodes: the stacks; @by_node: prefix and frame -> node
 * @stack: the present stack, since since_ns
 * @samples: number of samples
 */
struct thread {
	struct jsonw *w;
	const struct analysis *a;
	const struct sampled_frames *sampled;
	enum column column;
	VEC(uint32_t) used;
	struct idmap index;
	VEC(struct node) nodes;
	struct idmap by_node;
	uint32_t stack;
	uint64_t since_ns, samples;
};

static enum category category_of(const struct thread *t, uint32_t frame)
{
	if (t->sampled)
		return frame == SAMPLED_HOLDS   ? CATEGORY_HOLD
		       : frame == SAMPLED_WAITS ? CATEGORY_WAIT
		       : frame < SAMPLED_WHATS  ? CATEGORY_OTHER
		                                : CATEGORY_PYTHON;
	if (!stacked_is_state(frame))
		return CATEGORY_PYTHON;
	if (frame == GIL_HOLD || frame == GIL_STOPPING)
		return CATEGORY_HOLD;
	return frame == GIL_UNKNOWN || frame == GIL_FREE_WAIT ? CATEGORY_OTHER : CATEGORY_WAIT;
}

/* Free with place_done. */
static void frame_place(struct place *ret, const struct thread *t, uint32_t frame)
{
	if (t->sampled)
		sampled_frames_place(ret, t->sampled, frame);
	else
		stacked_place(ret, t->a, frame);
}

/* The entry of the frame's function, which is that of the function's first frame. */
static uint32_t entry_of_function(const struct thread *t, size_t i)
{
	if (!t->sampled)
		return (uint32_t)i;
	return idmap_get(&t->index, t->sampled->v.v[t->used.v[i]].function);
}

static uint32_t use_frame(struct thread *t, uint32_t frame)
{
	uint32_t at;

	if (t->sampled && t->sampled->v.v[frame].function != frame)
		use_frame(t, t->sampled->v.v[frame].function);
	if (idmap_add(&t->index, frame, (uint32_t)t->used.n, &at))
		*vec_push(&t->used) = frame;
	return at;
}

static uint32_t node_id(struct thread *t, uint32_t prefix, uint32_t frame)
{
	uint32_t at;

	if (idmap_add(&t->by_node, idmap_pair(prefix, frame), (uint32_t)t->nodes.n, &at))
		*vec_push(&t->nodes) = (struct node){ prefix, frame };
	return at;
}

/* Writes the stack, which lasted until at_ns. */
static void put_sample(struct thread *t, uint64_t at_ns)
{
	if (at_ns > t->since_ns && t->stack != NO_STACK) {
		if (t->column == COLUMN_STACK)
			jsonw_u64(t->w, NULL, t->stack);
		else if (t->column == COLUMN_TIME)
			jsonw_ms(t->w, NULL, t->since_ns - t->a->model->start_ns);
		else
			jsonw_ms(t->w, NULL, at_ns - t->since_ns);
		t->samples++;
	}
	t->since_ns = at_ns;
}

static void begin_frame(void *data, uint64_t at_ns, uint32_t frame)
{
	struct thread *t = data;

	put_sample(t, at_ns);
	t->stack = node_id(t, t->stack, use_frame(t, frame));
}

static void end_frame(void *data, uint64_t at_ns, uint32_t frame)
{
	struct thread *t = data;

	(void)frame;
	put_sample(t, at_ns);
	t->stack = t->nodes.v[t->stack].prefix;
}

static void put_column(struct thread *t, uint32_t thread, const char *key, enum column column)
{
	static const struct stacked_ops ops = { begin_frame, end_frame };

	t->column = column;
	t->stack = NO_STACK;
	t->since_ns = t->a->model->start_ns;
	t->samples = 0;
	jsonw_array(t->w, key);
	stacked_thread(t->a, thread, &ops, t);
	jsonw_end(t->w);
}

static void put_samples(struct thread *t, uint32_t thread)
{
	jsonw_object(t->w, "samples");
	put_column(t, thread, "stack", COLUMN_STACK);
	put_column(t, thread, "time", COLUMN_TIME);
	put_column(t, thread, "weight", COLUMN_WEIGHT);
	jsonw_string(t->w, "weightType", "tracing-ms");
	jsonw_u64(t->w, "length", t->samples);
	jsonw_end(t->w);
}

/* A column with n times the same value; null if value is negative. */
static void put_same(struct jsonw *w, const char *key, size_t n, int value)
{
	jsonw_array(w, key);
	for (size_t i = 0; i < n; i++) {
		if (value < 0)
			jsonw_null(w, NULL);
		else
			jsonw_u64(w, NULL, (uint64_t)value);
	}
	jsonw_end(w);
}

/* A column with the multiples of step, beginning with from. */
static void put_count(struct jsonw *w, const char *key, size_t n, uint64_t step, uint64_t from)
{
	jsonw_array(w, key);
	for (size_t i = 0; i < n; i++)
		jsonw_u64(w, NULL, from + step * i);
	jsonw_end(w);
}

static void put_stack_table(struct thread *t)
{
	size_t n = t->nodes.n;

	jsonw_object(t->w, "stackTable");
	jsonw_array(t->w, "prefix");
	for (size_t i = 0; i < n; i++) {
		if (t->nodes.v[i].prefix == NO_STACK)
			jsonw_null(t->w, NULL);
		else
			jsonw_u64(t->w, NULL, t->nodes.v[i].prefix);
	}
	jsonw_end(t->w);
	jsonw_array(t->w, "frame");
	for (size_t i = 0; i < n; i++)
		jsonw_u64(t->w, NULL, t->nodes.v[i].frame);
	jsonw_end(t->w);
	jsonw_array(t->w, "category");
	for (size_t i = 0; i < n; i++)
		jsonw_u64(t->w, NULL, category_of(t, t->used.v[t->nodes.v[i].frame]));
	jsonw_end(t->w);
	put_same(t->w, "subcategory", n, 0);
	jsonw_u64(t->w, "length", n);
	jsonw_end(t->w);
}

/* The lines of the used frames; 0 becomes null. */
static void put_lines(struct thread *t, const char *key)
{
	jsonw_array(t->w, key);
	for (size_t i = 0; i < t->used.n; i++) {
		struct place place;

		frame_place(&place, t, t->used.v[i]);
		if (place.line)
			jsonw_u64(t->w, NULL, place.line);
		else
			jsonw_null(t->w, NULL);
		place_done(&place);
	}
	jsonw_end(t->w);
}

/* Each frame, used or not, has an entry for its function, with two strings, name and file. */
static void put_frame_tables(struct thread *t)
{
	static const char *const nulls[] = { "nativeSymbol", "innerWindowID", "implementation",
		                             "column" };
	size_t n = t->used.n;

	jsonw_object(t->w, "frameTable");
	jsonw_array(t->w, "address");
	for (size_t i = 0; i < n; i++)
		jsonw_i64(t->w, NULL, -1);
	jsonw_end(t->w);
	put_same(t->w, "inlineDepth", n, 0);
	jsonw_array(t->w, "category");
	for (size_t i = 0; i < n; i++)
		jsonw_u64(t->w, NULL, category_of(t, t->used.v[i]));
	jsonw_end(t->w);
	put_same(t->w, "subcategory", n, 0);
	jsonw_array(t->w, "func");
	for (size_t i = 0; i < n; i++)
		jsonw_u64(t->w, NULL, entry_of_function(t, i));
	jsonw_end(t->w);
	for (size_t i = 0; i < sizeof(nulls) / sizeof(*nulls); i++)
		put_same(t->w, nulls[i], n, -1);
	put_lines(t, "line");
	jsonw_u64(t->w, "length", n);
	jsonw_end(t->w);
	jsonw_object(t->w, "funcTable");
	put_count(t->w, "name", n, 2, 0);
	put_count(t->w, "fileName", n, 2, 1);
	put_same(t->w, "isJS", n, 0);
	put_same(t->w, "relevantForJS", n, 0);
	jsonw_array(t->w, "resource");
	for (size_t i = 0; i < n; i++)
		jsonw_i64(t->w, NULL, -1);
	jsonw_end(t->w);
	if (t->sampled)
		put_same(t->w, "lineNumber", n, -1);
	else
		put_lines(t, "lineNumber");
	put_same(t->w, "columnNumber", n, -1);
	jsonw_u64(t->w, "length", n);
	jsonw_end(t->w);
}

/* The strings of the functions, then the names of the states, for markers. */
static void put_strings(struct thread *t)
{
	struct place place;

	jsonw_array(t->w, "stringArray");
	for (size_t i = 0; i < t->used.n; i++) {
		frame_place(&place, t, t->used.v[i]);
		jsonw_string(t->w, NULL, place.name);
		jsonw_string(t->w, NULL, place.file);
		place_done(&place);
	}
	for (uint32_t i = 0; !t->sampled && i < GIL_STATES; i++) {
		stacked_place(&place, t->a, i);
		jsonw_string(t->w, NULL, place.name);
		place_done(&place);
	}
	jsonw_end(t->w);
}

enum marker_column { MARKER_NAME, MARKER_CATEGORY, MARKER_PHASE, MARKER_START, MARKER_END };

static uint64_t put_marker_column(struct thread *t, const char *key, const struct lane *lane,
                                  enum marker_column column)
{
	uint64_t n = 0, zero = t->a->model->start_ns;

	jsonw_array(t->w, key);
	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];

		if (!walk_state_name(WALK_GIL, span->state))
			continue;
		n++;
		if (column == MARKER_NAME)
			jsonw_u64(t->w, NULL, 2 * t->used.n + span->state);
		else if (column == MARKER_CATEGORY)
			jsonw_u64(t->w, NULL, category_of(t, span->state));
		else if (column == MARKER_PHASE)
			jsonw_u64(t->w, NULL, 1); /* an interval */
		else
			jsonw_ms(
				t->w, NULL,
				(column == MARKER_START ? span->start_ns : lane_span_end(lane, i)) -
					zero);
	}
	jsonw_end(t->w);
	return n;
}

static void put_markers(struct thread *t, const struct lane *lane)
{
	uint64_t n;

	jsonw_object(t->w, "markers");
	put_marker_column(t, "name", lane, MARKER_NAME);
	put_marker_column(t, "category", lane, MARKER_CATEGORY);
	put_marker_column(t, "phase", lane, MARKER_PHASE);
	put_marker_column(t, "startTime", lane, MARKER_START);
	n = put_marker_column(t, "endTime", lane, MARKER_END);
	jsonw_array(t->w, "data");
	for (uint64_t i = 0; i < n; i++)
		outbuf_adds(jsonw_value(t->w), "{\"type\":\"GIL\"}");
	jsonw_end(t->w);
	jsonw_u64(t->w, "length", n);
	jsonw_end(t->w);
}

/* Native symbols and resources, which we do not have. */
static void put_empty_tables(struct jsonw *w)
{
	static const char *const symbols[] = { "address", "functionSize", "libIndex", "name" };
	static const char *const resources[] = { "lib", "name", "host", "type" };

	jsonw_object(w, "nativeSymbols");
	for (size_t i = 0; i < 4; i++)
		put_same(w, symbols[i], 0, 0);
	jsonw_u64(w, "length", 0);
	jsonw_end(w);
	jsonw_object(w, "resourceTable");
	for (size_t i = 0; i < 4; i++)
		put_same(w, resources[i], 0, 0);
	jsonw_u64(w, "length", 0);
	jsonw_end(w);
}

/* Writes what both kinds of threads have in common, up to the tables. */
static void begin_thread(struct thread *t, const char *name, uint32_t pid, bool is_main)
{
	CLEANUP(free) char *text = xasprintf("%" PRIu32, pid);

	jsonw_object(t->w, NULL);
	jsonw_string(t->w, "name", name);
	jsonw_bool(t->w, "isMainThread", is_main);
	jsonw_string(t->w, "processType", "default");
	jsonw_string(t->w, "processName",
	             t->a->recording->command ? *t->a->recording->command : NULL);
	jsonw_u64(t->w, "processStartupTime", 0);
	jsonw_null(t->w, "processShutdownTime");
	put_same(t->w, "pausedRanges", 0, 0);
	jsonw_string(t->w, "pid", text);
}

static void end_thread(struct thread *t, const struct lane *lane)
{
	put_stack_table(t);
	put_frame_tables(t);
	put_empty_tables(t->w);
	put_markers(t, lane);
	put_strings(t);
	jsonw_end(t->w);
	vec_done(&t->used);
	vec_done(&t->nodes);
	idmap_done(&t->index);
	idmap_done(&t->by_node);
}

/* The time since the start; 0 if at_ns is earlier. */
static uint64_t since_start(const struct analysis *a, uint64_t at_ns)
{
	return at_ns > a->model->start_ns ? at_ns - a->model->start_ns : 0;
}

static void put_thread(struct jsonw *w, const struct analysis *a, uint32_t thread)
{
	const struct model_thread *m = &a->model->threads.v[thread];
	struct thread t = { .w = w, .a = a };

	begin_thread(&t, facts_thread_name(a->pass, thread), m->pid, m->main);
	jsonw_ms(w, "registerTime", m->start_ns - a->model->start_ns);
	jsonw_ms(w, "unregisterTime", m->end_ns - a->model->start_ns);
	jsonw_u64(w, "tid", m->tid);
	put_samples(&t, thread);
	end_thread(&t, &m->gil);
}

/* Writes, for each sample of a thread, its stack or its time. */
static uint64_t put_sampled_column(struct thread *t, const struct sample_thread *thread,
                                   enum column column)
{
	const struct samples *s = t->sampled->samples;
	uint32_t chain[SAMPLED_CHAIN_MAX];
	uint64_t count = 0;

	for (size_t i = 0; i < thread->runs.n; i++) {
		const struct sample_run *run = &thread->runs.v[i];
		uint32_t end = sample_run_end(s, thread, i), n, stack = NO_STACK;

		if (run->flags & SAMPLE_GONE)
			continue;
		n = sampled_frames_chain(chain, t->sampled, run);
		for (uint32_t j = 0; j < n; j++)
			stack = node_id(t, stack, use_frame(t, chain[j]));
		count += end - run->sample;
		for (uint32_t j = run->sample; j < end; j++) {
			if (column == COLUMN_STACK)
				jsonw_u64(t->w, NULL, stack);
			else
				jsonw_ms(t->w, NULL, since_start(t->a, s->times.v[j]));
		}
	}
	return count;
}

/* Writes a sampled thread, with a weight of 1 per sample. */
static void put_sampled(struct jsonw *w, const struct analysis *a,
                        const struct sampled_frames *frames, const struct sampled_thread *sampled)
{
	const struct sample_thread *thread = &frames->samples->threads.v[sampled->of];
	static const struct lane no_lane = { 0 };
	struct thread t = { .w = w, .a = a, .sampled = frames };
	CLEANUP(free) char *of = sampled_frames_thread(a->pass, thread);
	CLEANUP(free) char *name = xasprintf("%s (samples)", of);
	CLEANUP(free) char *tid = xasprintf("%" PRIu32 " samples", thread->tid);
	uint64_t n;

	begin_thread(&t, name, thread->pid, false);
	jsonw_ms(w, "registerTime", since_start(a, frames->samples->start_ns));
	jsonw_ms(w, "unregisterTime", since_start(a, frames->samples->end_ns));
	jsonw_string(w, "tid", tid); /* the thread itself has the plain number already */
	jsonw_object(w, "samples");
	jsonw_array(w, "stack");
	n = put_sampled_column(&t, thread, COLUMN_STACK);
	jsonw_end(w);
	jsonw_array(w, "time");
	put_sampled_column(&t, thread, COLUMN_TIME);
	jsonw_end(w);
	jsonw_null(w, "weight");
	jsonw_string(w, "weightType", "samples");
	jsonw_u64(w, "length", n);
	jsonw_end(w);
	end_thread(&t, &no_lane);
}

static void put_categories(struct jsonw *w)
{
	static const struct {
		const char *name, *color;
	} categories[] = {
		[CATEGORY_PYTHON] = { "Python", "blue" },
		[CATEGORY_HOLD] = { "Holds the GIL", "green" },
		[CATEGORY_WAIT] = { "Waits for the GIL", "red" },
		[CATEGORY_OTHER] = { "Other", "grey" },
	};

	jsonw_array(w, "categories");
	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "name", categories[i].name);
		jsonw_string(w, "color", categories[i].color);
		jsonw_array(w, "subcategories");
		jsonw_string(w, NULL, "Other");
		jsonw_end(w);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_schema(struct jsonw *w)
{
	static const char *const displays[] = { "marker-chart", "marker-table",
		                                "timeline-overview" };

	jsonw_array(w, "markerSchema");
	jsonw_object(w, NULL);
	jsonw_string(w, "name", "GIL");
	jsonw_array(w, "display");
	for (size_t i = 0; i < sizeof(displays) / sizeof(*displays); i++)
		jsonw_string(w, NULL, displays[i]);
	jsonw_end(w);
	put_same(w, "data", 0, 0);
	jsonw_end(w);
	jsonw_end(w);
}

static void put_meta(struct jsonw *w, const struct samples *samples)
{
	unsigned hz = samples && samples->hz ? samples->hz : 1000;

	jsonw_object(w, "meta");
	jsonw_u64(w, "version", GECKO_VERSION);
	jsonw_u64(w, "preprocessedProfileVersion", PROCESSED_VERSION);
	jsonw_string(w, "product", "Python");
	jsonw_string(w, "importedFrom", "giltracer");
	jsonw_u64(w, "processType", 0);
	jsonw_ms(w, "interval", UINT64_C(1000000000) / hz);
	jsonw_u64(w, "startTime", 0); /* of the wall clock: unknown */
	jsonw_bool(w, "symbolicated", true);
	jsonw_bool(w, "debug", false);
	jsonw_bool(w, "doesNotUseFrameImplementation", true);
	jsonw_bool(w, "sourceCodeIsNotOnSearchfox", true);
	put_categories(w);
	put_schema(w);
	jsonw_end(w);
}

int export_firefox(const struct analysis *a, FILE *out, struct error *err)
{
	struct sampled_frames frames;
	struct jsonw w;

	(void)err;
	sampled_frames_init(&frames, a->pass->samples);
	jsonw_init(&w, out, 0);
	jsonw_object(&w, NULL);
	put_meta(&w, a->pass->samples);
	put_same(&w, "libs", 0, 0);
	put_same(&w, "pages", 0, 0);
	jsonw_array(&w, "threads");
	for (size_t i = 0; stacked_any(a) && i < a->model->threads.n; i++)
		put_thread(&w, a, a->thread_order[i]);
	for (size_t i = 0; i < a->sampled.threads.n; i++)
		put_sampled(&w, a, &frames, &a->sampled.threads.v[i]);
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_finish(&w);
	sampled_frames_done(&frames);
	return 0;
}
