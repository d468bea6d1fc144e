/* SPDX-License-Identifier: MIT */
/* What each pattern is called, says and advises. */
#include "model/patterns.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	const char *name, *title, *advice;
} kinds[PATTERN_KINDS] = {
	[PATTERN_HOG] = { "hog", "Calls keep the GIL",
	                  "Let these calls release the GIL (Py_BEGIN_ALLOW_THREADS, nogil in "
	                  "Cython), "
	                  "give them less at a time, or run them in another process." },
	[PATTERN_LOOP_STARVATION] = { "loop-starvation", "The event loop starves",
	                              "Move that work out of the process "
	                              "(ProcessPoolExecutor), or let it release the GIL: a "
	                              "thread does not keep it off the loop." },
	[PATTERN_CONVOY] = { "convoy", "A convoy",
	                     "Each short call that lets go of the GIL costs a switch interval to "
	                     "get it "
	                     "back: do more in each call, or lower sys.setswitchinterval()." },
	[PATTERN_LATE_WAKEUPS] = { "late-wakeups", "Late to its events",
	                           "What this thread serves, an event loop perhaps, is late by "
	                           "these "
	                           "waits: move the work of the other thread to a process, or cut "
	                           "it into "
	                           "pieces that sleep now and then." },
	[PATTERN_PING_PONG] = { "ping-pong", "Ping-pong",
	                        "These two pass the GIL back and forth for next to no work each: "
	                        "exchange "
	                        "larger pieces, or do both sides in one thread." },
	[PATTERN_OVERSUBSCRIPTION] = { "oversubscription", "More threads than the GIL can run",
	                               "More threads do not run more Python: use fewer, or "
	                               "processes, or "
	                               "a free-threaded build." },
	[PATTERN_LOCK_ACROSS_WAIT] = { "lock-across-wait",
	                               "Something is held across a wait for the GIL",
	                               "The sleeper waits for the GIL too, through the other "
	                               "thread: let "
	                               "that one release its lock before calls that let go of the "
	                               "GIL, or "
	                               "do less while it has it." },
};

const char *pattern_name(enum pattern_kind kind)
{
	return kinds[kind].name;
}

const char *pattern_title(enum pattern_kind kind)
{
	return kinds[kind].title;
}

const char *pattern_advice(enum pattern_kind kind)
{
	return kinds[kind].advice;
}

static void add_thread(const struct model *m, uint32_t thread, struct str *ret)
{
	const struct model_thread *t = &m->threads.v[thread];

	str_addf(ret, "%s%s(%u)", t->name, t->name[0] ? " " : "", t->tid);
}

static void add_time(uint64_t ns, struct str *ret)
{
	if (ns < 100000)
		str_addf(ret, "%.1f µs", (double)ns / 1e3);
	else
		str_addf(ret, "%.1f ms", (double)ns / 1e6);
}

static void add_culprit(const struct model *m, const struct pattern *p, struct str *ret)
{
	if (p->other == MODEL_NONE)
		return;
	str_adds(ret, ", mostly for ");
	add_thread(m, p->other, ret);
}

static void add_longest(const struct pattern *p, struct str *ret)
{
	str_adds(ret, "; the longest was ");
	add_time(p->longest_ns, ret);
}

static void hog_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	add_thread(m, p->thread, ret);
	str_adds(ret, " kept the GIL ");
	if (p->count == 1)
		str_adds(ret, "once");
	else
		str_addf(ret, "%" PRIu64 " times", p->count);
	str_adds(ret, " for longer than it was asked to; others waited ");
	add_time(p->ns, ret);
	str_addf(ret, " meanwhile, %u %% of all waiting", p->share);
	add_longest(p, ret);
}

static void wait_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	add_thread(m, p->thread, ret);
	if (p->kind == PATTERN_CONVOY)
		str_addf(ret, " let go of the GIL for a moment %" PRIu64 " times and then waited ",
		         p->count);
	else
		str_addf(ret, " came back %" PRIu64 " times and then waited ", p->count);
	add_time(p->ns, ret);
	str_addf(ret, " to go on, %u %% of its life", p->share);
	add_culprit(m, p, ret);
	add_longest(p, ret);
}

static void starvation_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	add_thread(m, p->thread, ret);
	str_addf(ret,
	         " runs an asyncio event loop; %" PRIu64
	         " times its callbacks were late by a millisecond or more because it waited for "
	         "the GIL, ",
	         p->count);
	add_time(p->ns, ret);
	str_addf(ret, " in sum, %u %% of its life", p->share);
	add_longest(p, ret);
	if (p->other == MODEL_NONE)
		return;
	str_adds(ret, "; meanwhile ");
	if (p->function) {
		const char *base = strrchr(p->file, '/');

		str_addf(ret, "%s", p->function);
		if (*p->file)
			str_addf(ret, " (%s:%u)", base ? base + 1 : p->file, p->line);
		str_adds(ret, " in ");
	}
	add_thread(m, p->other, ret);
	str_adds(ret, " held it most");
}

static void ping_pong_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	add_thread(m, p->thread, ret);
	str_adds(ret, " and ");
	add_thread(m, p->other, ret);
	str_addf(ret, " passed the GIL to each other %" PRIu64 " times, for ", p->count);
	add_time(p->longest_ns, ret);
	str_adds(ret, " each on average; while it was on its way ");
	add_time(p->ns, ret);
	str_addf(ret, " passed, %u %% of the recording", p->share);
}

static void lock_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	add_thread(m, p->thread, ret);
	str_addf(ret, " slept %" PRIu64 " times until ", p->count);
	add_thread(m, p->other, ret);
	str_adds(ret, " woke it, which waited for the GIL itself for ");
	add_time(p->ns, ret);
	str_addf(ret, " of that, %u %% of the sleeper's life", p->share);
	add_longest(p, ret);
}

void pattern_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	switch (p->kind) {
	case PATTERN_HOG:
		hog_text(m, p, ret);
		break;
	case PATTERN_LOOP_STARVATION:
		starvation_text(m, p, ret);
		break;
	case PATTERN_PING_PONG:
		ping_pong_text(m, p, ret);
		break;
	case PATTERN_LOCK_ACROSS_WAIT:
		lock_text(m, p, ret);
		break;
	case PATTERN_OVERSUBSCRIPTION:
		str_addf(ret,
		         "%" PRIu64
		         " threads take turns with one GIL that is never idle; on average "
		         "%u.%02u threads wait for it",
		         p->count, p->share / 100, p->share % 100);
		break;
	default:
		wait_text(m, p, ret);
	}
	str_addc(ret, '.');
}
