/* SPDX-License-Identifier: MIT */
/* Run a program with the library counting (preload/totals.h): no recording is made. */
#ifndef GILTRACER_RECORD_COUNTING_H
#define GILTRACER_RECORD_COUNTING_H

#include <stdint.h>

#include "base/child.h"
#include "base/error.h"
#include "record/record.h"

struct job;

/* A program that is to be counted. { 0 } is none. */
struct counting {
	struct job *job;
	uint64_t stamp, ns; /* what the clocks said when it was prepared */
};

/* Find program, interpreter and library. Returns 0, or as the run function of a command. */
int counting_prepare(struct counting *ret, const struct record_options *options, char *const *argv,
                     struct error *err);

/*
 * Run it to its end, with pages of totals in folder, an absolute path. Signals are blocked. What is
 * sent to giltracer alone is passed on to it. Returns 0, or as the run function of a command.
 */
int counting_run(const struct counting *counting, const char *folder, const struct signals *signals,
                 struct record_outcome *ret, struct error *err);

void counting_done(struct counting *counting);

#endif
