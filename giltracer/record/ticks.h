/* SPDX-License-Identifier: MIT */
/* The clock of the stamps that the preloaded library writes, read from outside. */
#ifndef GILTRACER_RECORD_TICKS_H
#define GILTRACER_RECORD_TICKS_H

#include <stdint.h>

/* The processor's counter; where it is not read, CLOCK_MONOTONIC in ns. */
uint64_t ticks_now(void);

/* Both clocks at one moment. */
void ticks_look(uint64_t *stamp, uint64_t *ns);

#endif
