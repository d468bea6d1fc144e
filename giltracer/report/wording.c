/* SPDX-License-Identifier: MIT */
/* Names as parts of sentences. */
#include "report/wording.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/phrases.h"
#include "base/utf8.h"

#define NAME_COLUMNS 48
#define NEARLY_ALL   95 /* percent of the time */

void wording_add_id(struct str *out, const struct recording_pass *pass, uint32_t thread)
{
	const struct model_thread *t = &pass->model->threads.v[thread];

	if (facts_many_processes(pass->model))
		str_addf(out, "%" PRIu32 "/", t->pid);
	str_addf(out, "%" PRIu32 "%s", t->tid, t->main ? "*" : "");
}

static bool is_unique(const struct recording_pass *pass, uint32_t thread)
{
	const char *name = facts_thread_name(pass, thread);

	for (uint32_t i = 0; i < pass->model->threads.n; i++)
		if (i != thread && !strcmp(facts_thread_name(pass, i), name))
			return false;
	return *name;
}

void wording_add_thread(struct str *out, const struct recording_pass *pass, uint32_t thread)
{
	utf8_add_safe(out, facts_thread_name(pass, thread), NAME_COLUMNS);
	if (!is_unique(pass, thread))
		str_addf(out, " (%" PRIu32 ")", pass->model->threads.v[thread].tid);
}

static void add_function(struct str *out, const struct function *f, unsigned columns)
{
	const char *base = strrchr(f->file, '/');

	if (!f->name) {
		say_unknown_function(out);
		return;
	}
	utf8_add_safe(out, f->name, columns);
	if (!*f->file)
		return;
	str_adds(out, " (");
	utf8_add_safe(out, base ? base + 1 : f->file, columns);
	if (f->line)
		str_addf(out, ":%u", f->line);
	str_addc(out, ')');
}

unsigned wording_add_function(struct str *out, const struct function *f, unsigned columns)
{
	size_t len = out->len;

	add_function(out, f, columns);
	return utf8_columns(str_get(out) + len);
}

unsigned wording_add_traced(struct str *out, const char *name, unsigned columns)
{
	CLEANUP(str_done) struct str text = { 0 };
	const char *paren = strstr(name, " (");
	const char *slash = paren ? strrchr(paren, '/') : NULL;
	size_t len = out->len;

	if (slash) {
		str_addn(&text, name, (size_t)(paren - name) + 2);
		str_adds(&text, slash + 1);
	} else {
		str_adds(&text, name);
	}
	utf8_add_safe(out, str_get(&text), columns);
	return utf8_columns(str_get(out) + len);
}

unsigned wording_add_function_row(struct str *out, const struct recording_pass *pass,
                                  const struct hog *hog, unsigned columns)
{
	struct function f = function_of(pass, hog), caller = function_telling_caller(pass, hog);
	const char *native = function_native(pass, hog);
	CLEANUP(str_done) struct str native_name = { 0 }, caller_name = { 0 };
	size_t len = out->len;

	add_function(out, &f, columns);
	if (native && !function_is_collected(pass, hog)) {
		utf8_add_safe(&native_name, native, columns);
		say_native_in(out, str_get(&native_name));
	}
	if (function_is_collected(pass, hog))
		say_in_collector(out);
	if (caller.name) {
		add_function(&caller_name, &caller, columns);
		say_called_by_after(out, str_get(&caller_name));
	}
	if (hog->inferred && f.name)
		say_inferred_from_end(out);
	else if (f.name && function_is_inferred(pass, hog))
		say_or_called_last(out);
	if (function_is_slow_start(pass, hog))
		say_slow_under_perf(out);
	return utf8_columns(str_get(out) + len);
}

const char *wording_chain(const struct chain *chain)
{
	static const enum phrase ends[CHAIN_ENDS][2] = {
		[CHAIN_HELD_GIL] = { PHRASE_chain_held, PHRASE_chain_waited_held },
		[CHAIN_WITHOUT_GIL] = { PHRASE_chain_without, PHRASE_chain_waited_without },
		[CHAIN_FREE] = { PHRASE_chain_nobody, PHRASE_chain_nobody },
		[CHAIN_UNKNOWN] = { PHRASE_chain_not_known, PHRASE_chain_not_known },
	};
	bool slept = facts_percent(chain->asleep_ns, chain->ns) >= NEARLY_ALL;

	if (chain->end == CHAIN_WITHOUT_GIL && slept)
		return phrase(chain->through ? PHRASE_chain_waited_slept : PHRASE_chain_slept);
	return phrase(ends[chain->end][chain->through]);
}

const char *wording_nobody(const struct group_blame *blame)
{
	static const enum phrase nobody[] = {
		[WAIT_FOR_GIL] = PHRASE_nobody_handoff,
		[WAIT_FOR_LOCK] = PHRASE_nobody_free,
		[WAIT_STOPPED] = PHRASE_nobody,
		[WAIT_FOR_CPU] = PHRASE_nobody,
	};
	static const enum phrase unknown[] = {
		[WAIT_FOR_GIL] = PHRASE_holder_unknown,
		[WAIT_FOR_LOCK] = PHRASE_not_seen,
		[WAIT_STOPPED] = PHRASE_not_seen,
		[WAIT_FOR_CPU] = PHRASE_unknown,
	};

	return phrase((blame->holder == MODEL_NONE ? nobody : unknown)[blame->kind]);
}

static const enum phrase caveat_texts[CAVEAT_CODES] = {
	[CAVEAT_LOST] = PHRASE_caveat_lost,
	[CAVEAT_UNWRITTEN] = PHRASE_caveat_unwritten,
	[CAVEAT_INFERRED_RELEASE] = PHRASE_caveat_inferred_release,
	[CAVEAT_ACQUIRE_NO_REQUEST] = PHRASE_caveat_acquire_no_request,
	[CAVEAT_REQUEST_NO_ACQUIRE] = PHRASE_caveat_request_no_acquire,
	[CAVEAT_RELEASE_NO_HOLD] = PHRASE_caveat_release_no_hold,
	[CAVEAT_OPEN_HOLD] = PHRASE_caveat_open_hold,
	[CAVEAT_TWO_HOLDERS] = PHRASE_caveat_two_holders,
	[CAVEAT_UNORDERED] = PHRASE_caveat_unordered,
	[CAVEAT_UNKNOWN_RECORDS] = PHRASE_caveat_unknown_records,
	[CAVEAT_TRUNCATED] = PHRASE_caveat_truncated,
	[CAVEAT_NO_GIL_EVENTS] = PHRASE_caveat_no_gil_events,
	[CAVEAT_FORKED] = PHRASE_caveat_forked,
	[CAVEAT_UNSEEN_WAKEUPS] = PHRASE_caveat_unseen_wakeups,
	[CAVEAT_MISSED_WAKEUPS] = PHRASE_caveat_missed_wakeups,
	[CAVEAT_OTHER_PYTHON] = PHRASE_caveat_other_python,
	[CAVEAT_LEFT_BEHIND] = PHRASE_caveat_left_behind,
	[CAVEAT_NO_TRACEPOINTS] = PHRASE_caveat_no_tracepoints,
	[CAVEAT_COARSE] = PHRASE_caveat_coarse,
	[CAVEAT_OVERDUE_BOUNDED] = PHRASE_caveat_overdue_bounded,
	[CAVEAT_PROBE_COST] = PHRASE_caveat_probe_cost,
	[CAVEAT_PROBES_SLOW] = PHRASE_caveat_probes_slow,
	[CAVEAT_BROKEN_IDENTITY] = PHRASE_caveat_broken_identity,
};

void wording_add_flaw(struct str *out, const struct slices *slices)
{
	switch (slices->flaw) {
	case SLICES_WHOLE:
		return;
	case SLICES_OVERFLOW:
		say_trace_overflow(out);
		return;
	case SLICES_DROPPED:
		say_trace_dropped(out, slices->flawed);
		return;
	case SLICES_CUT:
		say_trace_cut(out);
		return;
	case SLICES_UNRECORDED:
		say_trace_unrecorded(out, slices->flawed);
		return;
	case SLICES_ASIDE:
		say_trace_aside(out, slices->flawed);
		return;
	case SLICES_OVERLAPPING:
		say_trace_overlapping(out, slices->flawed);
		return;
	case SLICES_AFRESH:
		say_trace_afresh(out, slices->flawed);
		return;
	}
}

static void add_slowdown(struct str *out, const struct slowdown *s)
{
	if (s->inferred)
		say_slowdown_with_waiting(out, s->ratio, s->lost_ns, s->own_ns);
	else
		say_slowdown(out, s->ratio, s->own_ns);
}

void wording_add_caveat(struct str *out, const struct facts_caveat *caveat)
{
	if (caveat->note)
		str_adds(out, caveat->note);
	else if (caveat->slices)
		wording_add_flaw(out, caveat->slices);
	else if (caveat->slowdown.ratio > 0)
		add_slowdown(out, &caveat->slowdown);
	else
		str_adds(out, phrase(caveat_texts[caveat->of_model]));
}

void wording_add_note(struct str *out, const struct facts_caveat *caveat, bool name_pass)
{
	if (name_pass && caveat->pass)
		say_of_pass(out, caveat->pass);
	wording_add_caveat(out, caveat);
	if (caveat->count > 1)
		say_n_times(out, caveat->count);
}
