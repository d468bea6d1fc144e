/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks, one "thread;caller;callee NS" a line, outermost first, as flamegraph.pl and
 * inferno-flamegraph read them.
 */
#ifndef GILTRACER_REPORT_FOLDED_H
#define GILTRACER_REPORT_FOLDED_H

#include <stdio.h>

#include "report/report.h"

/* Who held the GIL, by Python stack; without a GIL, who stopped the others. ENODATA: nothing of
 * that was recorded. */
int report_folded_on_gil(const struct analysis *analysis, FILE *out, struct error *err);

/* Who waited for it, by Python stack; without a GIL, who was blocked. ENODATA likewise. */
int report_folded_off_gil(const struct analysis *analysis, FILE *out, struct error *err);

/* Who was not on a CPU, by the stack that left it; of the stacks pass. ENODATA likewise. */
int report_folded_off_cpu(const struct analysis *analysis, FILE *out, struct error *err);

#endif
