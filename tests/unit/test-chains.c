/* SPDX-License-Identifier: MIT */
/* Waits for locks, followed to what other threads did meanwhile. */
#include "analysis/locks.h"

#include "trace/source.h"
#include "trace/stacks.h"

#include "model-events.h"

#define LOCK  0x7f0a
#define OTHER 0x8f0a

static struct stacks *stacks;
static struct chains chains;

static uint32_t frame(const char *name, uint32_t line)
{
	struct stack_frame f = { .name = names_id(names, name, strlen(name)), .line = line };

	return stacks_id(stacks, &f);
}

/* Thread 7 is without the GIL, which nobody holds, and threads 8, 9 and 10 exist. */
static void start(void)
{
	begin_whole();
	if (!stacks)
		stacks = stacks_new(names);
	new_thread(101, 8, 7);
	new_thread(102, 9, 7);
	new_thread(103, 10, 7);
	release(104, 7);
	released(104, 7);
}

/* The thread holds the GIL in this time, and releases it in f. */
static void holds(uint64_t from, uint64_t to, uint32_t tid, uint32_t f)
{
	request(from, tid);
	acquire(from, tid);
	feed(to, tid, EV_RELEASE, EV(.gil = { .address = GIL, .frame = f }));
	released(to, tid);
}

static uint64_t lock_wait(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->threads.n; i++)
		sum += m->threads.v[i].gil_ns[GIL_LOCK_WAIT];
	return sum;
}

static const char *at(uint32_t id)
{
	static struct str text[2];
	static unsigned next;
	struct str *s = &text[next++ % 2];
	const struct stack_frame *f = id ? stacks_get(stacks, id) : NULL;

	str_done(s);
	str_addf(s, "%s:%u", f ? names_get(names, f->name) : "?", f ? f->line : 0);
	return str_get(s);
}

/* "function:line state function:line ns/parts; …" */
static const char *followed(void)
{
	static const char *const ends[] = { "holds", "without", "free", "deadlock", "unknown" };
	static struct str text;
	struct source source = { .frames = stacks, .names = names };
	struct recording_pass pass = { .model = m, .source = &source, .locks_known = true };

	vec_done(&chains.v);
	chains = chains_find(&pass);
	is_u64(chains.ns, lock_wait(), "the chains add up to the waits for locks");
	str_done(&text);
	for (size_t i = 0; i < chains.v.n; i++) {
		const struct chain *c = &chains.v.v[i];

		str_addf(&text, "%s%s %s%s %s %" PRIu64 "/%" PRIu64, i ? "; " : "", at(c->waits_in),
		         c->through ? "through " : "", ends[c->end], at(c->at), c->ns, c->parts);
	}
	return str_get(&text);
}

static void test_one(void)
{
	start();
	holds(110, 120, 8, frame("load", 5)); /* has the lock, and waits for a socket */
	holds(130, 140, 9, frame("get", 9));
	parks(145, 9, LOCK, PARK_LOCK);
	holds(200, 230, 8, frame("load", 6));
	unparks(240, 8, LOCK);
	parked(250, 9);
	finish();
	is_str(followed(),
	       "get:9 without load:5 55/1; get:9 holds load:6 30/1; get:9 without load:6 10/1; "
	       "get:9 free ?:0 10/1",
	       "the wait is divided by what the thread did that had the lock");
	is_u64(chains.v.v[0].longest_at_ns, 145, "the longest part has its time");
	is_u64(m->threads.v[chains.v.v[0].thread].tid, 8, "and its thread");
}

/* The holder goes on after it has released the lock, and its hold ends in another function. */
static void test_released_in(void)
{
	start();
	holds(110, 120, 9, frame("get", 9));
	request(130, 8);
	acquire(130, 8);
	parks(145, 9, LOCK, PARK_LOCK);
	feed(240, 8, EV_UNPARK, EV(.park = { .address = LOCK, .frame = frame("put", 7) }));
	parked(250, 9);
	feed(300, 8, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("other", 1) }));
	released(300, 8);
	finish();
	is_str(followed(), "get:9 holds put:7 95/1; get:9 free ?:0 10/1",
	       "what it held the lock for is not where its hold of the GIL ended");
}

static void test_through_gil(void)
{
	start();
	holds(110, 120, 8, frame("keep", 5));
	holds(130, 140, 9, frame("get", 9));
	parks(145, 9, LOCK, PARK_LOCK);
	request(150, 10);
	acquire(150, 10);
	request(160, 8);
	feed(260, 10, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("parse", 3) }));
	released(260, 10);
	acquire(270, 8);
	unparks(280, 8, LOCK);
	parked(281, 9);
	finish();
	is_str(followed(),
	       "get:9 through holds parse:3 100/1; get:9 without keep:5 15/1; "
	       "get:9 through free ?:0 10/1; get:9 holds ?:0 10/1; get:9 free ?:0 1/1",
	       "a holder that waits for the GIL leads to the thread that held it");
}

static void test_through_lock(void)
{
	start();
	holds(110, 120, 8, frame("one", 1));
	holds(121, 122, 9, frame("two", 2));
	holds(123, 124, 10, frame("three", 3));
	parks(130, 9, LOCK, PARK_LOCK);   /* 8 has it */
	parks(140, 10, OTHER, PARK_LOCK); /* 9 has it */
	unparks(200, 8, LOCK);
	parked(200, 9);
	unparks(220, 9, OTHER);
	parked(220, 10);
	finish();
	is_str(followed(),
	       "two:2 without one:1 70/1; three:3 through without one:1 60/1; "
	       "three:3 without two:2 20/1",
	       "a holder that waits for another lock leads to the thread that had that one");
}

static void test_cycle(void)
{
	start();
	holds(110, 120, 8, frame("one", 1));
	holds(121, 122, 9, frame("two", 2));
	parks(130, 8, LOCK, PARK_LOCK);
	parks(140, 9, OTHER, PARK_LOCK);
	finish();
	is_str(followed(), "one:1 unknown ?:0 870/1; two:2 unknown ?:0 860/1",
	       "in a deadlock, it is not known which thread would release");
	start();
	parks(130, 8, LOCK, PARK_LOCK);
	parks(140, 9, OTHER, PARK_LOCK);
	unparks(300, 8, OTHER);
	unparks(300, 9, LOCK);
	finish();
	is_str(followed(),
	       "?:0 free ?:0 1400/2; ?:0 through unknown ?:0 320/2; ?:0 without ?:0 10/1",
	       "two threads that wait for each other and release by signal handlers end a chain");
}

/* "tid reason function:line from+ns; …" of the critical path's parts, which have no gaps. */
static const char *path_text(void)
{
	static const char *const reasons[PATH_REASONS] = { "gil",      "without", "asleep",
		                                           "time-out", "no-cpu",  "hand-off",
		                                           "unknown" };
	static struct str text;
	struct source source = { .frames = stacks };
	struct recording_pass pass = { .model = m, .source = &source, .locks_known = true };
	struct path_parts parts = { 0 };
	struct path path = path_find(&pass, &parts);
	uint64_t until = m->start_ns, rows = 0;
	bool gaps = false;

	str_done(&text);
	for (size_t i = parts.v.n; i-- > 0;) {
		const struct path_part *p = &parts.v.v[i];

		str_addf(&text, "%s%u %s %s %" PRIu64 "+%" PRIu64, text.len ? "; " : "",
		         m->threads.v[p->thread].tid, reasons[p->reason], at(p->at), p->from_ns,
		         p->ns);
		gaps |= p->from_ns != until;
		until = p->from_ns + p->ns;
	}
	for (size_t i = 0; i < path.rows.n; i++)
		rows += path.rows.v[i].ns;
	if (parts.v.n) {
		ok(!gaps && until == m->end_ns, "the critical path has no gaps");
		is_u64(path.ns, m->end_ns - m->start_ns, "it lasts as long as the recording");
		is_u64(rows, path.ns, "its rows add up to that");
	}
	vec_done(&path.rows);
	vec_done(&parts.v);
	return str_get(&text);
}

static void test_path_join(void)
{
	start();
	parks(110, 7, OTHER, PARK_EVENT); /* joins thread 8 */
	holds(120, 400, 8, frame("work", 4));
	unparks(600, 8, OTHER);
	parked(620, 7);
	holds(640, 900, 7, frame("rest", 9));
	finish();
	is_str(path_text(),
	       "7 gil ?:0 100+1; 8 without ?:0 101+19; 8 gil work:4 120+280; "
	       "8 without work:4 400+200; 7 hand-off ?:0 600+20; 7 without ?:0 620+20; "
	       "7 gil rest:9 640+260; 7 without rest:9 900+100",
	       "a thread that waits for the end of another one continues it, back to its start");
}

static void test_path_gil(void)
{
	start();
	request(130, 8);
	acquire(130, 8);
	request(140, 10);
	request(250, 7);
	feed(300, 8, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("keep", 3) }));
	released(300, 8);
	acquire(305, 10);
	feed(500, 10, EV_RELEASE, EV(.gil = { .address = GIL, .frame = frame("more", 4) }));
	released(500, 10);
	acquire(510, 7);
	finish();
	is_str(path_text(),
	       "7 gil ?:0 100+1; 8 without ?:0 101+29; 8 gil keep:3 130+170; "
	       "10 hand-off ?:0 300+5; 10 gil more:4 305+195; 7 hand-off ?:0 500+10; "
	       "7 gil ?:0 510+490",
	       "a wait for the GIL leads to the thread that held it last");
}

static void test_path_lock(void)
{
	start();
	parks(110, 7, LOCK, PARK_LOCK); /* 8 has it, then 9 */
	holds(120, 130, 8, frame("put", 3));
	unparks(200, 8, LOCK);
	holds(250, 260, 9, frame("take", 4));
	unparks(400, 9, LOCK);
	parked(410, 7);
	finish();
	is_str(path_text(),
	       "7 gil ?:0 100+2; 9 without ?:0 102+148; 9 gil take:4 250+10; "
	       "9 without take:4 260+140; 7 hand-off ?:0 400+10; 7 without ?:0 410+590",
	       "a wait for a lock leads to the thread that released it last");
}

static void test_path_time_out(void)
{
	start();
	parks(110, 7, OTHER, PARK_EVENT);
	parked(700, 7);
	parks(750, 7, LOCK, PARK_LOCK);
	parked(900, 7);
	finish();
	is_str(path_text(),
	       "7 gil ?:0 100+4; 7 without ?:0 104+6; 7 time-out ?:0 110+590; "
	       "7 without ?:0 700+50; 7 time-out ?:0 750+150; 7 without ?:0 900+100",
	       "waits that no thread ends are shown as that");
}

/* Any events, also those that cannot happen. */
static void test_random(void)
{
	uint32_t seed = 1;

	for (unsigned round = 0; round < 200; round++) {
		uint64_t t = 110;

		start();
		for (unsigned i = 0; i < 120; i++) {
			uint32_t r = seed = seed * 1664525 + 1013904223;
			uint32_t tid = 7 + (r >> 10) % 4;
			uint64_t lock = r >> 14 & 1 ? LOCK : OTHER;

			t += (r >> 16) % 12;
			switch (r >> 28 & 7) {
			case 0:
				request(t, tid);
				break;
			case 1:
				acquire(t, tid);
				break;
			case 2:
				release(t, tid);
				break;
			case 3:
				parks(t, tid, lock, r >> 15 & 1 ? PARK_LOCK : PARK_EVENT);
				break;
			case 4:
				parked(t, tid);
				break;
			case 5:
				loses(t - 1, t, -1, 1);
				break;
			default:
				unparks(t, tid, lock);
			}
		}
		finish();
		followed();
		path_text();
	}
}

int main(void)
{
	test_one();
	test_released_in();
	test_through_gil();
	test_through_lock();
	test_cycle();
	test_path_join();
	test_path_gil();
	test_path_lock();
	test_path_time_out();
	test_random();
	vec_done(&chains.v);
	model_free(m);
	stacks_free(stacks);
	names_free(names);
	return done_testing();
}
