/* SPDX-License-Identifier: MIT */
/* One execution of a program, of ours or of one that runs already, recorded by one perf record or by
 * several, by the library, and by samples. */
#ifndef GILTRACER_RECORD_EXECUTION_H
#define GILTRACER_RECORD_EXECUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "live/sampler.h"
#include "record/perf.h"
#include "session/session.h"
#include "system/host.h"

struct engine;
struct perf_limits;
struct preloading;
struct probe_set;

/* ---- limits of time, size and disk space */

/**
 * @duration_s: how long tracing may be on; 0: no limit
 * @max_mib: how large the recordings of an execution may become together; 0: no limit
 * @folder, @least_free: where they are, and the bytes to leave free in that file system; set by
 * limit_begin()
 */
struct limit {
	unsigned duration_s;
	unsigned max_mib;
	uint64_t least_free;
	const char *folder;
};

/* Note how much is free in folder, before anything is recorded there. */
void limit_begin(struct limit *limit, const char *folder);

/* In how many ms to check again, after elapsed_ns of tracing. */
int limit_wait_ms(const struct limit *limit, uint64_t elapsed_ns);

/* Why the recordings have to end now: a sentence that the caller frees, or NULL if they may go
 * on. */
char *limit_reached(const struct limit *limit, uint64_t elapsed_ns,
                    const struct perf_plan *recordings, size_t count);

/* ---- the names that a program gives its threads */

/* Owned: session_threads_free(named->v, named->n). */
struct thread_names {
	struct session_thread *v;
	size_t n, alloc;
};

/* Add "TID NAME", a thread of process pid (0: the process that was started). Ignores any other
 * text. */
void thread_names_add(struct thread_names *named, uint32_t pid, const char *text);

/*
 * Read lines "PID TID NAME" that the program and its forked children have left in a file, and
 * remove it. Names that are already known are newer. There may be no file. The last line of a
 * process that was killed may be cut, and is ignored; so are all threads after the first 10,000.
 */
void thread_names_read(struct thread_names *named, const char *path);

/* ---- samples */

/* Samples per second by default, if nothing else is recorded. */
#define SAMPLE_HZ 200

/* The size of the samples is limited to this fraction of --max-size. */
#define SAMPLING_SHARE 4

/**
 * @plan: path NULL: no samples are wanted; its pid is filled in
 * @must: nothing but samples is recorded
 * @sampler: set while samples are taken
 * @taken: the file exists
 * @note: why samples are missing or incomplete; or NULL. Owned
 */
struct sampling {
	struct sampler_plan plan;
	bool must;
	struct sampler *sampler;
	bool taken;
	char *note;
};

/* Does nothing if no samples are being taken. */
void sampling_stop(struct sampling *sampling);

/* Call it after sampling_stop(). */
void sampling_done(struct sampling *sampling);

DEFINE_CLEANUP_IN(struct sampling, sampling_done);

/* ---- an execution */

/**
 * What to run. All pointers are borrowed.
 * @pid: a process that runs already, with its descendants and their new children; it is neither stopped nor
 * changed, and goes on afterwards. 0: a program is started, for which all up to @children is needed
 * @python: interpreter, absolute; @python_options: its options, NULL-terminated
 * @kind, @target: what to run, see share/python/program.py
 * @args: its arguments, NULL-terminated
 * @entry, @imports: see share/python/program.py
 * @python_trace: file for VizTracer's trace; "=" if the library records calls; NULL for none
 * @python_trace_entries: how many entries VizTracer keeps
 * @codes: file for the program's code objects (python/pycode.h); NULL for none
 * @stack: how the library hides our frames from the program, as in program.py; NULL: it cannot
 * @children: file for the thread names of forked children; removed afterwards
 * @probes: what @perf records, and what the program must contain; NULL for none
 * @preloading: the library that records the program; NULL for none
 * @in, @out, @err: the program's streams; -1 for ours
 * @perf: perf_count recordings
 * @host: see perf_limits_close
 * @may_change: another engine may be used if this one cannot record the program
 * @flight_ns: only the last part is kept; 0: all; @watch: reports of it while the program runs
 * @no_children: of a process that already runs, record only itself
 * @sampling: stacks to sample meanwhile; NULL for none
 * @limit: when the recordings end at the latest; the program goes on
 * @on_limit: called with the reason as soon as a limit ends them; may be NULL
 * @engine: NULL: none; @then: takes over from it, the first of @perf, if it costs the program too much, and
 * another one of @perf stands by; NULL: none
 * @on_handover: called when it does
 */
struct execution_plan {
	pid_t pid;
	const char *python;
	const char *const *python_options;
	const char *bootstrap;
	const char *kind, *target;
	char *const *args;
	const char *entry, *imports;
	const char *python_trace;
	unsigned python_trace_entries;
	const char *codes;
	const char *children, *stack;
	const struct probe_set *probes;
	const struct preloading *preloading;
	int in, out, err;
	struct perf_plan perf[RECORDERS_MAX];
	size_t perf_count;
	struct perf_limits *host;
	struct sampling *sampling;
	bool no_children, may_change;
	uint64_t flight_ns;
	struct flight_watch *watch;
	struct limit limit;
	void (*on_limit)(const char *why);
	const struct engine *engine, *then;
	void (*on_handover)(uint64_t elapsed_ns);
};

/* The socket by which our part of the program tells when tracing starts and ends. */
enum execution_channel {
	CHANNEL_OPEN,     /* until the program ended */
	CHANNEL_CLOSED,   /* the program has closed it */
	CHANNEL_EXECUTED, /* the process executes another program */
};

/**
 * The result. Strings are owned.
 * @status: of the program, as from waitpid
 * @start_ns, @stop_ns: when tracing was on; 0 if it never was, or the end is not known
 * @start_tid: the thread that started it
 * @handover_ns: when the library took over from uprobes; 0: it did not; @uprobes_end_ns: when these
 * were removed; 0: at the end
 * @turn_ns: what a turn of the GIL takes with uprobes, if nobody waits for it; 0: not measured
 * @late_tasks: perf could not read the names of threads at the start: see struct perf_plan
 * @stolen_ns: time that a hypervisor took from all CPUs together meanwhile
 * @quota: the limit of the program's control group
 * @suspended: when it was stopped, as far as that is known
 * @pid: of the program
 * @mmap_pages: ring buffer per CPU and recording
 * @interrupted: a signal asked us to stop
 * @stopped: the program was stopped for a while, and continued
 * @idle: all threads of one that already ran slept, or it was stopped, from before the recording to its end
 * @codes: the list of code objects is complete
 * @unloaded: Python could not load the program, and has printed why
 * @channel: what closed it; if tracing had not started, it started then
 * @gil: the state of the GIL when tracing started, as the program reported it
 * @named: the names of the program's threads
 * @holder_tid: the thread of a program that already ran which had its only GIL whenever that was looked at,
 * which was at least once while it was recorded; 0: none
 * @slept: those of a program that already ran which had no CPU meanwhile
 * @trace: version of VizTracer whose trace is complete; NULL if there is none
 * @trace_note: why there is no complete trace; or NULL
 * @entry_note: why tracing did not start; or NULL
 * @limit_note: why the recordings ended before the program; or NULL
 * @left_out_note: which child processes are not recorded; or NULL
 * @after: see struct afterwards
 * @perf_note: what went wrong with a recording while the program ran; or NULL
 */
struct execution_result {
	int status;
	uint64_t wall_ns, start_ns, stop_ns, stolen_ns, handover_ns;
	uint64_t uprobes_end_ns, turn_ns;
	struct cpu_quota quota;
	struct suspensions suspended;
	uint32_t pid, start_tid;
	unsigned mmap_pages[RECORDERS_MAX];
	bool interrupted, stopped, idle, codes, late_tasks, unloaded;
	enum execution_channel channel;
	enum session_gil gil;
	struct thread_names named;
	uint32_t holder_tid;
	VEC(struct session_slept) slept;
	struct afterwards after;
	char *trace, *trace_note, *entry_note, *limit_note, *perf_note, *left_out_note;
};

/*
 * Run it to its end; the recording of a process that runs already ends if a signal asks us to end, a limit
 * is reached or the process ends. Errors: perf or the program did not start (ENOENT and EACCES are about the
 * interpreter); EINTR: a signal came before the program started; ESTALE: it cannot be recorded in this
 * way, because the probed file was replaced or the program lacks the probes or the library: it was
 * killed before it did any work of its own; ECHILD: may_change, and perf did not start; EINVAL: our part
 * of the program gave up; ESRCH: the process has ended. If the program fails, that is a status, not an error.
 * If a recording fails later, that is a perf_note, because the program has run.
 */
int execution_run(const struct execution_plan *plan, const struct signals *signals,
                  struct execution_result *ret, struct error *err);

/* The arguments that a process was started with, NULL-terminated; free with argv_free. */
char **execution_command(pid_t pid);

/* The number of the channel in the program. */
int execution_channel_number(void);

void execution_result_done(struct execution_result *result);

#endif
