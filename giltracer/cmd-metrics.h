/* SPDX-License-Identifier: MIT */
/* Run a program and serve its metrics: what --metrics does. */
#ifndef GILTRACER_CMD_METRICS_H
#define GILTRACER_CMD_METRICS_H

#include "metrics/autorecord.h"
#include "record/record.h"

/**
 * @address: where to listen; @anywhere: even if that is every address
 * @arguments: the programs' arguments are in a label
 */
struct metrics_options {
	const char *address;
	bool anywhere, arguments;
	struct autorecord_options reports;
};

/* As the run function of a command. */
int metrics_run_program(const struct record_options *options, char *const *argv,
                        const struct metrics_options *metrics, struct error *err);

#endif
