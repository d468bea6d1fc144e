/* SPDX-License-Identifier: MIT */
/* Runs a program with the library counting (preload/totals.h), without a recording. */
#ifndef GILTRACER_RECORD_COUNTING_H
#define GILTRACER_RECORD_COUNTING_H

#include <stdint.h>

#include "base/child.h"
#include "base/error.h"
#include "record/record.h"

struct job;

/* A program to be counted. { 0 } is empty. */
struct counting {
	struct job *job;
	uint64_t stamp, ns; /* both clocks when the program was prepared */
};

/* Find the program, the interpreter and the library. Returns 0, or as the run function of a
 * command. */
int counting_prepare(struct counting *ret, const struct record_options *options, char *const *argv,
                     struct error *err);

/*
 * Run the program to its end, with pages of totals in folder, an absolute path. The caller has
 * blocked signals; those sent to giltracer alone are passed on to the program. Returns 0, or as the
 * run function of a command.
 */
int counting_run(const struct counting *counting, const char *folder, const struct signals *signals,
                 struct record_outcome *ret, struct error *err);

void counting_done(struct counting *counting);

#endif
