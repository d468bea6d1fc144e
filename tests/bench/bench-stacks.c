/* SPDX-License-Identifier: MIT */
/* bench-stacks FILE: read a perf.data with its stacks and print their number. */
#include <inttypes.h>
#include <stdio.h>

#include "trace/perf/from_perf.h"
#include "trace/stacks.h"

int main(int argc, char **argv)
{
	const struct from_perf_options options = { .unwind = true };
	struct source *source;
	struct error err;
	struct event ev;
	uint64_t n = 0;

	if (argc != 2 || from_perf_open(&source, argv[1], &options, &err) < 0) {
		fprintf(stderr, "bench-stacks: %s\n", argc == 2 ? err.text : "usage: FILE");
		return 1;
	}
	while (source_next(source, &ev, &err) > 0)
		n += ev.type == EV_SCHED_OUT && ev.sched.stack;
	printf("%" PRIu64 " stacks, %" PRIu32 " different frames\n", n,
	       stacks_count(source->stacks) - 1);
	source_close(source);
	return 0;
}
