/* SPDX-License-Identifier: MIT */
/* Runs a program and serves its metrics, for --metrics. */
#ifndef GILTRACER_CMD_METRICS_H
#define GILTRACER_CMD_METRICS_H

#include "metrics/autorecord.h"
#include "record/record.h"

/**
 * @address: where to listen; @anywhere: permit all network interfaces
 * @arguments: export the programs' arguments as a label
 */
struct metrics_options {
	const char *address;
	bool anywhere, arguments;
	struct autorecord_options reports;
};

/* Returns as the run function of a command. */
int metrics_run_program(const struct record_options *options, char *const *argv,
                        const struct metrics_options *metrics, struct error *err);

#endif
