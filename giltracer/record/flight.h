/* SPDX-License-Identifier: MIT */
/* The flight recorder: only the last seconds of a recording are kept. */
#ifndef GILTRACER_RECORD_FLIGHT_H
#define GILTRACER_RECORD_FLIGHT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/child.h"
#include "base/error.h"
#include "base/vec.h"
#include "preload/format.h"
#include "record/record.h"

struct preloading;

/* As many clock readings as the library keeps. */
#define FLIGHT_MAX_S 1800

/* Unless --max-size is given. */
#define FLIGHT_MAX_MIB 256

/* Fill in what --flight, if it is given, implies for the other options; an error if one of them has no
 * meaning with it. */
int flight_options(struct record_options *options, struct error *err);

/* ---- while the program runs */

/* A process of the program: @file: what the names of its files begin with; owned. @dead_ns: when it was first
 * seen to have ended; 0: it lives. @seen: in the present look; @lived: in an earlier one */
struct flight_process {
	char *file;
	uint64_t dead_ns;
	bool seen, lived;
};

/* The least time between two reports: ten an hour. */
#define FLIGHT_PAUSE_NS (360 * UINT64_C(1000000000))

/**
 * All zero: no report is made, and nothing has been seen.
 * @text: the condition, borrowed; @longest_ns: what it says of each moment, 0: nothing
 * @folder: of the reports, for which there are @limit_mib; @path: borrowed
 * @noticed_ns: when a moment was noticed that is not reported yet; 0: none; @what: which
 * @fired_ns: time of the last report; 0: none
 * @child: writes the report @name; NULL: none; @asked: another one is to be written
 * @processes: those that have files, as seen before @tidy_ns, when they are to be looked at again
 */
struct flight_watch {
	const char *text, *path;
	uint64_t longest_ns[PRELOAD_MOMENTS];
	double ns_per_tick;
	unsigned limit_mib;
	int folder; /* 0: not open */
	bool asked;
	uint64_t noticed_ns, fired_ns;
	struct child child;
	char *name, *what;
	VEC(struct flight_process) processes;
	uint64_t tidy_ns;
};

/* Open the folder. Error EINVAL: the condition is invalid. End with flight_watch_done. */
int flight_watch_open(struct flight_watch *ret, const struct record_options *options,
                      struct error *err);

/* Call now and then: starts a report if the library has noticed what the condition says, and says what
 * became of it; removes the files of processes that have ended for longer than is kept. */
void flight_watch_look(struct flight_watch *watch, const struct preloading *preloading,
                       uint64_t kept_ns);

/* The program has ended: reports what was noticed, and waits. */
void flight_watch_finish(struct flight_watch *watch, struct preload_control *control);

/* Somebody wants a report now: the next look starts it. */
void flight_watch_ask(struct flight_watch *watch);

void flight_watch_done(struct flight_watch *watch);

/* ---- copies */

/* Copy what was recorded in another container into the session's folder dir, where it is then. */
int flight_bring(struct preloading *p, const char *dir, struct error *err);

/* Copy what the flight recorder of process pid, or of the program that pid runs, has now into the existing,
 * empty folder dir, as a session that ends now. The recorder goes on. */
int flight_copy(pid_t pid, const char *dir, struct error *err);

#endif
