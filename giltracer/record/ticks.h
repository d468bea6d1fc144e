/* SPDX-License-Identifier: MIT */
/* The clock that the preloaded library uses for its stamps, read outside the program. */
#ifndef GILTRACER_RECORD_TICKS_H
#define GILTRACER_RECORD_TICKS_H

#include <stdint.h>

/* The processor's counter or, where that is not used, CLOCK_MONOTONIC in ns. */
uint64_t ticks_now(void);

/* Read both clocks at the same moment. */
void ticks_look(uint64_t *stamp, uint64_t *ns);

#endif
