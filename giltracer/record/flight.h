/* SPDX-License-Identifier: MIT */
/* The flight recorder: only the last seconds of a recording are kept. */
#ifndef GILTRACER_RECORD_FLIGHT_H
#define GILTRACER_RECORD_FLIGHT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/record.h"

/* As many clock readings as the library keeps. */
#define FLIGHT_MAX_S 1800

/* Unless --max-size is given. */
#define FLIGHT_MAX_MIB 256

/* Parse a time such as 500ms, 30s or 5m; a number alone is seconds. */
int flight_parse(uint64_t *ret_ns, const char *text, struct error *err);

/* Fill in what --flight, if it is given, implies for the other options; an error if one of them has no
 * meaning with it. */
int flight_options(struct record_options *options, struct error *err);

/* Copy what the flight recorder of process pid, or of the program that pid runs, has now into the existing,
 * empty folder dir, as a session that ends now. The recorder goes on. */
int flight_copy(pid_t pid, const char *dir, struct error *err);

#endif
