/* SPDX-License-Identifier: MIT */
/* Run a program and serve its metrics: what --metrics does. */
#ifndef GILTRACER_CMD_METRICS_H
#define GILTRACER_CMD_METRICS_H

#include "record/record.h"

/* @address: where to listen; @anywhere: even if that is every address. As the run function of a
 * command. */
int metrics_run_program(const struct record_options *options, char *const *argv,
                        const char *address, bool anywhere, struct error *err);

#endif
