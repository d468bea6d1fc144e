/* SPDX-License-Identifier: MIT */
/* Conditions for reports, and when they have held for long enough, with made-up series. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "metrics/autorecord.h"

#include "tap.h"

#define SECOND NS_PER_SECOND

static void text(const char *text, enum trigger_measure measure, unsigned percent, uint64_t seconds)
{
	struct trigger t;
	struct error err;

	ok(trigger_parse(&t, text, &err) == 0, "'%s' is a condition", text);
	ok(t.measure == measure && t.percent == percent, "  of this much");
	is_u64(t.for_ns, seconds * SECOND, "  for this long");
}

static void no_text(const char *text, const char *why)
{
	struct trigger t;
	struct error err = { 0 };

	ok(trigger_parse(&t, text, &err) < 0 && strstr(err.text, why), "'%s' %s", text, why);
}

static void texts(void)
{
	text("gil_wait>50% for 10s", TRIGGER_WAIT, 50, 10);
	text("  gil_hold > 0 % for 2m ", TRIGGER_HOLD, 0, 120);
	text("gil_kept>99%for 86400s", TRIGGER_KEPT, 99, 86400);
	no_text("", "begins with");
	no_text("gil_wiat>50% for 10s", "begins with");
	no_text("gil_wait<50% for 10s", "has '>'");
	no_text("gil_wait>50 for 10s", "has 0% to 99%");
	no_text("gil_wait>100% for 10s", "has 0% to 99%");
	no_text("gil_wait>99999999999999999999% for 10s", "has 0% to 99%");
	no_text("gil_wait>50%", "contains a duration");
	no_text("gil_wait>50% for ever", "contains a duration");
	no_text("gil_wait>50% for 10", "lasts");
	no_text("gil_wait>50% for 0s", "lasts");
	no_text("gil_wait>50% for 1441m", "lasts");
	no_text("gil_wait>50% for 10s or so", "ends with");
}

/* Two threads of a GIL, and one of another; what is fed is what the first two did since the last time. */
struct series {
	struct trigger trigger;
	struct trigger_state state;
	struct totals_snapshot snapshot;
};

static void begin(struct series *s, const char *condition)
{
	struct error err;

	*s = (struct series){ .snapshot.at_ns = 1000 };
	trigger_parse(&s->trigger, condition, &err);
	for (unsigned i = 0; i < 3; i++)
		*vec_push(&s->snapshot.threads) = (struct totals_thread){
			.used = true,
			.gil = i / 2,
			.wait_ns = 7 * SECOND, /* before anybody looked */
			.hold_ns = 9 * SECOND,
		};
	ok(!trigger_feed(&s->trigger, &s->state, &s->snapshot), "%s: not at first", condition);
}

static bool pass(struct series *s, uint64_t ns, uint64_t first_ns, uint64_t second_ns)
{
	const uint64_t each[] = { first_ns, second_ns };

	s->snapshot.at_ns += ns;
	for (unsigned i = 0; i < 2; i++) {
		struct totals_thread *t = &s->snapshot.threads.v[i];

		if (s->trigger.measure == TRIGGER_WAIT)
			t->wait_ns += each[i];
		else if (s->trigger.measure == TRIGGER_HOLD)
			t->hold_ns += each[i];
		else
			t->kept_ns += each[i];
	}
	return trigger_feed(&s->trigger, &s->state, &s->snapshot);
}

static void end(struct series *s)
{
	trigger_state_done(&s->state);
	totals_snapshot_done(&s->snapshot);
}

static void waits(void)
{
	struct series s;

	begin(&s, "gil_wait>50% for 3s");
	ok(!pass(&s, SECOND, SECOND, 0), "a second is not three");
	ok(!pass(&s, SECOND, 0, SECOND), "nor are two, of two threads");
	ok(pass(&s, SECOND, SECOND / 2 + 1, 0), "the third is, with a bit more than half");
	ok(pass(&s, SECOND, SECOND, 0), "and so it stays");
	ok(!pass(&s, SECOND, SECOND / 2, SECOND / 2),
	   "half is not more than half, nor is twice half");
	ok(!pass(&s, 2 * SECOND, 2 * SECOND, 0) && pass(&s, SECOND, SECOND, 0),
	   "then it begins again");
	*vec_push(&s.snapshot.threads) = (struct totals_thread){ .used = true,
		                                                 .switch_ns = SECOND };
	ok(pass(&s, SECOND, 0, 0), "a new thread counts, and so do switch waits");
	ok(!pass(&s, 0, SECOND, 0), "no time, no answer");
	end(&s);
}

static void holds(void)
{
	struct series s;

	begin(&s, "gil_hold>90% for 1s");
	ok(pass(&s, SECOND, SECOND / 2, SECOND / 2), "holds of a GIL add up");
	s.snapshot.threads.v[2].hold_ns += SECOND / 2;
	ok(!pass(&s, SECOND, SECOND / 2, 0), "those of two GILs do not");
	end(&s);
	begin(&s, "gil_kept>0% for 1m");
	ok(!pass(&s, 59 * SECOND, 1, 0) && pass(&s, SECOND, 1, 0),
	   "a nanosecond is more than 0 %%");
	ok(!pass(&s, SECOND, 0, 0), "nothing is not");
	end(&s);
}

static void pauses(void)
{
	uint64_t last = 0;

	ok(trigger_fire(5, &last), "it fires");
	ok(!trigger_fire(5 + TRIGGER_PAUSE_NS - 1, &last), "once an hour");
	ok(trigger_fire(5 + TRIGGER_PAUSE_NS, &last), "and then again");
	ok(!trigger_fire(6 + TRIGGER_PAUSE_NS, &last), "once");
}

int main(void)
{
	texts();
	waits();
	holds();
	pauses();
	return done_testing();
}
