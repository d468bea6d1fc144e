/* SPDX-License-Identifier: MIT */
/* The small JSON documents of the page: meta and overview. */
#include "report/html/meta.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/functions.h"
#include "analysis/groups.h"
#include "analysis/locks.h"
#include "analysis/whatif.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "model/span.h"
#include "report/html/blocks.h"
#include "report/json.h"
#include "report/phrases.h"
#include "report/tables.h"
#include "report/threads.h"
#include "report/words.h"
#include "session/session.h"
#include "trace/source.h"

/**
 * @v: rows: pairs of threads in the model's order, or pairs of groups, the largest first;
 *	longest_waiter and longest_holder are the threads to name
 * @grouped: rows are pairs of groups
 * @others: for each group with further rows: their number (pairs) and sum (wait_ns);
 *	longest_waiter is a thread of the group
 * @caused_ns: if grouped: for each thread, how long others waited for it
 */
struct blame_list {
	VEC(struct group_blame) v, others;
	bool grouped;
	uint64_t *caused_ns;
};

/* Adds up the rows from index from on, which are not listed, by waiting group. */
static void add_others(struct blame_list *ret, const struct thread_groups *groups,
                       const struct group_blames *rows, size_t from)
{
	CLEANUP(free) struct group_blame *sums = xcalloc(groups->v.n + 1, sizeof(*sums));

	for (size_t i = from; i < rows->v.n; i++) {
		sums[rows->v.v[i].waiter].pairs += rows->v.v[i].pairs;
		sums[rows->v.v[i].waiter].wait_ns += rows->v.v[i].wait_ns;
	}
	for (size_t i = 0; i < groups->v.n; i++) {
		sums[i].longest_waiter = groups->v.v[i].first;
		if (sums[i].pairs)
			*vec_push(&ret->others) = sums[i];
	}
}

static void add_groups(struct blame_list *ret, const struct recording_pass *pass,
                       enum wait_kind kind, size_t most)
{
	struct thread_groups groups;
	struct group_blames rows;

	thread_groups_init_table(&groups, pass);
	rows = group_blames_find(&groups, pass->model, kind);
	for (size_t i = 0; i < rows.v.n && i < most; i++)
		*vec_push(&ret->v) = rows.v.v[i];
	add_others(ret, &groups, &rows, most);
	vec_done(&rows.v);
	thread_groups_done(&groups);
}

/* Free with blame_list_done. */
static void blame_list_init(struct blame_list *ret, const struct recording_pass *pass,
                            enum wait_kind kind, size_t most)
{
	size_t n = blame_pair_count(pass->model, kind);

	*ret = (struct blame_list){ .grouped = n > most };
	if (ret->grouped) {
		ret->caused_ns = xcalloc(pass->model->threads.n + 1, sizeof(*ret->caused_ns));
		add_groups(ret, pass, kind, most);
	}
	for (size_t i = 0; i < n; i++) {
		struct group_blame pair = blame_pair(pass->model, kind, i);

		if (!ret->grouped)
			*vec_push(&ret->v) = pair;
		else if (pair.holder < MODEL_UNKNOWN)
			ret->caused_ns[pair.holder] += pair.wait_ns;
	}
}

static void blame_list_done(struct blame_list *list)
{
	vec_done(&list->v);
	vec_done(&list->others);
	free(list->caused_ns);
}

DEFINE_CLEANUP_IN(struct blame_list, blame_list_done);

static void put_options(struct jsonw *w, const struct recording *recording)
{
	jsonw_array(w, "command");
	for (size_t i = 0; recording->command && recording->command[i]; i++)
		jsonw_string(w, NULL, recording->command[i]);
	jsonw_end(w);
	jsonw_string(w, "created", recording->created);
	jsonw_string(w, "host", recording->host);
	jsonw_u64(w, "cpus", recording->cpus);
	jsonw_bool(w, "state_detect", recording->state_detect);
	jsonw_bool(w, "gil_detect", recording->gil_detect);
	jsonw_bool(w, "one_run", recording->one_run);
	jsonw_u64(w, "main_pass", (uint64_t)(recording_main_pass(recording) - recording->passes));
	jsonw_u64(w, "switch_interval_ns", SWITCH_INTERVAL_NS);
	jsonw_u64(w, "wait_mark_ns", WAIT_MARK_NS);
	jsonw_u64(w, "crowds_from", GROUPS_FROM);
	jsonw_u64(w, "crowd_least", GROUP_MIN_THREADS);
	jsonw_u64(w, "nearly_all_percent", TABLE_NEARLY_ALL);
	jsonw_array(w, "library_marks");
	for (const char *const *mark = library_marks; *mark; mark++)
		jsonw_string(w, NULL, *mark);
	jsonw_end(w);
}

/* Python asks for a release after one switch interval, or two at most, and Python code obeys at
 * once. */
static void put_holders_hint(struct jsonw *w, const struct analysis *a)
{
	CLEANUP(str_done) struct str text = { 0 };

	say_held_until(&text);
	if (a->holders.longest_ns > 2 * SWITCH_INTERVAL_NS + HOGS_SLACK_NS)
		say_held_long(&text, 2 * SWITCH_INTERVAL_NS);
	else
		say_held_briefly(&text);
	jsonw_string(w, "holders_hint", str_get(&text));
}

static void put_notes(struct jsonw *w, const struct recording *recording)
{
	jsonw_array(w, "notes");
	for (size_t i = 0; i < recording->note_count; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "code", recording->notes[i].code);
		jsonw_u64(w, "count", recording->notes[i].count);
		jsonw_string(w, "text", recording->notes[i].text);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* Time since the start of the pass; earlier times become 0. */
static uint64_t since(const struct model *model, uint64_t at_ns)
{
	return at_ns > model->start_ns ? at_ns - model->start_ns : 0;
}

static void put_thread(struct jsonw *w, const struct recording_pass *pass, uint32_t i)
{
	const struct model_thread *t = &pass->model->threads.v[i];

	jsonw_object(w, NULL);
	json_thread_members(w, pass, i);
	jsonw_u64(w, "from_ns", since(pass->model, t->start_ns));
	jsonw_u64(w, "to_ns", since(pass->model, t->end_ns));
	thread_longest_json(w, pass, t);
	jsonw_u64(w, "contended_waits", t->contended_waits);
	jsonw_u64(w, "releases_probed", t->releases_probed);
	jsonw_u64(w, "releases_inferred", t->releases_inferred);
	jsonw_end(w);
}

static void put_gils(struct jsonw *w, const struct model *model)
{
	jsonw_array(w, "gils");
	for (size_t i = 0; i < model->gils.n; i++) {
		const struct model_gil *gil = &model->gils.v[i];

		jsonw_object(w, NULL);
		json_gil_members(w, gil);
		jsonw_u64(w, "from_ns", since(model, gil->start_ns));
		jsonw_u64(w, "to_ns", since(model, gil->end_ns));
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* holder: a thread, -1: unknown, -2: all without rows of their own; grouped: the row is a sum
 * over a group. */
static void put_blame_row(struct jsonw *w, const struct model *model, const struct group_blame *b,
                          int64_t holder, bool grouped)
{
	jsonw_object(w, NULL);
	jsonw_u64(w, "waiter", b->longest_waiter);
	if (holder == MODEL_NONE)
		jsonw_null(w, "holder");
	else
		jsonw_i64(w, "holder", holder == MODEL_UNKNOWN ? -1 : holder);
	jsonw_u64(w, "wait_ns", b->wait_ns);
	jsonw_u64(w, "longest_ns", b->longest_ns);
	jsonw_u64(w, "longest_at_ns", since(model, b->longest_at_ns));
	if (grouped)
		jsonw_u64(w, "pairs", b->pairs);
	jsonw_end(w);
}

static void put_blame(struct jsonw *w, const struct recording_pass *pass, bool locks)
{
	const struct model *model = pass->model;
	CLEANUP(blame_list_done) struct blame_list list;

	blame_list_init(&list, pass, locks ? WAIT_FOR_LOCK : WAIT_FOR_GIL, META_BLAME_ROWS);
	jsonw_array(w, locks ? "lock_blame" : "blame");
	for (size_t i = 0; i < list.v.n; i++)
		put_blame_row(w, model, &list.v.v[i], list.v.v[i].longest_holder, list.grouped);
	for (size_t i = 0; i < list.others.n; i++)
		put_blame_row(w, model, &list.others.v[i], -2, true);
	jsonw_end(w);
	if (!list.grouped)
		return;
	jsonw_array(w, locks ? "lock_caused" : "caused");
	for (size_t i = 0; i < model->threads.n; i++)
		jsonw_u64(w, NULL, list.caused_ns[i]);
	jsonw_end(w);
}

static void put_slices_note(struct jsonw *w, const struct recording_pass *pass,
                            const struct rows *rows)
{
	CLEANUP(str_done) struct str text = { 0 };

	if (!pass->slices) {
		jsonw_string(w, "slices_note", pass->slices_note ? pass->slices_note : "");
		return;
	}
	wording_add_flaw(&text, pass->slices);
	if (rows->dropped) {
		str_adds(&text, text.len ? "; " : "");
		say_calls_not_shown(&text, rows->dropped);
	}
	jsonw_string(w, "slices_note", str_get(&text));
}

static void put_counters(struct jsonw *w, const struct source *source)
{
	jsonw_array(w, "counters");
	for (uint32_t i = 0; source && i < source->counter_count; i++)
		jsonw_string(w, NULL, source->counters[i]);
	jsonw_end(w);
}

static void put_samples(struct jsonw *w, const struct samples *samples)
{
	if (!samples)
		return;
	jsonw_object(w, "samples");
	jsonw_u64(w, "count", samples->times.n);
	jsonw_u64(w, "hz", samples->hz);
	jsonw_u64(w, "missed", samples->missed);
	jsonw_u64(w, "torn", samples->torn);
	jsonw_bool(w, "gil_only", samples->gil_only);
	jsonw_end(w);
}

static void put_pass(struct jsonw *w, const struct recording_pass *pass, const struct rows *rows)
{
	const struct model *model = pass->model;
	char start[24];

	snprintf(start, sizeof(start), "%" PRIu64, model->start_ns);
	jsonw_object(w, NULL);
	jsonw_string(w, "name", pass_kind_name(pass->kind));
	jsonw_string(w, "start_ns", start);
	jsonw_u64(w, "dur_ns", model->end_ns - model->start_ns);
	jsonw_i64(w, "exit_status", pass->exit_status);
	jsonw_u64(w, "wall_ns", pass->wall_ns);
	jsonw_u64(w, "events", pass->source ? pass->source->stats.events : 0);
	jsonw_u64(w, "lost", pass->source ? pass->source->stats.lost : 0);
	jsonw_u64(w, "gil_events", model->gil_events);
	jsonw_u64(w, "slices", rows->kept);
	put_samples(w, pass->samples);
	put_slices_note(w, pass, rows);
	put_counters(w, pass->source);
	thread_columns_json(w, model, locks_of_pass(pass));
	jsonw_array(w, "threads");
	for (uint32_t i = 0; i < model->threads.n; i++)
		put_thread(w, pass, i);
	jsonw_end(w);
	put_gils(w, model);
	put_blame(w, pass, false);
	if (pass->free_threaded) {
		jsonw_bool(w, "locks", locks_of_pass(pass));
		put_blame(w, pass, true);
	}
	jsonw_end(w);
}

static bool has_times(const struct analysis *a, const char *file)
{
	for (size_t i = 0; i < a->lines.v.n; i++)
		if (!strcmp(function_at(a->pass, a->lines.v.v[i].frame).file, file))
			return true;
	return false;
}

/* The program's lines, of the files that have times in the report's "lines". */
static void put_source(struct jsonw *w, const struct analysis *a)
{
	const struct sources *sources = a->recording->sources;
	const char *file = NULL;
	bool wanted = false;

	jsonw_array(w, "source");
	for (size_t i = 0; sources && i < sources->n; i++) {
		const struct source_line *line = &sources->v[i];

		if (!file || strcmp(line->file, file) != 0)
			wanted = has_times(a, line->file);
		file = line->file;
		if (!wanted)
			continue;
		jsonw_object(w, NULL);
		jsonw_string(w, "file", file);
		jsonw_u64(w, "line", line->line);
		jsonw_u64(w, "indent", line->indent);
		jsonw_string(w, "text", line->text);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* What the program would wait without a GIL, if it waited for it at all. */
static void put_without_gil(struct jsonw *w, const struct analysis *a)
{
	struct whatif_free f;

	if (!a->model->blame.n || !analysis_without_gil(&f, a))
		return;
	if (f.run_count) {
		jsonw_object(w, "without_gil");
		jsonw_bool(w, "known", f.no_gain == GAIN_KNOWN);
		jsonw_real(w, "factor",
		           a->recording->without_gil ? a->recording->without_gil->factor
		                                     : WHATIF_FACTOR,
		           2);
		jsonw_u64(w, "recorded_ns", f.recorded_ns);
		jsonw_real(w, "cpus", f.unchanged.cpus, 2);
		jsonw_u64(w, "replayed_ns", f.unchanged.waited_ns);
		jsonw_u64(w, "replayed_shared_ns", f.unchanged.shared_ns);
		jsonw_u64(w, "duration_ns", f.duration_ns);
		jsonw_u64(w, "end_ns", f.unchanged.end_ns);
		jsonw_array(w, "runs");
		for (unsigned i = 0; i < f.run_count; i++) {
			jsonw_object(w, NULL);
			jsonw_real(w, "cpus", f.runs[i].cpus, 2);
			jsonw_u64(w, "shared_ns", f.runs[i].shared_ns);
			jsonw_u64(w, "end_ns", f.runs[i].end_ns);
			jsonw_end(w);
		}
		jsonw_end(w);
		jsonw_end(w);
	}
	whatif_free_done(&f);
}

void meta_write(const struct analysis *a, const struct rows *rows, const struct change *change,
                FILE *out)
{
	const struct recording *recording = a->recording;
	struct jsonw w;

	jsonw_init(&w, out, 0);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "format", 1);
	put_options(&w, recording);
	put_holders_hint(&w, a);
	put_notes(&w, recording);
	jsonw_array(&w, "passes");
	for (size_t i = 0; i < recording->pass_count; i++)
		put_pass(&w, &recording->passes[i], &rows[i]);
	jsonw_end(&w);
	tasks_meta(&w, a);
	put_source(&w, a);
	meeting_write(&w, a);
	put_without_gil(&w, a);
	if (change)
		caused_diff_write(&w, change->a, change->b, MEETING_NODES);
	jsonw_end(&w);
	jsonw_finish(&w);
}

/* Distributes a thread's GIL states over equal parts of the recording. */

static const int8_t state_of[GIL_STATES] = {
	[GIL_UNKNOWN] = -1,
	[GIL_NO] = PART_NO_GIL,
	[GIL_HOLD] = PART_HOLD,
	[GIL_WAIT] = PART_WAIT,
	[GIL_SWITCH_WAIT] = PART_WAIT,
	[GIL_FREE_WAIT] = PART_FREE_WAIT,
	[GIL_LOCK_WAIT] = PART_WAIT,
	[GIL_STOPPED] = PART_WAIT,
	[GIL_STOPPING] = PART_HOLD,
	[GIL_SPINNING] = PART_FREE_WAIT,
};

/* The part in which the last span ended, and the end of that part. */
struct place {
	uint64_t part, limit_ns;
};

static struct place place_of(const struct gil_parts *parts, uint64_t time_ns)
{
	uint64_t part = (time_ns - parts->start_ns) / parts->width_ns;

	return (struct place){ part, parts->start_ns + (part + 1) * parts->width_ns };
}

/* Adds a span. Spans come in order of time, and nearly all are within one part. */
static void add(struct gil_parts *parts, struct place *at, enum gil_part_state state,
                uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns >= at->limit_ns)
		*at = place_of(parts, from_ns);
	while (from_ns < to_ns && at->part < GIL_PARTS) {
		uint64_t end_ns = to_ns < at->limit_ns ? to_ns : at->limit_ns;

		parts->ns[state][at->part] += end_ns - from_ns;
		from_ns = end_ns;
		if (from_ns == at->limit_ns)
			*at = place_of(parts, from_ns);
	}
}

void gil_parts_init(struct gil_parts *ret, const struct model *model, uint32_t thread, bool locks)
{
	const struct lane *lane = &model->threads.v[thread].gil;
	uint64_t dur_ns = model->end_ns - model->start_ns;
	struct place at = { 0, 0 };

	memset(ret, 0, sizeof(*ret));
	ret->start_ns = model->start_ns;
	ret->width_ns = dur_ns ? (dur_ns - 1) / GIL_PARTS + 1 : 1;
	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		int state = !locks && gil_state_is_without(span->state) ? PART_NO_GIL
		                                                        : state_of[span->state];

		if (state >= 0)
			add(ret, &at, (enum gil_part_state)state, span->start_ns,
			    lane_span_end(lane, i));
	}
}

/* A coarse picture of the GIL lanes, for the first paint of the page. */

#define THREADS 64
#define FULL    63

/* Rounds the shares of one part to 63rds, whose sum is at most 63. */
static void round_part(const struct gil_parts *parts, unsigned part, unsigned ret[PART_STATES])
{
	unsigned sum = 0, largest = 0;

	for (unsigned s = 0; s < PART_STATES; s++) {
		uint64_t ns = parts->ns[s][part];

		ret[s] = (unsigned)((ns * FULL + parts->width_ns / 2) / parts->width_ns);
		if (ns && !ret[s])
			ret[s] = 1;
		sum += ret[s];
		if (ret[s] > ret[largest])
			largest = s;
	}
	if (sum > FULL)
		ret[largest] -= sum - FULL;
}

static void put_shares(struct jsonw *w, const struct gil_parts *parts, uint32_t thread)
{
	static const char *const names[PART_STATES] = { "hold", "wait", "free_wait", "no" };
	char text[PART_STATES][GIL_PARTS + 1] = { 0 };
	unsigned shares[PART_STATES];

	for (unsigned i = 0; i < GIL_PARTS; i++) {
		round_part(parts, i, shares);
		for (unsigned s = 0; s < PART_STATES; s++)
			text[s][i] = base64_alphabet[shares[s]];
	}
	jsonw_object(w, NULL);
	jsonw_u64(w, "thread", thread);
	for (unsigned s = 0; s < PART_STATES; s++)
		jsonw_string(w, names[s], text[s]);
	jsonw_end(w);
}

void overview_write(const struct analysis *a, FILE *out)
{
	CLEANUP(free) struct gil_parts *parts = xcalloc(1, sizeof(*parts));
	struct jsonw w;

	jsonw_init(&w, out, 0);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "pass", (uint64_t)(a->pass - a->recording->passes));
	jsonw_u64(&w, "buckets", GIL_PARTS);
	jsonw_array(&w, "threads");
	for (size_t i = 0; i < a->model->threads.n && i < THREADS; i++) {
		gil_parts_init(parts, a->model, a->thread_order[i], a->locks);
		put_shares(&w, parts, a->thread_order[i]);
	}
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_finish(&w);
}
