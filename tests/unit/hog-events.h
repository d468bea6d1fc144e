/* SPDX-License-Identifier: MIT */
/* Threads that release the GIL in named functions, and the hogs among them. Times are in ms. */
#ifndef GILTRACER_TESTS_HOG_EVENTS_H
#define GILTRACER_TESTS_HOG_EVENTS_H

#include "analysis/hogs.h"
#include "trace/source.h"
#include "trace/stacks.h"

#include "model-events.h"

#define MS          1000000
#define INTERVAL_NS (5 * MS)

static struct stacks *stacks;
static struct hogs hogs;

static uint32_t frame(const char *name, uint32_t line)
{
	struct stack_frame f = { .name = names_id(names, name, strlen(name)), .line = line };

	return stacks_id(stacks, &f);
}

/* Thread 7 holds the GIL from 100 on. */
static void start_until(uint64_t end)
{
	begin_with(&(struct model_options){
		.start_ns = 100 * MS, .end_ns = end * MS, .start_pid = 7, .start_tid = 7 });
	if (!stacks)
		stacks = stacks_new(names);
}

/* Thread tid releases the GIL at from and requests it again at once, in function f. */
static void turn(uint64_t from, uint32_t tid, uint32_t f)
{
	release(from * MS, tid);
	feed(from * MS, tid, EV_REQUEST, EV(.gil = { .address = GIL, .frame = f }));
}

/* Thread tid is asked for the GIL at t, while it runs f; 0: unknown. */
#define asked(t, tid, f) feed(t, tid, EV_ASKED, EV(.gil = { .address = gil_now, .frame = (f) }))

static void find_hogs(void)
{
	finish();
	hogs_done(&hogs);
	hogs_find(&hogs, m, stacks, INTERVAL_NS);
}

#endif
