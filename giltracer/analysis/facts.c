/* SPDX-License-Identifier: MIT */
/* Numbers and names that tables, JSON and page share. */
#include "analysis/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "trace/names.h"
#include "trace/source.h"

/* Fewer turns give no useful rate. */
#define ENOUGH 500

/* @calls_ns: sum over the threads of a process; @most_ns: the largest cost of one */
struct of_process {
	uint64_t calls_ns, most_ns;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The largest of a process; only calls: without probes. */
static uint64_t own_ns(const struct model *m, bool only_calls)
{
	VEC(struct of_process) all = { 0 };
	struct idmap by_pid = { 0 };
	uint64_t most = 0;

	for (size_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *t = &m->threads.v[i];
		struct of_process *p;
		uint32_t at;

		if (idmap_add(&by_pid, t->pid, (uint32_t)all.n, &at))
			*vec_push(&all) = (struct of_process){ 0 };
		p = &all.v[at];
		p->calls_ns += t->calls_cost_ns;
		if (!only_calls)
			p->most_ns = larger(p->most_ns, t->probe_cost_ns + t->calls_cost_ns);
		most = larger(most, larger(p->calls_ns, p->most_ns));
	}
	idmap_done(&by_pid);
	vec_done(&all);
	return most;
}

/* What uprobes cost with all waiting; 0: not known. */
static uint64_t by_rate_ns(const struct model *m)
{
	uint64_t before = 0, all = 0, with_ns, without_ns;
	double would_ns;

	/* When it was stopped is not examined. */
	if (m->suspended_ns || !m->probes_end_ns || m->probes_end_ns <= m->start_ns ||
	    m->probes_end_ns >= m->end_ns)
		return 0;
	for (size_t i = 0; i < m->threads.n; i++) {
		before += m->threads.v[i].probe_turns;
		all += m->threads.v[i].holds;
	}
	with_ns = m->probes_end_ns - m->start_ns;
	without_ns = m->end_ns - m->probes_end_ns;
	if (before < ENOUGH || all < before + ENOUGH)
		return 0;
	would_ns = (double)without_ns * (double)before / (double)(all - before);
	return would_ns < (double)with_ns ? with_ns - (uint64_t)would_ns : 0;
}

bool slowdown_find(struct slowdown *ret, const struct model *m)
{
	const uint64_t wall_ns = m->end_ns - m->start_ns - m->suspended_ns, rate_ns = by_rate_ns(m);
	uint64_t with_waiting = rate_ns ? rate_ns + own_ns(m, true) : 0;

	*ret = (struct slowdown){ .own_ns = own_ns(m, false) };
	ret->inferred = with_waiting > ret->own_ns;
	ret->lost_ns = larger(ret->own_ns, with_waiting);
	if (ret->lost_ns >= wall_ns)
		ret->lost_ns = wall_ns - wall_ns / 100;
	ret->ratio = wall_ns ? (double)wall_ns / (double)(wall_ns - ret->lost_ns) : 1;
	return ret->ratio >= 1 + SLOWDOWN_NOTE_PERCENT / 100.0;
}

const struct recording_pass *recording_main_pass(const struct recording *recording)
{
	for (size_t i = 0; i < recording->pass_count; i++)
		if (recording->passes[i].kind == PASS_GIL)
			return &recording->passes[i];
	return &recording->passes[0];
}

bool recording_has_note(const struct recording *recording, const char *code)
{
	for (size_t i = 0; i < recording->note_count; i++)
		if (!strcmp(recording->notes[i].code, code))
			return true;
	return false;
}

double facts_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

const char *facts_thread_name(const struct recording_pass *pass, uint32_t thread)
{
	const struct model_thread *t = &pass->model->threads.v[thread];
	const struct slice_thread *calls = slices_find(pass->slices, t->pid, t->tid);

	if (calls && calls->name)
		return names_get(pass->slices->names, calls->name);
	return t->name && *t->name ? t->name : "?";
}

static uint32_t *order_by(const struct model *model, size_t n,
                          int (*compare)(const void *, const void *, void *))
{
	uint32_t *order;

	if (!n)
		return NULL;
	order = xcalloc(n, sizeof(*order));
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, n, sizeof(*order), compare, (void *)(uintptr_t)model);
	return order;
}

static int descending(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static uint64_t blocked(const struct model_thread *t)
{
	return model_thread_wait_ns(t) + t->gil_ns[GIL_LOCK_WAIT] + t->gil_ns[GIL_SPINNING] +
	       t->gil_ns[GIL_STOPPED];
}

static uint64_t blocks(const struct model_thread *t)
{
	return t->gil_ns[GIL_HOLD] + t->gil_ns[GIL_STOPPING];
}

int facts_compare_threads(const struct model_thread *a, const struct model_thread *b)
{
	int by_wait = descending(blocked(a), blocked(b));

	return by_wait ? by_wait : descending(blocks(a), blocks(b));
}

static int compare_threads(const void *a, const void *b, void *data)
{
	const struct model *model = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int order = facts_compare_threads(&model->threads.v[ia], &model->threads.v[ib]);

	return order ? order : (ia > ib) - (ia < ib);
}

uint32_t *facts_thread_order(const struct model *model)
{
	return order_by(model, model->threads.n, compare_threads);
}

static int compare_blame(const void *a, const void *b, void *data)
{
	const struct model *model = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int by_wait = descending(model->blame.v[ia].wait_ns, model->blame.v[ib].wait_ns);

	return by_wait ? by_wait : (ia > ib) - (ia < ib);
}

static int compare_lock_blame(const void *a, const void *b, void *data)
{
	const struct model *model = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int by_wait = descending(model->lock_blame.v[ia].wait_ns, model->lock_blame.v[ib].wait_ns);

	return by_wait ? by_wait : (ia > ib) - (ia < ib);
}

uint32_t *facts_blame_order(const struct model *model)
{
	return order_by(model, model->blame.n, compare_blame);
}

uint32_t *facts_lock_blame_order(const struct model *model)
{
	return order_by(model, model->lock_blame.n, compare_lock_blame);
}

bool facts_many_processes(const struct model *model)
{
	for (size_t i = 1; i < model->threads.n; i++)
		if (model->threads.v[i].pid != model->threads.v[0].pid)
			return true;
	return false;
}

struct facts_totals facts_totals(const struct model *model)
{
	struct facts_totals sum = { 0 };
	uint64_t probes_ns = 0;

	for (size_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];

		sum.life_ns += model_thread_life_ns(t);
		sum.hold_ns += t->gil_ns[GIL_HOLD];
		sum.wait_ns += model_thread_wait_ns(t);
		sum.switch_wait_ns += t->gil_ns[GIL_SWITCH_WAIT];
		sum.free_wait_ns += t->gil_ns[GIL_FREE_WAIT];
		sum.no_gil_ns += model_thread_no_gil_ns(t);
		sum.unknown_ns += t->gil_ns[GIL_UNKNOWN] - t->suspended_ns;
		for (unsigned s = 0; s < CPU_STATES; s++)
			sum.cpu_ns[s] += t->cpu_ns[s] - (s == CPU_UNKNOWN ? t->suspended_ns : 0);
		sum.releases_probed += t->releases_probed;
		sum.releases_inferred += t->releases_inferred;
		probes_ns += t->probe_cost_ns;
	}
	sum.known_ns = sum.life_ns - sum.unknown_ns;
	for (size_t i = 0; i < model->blame.n; i++) {
		const struct model_blame *b = &model->blame.v[i];

		sum.blamed_ns += b->wait_ns;
		if (b->holder != MODEL_NONE)
			continue;
		sum.handoff_ns += b->wait_ns - b->no_cpu_ns;
		sum.no_cpu_ns += b->no_cpu_ns;
	}
	sum.probed_handoff_ns = probes_ns < sum.handoff_ns ? probes_ns : sum.handoff_ns;
	return sum;
}

/* Whether a caveat applies to the pass. A pass without probes, or one that never began, is expected
 * to have no GIL events. */
static bool is_caveat(const struct recording *recording, const struct recording_pass *pass,
                      unsigned code)
{
	return pass->model->caveats[code] &&
	       !(code == CAVEAT_NO_GIL_EVENTS &&
	         (pass->kind == PASS_STACKS || recording_has_note(recording, "not-started") ||
	          recording_has_note(recording, "not-loaded")));
}

/* In percent of a thread's life: an error below this is not worth a note. */
#define WORTH_A_NOTE 1

/* Whether the time that missing wake-ups can hide is negligible in each thread's life. */
static bool hides_little(const struct model *model)
{
	for (size_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];

		if (facts_percent(t->unseen_runnable_ns, t->end_ns - t->start_ns) >= WORTH_A_NOTE)
			return false;
	}
	return true;
}

/* Whether a caveat is of no interest, for instance because states were not asked for. */
static bool is_minor(const struct recording *recording, const struct model *model, unsigned code)
{
	switch (caveat_kinds[code].shown) {
	case SHOWN_WITH_STATES:
		return !recording->state_detect;
	case SHOWN_IF_MUCH:
		return hides_little(model);
	case SHOWN_ALWAYS:
		break;
	}
	return false;
}

static void add_pass_caveats(struct facts_caveats *list, const struct recording *recording,
                             const struct recording_pass *pass)
{
	struct slowdown slowdown;

	for (unsigned code = 0; code < CAVEAT_CODES; code++)
		if (is_caveat(recording, pass, code))
			*vec_push(list) = (struct facts_caveat){
				.pass = pass_kind_name(pass->kind),
				.code = caveat_kinds[code].name,
				.of_model = code,
				.count = pass->model->caveats[code],
				.minor = is_minor(recording, pass->model, code),
			};
	if (slowdown_find(&slowdown, pass->model))
		*vec_push(list) = (struct facts_caveat){
			.pass = pass_kind_name(pass->kind),
			.code = "slowdown",
			.slowdown = slowdown,
			.count = 1,
		};
	if (pass->hogs && pass->hogs->bounded)
		*vec_push(list) = (struct facts_caveat){
			.pass = pass_kind_name(pass->kind),
			.code = caveat_kinds[CAVEAT_OVERDUE_BOUNDED].name,
			.of_model = CAVEAT_OVERDUE_BOUNDED,
			.count = pass->hogs->bounded,
		};
	if (!pass->slices && pass->slices_note && *pass->slices_note)
		*vec_push(list) = (struct facts_caveat){
			.pass = pass_kind_name(pass->kind),
			.code = "no-python-trace",
			.note = pass->slices_note,
		};
	if (pass->slices && pass->slices->flaw)
		*vec_push(list) = (struct facts_caveat){
			.pass = pass_kind_name(pass->kind),
			.code = "python-trace",
			.slices = pass->slices,
			.count = pass->slices->dropped,
		};
}

struct facts_caveats facts_caveats(const struct recording *recording)
{
	struct facts_caveats list = { 0 };

	for (size_t i = 0; i < recording->pass_count; i++)
		add_pass_caveats(&list, recording, &recording->passes[i]);
	for (size_t i = 0; i < recording->note_count; i++)
		*vec_push(&list) = (struct facts_caveat){
			.code = recording->notes[i].code,
			.note = recording->notes[i].text,
			.count = recording->notes[i].count,
		};
	return list;
}

const char *cpu_users_program(const struct recording_pass *pass, uint32_t by, uint32_t name)
{
	const struct names *names = pass->source ? pass->source->cpu_names : NULL;

	return by == MODEL_NONE && name && names ? names_get(names, name) : NULL;
}

/* index: position of each program, by the id of its name; 0: threads of the traced program. */
static void add_user(struct cpu_users *users, struct idmap *index, uint32_t id, const char *name,
                     uint64_t ns)
{
	uint32_t at;

	if (idmap_add(index, id, (uint32_t)users->list.n, &at))
		*vec_push(&users->list) = (struct cpu_user){ .name = name };
	users->list.v[at].ns += ns;
}

static int compare_users(const void *a, const void *b)
{
	const struct cpu_user *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

struct cpu_users cpu_users_find(const struct recording_pass *pass)
{
	struct cpu_users users = { 0 };
	struct idmap index = { 0 };

	for (size_t i = 0; i < pass->model->cpu_blame.n; i++) {
		const struct model_cpu_blame *row = &pass->model->cpu_blame.v[i];
		const char *program = cpu_users_program(pass, row->by, row->name);

		users.all_ns += row->runnable_ns;
		if (program || row->by < MODEL_UNKNOWN)
			add_user(&users, &index, program ? row->name : 0, program,
			         row->runnable_ns);
	}
	idmap_done(&index);
	vec_sort(&users.list, compare_users);
	return users;
}

double cpu_users_own_percent(const struct cpu_users *users)
{
	uint64_t own_ns = 0, known_ns = 0;

	for (size_t i = 0; i < users->list.n; i++) {
		known_ns += users->list.v[i].ns;
		if (!users->list.v[i].name)
			own_ns = users->list.v[i].ns;
	}
	return known_ns ? facts_percent(own_ns, known_ns) : -1;
}

static int compare_rows(const void *va, const void *vb)
{
	const struct counter_row *a = va, *b = vb;

	if (a->counter != b->counter)
		return a->counter < b->counter ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

/* A row for each pair that has samples, because there may be many counters and many threads. Each
 * row's thread is its place in the order. */
static void add_up(struct counter_rows *rows, const struct model *model, size_t counters,
                   const uint32_t *place)
{
	struct idmap row_of = { 0 };

	for (size_t i = 0; i < model->counts.n; i++) {
		const struct model_counter_sample *sample = &model->counts.v[i];
		uint64_t key = idmap_pair(sample->counter, sample->thread);
		uint32_t row;

		if (sample->counter >= counters)
			continue;
		if (idmap_add(&row_of, key, (uint32_t)rows->v.n, &row))
			*vec_push(&rows->v) = (struct counter_row){ sample->counter,
				                                    place[sample->thread], 0, 0 };
		rows->v.v[row].count += sample->value;
		rows->v.v[row].samples++;
	}
	idmap_done(&row_of);
}

struct counter_rows counters_find(const struct recording_pass *pass, const uint32_t *thread_order)
{
	const struct model *model = pass->model;
	size_t counters = pass->source ? pass->source->counter_count : 0, n = model->threads.n;
	CLEANUP(free) uint32_t *place = xcalloc(n + 1, sizeof(*place));
	struct counter_rows ret = { 0 };

	for (uint32_t i = 0; i < n; i++)
		place[thread_order[i]] = i;
	add_up(&ret, model, counters, place);
	vec_sort(&ret.v, compare_rows);
	for (size_t i = 0; i < ret.v.n; i++)
		ret.v.v[i].thread = thread_order[ret.v.v[i].thread];
	return ret;
}
