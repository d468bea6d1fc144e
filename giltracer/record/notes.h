/* SPDX-License-Identifier: MIT */
/*
 * All English of the notes that recording leaves in the session, collected here so that it can be
 * read and edited as one text. Reports print them unchanged; the reports' own words are in
 * report/phrases.def.
 */
#ifndef GILTRACER_RECORD_NOTES_H
#define GILTRACER_RECORD_NOTES_H

/* What was not recorded */
#define NOTE_NO_REASONS                                                                  \
	"tracepoints are not permitted: no stacks and no reasons for sleeps (giltracer " \
	"check says how to permit them)"
#define NOTE_NO_STATES                                                                   \
	"tracepoints are not permitted: the report shows when threads ran, but not why " \
	"they did not (giltracer check says how to permit them)"
#define NOTE_STATES_PRELOAD                                                           \
	"thread states and stacks were not recorded: they need perf and tracepoints " \
	"(giltracer check says how to permit them)"
#define NOTE_STATES_SAMPLED                                                         \
	"thread states are only known from samples: recording them needs perf and " \
	"tracepoints (giltracer check says how to permit them)"
#define NOTE_PRELOAD_UNUSED                                                         \
	"the library that records the GIL was not loaded into the program, or the " \
	"program never had a GIL (Python 3.6 makes it with the first thread)"
#define NOTE_UNWRITTEN_ROOM                                                                 \
	"the library could not write all records: the disk is full, or the program limits " \
	"the size of its files (RLIMIT_FSIZE)"
#define NOTE_UNWRITTEN_FILES                                                    \
	"the library could not open all of its files: the program had no file " \
	"descriptor left (RLIMIT_NOFILE)"
#define NOTE_UNWRITTEN_FILTER                                                           \
	"a process restricted its system calls (seccomp): the library makes none from " \
	"then on, since that could end the process, and records nothing more in it"
#define NOTE_UNWRITTEN_REACH                                                             \
	"the library could not open all of its files: a process became another user or " \
	"changed its root folder, and closed the library's file descriptor (5001)"
#define NOTE_JOINED "the program loaded giltracer's library, which stays loaded but idle"
#define NOTE_LEFT_OUT \
	"child processes of the program are not recorded (%zu), the first one because %s"
#define NOTE_HANDOVER                                                                              \
	"from %.3f s on, the library recorded the GIL instead of uprobes, because these cost the " \
	"program more than %d %% of its CPU time"
#define NOTE_NO_SAMPLES      "no samples of stacks: %s"
#define NOTE_SAMPLES_MISSING "samples are missing: %s"
#define NOTE_SAMPLES_FULL    "sampling ended early: the samples reached --max-size"
#define NOTE_KEPT            "the recording contains the last %.1f s that giltracer top observed"
#define NOTE_KEPT_SHORT                                                                   \
	"the recording contains the last %.1f s that giltracer top observed: its memory " \
	"for samples, 64 MiB, is full"
#define NOTE_LATE_TASKS                                                        \
	"threads ended each time perf read their names: some threads have no " \
	"name, and C functions may be unknown"
#define NOTE_STACK_SIZE                                                                  \
	"the host permits ring buffers of %u pages per CPU: stacks are cut at %u bytes " \
	"to lose fewer records (giltracer setup permits more)"
#define NOTE_TRACE_NOT_SAVED \
	"the program ended without finishing, so VizTracer could not save its trace"

/* How the program ran */
#define NOTE_NOT_STARTED                                                  \
	"the program ended before tracing started: nothing was recorded " \
	"(--trace-imports traces from the first line)"
#define NOTE_CLOSED                                                                       \
	"the program closed giltracer's file descriptor (%d): what it does when it ends " \
	"is recorded, too"
#define NOTE_CLOSED_EARLY                                                                 \
	"the program closed giltracer's file descriptor (%d) before tracing started: it " \
	"is recorded from then on"
#define NOTE_EXECUTED                                                                   \
	"the program executed another one in the same process: both are recorded, the " \
	"second one to its end"
#define NOTE_EXECUTED_EARLY                                                              \
	"the program executed another one before tracing started: that one is recorded " \
	"from its start"
#define NOTE_NOT_LOADED "the program did not run: Python could not load it"
#define NOTE_NOT_FINISHED                                                                \
	"the program ended without finishing (by a signal, os._exit or exec): its last " \
	"moments may be missing"
#define NOTE_STOPPED                                                                 \
	"the program was stopped for a while (Ctrl-Z, SIGSTOP): the time counts as " \
	"sleep, and as "
#define NOTE_SUSPENDED                                                              \
	"the program was stopped for %.3f s (Ctrl-Z, SIGSTOP): this time is taken " \
	"off its main process's threads"
#define NOTE_STOLEN "the hypervisor stole %.1f %% of the CPUs' time: it counts as running, and as "
/* The ends of these two notes: for an interpreter with a GIL, and for a free-threaded one. */
#define NOTE_AS_HOLD       "hold for the thread that held the GIL"
#define NOTE_AS_WAIT       "waiting for threads that waited for a lock meanwhile"
#define NOTE_NO_SECOND_RUN "interrupted: there was no second run, so there are no stacks"
#define NOTE_NO_INPUT                                                                  \
	"standard input could not be copied (is the disk full?): there was no second " \
	"run, so there are no stacks"
#define NOTE_SECOND_RUN_CUT "interrupted: the second run, which records stacks, is incomplete"
#define NOTE_RUNS_DIFFER                                                              \
	"the two runs ended differently, with status %d and then %d: the program is " \
	"not deterministic"

/* What ended the recording before the program */
#define NOTE_DURATION "the recording ended after %u s (--duration), before the program"
#define NOTE_MAX_SIZE                                                                \
	"the recording ended after %.1f s, before the program, when it had reached " \
	"%u MiB (--max-size)"
#define NOTE_DISK_FULL                                                            \
	"the recording ended after %.1f s, before the program, because the disk " \
	"is nearly full (choose another folder with TMPDIR or --keep)"

#endif
