/* SPDX-License-Identifier: MIT */
/* Sums up a recording, and compares two. */
#include "analysis/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "trace/source.h"

const struct fact_kind fact_kinds[FACTS] = {
	[FACT_GIL_WAIT] = { "gil_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_GIL_HOLD] = { "gil_hold", UNIT_PERCENT | UNIT_TIME },
	[FACT_THREAD_WAIT] = { "thread_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_HOG_WAIT] = { "hog_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_LOCK_WAIT] = { "lock_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_STOPPED] = { "stopped", UNIT_PERCENT | UNIT_TIME },
	[FACT_LONGEST_WAIT] = { "longest_wait", UNIT_TIME },
	[FACT_LONGEST_HOLD] = { "longest_hold", UNIT_TIME },
	[FACT_HOGS] = { "hogs", UNIT_COUNT },
	[FACT_LOST] = { "lost", UNIT_COUNT },
	[FACT_UNKNOWN] = { "unknown", UNIT_PERCENT | UNIT_TIME },
};

/* The text as in the JSON document: bytes that are not UTF-8 are replaced. */
static char *valid(const char *text)
{
	struct str ret = { 0 };
	uint32_t cp;

	while ((cp = utf8_next(&text)))
		utf8_add(&ret, cp);
	return str_take(&ret);
}

/* A row's key is the hash of its name and file, or the next number that no other row has. If there
 * is no such row, *ret_key is the key of a new one. */
static uint32_t look_up(const struct summary_rows *rows, const char *name, const char *file,
                        uint64_t *ret_key)
{
	struct hash_seed seed = hash_seed();
	uint64_t key = hash_more(seed, hash_text(seed, name, strlen(name)),
	                         hash_text(seed, file, strlen(file)));
	uint32_t at;

	while ((at = idmap_get(&rows->index, key)) != IDMAP_NONE &&
	       (strcmp(rows->v.v[at].name, name) || strcmp(rows->v.v[at].file, file)))
		key++;
	*ret_key = key;
	return at;
}

/* The index of the row of this name and file; IDMAP_NONE: there is none. */
static uint32_t summary_find_row(const struct summary_rows *rows, const char *name,
                                 const char *file)
{
	uint64_t key;

	return look_up(rows, name, file, &key);
}

static struct summary_row *find_row(struct summary_rows *rows, const char *name, const char *file)
{
	uint64_t key;
	uint32_t at = look_up(rows, name, file, &key);

	if (at == IDMAP_NONE) {
		at = (uint32_t)rows->v.n;
		idmap_set(&rows->index, key, at);
		*vec_push(&rows->v) = (struct summary_row){ .name = xstrdup(name),
			                                    .file = xstrdup(file) };
	}
	return &rows->v.v[at];
}

static void set_max(uint64_t *max, uint64_t value)
{
	if (value > *max)
		*max = value;
}

void summary_add_thread(struct summary *s, const struct summary_thread *t)
{
	struct summary_row *row = find_row(&s->threads, t->name, "");
	uint64_t known_ns = t->total_ns > t->unknown_ns ? t->total_ns - t->unknown_ns : 0;
	double share = facts_percent(t->wait_ns, known_ns);

	row->count++;
	row->wait_ns += t->wait_ns;
	row->hold_ns += t->hold_ns;
	set_max(&s->recording_ns, t->total_ns);
	s->known_ns += known_ns;
	s->value[FACT_GIL_WAIT] += t->wait_ns;
	s->value[FACT_GIL_HOLD] += t->hold_ns;
	s->value[FACT_LOCK_WAIT] += t->lock_wait_ns;
	s->value[FACT_STOPPED] += t->stopped_ns;
	s->value[FACT_UNKNOWN] += t->unknown_ns;
	set_max(&s->value[FACT_THREAD_WAIT], t->wait_ns);
	if (share > s->percent[FACT_THREAD_WAIT])
		s->percent[FACT_THREAD_WAIT] = share;
	set_max(&s->value[FACT_LONGEST_WAIT], t->longest_wait_ns);
	set_max(&s->value[FACT_LONGEST_HOLD], t->longest_hold_ns);
}

void summary_add_function(struct summary *s, const struct summary_function *f)
{
	struct summary_row *row = find_row(&s->functions, f->name, str_base(f->file));

	if (!row->line)
		row->line = f->line;
	row->wait_ns += f->wait_ns;
	row->hold_ns += f->hold_ns;
	row->overdue_wait_ns += f->overdue_wait_ns;
	s->value[FACT_HOG_WAIT] += f->overdue_wait_ns;
	s->value[FACT_HOGS] += f->overdue;
}

/* The file of a module, because the program may also be run by the name of its file. */
static char *file_of_module(const char *module)
{
	const char *dot = strrchr(module, '.');
	CLEANUP(free) char *name = valid(dot ? dot + 1 : module);

	return xasprintf("%s.py", name);
}

void summary_set_program(struct summary *s, const char *const *command)
{
	if (*command && str_has_prefix(str_base(*command), "python") &&
	    !str_has_suffix(*command, ".py"))
		command++;
	for (; *command && **command == '-'; command++) {
		if (!strcmp(*command, "-m") && command[1]) {
			s->program = file_of_module(command[1]);
			return;
		}
		if (!strcmp(*command, "-c") || !strcmp(*command, "-"))
			return;
		if ((!strcmp(*command, "-W") || !strcmp(*command, "-X")) && command[1])
			command++;
	}
	if (*command && **command)
		s->program = valid(str_base(*command));
}

void summary_add_lost(struct summary *s, uint64_t records)
{
	s->value[FACT_LOST] += records;
}

void summary_finish(struct summary *s)
{
	static const enum fact waits[] = { FACT_GIL_WAIT, FACT_HOG_WAIT, FACT_LOCK_WAIT,
		                           FACT_STOPPED };

	for (unsigned i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		s->percent[waits[i]] = facts_percent(s->value[waits[i]], s->known_ns);
	s->percent[FACT_GIL_HOLD] = facts_percent(s->value[FACT_GIL_HOLD], s->recording_ns);
	s->percent[FACT_UNKNOWN] = facts_percent(s->value[FACT_UNKNOWN],
	                                         s->known_ns + s->value[FACT_UNKNOWN]);
	s->recordings = 1;
	memcpy(s->low, s->percent, sizeof(s->low));
	memcpy(s->high, s->percent, sizeof(s->high));
}

static void join_rows(struct summary_rows *ret, const struct summary_rows *rows,
                      uint64_t recording_ns)
{
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct summary_row *from = &rows->v.v[i];
		struct summary_row *to = find_row(ret, from->name, from->file);
		double share = facts_percent(from->wait_ns, recording_ns);

		to->low = to->recordings && to->low < share ? to->low : share;
		to->high = to->high > share ? to->high : share;
		to->line = from->line;
		set_max(&to->count, from->count);
		to->wait_ns += from->wait_ns;
		to->hold_ns += from->hold_ns;
		to->overdue_wait_ns += from->overdue_wait_ns;
		to->recordings++;
	}
}

/* Makes sums means. */
static void divide_rows(struct summary_rows *rows, size_t n)
{
	for (size_t i = 0; i < rows->v.n; i++) {
		struct summary_row *row = &rows->v.v[i];

		row->wait_ns /= n;
		row->hold_ns /= n;
		row->overdue_wait_ns /= n;
		if (row->recordings < n)
			row->low = 0;
	}
}

void summary_join(struct summary *ret, const struct summary *of, size_t n)
{
	*ret = (struct summary){ .recordings = (unsigned)n };
	if (of->program)
		ret->program = xstrdup(of->program);
	for (size_t i = 0; i < n; i++) {
		ret->recording_ns += of[i].recording_ns;
		ret->known_ns += of[i].known_ns;
		ret->locks_unknown |= of[i].locks_unknown;
		for (unsigned f = 0; f < FACTS; f++) {
			double percent = of[i].percent[f];

			ret->value[f] += of[i].value[f];
			ret->percent[f] += percent / (double)n;
			ret->low[f] = i && ret->low[f] < percent ? ret->low[f] : percent;
			ret->high[f] = ret->high[f] > percent ? ret->high[f] : percent;
		}
		join_rows(&ret->threads, &of[i].threads, of[i].recording_ns);
		join_rows(&ret->functions, &of[i].functions, of[i].recording_ns);
	}
	ret->recording_ns /= n;
	ret->known_ns /= n;
	for (unsigned f = 0; f < FACTS; f++)
		ret->value[f] /= n;
	divide_rows(&ret->threads, n);
	divide_rows(&ret->functions, n);
}

static void add_thread(struct summary *s, const struct analysis *a, uint32_t thread)
{
	const struct model_thread *t = &a->model->threads.v[thread];
	CLEANUP(free) char *name = valid(facts_thread_name(a->pass, thread));

	summary_add_thread(s, &(struct summary_thread){
				      .name = name,
				      .total_ns = t->end_ns - t->start_ns,
				      .hold_ns = t->gil_ns[GIL_HOLD],
				      .wait_ns = model_thread_wait_ns(t),
				      .unknown_ns = t->gil_ns[GIL_UNKNOWN],
				      .lock_wait_ns = t->gil_ns[GIL_LOCK_WAIT],
				      .stopped_ns = t->gil_ns[GIL_STOPPED],
				      .longest_hold_ns = t->longest_hold_ns,
				      .longest_wait_ns = t->longest_wait_ns,
			      });
}

/* Functions that no thread waited for get no row. */
static void add_function(struct summary *s, const struct analysis *a, const struct hog *hog)
{
	struct function f = function_of(a->pass, hog);
	CLEANUP(free) char *name = valid(f.name ? f.name : SUMMARY_UNKNOWN);
	CLEANUP(free) char *file = valid(f.file);

	if (!hog->wait_ns && !hog->overdue_holds)
		return;
	summary_add_function(s, &(struct summary_function){
					.name = name,
					.file = file,
					.line = f.line,
					.wait_ns = hog->wait_ns,
					.hold_ns = hog->wait_ns ? hog->hold_ns : 0,
					.overdue = hog->overdue_holds,
					.overdue_wait_ns = hog->overdue_wait_ns,
				});
}

void summary_init(struct summary *ret, const struct analysis *a)
{
	const struct hogs *hogs = a->pass->hogs;

	*ret = (struct summary){ .locks_unknown = !a->pass->locks_known };
	if (a->recording->command)
		summary_set_program(ret, a->recording->command);
	for (size_t i = 0; i < a->recording->pass_count; i++)
		if (a->recording->passes[i].source)
			summary_add_lost(ret, a->recording->passes[i].source->stats.lost);
	for (size_t i = 0; i < a->model->threads.n; i++)
		add_thread(ret, a, a->thread_order[i]);
	for (size_t i = 0; hogs && i < hogs->v.n; i++)
		add_function(ret, a, &hogs->v.v[i]);
	summary_finish(ret);
}

static void rows_done(struct summary_rows *rows)
{
	for (size_t i = 0; i < rows->v.n; i++) {
		free(rows->v.v[i].name);
		free(rows->v.v[i].file);
	}
	vec_done(&rows->v);
	idmap_done(&rows->index);
}

void summary_done(struct summary *summary)
{
	rows_done(&summary->threads);
	rows_done(&summary->functions);
	free(summary->program);
}

bool diff_is_noise(double a, double b)
{
	double change = fabs(b - a), larger = a > b ? a : b;

	return change < DIFF_POINTS || change < larger * DIFF_PERCENT / 100;
}

/* Whether two ranges have something in common. */
static bool overlap(double low_a, double high_a, double low_b, double high_b)
{
	return low_a <= high_b && low_b <= high_a;
}

static struct diff_side side(const struct summary *s, const struct summary_row *row)
{
	double wait = facts_percent(row->wait_ns, s->recording_ns);

	return (struct diff_side){
		.count = row->count,
		.wait_ns = row->wait_ns,
		.hold_ns = row->hold_ns,
		.overdue_wait_ns = row->overdue_wait_ns,
		.wait = wait,
		.low = s->recordings > 1 ? row->low : wait,
		.high = s->recordings > 1 ? row->high : wait,
		.hold = facts_percent(row->hold_ns, s->recording_ns),
	};
}

static struct diff_row *add_row(struct diff_rows *rows, const struct summary_row *row)
{
	struct diff_row *ret = vec_push(&rows->v);

	*ret = (struct diff_row){ .name = row->name, .file = row->file, .line = row->line };
	return ret;
}

static int most_changed_first(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	double cx = fabs(x->change), cy = fabs(y->change);
	int by_name = strcmp(x->name, y->name);

	if (cx != cy)
		return cx < cy ? 1 : -1;
	return by_name ? by_name : strcmp(x->file, y->file);
}

static void compare_rows(struct diff_rows *ret, const struct summary *sa,
                         const struct summary_rows *a, const struct summary *sb,
                         const struct summary_rows *b)
{
	for (size_t i = 0; i < b->v.n; i++)
		add_row(ret, &b->v.v[i])->b = side(sb, &b->v.v[i]);
	for (size_t i = 0; i < a->v.n; i++) {
		const struct summary_row *row = &a->v.v[i];
		uint32_t at = summary_find_row(b, row->name, row->file);

		(at == IDMAP_NONE ? add_row(ret, row) : &ret->v.v[at])->a = side(sa, row);
	}
	for (size_t i = 0; i < ret->v.n; i++) {
		struct diff_row *row = &ret->v.v[i];

		row->change = row->b.wait - row->a.wait;
		row->noise = diff_is_noise(row->a.wait, row->b.wait) ||
		             overlap(row->a.low, row->a.high, row->b.low, row->b.high);
	}
	vec_sort(&ret->v, most_changed_first);
}

static enum diff_verdict judge(const struct summary *a, const struct summary *b, enum fact fact)
{
	if (diff_is_noise(a->percent[fact], b->percent[fact]) ||
	    overlap(a->low[fact], a->high[fact], b->low[fact], b->high[fact]))
		return DIFF_SAME;
	return b->percent[fact] < a->percent[fact] ? DIFF_FELL : DIFF_ROSE;
}

/* Which fact to compare: if threads waited for locks but never for a GIL, waiting for locks. */
static enum fact choose(const struct summary *a, const struct summary *b)
{
	bool gil = a->value[FACT_GIL_WAIT] || b->value[FACT_GIL_WAIT];
	bool locks = a->value[FACT_LOCK_WAIT] || b->value[FACT_LOCK_WAIT];

	if (a->locks_unknown || b->locks_unknown)
		return FACT_GIL_WAIT;
	return locks && !gil ? FACT_LOCK_WAIT : FACT_GIL_WAIT;
}

static const struct diff_row *most_changed(const struct diff *diff)
{
	for (size_t i = 0; i < diff->functions.v.n && diff->verdict != DIFF_SAME; i++) {
		const struct diff_row *row = &diff->functions.v.v[i];

		if (!row->noise && (row->change < 0) == (diff->verdict == DIFF_FELL))
			return row;
	}
	return NULL;
}

void diff_init(struct diff *diff, const struct summary *a, const struct summary *b)
{
	enum fact fact = choose(a, b);

	*diff = (struct diff){
		.a = a,
		.b = b,
		.fact = fact,
		.verdict = judge(a, b, fact),
		.other_program = a->program && b->program && strcmp(a->program, b->program) != 0,
	};
	compare_rows(&diff->threads, a, &a->threads, b, &b->threads);
	compare_rows(&diff->functions, a, &a->functions, b, &b->functions);
	diff->most_changed = most_changed(diff);
}

void diff_done(struct diff *diff)
{
	vec_done(&diff->threads.v);
	vec_done(&diff->functions.v);
}
