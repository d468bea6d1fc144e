/* SPDX-License-Identifier: MIT */
/* What an event loop's thread did while a task was ready: the call that took most of the time. */
#include <string.h>

#include "analysis/tasks.h"
#include "tap.h"
#include "trace/names.h"

#define FROM 1000
#define TO   2000

struct call {
	const char *name;
	uint64_t start_ns, end_ns;
	uint16_t depth;
};

static const struct call forever = { "BaseEventLoop.run_forever (/lib/asyncio/base_events.py:1)", 0,
	                             3000, 0 };
static const struct call once = { "BaseEventLoop._run_once (/lib/asyncio/base_events.py:2)", 900,
	                          2500, 1 };

/* The calls are within a turn of the loop, from FROM to TO. */
static void explains(const struct call *calls, size_t n, const char *function, uint64_t busy_ns,
                     uint64_t slept_ns, const char *what)
{
	struct aio aio = { 0 };
	struct slice v[8];
	struct slice_thread thread = { .pid = 1, .tid = 1, .v = v, .n = n + 2 };
	struct slices slices = {
		.names = names_new(), .threads = &thread, .thread_count = 1, .tasks = &aio
	};
	struct model model = { 0 };
	const struct recording_pass pass = { .slices = &slices, .model = &model };
	struct task_delay d = { .start_ns = FROM, .end_ns = TO };

	for (size_t i = 0; i < n + 2; i++) {
		const struct call *c = i ? i == 1 ? &once : &calls[i - 2] : &forever;

		v[i] = (struct slice){
			.start_ns = c->start_ns,
			.dur_ns = c->end_ns - c->start_ns,
			.name = names_id(slices.names, c->name, strlen(c->name)),
			.depth = c->depth,
		};
	}
	task_delay_explain(&d, &pass, 0);
	is_str(names_get(slices.names, d.function), function, "%s", what);
	is_u64(d.busy_ns, busy_ns, "the time of that call is known");
	is_u64(d.slept_ns, slept_ns, "the sleep of the loop is known");
	names_free(slices.names);
}

#define EXPLAINS(function, busy_ns, slept_ns, what, ...)                                          \
	explains((struct call[]){ __VA_ARGS__ },                                                  \
	         sizeof((struct call[]){ __VA_ARGS__ }) / sizeof(struct call), function, busy_ns, \
	         slept_ns, what)

int main(void)
{
	EXPLAINS("block (a.py:5)", 700, 0, "a callback took most of the time",
	         { "EpollSelector.select (/lib/selectors.py:3)", 950, 1100, 2 },
	         { "Handle._run (/lib/asyncio/events.py:4)", 1200, 2100, 2 },
	         { "block (a.py:5)", 1300, 2100, 3 });
	EXPLAINS("", 0, 800, "the loop slept in its selector",
	         { "EpollSelector.select (/lib/selectors.py:3)", 950, 1800, 2 },
	         { "block (a.py:5)", 1850, 2100, 2 });
	EXPLAINS("", 0, 800, "the loop slept in a function that its selector calls",
	         { "_PollLikeSelector.select (/lib/selectors.py:3)", 950, 1800, 2 },
	         { "poll (/lib/selectors.py:9)", 951, 1799, 3 });
	EXPLAINS("EpollSelector.select (/lib/selectors.py:3)", 950, 0,
	         "a callback waited for a selector itself",
	         { "Handle._run (/lib/asyncio/events.py:4)", 1000, 2100, 2 },
	         { "communicate (/lib/subprocess.py:5)", 1010, 2000, 3 },
	         { "EpollSelector.select (/lib/selectors.py:3)", 1020, 1970, 4 });
	EXPLAINS("", 0, 800, "the loop of trio slept",
	         { "run (/a/trio/_core/_run.py:5)", 900, 2500, 2 },
	         { "EpollIOManager.get_events (/a/trio/_core/_io_epoll.py:7)", 1100, 1900, 3 });
	EXPLAINS("", 0, 0, "what runs a loop is not what kept it",
	         { "main (a.py:1)", 900, 2500, 2 }, { "a (a.py:3)", 1000, 1400, 3 });
	EXPLAINS("b (a.py:2)", 700, 0, "  but what that calls may be",
	         { "main (a.py:1)", 900, 2500, 2 }, { "b (a.py:2)", 1200, 1900, 3 });
	EXPLAINS("", 0, 0, "nothing stands out", { "a (a.py:1)", 1000, 1400, 2 },
	         { "b (a.py:2)", 1400, 1800, 2 });
	return done_testing();
}
