/* SPDX-License-Identifier: MIT */
/*
 * The session folder, which recording writes and reporting reads. It holds session.json, and per
 * pass NAME.perf.data, NAME.codes and, with a Python-side trace, NAME.viztracer.json. Nothing else
 * connects the two, so that a report can be made later, elsewhere and unprivileged.
 *
 * session.json, version 1 (all times integers, ns of CLOCK_MONOTONIC; files are relative to the
 * folder; an unknown key or a null value is treated as absent):
 *
 *	{"session": 1, "giltracer": VERSION, "created": "2026-01-31T12:00:00Z",
 *	 "command": [ARG...], "cwd": PATH, "root": PATH of the files of a program in another container,
 *	 "host": {"kernel": "6.18.0", "arch": "x86_64", "cpus": 2, "perf": "6.1.187"},
 *	 "options": {"state_detect": BOOL, "gil_detect": BOOL, "one_run": BOOL, "no_children": BOOL,
 *	             "python_trace": KIND, "flight_ns": N},
 *	 "python": {"executable", "version", "implementation", "build_id", "free_threaded",
 *	            "releases_known": BOOL, "gil_functions": [{"name", "offset", "kind"}]},
 *	 "passes": [{"name": "gil|stacks", "perf_data": FILE or null, "preload": FOLDER or null,
 *	             "wakeups": FILE or null, "switches": FILE or null, "samples": FILE or null,
 *	             "python_trace": FILE or null, "python_trace_note": TEXT or null,
 *	             "code_objects": FILE or null, "exit_status": N, "signal": N or 0,
 *	             "wall_ns": N, "start_ns": N, "stop_ns": N, "handover_ns": N,
 *	             "uprobes_end_ns": N, "turn_ns": N, "stolen_ns": N, "pid": N, "tid": N, "holder_tid": N,
 *	             "quota": {"quota_us": N, "period_us": N, "periods": N, "throttled": N},
 *	             "suspended": [{"from_ns": N, "to_ns": N}],
 *	             "gil": "on|off|forced" or null, "threads": [{"pid": N, "tid": N, "name": TEXT}],
 *	             "slept": [{"pid": N, "tid": N, "state": "S|D|T", "no_gil": BOOL}]}],
 *	 "notes": [{"code": WORD, "count": N, "text": SENTENCE}]}
 *
 * preload: the files of the library inside the program (preload/format.h).
 *
 * switches: with preload: perf.data of the same execution, without GIL events.
 *
 * handover_ns: perf_data has the GIL's events until then, and preload from then on; switches has all
 * others from then on. 0: perf_data has all, or there is none. uprobes_end_ns: when the uprobes were
 * removed. turn_ns: what a turn of the GIL takes with uprobes, if nobody waits; 0: not measured.
 *
 * samples: sampled stacks of the threads, see trace/samples.h.
 *
 * wakeups: perf.data of wake-ups and of the threads on each CPU, of the whole machine.
 * code_objects: see python/pycode.h.
 *
 * no_children: reports are about the main process of each pass only.
 *
 * flight_ns: a flight recorder: only the last part of the execution, at most so long, is to be reported;
 * 0: all of it.
 *
 * releases_known: every release of the GIL has a probe.
 *
 * gil: state of a free-threaded interpreter's GIL when tracing was switched on; forced: by an
 * option.
 *
 * threads: the names that the program itself gave its threads, where known; pid 0 is the pass's
 * process.
 *
 * slept: threads of a program that already ran which had no CPU from start_ns to stop_ns: asleep,
 * uninterruptible or stopped throughout, as in /proc/PID/stat. no_gil: and neither held the GIL nor
 * waited for it.
 *
 * holder_tid: the thread that held the only GIL of a program that already ran, whenever that was looked at
 * from start_ns to stop_ns. Without a GIL event, it held it throughout. 0: none, or not known.
 *
 * start_ns and stop_ns are the times at which tracing was switched on and off, pid and tid the
 * thread that did it; 0 if that never happened or is not known.
 */
#ifndef GILTRACER_SESSION_SESSION_H
#define GILTRACER_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/procfs.h"

/* ---- what recording, reading and reporting share */

/* Terms that recording, reading and reporting share: the kind of a pass, and a function that takes
 * or releases the GIL. */

/* What one execution of the program records: GIL events, or stacks and states. */
enum pass_kind { PASS_GIL, PASS_STACKS };

/* The name in documents and file names: "gil" or "stacks". */
static inline const char *pass_kind_name(enum pass_kind kind)
{
	return kind == PASS_GIL ? "gil" : "stacks";
}

/* A time in which the program's main process was stopped, by SIGSTOP or Ctrl-Z. */
struct suspension {
	uint64_t from_ns, to_ns;
};

#define SUSPENSIONS_MAX 256 /* the last of more is not recorded */

struct suspensions {
	struct suspension v[SUSPENSIONS_MAX];
	size_t n;
};

/**
 * A function of the interpreter that takes or releases the GIL, where it was probed.
 * @name: for instance "take_gil", even if the file has no such symbol
 * @kind: how it was found: "symbol", "debug" or "code"
 * @offset: file offset of the function, or of the instruction after its endbr64, in the file with
 * the session's build-id
 */
struct gil_function {
	char *name, *kind;
	uint64_t offset;
};

/* ---- the document */

#define SESSION_FILE    "session.json"
#define SESSION_VERSION 1

/* @pid: its process; 0: the process that was started */
struct session_thread {
	uint32_t pid, tid;
	char *name;
};

struct session_slept {
	uint32_t pid, tid;
	char state; /* S, D or T */
	bool no_gil;
};

/* Whether a free-threaded interpreter's GIL was on when tracing was switched on. */
enum session_gil {
	SESSION_GIL_UNKNOWN, /* not known, or the interpreter always has a GIL */
	SESSION_GIL_OFF,
	SESSION_GIL_ON,     /* switched on by an import, unless FORCED */
	SESSION_GIL_FORCED, /* by PYTHON_GIL=1 or -X gil=1 */
};

/* "off", "on", "forced"; NULL for SESSION_GIL_UNKNOWN. */
const char *session_gil_name(enum session_gil gil);
enum session_gil session_gil_of(const char *name);

/* python_trace of a session whose passes have folders of the preload library instead of files of
 * VizTracer. */
#define SESSION_TRACE_NATIVE "native"

struct session_pass {
	enum pass_kind kind;
	char *perf_data, *preload, *samples;                   /* NULL: none; at least one is set */
	char *python_trace, *python_trace_note, *code_objects; /* NULL: none */
	char *wakeups, *switches;                              /* likewise */
	int exit_status; /* the program's, or 128 + signal if a signal ended it */
	int signal;      /* 0: it exited */
	uint64_t wall_ns, start_ns, stop_ns, handover_ns, uprobes_end_ns;
	uint64_t turn_ns;
	uint64_t stolen_ns; /* upper bound of CPU time taken by a hypervisor, all CPUs */
	struct cpu_quota quota;
	struct suspensions suspended; /* by time */
	uint32_t pid, tid, holder_tid;
	enum session_gil gil;
	struct session_thread *threads;
	size_t thread_count;
	struct session_slept *slept;
	size_t slept_count;
};

struct session_note {
	char *code, *text;
	uint64_t count;
};

/* All strings are owned; NULL where unknown. */
struct session {
	char *created, *cwd, *root;
	char **command; /* NULL-terminated */
	char *kernel, *arch, *perf_version;
	unsigned cpus;
	bool state_detect, gil_detect, one_run, no_children;
	char *python_trace;
	uint64_t flight_ns;
	char *executable, *python_version, *implementation, *build_id;
	bool free_threaded, releases_known;
	struct gil_function *functions;
	size_t function_count;
	struct session_pass *passes;
	size_t pass_count;
	struct session_note *notes;
	size_t note_count;
};

/* Read DIR/session.json. Errors name the file and the key. Free with session_free. */
int session_read(struct session **ret, const char *dir, struct error *err);

/* The same from the text of session.json. */
int session_parse(struct session **ret, const char *text, size_t len, struct error *err);

/* Write DIR/session.json completely, or leave it unchanged. */
int session_write(const struct session *session, const char *dir, struct error *err);

void session_threads_free(struct session_thread *threads, size_t count);

/* Append a copy of a pass or note. */
void session_add_pass(struct session *session, const struct session_pass *pass);
/* Remove the last pass. */
void session_drop_pass(struct session *session);
void session_add_note(struct session *session, const char *code, uint64_t count, const char *text);

struct session *session_new(void);
void session_free(struct session *session);
DEFINE_CLEANUP(struct session *, session_free);

/* ---- copies of lines of the program's files */

/*
 * sources.json of a session folder: lines of the program's source files as they were when it was
 * recorded, since a report may be made later and elsewhere. An array of objects with file, line and
 * text, which has neither the blanks around it nor more than SOURCES_TEXT_MAX bytes; and, if known, of,
 * lock, made and kind.
 */

#define SOURCES_FILE     "sources.json"
#define SOURCES_MAX      4096
#define SOURCES_TEXT_MAX 160

/**
 * @indent: columns of blanks before the text
 * @of: the class whose code it is; NULL: none
 * @lock: the expression of the lock or queue that it waits for; NULL: none, or several
 * @made: the only line of the file that assigns to this; 0: unknown
 * @kind: what is assigned there: Lock, RLock, Queue, ...; NULL: unknown
 */
struct source_line {
	char *file, *text;
	uint32_t line, made, indent;
	char *of, *lock, *kind;
};

struct sources {
	struct source_line *v;
	size_t n, alloc;
};

/* Reads DIR/sources.json. A session may have none: ret is empty then. Free with sources_done. */
int sources_read(struct sources *ret, const char *dir, struct error *err);
int sources_write(const struct sources *sources, const char *dir, struct error *err);
void sources_done(struct sources *sources);

/* NULL: it was not recorded. */
const struct source_line *sources_line(const struct sources *sources, const char *file,
                                       uint32_t line);

/* Its text; NULL: it was not recorded. */
const char *sources_find(const struct sources *sources, const char *file, uint32_t line);

DEFINE_CLEANUP_IN(struct sources, sources_done);

#endif
