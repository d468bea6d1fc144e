/* SPDX-License-Identifier: MIT */
/* The stacks that waited and those that held, against a search of every instant by itself, on
 * pseudo-random events and calls. */
#include "../fuzz/model-bytes.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/meeting.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/span.h"
#include "report/html/meta.h"
#include "trace/source.h"

#include "tap.h"

#define SEQUENCES 400
#define EVENTS    300
#define CALLS     60
#define FRAMES    5

static uint64_t seed;

static uint32_t next_random(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33);
}

/* Few threads that request, get and release two GILs, now and then without an order. */
static struct model *random_model(const struct names *names)
{
	static const uint8_t types[] = { EV_REQUEST, EV_ACQUIRE, EV_RELEASE, EV_REQUEST,
		                         EV_ACQUIRE, EV_RELEASE, EV_LOST };
	uint8_t data[2 + 4 * EVENTS] = { 0 };

	for (size_t i = 2; i < sizeof(data); i += 4) {
		data[i] = next_random() % 50 ? types[next_random() % 6] : types[6];
		data[i + 1] = (uint8_t)(2 + next_random() % 5);
		data[i + 2] = next_random() % 8 ? 1 : 2;
		data[i + 3] = (uint8_t)(1 + next_random() % 100);
	}
	return model_from_bytes(data, sizeof(data), names);
}

/* Calls nested at random; some have no duration, some begin together. */
static void random_calls(struct slice_thread *st, const struct model *m, uint32_t pid, uint32_t tid)
{
	uint64_t dur = m->end_ns - m->start_ns, open[8], t = m->start_ns;
	size_t depth = 0;

	*st = (struct slice_thread){ .pid = pid, .tid = tid };
	st->v = xcalloc(CALLS, sizeof(*st->v));
	while (st->n < CALLS) {
		t += next_random() % 5 ? next_random() % (dur / CALLS * 2 + 1) : 0;
		while (depth && open[depth - 1] <= t)
			depth--;
		if (depth < 8) {
			uint64_t most = depth ? open[depth - 1] - t : dur / 4,
				 d = next_random() % (most + 1);

			st->v[st->n++] = (struct slice){ t, d, next_random() % 6, 0, 0 };
			open[depth++] = t + d;
		}
	}
	slice_thread_finish(st);
}

static void add_frame(struct str *path, const struct recording_pass *pass, uint32_t frame)
{
	const struct stack_frame *f = stacks_get(pass->source->frames, frame);

	if (f->parent)
		add_frame(path, pass, f->parent);
	str_addf(path, ";frame%u", f->name);
}

/* What a thread executes at that time. */
static void path_at(struct str *path, const struct recording_pass *pass,
                    const struct thread_groups *groups, uint32_t thread, uint64_t t)
{
	const struct model_thread *mt = &pass->model->threads.v[thread];
	const struct slice_thread *st = slices_find(pass->slices, mt->pid, mt->tid);
	uint32_t frame = mt->gil.spans.v[lane_at(&mt->gil, t)].gil.frame;
	bool any = false;

	str_addf(path, "group%u", groups->of[thread]);
	for (unsigned depth = 0; st && depth <= st->max_depth; depth++)
		for (size_t i = 0; i < st->n; i++)
			if (st->v[i].depth == depth && st->v[i].start_ns <= t &&
			    t < st->v[i].start_ns + st->v[i].dur_ns) {
				str_addf(path, ";call%u", st->v[i].name);
				any = true;
			}
	if (!any && frame)
		add_frame(path, pass, frame);
}

struct row {
	char *text;
	uint64_t ns;
};

struct meeting_rows {
	VEC(struct row) v;
	uint64_t ns;
};

static void add_row(struct meeting_rows *rows, const char *waits, const char *holds, uint64_t ns)
{
	CLEANUP(str_done) struct str text = { 0 };

	str_addf(&text, "%s << %s", waits, holds);
	rows->ns += ns;
	for (size_t i = 0; i < rows->v.n; i++)
		if (!strcmp(rows->v.v[i].text, str_get(&text))) {
			rows->v.v[i].ns += ns;
			return;
		}
	*vec_push(&rows->v) = (struct row){ str_take(&text), ns };
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->text, ((const struct row *)b)->text);
}

static void meeting_rows_done(struct meeting_rows *rows)
{
	for (size_t i = 0; i < rows->v.n; i++)
		free(rows->v.v[i].text);
	vec_done(&rows->v);
}

/* The time until which neither the holder nor its calls change. */
static uint64_t until(const struct recording_pass *pass, const struct model_gil *gil, size_t owner,
                      uint64_t t, uint64_t end)
{
	uint32_t thread = gil->owners.v[owner].thread;
	const struct slice_thread *st = NULL;

	if (owner + 1 < gil->owners.n && gil->owners.v[owner + 1].start_ns < end)
		end = gil->owners.v[owner + 1].start_ns;
	if (thread < MODEL_UNKNOWN)
		st = slices_find(pass->slices, pass->model->threads.v[thread].pid,
		                 pass->model->threads.v[thread].tid);
	for (size_t i = 0; st && i < st->n; i++) {
		uint64_t from = st->v[i].start_ns, to = from + st->v[i].dur_ns;

		end = from > t && from < end ? from : end;
		end = to > t && to < end ? to : end;
	}
	return end;
}

static void add_wait(struct meeting_rows *rows, const struct recording_pass *pass,
                     const struct thread_groups *groups, uint32_t thread, size_t i)
{
	const struct lane *lane = &pass->model->threads.v[thread].gil;
	const struct span *s = &lane->spans.v[i];
	const struct model_gil *gil = &pass->model->gils.v[s->gil.index];
	CLEANUP(str_done) struct str waits = { 0 };

	path_at(&waits, pass, groups, thread, s->start_ns);
	for (uint64_t t = s->start_ns, next; t < lane_span_end(lane, i); t = next) {
		size_t owner = 0;
		CLEANUP(str_done) struct str holds = { 0 };

		while (owner + 1 < gil->owners.n && gil->owners.v[owner + 1].start_ns <= t)
			owner++;
		next = until(pass, gil, owner, t, lane_span_end(lane, i));
		if (gil->owners.v[owner].thread >= MODEL_UNKNOWN)
			str_adds(&holds,
			         gil->owners.v[owner].thread == MODEL_NONE ? "nobody" : "unknown");
		else
			path_at(&holds, pass, groups, gil->owners.v[owner].thread, t);
		add_row(rows, str_get(&waits), str_get(&holds), next - t);
	}
}

static void add_stack(struct str *path, const struct stacks *stacks, uint32_t stack)
{
	const struct stack_frame *f = stacks_get(stacks, stack);

	if (f->parent) {
		add_stack(path, stacks, f->parent);
		str_addc(path, ';');
	}
	if (f->flags == MEETING_NOBODY || f->flags == MEETING_UNKNOWN)
		str_adds(path, f->flags == MEETING_NOBODY ? "nobody" : "unknown");
	else
		str_addf(path, "%s%u",
		         f->flags == MEETING_GROUP  ? "group"
		         : f->flags == MEETING_CALL ? "call"
		                                    : "frame",
		         f->name);
}

static void add_meeting(struct meeting_rows *rows, const struct meeting *m)
{
	for (size_t i = 0; i < m->pairs.n; i++) {
		CLEANUP(str_done) struct str waits = { 0 }, holds = { 0 };

		add_stack(&waits, m->stacks, m->pairs.v[i].waits);
		add_stack(&holds, m->stacks, m->pairs.v[i].holds);
		add_row(rows, str_get(&waits), str_get(&holds), m->pairs.v[i].ns);
	}
}

static uint64_t blamed(const struct model *m)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < m->blame.n; i++)
		ns += m->blame.v[i].wait_ns;
	return ns;
}

/* The tree of "diff" with at most so many nodes below the outermost frames. */
static json_t *diff_of(const struct analysis *a, const struct analysis *b, size_t most)
{
	CLEANUP(free) char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	json_error_t bad;
	struct jsonw w;

	jsonw_init(&w, out, 0);
	jsonw_object(&w, NULL);
	caused_diff_write(&w, a, b, most);
	jsonw_end(&w);
	jsonw_finish(&w);
	fclose(out);
	return json_loadb(text, len, 0, &bad);
}

static uint64_t at(const json_t *tree, const char *key, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(json_object_get(tree, key), i));
}

/* The time of a node and of all below it that are not in the other tree. Both trees have their first nodes,
 * and all outermost ones, in common; all others are found by their path. */
static char *path_of(const json_t *tree, size_t node)
{
	const json_t *names = json_object_get(tree, "names");
	uint64_t parent = at(tree, "nodes", 2 * (node - 1));
	CLEANUP(free) char *before = parent ? path_of(tree, parent) : xstrdup("");

	return xasprintf(
		"%s;%s", before,
		json_string_value(json_array_get(names, at(tree, "nodes", 2 * (node - 1) + 1))));
}

static size_t find_path(const json_t *tree, const char *path)
{
	for (size_t i = 1; i <= json_array_size(json_object_get(tree, "a")); i++) {
		CLEANUP(free) char *other = path_of(tree, i);

		if (!strcmp(path, other))
			return i;
	}
	return 0;
}

/* @compared: trees; @cut: of which some callees are left out; @wrong: whose times are not those of the whole
 * tree with the time of the left-out callees at their callers; @large: with too many nodes */
struct diff_results {
	unsigned compared, cut, wrong, large;
};

#define MOST 6

static void test_diff(struct diff_results *r, const struct analysis *a, const struct analysis *b)
{
	json_auto_t *of_whole = diff_of(a, b, SIZE_MAX), *of_part = diff_of(a, b, MOST);
	const json_t *whole = json_object_get(of_whole, "diff"),
		     *part = json_object_get(of_part, "diff");
	size_t n = json_array_size(json_object_get(whole, "a")), outermost = 0, k;
	size_t parts = json_array_size(json_object_get(part, "a"));
	uint64_t *sums[2] = { xcalloc(parts + 1, sizeof(**sums)),
		              xcalloc(parts + 1, sizeof(**sums)) };
	uint64_t cut_ns = 0;

	for (size_t i = 1; i <= n; i++) {
		size_t up = i;

		for (k = 0; up && !k; up = k ? up : at(whole, "nodes", 2 * (up - 1))) {
			CLEANUP(free) char *path = path_of(whole, up);

			k = find_path(part, path);
		}
		sums[0][k] += at(whole, "a", i - 1);
		sums[1][k] += at(whole, "b", i - 1);
		cut_ns += up != i ? at(whole, "a", i - 1) + at(whole, "b", i - 1) : 0;
	}
	for (k = 1; k <= parts; k++) {
		outermost += !at(part, "nodes", 2 * (k - 1));
		r->wrong += sums[0][k] != at(part, "a", k - 1) ||
		            sums[1][k] != at(part, "b", k - 1);
	}
	r->compared++;
	r->wrong += sums[0][0] || sums[1][0];
	r->wrong += cut_ns != (uint64_t)json_integer_value(json_object_get(part, "cut_ns"));
	r->wrong += json_integer_value(json_object_get(whole, "cut_ns")) != 0;
	r->cut += cut_ns > 0;
	r->large += parts > MOST + outermost;
	free(sums[0]);
	free(sums[1]);
}

/* The same threads and calls with other events. */
static void test_other(struct diff_results *r, const struct recording_pass *pass,
                       const struct thread_groups *groups, const struct model *model)
{
	struct model *after = random_model(pass->source->names);
	struct recording_pass other = { .slices = pass->slices,
		                        .source = pass->source,
		                        .model = after };
	struct analysis a = { .pass = pass, .model = model, .rows = *groups };
	struct analysis b = { .pass = &other, .model = after };

	thread_groups_init_table(&b.rows, &other);
	test_diff(r, &a, &b);
	thread_groups_done(&b.rows);
	model_free(after);
}

/* @wrong, @different: numbers of sequences; @undivided: with a limit of work, those that have such time;
 * @divided: pairs with stacks without any work */
struct results {
	unsigned wrong, different, undivided, divided;
	size_t pairs, of_calls, of_frames;
	struct diff_results diff;
};

static void test_sequence(struct results *r, const struct recording_pass *pass, struct model *model,
                          struct slices *slices)
{
	struct meeting_rows want = { 0 }, got = { 0 };
	struct thread_groups groups;
	struct meeting m;

	thread_groups_init_table(&groups, pass);
	for (uint32_t t = 0; t < model->threads.n; t++) {
		struct lane *lane = &model->threads.v[t].gil;

		for (size_t i = 0; i < lane->spans.n; i++)
			lane->spans.v[i].gil.frame = next_random() % (FRAMES + 1);
	}
	for (uint32_t t = 0; t < model->threads.n; t++)
		for (size_t i = 0; i < model->threads.v[t].gil.spans.n; i++)
			if (model->threads.v[t].gil.spans.v[i].state == GIL_WAIT)
				add_wait(&want, pass, &groups, t, i);
	meeting_find(&m, pass, &groups, MEETING_WORK);
	add_meeting(&got, &m);
	vec_sort(&want.v, compare);
	vec_sort(&got.v, compare);
	r->pairs += got.v.n;
	r->wrong += m.ns != blamed(pass->model) || m.ns != got.ns || m.undivided_ns;
	for (size_t i = 0; i < got.v.n; i++) {
		r->of_calls += strstr(got.v.v[i].text, "<< group") &&
		               strstr(got.v.v[i].text, "call");
		r->of_frames += strstr(got.v.v[i].text, "frame") != NULL;
		if (i < want.v.n && !strcmp(got.v.v[i].text, want.v.v[i].text) &&
		    got.v.v[i].ns == want.v.v[i].ns)
			continue;
		if (!r->different++)
			printf("# got %s %" PRIu64 "\n# want %s %" PRIu64 "\n", got.v.v[i].text,
			       got.v.v[i].ns, i < want.v.n ? want.v.v[i].text : "",
			       i < want.v.n ? want.v.v[i].ns : 0);
	}
	r->different += got.v.n != want.v.n;
	meeting_done(&m);
	meeting_find(&m, pass, &groups, 10);
	r->wrong += m.ns != want.ns;
	r->undivided += m.undivided_ns > 0;
	meeting_done(&m);
	meeting_find(&m, pass, &groups, 0);
	r->wrong += m.ns != want.ns;
	for (size_t i = 0; i < m.pairs.n; i++)
		r->divided += stacks_get(m.stacks, m.pairs.v[i].waits)->parent ||
		              stacks_get(m.stacks, m.pairs.v[i].holds)->parent;
	meeting_done(&m);
	test_other(&r->diff, pass, &groups, model);
	meeting_rows_done(&want);
	meeting_rows_done(&got);
	thread_groups_done(&groups);
	for (size_t i = 0; i < slices->thread_count; i++)
		free(slices->threads[i].v);
}

int main(void)
{
	struct names *names = names_new();
	struct source source = { .names = names, .frames = stacks_new(names) };
	struct slice_thread threads[3];
	struct slices slices = { .names = names, .threads = threads, .thread_count = 3 };
	struct results r = { 0 };

	for (unsigned i = 1; i <= FRAMES; i++) {
		char name[] = { 'f', (char)('0' + i), 0 };

		names_id(names, name, 2);
	}
	for (uint32_t i = 1; i <= FRAMES; i++)
		stacks_id(source.frames, &(struct stack_frame){ .parent = i / 2, .name = i });
	for (unsigned i = 0; i < SEQUENCES; i++) {
		struct recording_pass pass = { .slices = &slices, .source = &source };
		struct model *m;

		seed = i;
		m = random_model(names);
		pass.model = m;
		for (uint32_t k = 0; k < 3; k++)
			random_calls(&threads[k], m, 2, 2 + k);
		test_sequence(&r, &pass, m, &slices);
		model_free(m);
	}
	is_u64(r.different, 0, "each pair of stacks has the time of every instant");
	is_u64(r.wrong, 0, "their sum is the waiting that is blamed");
	ok(r.of_calls > 1000 && r.of_frames > 1000,
	   "of %zu pairs, %zu with calls and %zu with frames", r.pairs, r.of_calls, r.of_frames);
	ok(r.undivided > SEQUENCES / 2, "%u: without the work, the holder remains", r.undivided);
	is_u64(r.divided, 0, "if there is none from the beginning, no stack does");
	ok(r.diff.cut > r.diff.compared / 2,
	   "of %u trees of two recordings, callees are left out in %u", r.diff.compared,
	   r.diff.cut);
	is_u64(r.diff.large, 0, "so that they do not grow");
	is_u64(r.diff.wrong, 0, "and each callee's time is its caller's, in both recordings");
	stacks_free(source.frames);
	names_free(names);
	return done_testing();
}
