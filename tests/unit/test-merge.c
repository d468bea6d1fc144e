/* SPDX-License-Identifier: MIT */
/* Recordings of one execution, in one order of time. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "trace/merge.h"

#include "tap.h"

/* Yields events written as text: "10w 12i" is a wake-up at 10 and a switch at 12. */
static const struct {
	char letter;
	uint16_t type;
} letters[] = {
	{ 'w', EV_WAKING },  { 'l', EV_LOST },     { 'i', EV_SWITCH_IN },
	{ 'r', EV_REQUEST }, { 'f', EV_FORK },     { 'a', EV_ACQUIRE },
	{ 'd', EV_RELEASE }, { 'o', EV_RELEASED }, { 'k', EV_ASKED },
};
#define LETTERS (sizeof(letters) / sizeof(*letters))

struct script {
	struct source source;
	const char *at;
	bool fails; /* at its end */
	int *closed;
};

static int script_next(struct source *source, struct event *ret, struct error *err)
{
	struct script *s = (struct script *)source;
	char *end;

	while (*s->at == ' ')
		s->at++;
	if (!*s->at)
		return s->fails ? error_set(err, 5, "broken") : 0;
	*ret = (struct event){ .time_ns = strtoull(s->at, &end, 10), .cpu = -1 };
	for (size_t i = 0; i < LETTERS; i++)
		if (letters[i].letter == *end)
			ret->type = letters[i].type;
	s->at = end + 1;
	s->source.stats.events++;
	s->source.stats.lost += ret->type == EV_LOST;
	return 1;
}

static void script_close(struct source *source)
{
	++*((struct script *)source)->closed;
	free(source);
}

static struct source *script(const char *text, bool fails, int *closed)
{
	static const struct source_ops ops = { .next = script_next, .close = script_close };
	struct script *s = xcalloc(1, sizeof(*s));

	s->source.ops = &ops;
	s->at = text;
	s->fails = fails;
	s->closed = closed;
	return &s->source;
}

static char letter_of(const struct event *ev)
{
	if (ev->type == EV_LOST && ev->flags)
		return ev->flags == EVF_NO_GIL ? 'n' : 'g';
	for (size_t i = 0; i < LETTERS; i++)
		if (letters[i].type == ev->type)
			return letters[i].letter;
	return '?';
}

static void expect_from(struct source *source, const char *want, const char *what)
{
	CLEANUP(str_done) struct str got = { 0 };
	int more;
	struct event ev;
	struct error err;

	while ((more = source_next(source, &ev, &err)) > 0)
		str_addf(&got, "%s%d%c", got.len ? " " : "", (int)ev.time_ns, letter_of(&ev));
	is_str(str_get(&got), want, "%s", what);
	ok(more == 0 && source_next(source, &ev, &err) == 0, "%s: and that is the end", what);
	source_close(source);
}

static void expect_of(struct source *(*merge)(struct source *, struct source *), const char *first,
                      const char *second, const char *want, const char *what)
{
	int closed = 0;

	expect_from(merge(script(first, false, &closed), script(second, false, &closed)), want,
	            what);
	ok(closed == 2, "%s: both are closed", what);
}

/* The library takes over at 100. */
static void expect_handover(const char *uprobes, const char *library, const char *switches,
                            const char *want, const char *what)
{
	int closed = 0;

	expect_from(source_handover(script(uprobes, false, &closed),
	                            script(library, false, &closed),
	                            script(switches, false, &closed),
	                            &(struct handover_options){ .from_ns = 100 }),
	            want, what);
	ok(closed == 3, "%s: all are closed", what);
}

static void test_handover(void)
{
	expect_handover("50r 53a 60d 63o", "", "", "50r 53a 60d 63o", "no event after it");
	expect_handover("", "150r 150a 160d 160o", "", "150r 150a 160d 160o",
	                "a thread that began after it");
	expect_handover("90r 123a 150d", "92r 120a 153d", "", "90r 120a 153d",
	                "during a wait, of which both have the request");
	expect_handover("90r", "110a 150d", "", "90r 110a 150d",
	                "an acquire whose uprobe was removed before it fired");
	expect_handover("90r 113a 150d 170r", "110a 153d 171r", "", "90r 110a 150d 171r",
	                "the same, if it fired");
	expect_handover("80r 87a 110d 115o 120r 126a 130d", "84a 112d 112o 121r 123a 133d", "",
	                "80r 84a 110d 112o 121r 123a 133d", "during a hold");
	expect_handover("80r 87a 90d 120r", "93d 121r 124a", "", "80r 87a 90d 120r 124a",
	                "without the GIL, the request of uprobes is kept, because it has a frame");
	expect_handover("80r 87a 90d", "95o 121r 124a", "", "80r 87a 90d 95o 121r 124a",
	                "the end of drop_gil whose uprobe was removed");
	expect_handover("40r 43a 90d 120r 126a", "93d 120r 120a", "", "40r 43a 90d 120r 120a",
	                "both request at the same time");
	expect_handover("50i 60w 150i 160f", "150f", "70i 99w 100i 170f", "50i 60w 100i 170f",
	                "the scheduler's events: from perf, each once");
	expect_handover("50l 150l", "160l", "70l 170l", "50l 150g 160g 170n",
	                "losses concern what was recorded there");
}

static void expect(const char *recording, const char *wakeups, const char *want, const char *what)
{
	expect_of(source_merge, recording, wakeups, want, what);
}

static void test_beside(void)
{
	expect_of(source_beside, "20r 40r", "10f 20i 30w 50i", "10f 20i 20r 30w 40r 50i",
	          "the GIL's events, and all others of perf");
	expect_of(source_beside, "5f 20r 25i", "10f 15r 30i", "10f 20r 30i",
	          "each has its own part only");
	expect_of(source_beside, "20r 40l", "10f 30l 50i", "10f 20r 30n 40g 50i",
	          "a loss concerns the part of whoever lost");
	expect_of(source_beside, "", "10f 30i", "10f 30i", "no GIL");
	expect_of(source_beside, "10r", "", "10r", "nothing of perf");
}

static void test_held(void)
{
	expect_of(source_with_held, "5f 15k 20r 25k 26l", "10f 20r 30l 40i",
	          "10f 15k 20r 25k 30l 40i",
	          "what holders ran is added to perf's events, and nothing else");
	expect_of(source_with_held, "", "10r 30i", "10r 30i", "no holder was asked");
}

static void test_errors(void)
{
	int closed = 0;
	struct error err = { 0 };
	struct event ev;
	struct source *source = source_merge(script("10i 20i", true, &closed),
	                                     script("11w 12l", false, &closed));

	while (source_next(source, &ev, &err) > 0)
		;
	is_str(err.text, "broken", "an error of the recording is ours");
	is_u64(source->stats.events, 4, "events are counted over both");
	is_u64(source->stats.lost, 1, "and what was lost");
	source_close(source);
	source = source_merge(script("10i 20i", false, &closed), script("11w", true, &closed));
	err.text[0] = '\0';
	while (source_next(source, &ev, &err) > 0)
		;
	is_str(err.text, "broken", "and so is one of the wake-ups");
	source_close(source);
	is_u64(closed, 4, "all are closed");
}

int main(void)
{
	expect("10i 20i 30i", "11w 25w", "10i 11w 20i 25w 30i", "in the order of time");
	expect("10i 20i 30i", "1w 2w 9w 15w 31w 99w", "10i 15w 20i 30i",
	       "nothing before the first event or after the last");
	expect("10i 20i", "10w 20w", "10i 10w 20i", "of the same time, the recording's first");
	expect("10i 30i", "12i 13l 14i 15w", "10i 13l 15w 30i", "only wake-ups and losses");
	expect("10i 20i", "", "10i 20i", "no wake-ups");
	expect("", "10w", "", "nothing recorded");
	test_beside();
	test_held();
	test_handover();
	test_errors();
	return done_testing();
}
