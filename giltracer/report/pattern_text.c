/* SPDX-License-Identifier: MIT */
/* The name, text and advice of each pattern; the words are in phrases.def. */
#include "report/pattern_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	enum phrase title, advice;
} kinds[PATTERN_KINDS] = {
	[PATTERN_HOG] = { "hog", PHRASE_hog_title, PHRASE_hog_advice },
	[PATTERN_LOOP_STARVATION] = { "loop-starvation", PHRASE_starvation_title,
	                              PHRASE_starvation_advice },
	[PATTERN_CONVOY] = { "convoy", PHRASE_convoy_title, PHRASE_convoy_advice },
	[PATTERN_LATE_WAKEUPS] = { "late-wakeups", PHRASE_late_wakeups_title,
	                           PHRASE_late_wakeups_advice },
	[PATTERN_PING_PONG] = { "ping-pong", PHRASE_ping_pong_title, PHRASE_ping_pong_advice },
	[PATTERN_OVERSUBSCRIPTION] = { "oversubscription", PHRASE_oversubscription_title,
	                               PHRASE_oversubscription_advice },
	[PATTERN_LOCK_ACROSS_WAIT] = { "lock-across-wait", PHRASE_lock_across_wait_title,
	                               PHRASE_lock_across_wait_advice },
};

const char *pattern_name(enum pattern_kind kind)
{
	return kinds[kind].name;
}

const char *pattern_title(enum pattern_kind kind)
{
	return phrase(kinds[kind].title);
}

const char *pattern_advice(enum pattern_kind kind)
{
	return phrase(kinds[kind].advice);
}

/* "NAME (1235)"; "" for MODEL_NONE. The caller frees it. */
static struct str thread_of(const struct model *m, uint32_t thread)
{
	struct str ret = { 0 };
	const struct model_thread *t;

	if (thread == MODEL_NONE)
		return ret;
	t = &m->threads.v[thread];
	str_addf(&ret, "%s%s(%" PRIu32 ")", t->name, t->name[0] ? " " : "", t->tid);
	return ret;
}

/* What held the GIL during the waits, and the end of the sentence. */
static void add_waits(struct str *out, const struct model *m, const struct pattern *p)
{
	CLEANUP(str_done) struct str thread = thread_of(m, p->thread);
	CLEANUP(str_done) struct str other = thread_of(m, p->other);

	(p->kind == PATTERN_CONVOY ? say_convoy : say_late_wakeups)(out, str_get(&thread), p->count,
	                                                            p->ns, p->share);
	if (other.len)
		say_mostly_held_by(out, str_get(&other));
	say_longest_was(out, p->longest_ns);
	str_addc(out, '.');
}

static void add_starvation(struct str *out, const struct model *m, const struct pattern *p)
{
	CLEANUP(str_done) struct str thread = thread_of(m, p->thread);
	CLEANUP(str_done) struct str other = thread_of(m, p->other);
	CLEANUP(str_done) struct str function = { 0 };

	say_starvation(out, str_get(&thread), p->count, p->ns, p->share, p->longest_ns);
	if (p->function) {
		const char *base = strrchr(p->file, '/');

		str_adds(&function, p->function);
		if (*p->file)
			str_addf(&function, " (%s:%" PRIu32 ")", base ? base + 1 : p->file,
			         p->line);
	}
	if (other.len && function.len)
		say_held_meanwhile(out, str_get(&function), str_get(&other));
	else if (other.len)
		say_thread_held_meanwhile(out, str_get(&other));
	str_addc(out, '.');
}

static void add_hog(struct str *out, const struct model *m, const struct pattern *p)
{
	CLEANUP(str_done) struct str thread = thread_of(m, p->thread);

	if (p->count == 1)
		say_hog_once(out, str_get(&thread), p->ns, p->share, p->longest_ns);
	else
		say_hog_times(out, str_get(&thread), p->count, p->ns, p->share, p->longest_ns);
}

static void add_pair(struct str *out, const struct model *m, const struct pattern *p)
{
	CLEANUP(str_done) struct str thread = thread_of(m, p->thread);
	CLEANUP(str_done) struct str other = thread_of(m, p->other);

	if (p->kind == PATTERN_PING_PONG)
		say_ping_pong(out, str_get(&thread), str_get(&other), p->count, p->longest_ns,
		              p->ns, p->share);
	else
		say_lock_across_wait(out, str_get(&thread), p->count, str_get(&other), p->ns,
		                     p->share, p->longest_ns);
}

void pattern_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	switch (p->kind) {
	case PATTERN_HOG:
		add_hog(ret, m, p);
		return;
	case PATTERN_LOOP_STARVATION:
		add_starvation(ret, m, p);
		return;
	case PATTERN_PING_PONG:
	case PATTERN_LOCK_ACROSS_WAIT:
		add_pair(ret, m, p);
		return;
	case PATTERN_OVERSUBSCRIPTION:
		say_oversubscription(ret, p->count, p->share / 100.0);
		return;
	default:
		add_waits(ret, m, p);
	}
}
