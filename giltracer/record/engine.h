/* SPDX-License-Identifier: MIT */
/*
 * Engines: ways to record when threads request, take and release the GIL. A job has a list of them, by
 * preference (prepare.c). The first one that can be used is; if it turns out that it cannot record the
 * program, the next one that can takes its place. perf, the library's records and samples are tools
 * that several of them use: what an engine records with these is data, and what only it does is a
 * function, NULL if it does nothing.
 */
#ifndef GILTRACER_RECORD_ENGINE_H
#define GILTRACER_RECORD_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct afterwards;
struct execution_plan;
struct job;
struct recorders;
struct session_pass;
struct snapshots;
struct target;

enum engine_perf { ENGINE_WITHOUT_PERF, ENGINE_WITH_PERF_IF_PERMITTED, ENGINE_WITH_PERF };

/**
 * A process that is executed, or runs already.
 * @tid: the thread that begins its program; 0: it runs already
 * @target, @snapshots: its memory, if it runs already and is readable; else NULL, and @no_target says why
 */
struct engine_process {
	const struct execution_plan *plan;
	const struct recorders *recorders;
	pid_t pid;
	uint32_t tid;
	const struct target *target;
	struct snapshots *snapshots;
	const struct error *no_target;
};

/**
 * @name: after "nor can"
 * @instead: begins the message that it takes the place of another, followed by the reasons
 * @failed: begins such a reason if it was this one that could not be used
 * @no_states: the note if states are wanted, and perf does not record them
 * @perf: whether perf records, too, or alone
 * @gil: it records events of the GIL; @knows_releases: each release, whatever probes were found
 * @library: the library records the GIL, in its own files; @samples: nothing but samples is recorded
 * @then: takes over while the program runs, if this one costs the program too much
 *
 * @check: whether it can be used for this program by this user; the error says why not
 * @prepare: before the program runs; errors as of @check
 * @start: the program is about to begin, or runs already and perf records it; *start_ns: when this one
 * began. Errors: ESTALE: it cannot record this process
 * @add: the same for another process of the program that runs already; NULL: it records these anyway
 * @records: whether the process contains what it needs; the first of its threads waits for the answer
 * @is_due, @covers, @take_over: of @then: whether it has to, whether it sees all of another process of the
 * program, and to begin
 * @retire: of the one before it
 * @describe: the files that it has written, in a pass of which perf_data is set if perf recorded
 */
struct engine {
	const char *name, *instead, *failed, *no_states;
	enum engine_perf perf;
	bool gil, knows_releases, library, samples;
	const struct engine *then;

	int (*check)(struct job *job, struct error *err);
	int (*prepare)(struct job *job, struct error *err);
	int (*start)(const struct engine_process *process, uint64_t *start_ns, struct error *err);
	int (*add)(const struct engine_process *process, struct error *err);
	int (*records)(const struct engine_process *process, struct error *err);
	bool (*is_due)(const struct execution_plan *plan);
	bool (*covers)(const struct execution_plan *plan, pid_t pid);
	void (*take_over)(const struct execution_plan *plan);
	void (*retire)(const struct engine_process *process, struct afterwards *after);
	void (*describe)(struct session_pass *pass);
};

/* engine_both: uprobes and the library, to compare them; the report is of uprobes. engine_states: perf
 * records states and stacks, and nothing records the GIL. */
extern const struct engine engine_uprobes, engine_both, engine_states;
extern const struct engine engine_library;
extern const struct engine engine_join;
extern const struct engine engine_samples;

/* Whether an engine may be replaced by another one. */
bool engine_has_others(const struct job *job);

#endif
