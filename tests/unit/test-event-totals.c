/* SPDX-License-Identifier: MIT */
/* Totals from events of the GIL: each rule of the state machine, with made-up events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/event_totals.h"
#include "live/totals.h"

#include "tap.h"

#define GIL 0x1000

static unsigned unnamed;

/* Thread 2 is called b-2, and so on; but the first times nothing. */
static bool name(void *data, uint32_t tid, char *ret)
{
	(void)data;
	if (unnamed) {
		unnamed--;
		return false;
	}
	snprintf(ret, TOTALS_NAME, "%c-%u", 'a' + (char)(tid % 10 - 1), (unsigned)tid);
	return true;
}

/* @at: the instant that is read */
struct watched {
	struct event_totals *et;
	struct totals *totals;
	struct totals_snapshot snapshot;
	uint64_t at;
};

static uint64_t begin_reading(void *data)
{
	struct watched *w = data;

	event_totals_reach(w->et, w->at);
	return w->at;
}

static void end_reading(void *data)
{
	(void)data;
}

static uint64_t lost(void *data)
{
	(void)data;
	return 7;
}

static void close_page(void *data)
{
	struct watched *w = data;

	event_totals_free(w->et);
}

static void begin(struct watched *w)
{
	struct totals_writer writer = { begin_reading, end_reading, lost, close_page, w };
	const void *page;
	struct error err;
	size_t size;

	*w = (struct watched){ .at = 0 };
	if (event_totals_new(&w->et, getpid(), 1000, name, NULL, &err) < 0)
		exit(99);
	page = event_totals_page(w->et, &size);
	totals_open_writer(&w->totals, page, size, &writer);
}

static void end(struct watched *w)
{
	totals_snapshot_done(&w->snapshot);
	totals_close(w->totals);
}

static void feed(struct watched *w, enum event_type type, uint32_t tid, uint64_t time_ns)
{
	struct event ev = { .type = (uint16_t)type, .tid = tid, .time_ns = time_ns, .cpu = -1 };

	if (type == EV_REQUEST || type == EV_RELEASE)
		ev.gil.address = GIL;
	if (type == EV_COMM)
		ev.flags = EVF_EXEC;
	event_totals_feed(w->et, &ev);
}

static void lose(struct watched *w, uint64_t since_ns, uint64_t time_ns)
{
	struct event ev = { .type = EV_LOST, .time_ns = time_ns, .cpu = 0 };

	ev.lost.since_ns = since_ns;
	event_totals_feed(w->et, &ev);
}

/* The thread as of that instant. */
static const struct totals_thread *look(struct watched *w, uint32_t tid, uint64_t at)
{
	static const struct totals_thread none;

	w->at = at;
	totals_read(w->totals, &w->snapshot);
	for (size_t i = 0; i < w->snapshot.threads.n; i++)
		if (w->snapshot.threads.v[i].tid == tid)
			return &w->snapshot.threads.v[i];
	return &none;
}

static void one_takes_it_from_the_other(void)
{
	const struct totals_thread *t;
	struct watched w;

	begin(&w);
	feed(&w, EV_RELEASE, 1, 1000);
	is_u64(look(&w, 1, 1050)->hold_ns, 0, "a hold that began before is not guessed");
	feed(&w, EV_REQUEST, 2, 1100);
	feed(&w, EV_ACQUIRE, 2, 1110);
	is_u64(look(&w, 2, 1150)->wait_ns, 0, "to take a free GIL is no wait");
	is_u64(look(&w, 2, 1160)->hold_ns, 50, "a hold that goes on counts");
	feed(&w, EV_REQUEST, 1, 1200);
	t = look(&w, 1, 1300);
	is_u64(t->wait_ns, 100, "so does a wait");
	is_u64(t->wait_for_ns[2], 100, "for the group that holds the GIL");
	feed(&w, EV_RELEASE, 2, 1400);
	feed(&w, EV_ACQUIRE, 1, 1410);
	feed(&w, EV_RELEASED, 2, 1415);
	t = look(&w, 1, 1500);
	is_u64(t->wait_ns, 210, "it waited until it had it");
	is_u64(t->wait_for_ns[2], 200, "for the other while that held it");
	is_u64(t->wait_for_ns[TOTALS_NOBODY], 10, "then for nobody");
	is_u64(t->hold_ns, 90, "and holds it now");
	is_u64(look(&w, 2, 1500)->hold_ns, 290, "as the other did");
	is_u64(look(&w, 2, 1500)->switch_ns, 15, "whose release was forced");
	is_u64(w.snapshot.gils[0].age_ns, 500, "the GIL is watched since its first event");
	is_u64(w.snapshot.lost, 7, "lost events are passed on");
	end(&w);
}

static void two_want_a_free_one(void)
{
	struct watched w;

	begin(&w);
	feed(&w, EV_RELEASE, 3, 1000);
	feed(&w, EV_REQUEST, 1, 1010);
	feed(&w, EV_REQUEST, 2, 1020);
	feed(&w, EV_ACQUIRE, 2, 1030);
	is_u64(look(&w, 1, 1130)->wait_ns, 100, "who is not first waits from then on");
	feed(&w, EV_ACQUIRE, 1, 1200);
	is_u64(look(&w, 2, 1300)->hold_ns, 170,
	       "a release that was not seen was before the next hold");
	is_u64(look(&w, 1, 1300)->hold_ns, 100, "so they are not both holders");
	end(&w);
}

static void blocked_before(void)
{
	struct watched w;

	begin(&w);
	feed(&w, EV_REQUEST, 1, 2000);
	is_u64(look(&w, 1, 2500)->wait_ns, 500, "a wait for a GIL of which nothing is known");
	is_u64(look(&w, 1, 2500)->wait_for_ns[TOTALS_OTHERS], 500, "is for others");
	feed(&w, EV_RELEASE, 2, 3000);
	feed(&w, EV_ACQUIRE, 1, 3010);
	is_u64(look(&w, 1, 4000)->wait_ns, 1010, "and counts if one of them releases it");
	is_u64(look(&w, 2, 4000)->hold_ns, 0, "whose hold is not known");
	end(&w);
	begin(&w);
	feed(&w, EV_REQUEST, 1, 2000);
	feed(&w, EV_ACQUIRE, 1, 2010);
	is_u64(look(&w, 1, 3000)->wait_ns, 0, "but not if nobody does");
	is_u64(look(&w, 1, 3000)->hold_ns, 990, "it holds the GIL");
	end(&w);
}

static void events_are_lost(void)
{
	struct watched w;

	begin(&w);
	feed(&w, EV_REQUEST, 1, 1400);
	feed(&w, EV_ACQUIRE, 1, 1410);
	is_u64(look(&w, 1, 1450)->hold_ns, 40, "a hold");
	lose(&w, 1430, 1600);
	is_u64(look(&w, 1, 1700)->hold_ns, 40, "is not known any more, but does not shrink");
	feed(&w, EV_RELEASE, 1, 1800);
	is_u64(look(&w, 1, 1900)->hold_ns, 40, "nor by its release");
	feed(&w, EV_REQUEST, 1, 1500);
	feed(&w, EV_ACQUIRE, 1, 1510);
	is_u64(look(&w, 1, 2000)->hold_ns, 140,
	       "what comes too late is taken for what happens now");
	lose(&w, 2500, 2600);
	is_u64(look(&w, 1, 3000)->hold_ns, 640, "what was seen before the loss counts");
	end(&w);
}

static void lives(void)
{
	struct watched w;

	begin(&w);
	feed(&w, EV_REQUEST, 1, 1000);
	feed(&w, EV_ACQUIRE, 1, 1000);
	feed(&w, EV_EXIT, 1, 1100);
	is_u64(look(&w, 1, 2000)->life_ns, 100, "a thread that has ended");
	is_u64(look(&w, 1, 2000)->hold_ns, 100, "holds nothing");
	feed(&w, EV_REQUEST, 11, 2100);
	feed(&w, EV_ACQUIRE, 11, 2100);
	is_u64(look(&w, 11, 2200)->hold_ns, 200, "the next of its group goes on with its numbers");
	is_u64(look(&w, 11, 2200)->threads, 2, "as a second thread");
	feed(&w, EV_COMM, 11, 2300);
	ok(look(&w, 11, 2400)->state == TOTALS_ENDED, "exec ends all threads");
	is_u64(look(&w, 11, 2400)->hold_ns, 300, "with what they do");
	end(&w);
}

static void names(void)
{
	const struct totals_thread *t;
	struct watched w;

	begin(&w);
	unnamed = 2;
	for (unsigned i = 0; i < 3; i++) {
		feed(&w, EV_REQUEST, 1, 1000 + 10 * i);
		feed(&w, EV_ACQUIRE, 1, 1000 + 10 * i);
		feed(&w, EV_RELEASE, 1, 1005 + 10 * i);
	}
	t = look(&w, 1, 2000);
	is_u64(w.snapshot.threads.n, 2, "a thread that gets its name later");
	is_str(t[0].name, "", "is nameless until then");
	is_u64(t[0].hold_ns, 10, "with what it did");
	is_str(t[1].name, "a-1", "and goes on with its name");
	is_u64(t[1].hold_ns, 5, "from 0");
	is_u64(t[0].life_ns + t[1].life_ns, 1000, "and lives once");
	end(&w);
}

int main(void)
{
	names();
	one_takes_it_from_the_other();
	two_want_a_free_one();
	blocked_before();
	events_are_lost();
	lives();
	return done_testing();
}
