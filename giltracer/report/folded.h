/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks, one "thread;caller;callee NS" a line, outermost first, as flamegraph.pl and
 * inferno-flamegraph read them.
 */
#ifndef GILTRACER_REPORT_FOLDED_H
#define GILTRACER_REPORT_FOLDED_H

#include <stdio.h>

#include "report/report.h"

/**
 * @FOLDED_ON_GIL: who held the GIL, by Python stack; without a GIL, who stopped the others
 * @FOLDED_OFF_GIL: who waited for it, by Python stack; without a GIL, who was blocked
 * @FOLDED_OFF_CPU: who was not on a CPU, by the stack that left it; of the stacks pass
 */
enum folded_kind { FOLDED_ON_GIL, FOLDED_OFF_GIL, FOLDED_OFF_CPU };

/* ENODATA if the recording has nothing of that kind. */
int report_folded(const struct analysis *analysis, enum folded_kind kind, FILE *out,
                  struct error *err);

#endif
