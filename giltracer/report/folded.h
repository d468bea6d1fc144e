/* SPDX-License-Identifier: MIT */
/* Folded stacks: lines "thread;caller;callee NS", outermost first, as read by flamegraph.pl and
 * inferno-flamegraph. */
#ifndef GILTRACER_REPORT_FOLDED_H
#define GILTRACER_REPORT_FOLDED_H

#include <stdio.h>

#include "report/report.h"

/* The holds of the GIL by thread and Python stack; without a GIL, the stops of other threads.
 * ENODATA: nothing of this was recorded. */
int report_folded_on_gil(const struct analysis *analysis, FILE *out, struct error *err);

/* The waits for the GIL by thread and Python stack; without a GIL, all blocked time. ENODATA:
 * likewise. */
int report_folded_off_gil(const struct analysis *analysis, FILE *out, struct error *err);

/* The time without a CPU by thread and the stack that left it, from the stacks pass. ENODATA:
 * likewise. */
int report_folded_off_cpu(const struct analysis *analysis, FILE *out, struct error *err);

/* The activities of threads by Python stack, in numbers of samples instead of ns. ENODATA:
 * likewise. */
int report_folded_samples(const struct analysis *analysis, FILE *out, struct error *err);

#endif
