/* SPDX-License-Identifier: MIT */
/* The input of the analysis, and numbers and names that several parts of it, and the writers, share. */
#ifndef GILTRACER_ANALYSIS_FACTS_H
#define GILTRACER_ANALYSIS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/hogs.h"
#include "analysis/patterns.h"
#include "base/vec.h"
#include "model/model.h"
#include "session/session.h"
#include "trace/samples.h"
#include "trace/slices.h"
#include "trace/source.h"

/* @gil: state of a free-threaded interpreter's GIL when tracing began: "off", "on", or "forced" by
 * an option */
struct recording_python {
	const char *executable, *version, *implementation, *build_id; /* NULL: unknown */
	bool free_threaded;
	const char *gil;
	const struct gil_function *functions;
	size_t function_count;
};

/**
 * One execution of the program. Everything is borrowed.
 * @free_threaded: the interpreter can run without a GIL
 * @locks_known: waits for locks were recorded
 * @attached: the program already ran; @gil_recorded: GIL events were, not only samples
 * @quota: the CPU limit of the program's control group
 * @exit_status: the program's, or 128 + signal if a signal ended it
 * @hogs, @patterns: its holds by function, and the patterns of its threads; NULL if it is not a GIL
 *                   pass
 * @samples: sampled stacks; NULL: none were taken
 * @slices: its Python-side trace; if NULL, slices_note gives the reason in one sentence
 */
struct recording_pass {
	enum pass_kind kind;
	bool free_threaded, locks_known, attached, gil_recorded;
	int exit_status;
	uint64_t wall_ns;
	struct cpu_quota quota;
	const struct model *model;
	const struct source *source;
	const struct hogs *hogs;
	const struct patterns *patterns;
	const struct slices *slices;
	const char *slices_note;
	const struct samples *samples;
};

struct sources;
struct whatif_options;

struct recording_note { /* a note of the recorder */
	const char *code;
	uint64_t count;
	const char *text;
};

/* The whole recording. */
struct recording {
	const char *version;
	const char *const *command; /* argv of the program, NULL-terminated */
	const char *created;        /* ISO 8601, UTC */
	const char *host;           /* kernel, architecture, CPUs in one line */
	unsigned cpus;
	bool state_detect, gil_detect, one_run;
	struct recording_python python;
	const struct recording_pass *passes;
	size_t pass_count;
	const struct recording_note *notes;
	size_t note_count;
	const struct sources *sources; /* NULL: no lines of the program were recorded */
	const struct whatif_options
		*without_gil; /* NULL: tables and JSON do not have that replay */
};

/* The pass whose GIL numbers are reported: PASS_GIL if there is one, otherwise PASS_STACKS; never
 * NULL. */
const struct recording_pass *recording_main_pass(const struct recording *recording);
bool recording_has_note(const struct recording *recording, const char *code);

#define SLOWDOWN_NOTE_PERCENT 5

/**
 * @ratio: of the time that the run took to what it would have taken
 * @own_ns: the part of it that tracing itself took: of the thread in which that was most or, for
 * recorded calls, which run one at a time, of a process. Measured for one event, times their number
 * @lost_ns: with the waiting that tracing caused. @inferred: known, from the rate of turns after the
 * uprobes were removed; otherwise it is own_ns, and the true ratio may be higher
 */
struct slowdown {
	double ratio;
	uint64_t own_ns, lost_ns;
	bool inferred;
};

/* Whether it is more than SLOWDOWN_NOTE_PERCENT. */
bool slowdown_find(struct slowdown *ret, const struct model *model);

/* part as a percentage of whole; 0 if whole is 0. */
double facts_percent(uint64_t part, uint64_t whole);

/* ns as milliseconds. */
static inline double facts_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* The name that Python gave to the thread, if its trace contains one, otherwise the kernel's. It
 * may contain any bytes and is never NULL; borrowed from the pass. */
const char *facts_thread_name(const struct recording_pass *pass, uint32_t thread);

/* For qsort: the longest-blocked threads first, then those that blocked others longest. A thread is
 * blocked while it waits for the GIL or, without a GIL, sleeps for a lock or is stopped. */
int facts_compare_threads(const struct model_thread *a, const struct model_thread *b);

/* Indices of the model's threads, those that were blocked longest first; caller frees. NULL if
 * none. */
uint32_t *facts_thread_order(const struct model *model);

/* Indices of the model's blame rows, the largest first; caller frees. NULL if none. */
uint32_t *facts_blame_order(const struct model *model);

/* The same for its lock_blame. */
uint32_t *facts_lock_blame_order(const struct model *model);

/* Whether threads of more than one process were recorded. */
bool facts_many_processes(const struct model *model);

/**
 * The totals of a recording over its threads, without time in which they were stopped by a signal.
 * @known_ns: the known part of the lives of all threads
 * @blamed_ns: waiting without switch waits, which is all that is divided: among holders, @handoff_ns,
 * the time in which the GIL was free while the next thread woke up, and @no_cpu_ns, that in which
 * it was free and the next thread had no CPU; @probed_handoff_ns: the part of handoff_ns that the probes may
 * have caused: as much as they cost
 */
struct facts_totals {
	uint64_t life_ns, known_ns, hold_ns, wait_ns, switch_wait_ns, free_wait_ns, no_gil_ns,
		unknown_ns;
	uint64_t blamed_ns, handoff_ns, probed_handoff_ns, no_cpu_ns;
	uint64_t cpu_ns[CPU_STATES];
	uint64_t releases_probed, releases_inferred;
};

struct facts_totals facts_totals(const struct model *model);

#define FACTS_LEAST_NS      50000 /* less would be printed as 0.0 ms */
#define FACTS_LEAST_PERCENT 0.05  /* less would be printed as 0.0 % */

/**
 * Something the reader must know about the numbers.
 * @pass: name of the pass that it concerns; NULL: the whole recording
 * @code: a short stable name
 * @note: text of the recorder or of a reader; if NULL:
 * @slices: the incomplete Python trace; if that is NULL, too: @slowdown, if its ratio is not 0, or
 * @of_model, a caveat of the model
 * @minor: only in machine-readable output, because the missing data was not asked for or is
 * negligible
 */
struct facts_caveat {
	const char *pass, *code, *note;
	const struct slices *slices;
	struct slowdown slowdown;
	enum caveat_code of_model;
	uint64_t count;
	bool minor;
};

struct facts_caveats {
	struct facts_caveat *v;
	size_t n;
	size_t alloc;
};

/* Everything that limits the recording: caveats of the models, reasons for a missing Python trace,
 * notes of the recorder. Borrows from the recording; free with vec_done. */
struct facts_caveats facts_caveats(const struct recording *recording);

/* Programs that had the CPUs while threads of the traced program waited for one. */

/**
 * The total of one program. @name: borrowed from the pass; NULL: threads of the traced program
 */
struct cpu_user {
	const char *name;
	uint64_t ns;
};

/* @list: most time first; @all_ns: all waiting, including that with an unknown CPU user */
struct cpu_users {
	VEC(struct cpu_user) list;
	uint64_t all_ns;
};

/* Free with vec_done(&users.list). */
struct cpu_users cpu_users_find(const struct recording_pass *pass);

/* The program that had a CPU, from the fields by and name of struct model_cpu_blame. NULL: a thread
 * of the model, no program, or unknown. Borrowed from the pass. */
const char *cpu_users_program(const struct recording_pass *pass, uint32_t by, uint32_t name);

/* The share of the runnable time with a known CPU user during which that user was a thread of the
 * traced program, in percent; negative: unknown. */
double cpu_users_own_percent(const struct cpu_users *users);

/* Events that perf counted in addition (--event), by counter and thread. */

/* @counter: index in the source's counters; @count: sum of the samples; @samples: their number */
struct counter_row {
	uint32_t counter, thread;
	uint64_t count, samples;
};

struct counter_rows {
	VEC(struct counter_row) v;
};

/* A row for each counter and thread that has samples, counter by counter, with the threads in the
 * given order. Each sample counts everything since the previous one; events after the last sample
 * are missing. Free with vec_done(&rows.v). */
struct counter_rows counters_find(const struct recording_pass *pass, const uint32_t *thread_order);

#endif
