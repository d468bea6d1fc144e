/* SPDX-License-Identifier: MIT */
/*
 * totals-watch PID COUNT: reads the page of totals of a process COUNT times, in turns by a reader
 * that remembers what it has reported and by a new one, and prints what is impossible: a number
 * that shrinks, holds of a GIL longer than it is there, a thread that holds and waits longer than
 * it lives. The last line is a summary: reads, torn threads, threads, and of the last snapshot
 * hold, wait and age.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "live/totals.h"

static unsigned wrong;

static void check(bool right, const char *what, const struct totals_thread *t, uint64_t a,
                  uint64_t b)
{
	if (right)
		return;
	if (wrong++ < 20)
		printf("wrong: %s: %s %" PRIu32 ": %" PRIu64 " %" PRIu64 "\n", what, t->name,
		       t->tid, a, b);
}

static uint64_t sum(const uint64_t *histogram)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TOTALS_BUCKETS; i++)
		n += histogram[i];
	return n;
}

static void compare(const struct totals_thread *before, const struct totals_thread *now)
{
	check(now->hold_ns >= before->hold_ns, "hold shrinks", now, before->hold_ns, now->hold_ns);
	check(now->wait_ns >= before->wait_ns, "wait shrinks", now, before->wait_ns, now->wait_ns);
	check(now->kept_ns >= before->kept_ns, "kept shrinks", now, before->kept_ns, now->kept_ns);
	check(now->switch_ns >= before->switch_ns, "switch wait shrinks", now, before->switch_ns,
	      now->switch_ns);
	check(now->life_ns >= before->life_ns, "life shrinks", now, before->life_ns, now->life_ns);
	check(sum(now->holds) >= sum(before->holds), "holds shrink", now, sum(before->holds),
	      sum(now->holds));
	for (unsigned i = 0; i < TOTALS_GROUPS; i++)
		check(now->wait_for_ns[i] >= before->wait_for_ns[i], "wait for a group shrinks",
		      now, before->wait_for_ns[i], now->wait_for_ns[i]);
	check(sum(now->waits) >= sum(before->waits), "waits shrink", now, sum(before->waits),
	      sum(now->waits));
}

static void check_one(const struct totals_snapshot *s)
{
	uint64_t held[TOTALS_GILS] = { 0 };

	for (size_t i = 0; i < s->threads.n; i++) {
		const struct totals_thread *t = &s->threads.v[i];
		uint64_t waits = 0;

		if (!t->used)
			continue;
		held[t->gil] += t->hold_ns;
		/* Each is rounded down. */
		check(t->hold_ns + t->wait_ns + t->switch_ns <= t->life_ns, "more than its life", t,
		      t->hold_ns + t->wait_ns + t->switch_ns, t->life_ns);
		for (unsigned g = 0; g < TOTALS_GROUPS; g++)
			waits += t->wait_for_ns[g];
		check(waits == t->wait_ns, "not the sum of its groups", t, waits, t->wait_ns);
		check(t->kept_ns <= t->hold_ns, "kept more than held", t, t->kept_ns, t->hold_ns);
	}
	for (unsigned i = 0; i < TOTALS_GILS; i++)
		check(held[i] <= s->gils[i].age_ns, "held longer than there", &s->threads.v[0],
		      held[i], s->gils[i].age_ns);
}

static void compare_all(const struct totals_snapshot *before, const struct totals_snapshot *now)
{
	for (size_t i = 0; i < before->threads.n; i++)
		compare(&before->threads.v[i], &now->threads.v[i]);
}

static void summary(const struct totals_snapshot *s, unsigned long reads, unsigned long torn)
{
	uint64_t hold = 0, wait = 0, threads = 0;

	for (size_t i = 0; i < s->threads.n; i++) {
		hold += s->threads.v[i].hold_ns;
		wait += s->threads.v[i].wait_ns + s->threads.v[i].switch_ns;
		threads += s->threads.v[i].threads;
	}
	printf("reads %lu torn %lu slots %zu threads %" PRIu64 " hold %" PRIu64 " wait %" PRIu64
	       " age %" PRIu64 " wrong %u\n",
	       reads, torn, s->threads.n, threads, hold, wait, s->gils[0].age_ns, wrong);
}

int main(int argc, char **argv)
{
	CLEANUP(totals_close) struct totals *kept = NULL;
	struct totals_snapshot snapshots[2] = { 0 };
	unsigned long reads = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, torn = 0, n = 0;
	pid_t pid = argc == 3 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	struct error err;

	if (totals_open_process(&kept, pid, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 2;
	}
	for (; n < reads; n++) {
		CLEANUP(totals_close) struct totals *fresh = NULL;
		struct totals_snapshot *now = &snapshots[n & 1];

		if (n % 2 && totals_open_process(&fresh, pid, &err) < 0)
			break;
		if (!totals_read(fresh ? fresh : kept, now))
			break;
		torn += now->torn;
		check_one(now);
		if (n && !(fresh && now->torn))
			compare_all(&snapshots[!(n & 1)], now);
	}
	if (n)
		summary(&snapshots[!(n & 1)], n, torn);
	totals_snapshot_done(&snapshots[0]);
	totals_snapshot_done(&snapshots[1]);
	return wrong ? 1 : 0;
}
