/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks, one "thread;caller;callee NS" a line, outermost first, as flamegraph.pl and
 * inferno-flamegraph read them.
 */
#ifndef GILTRACER_REPORT_FOLDED_H
#define GILTRACER_REPORT_FOLDED_H

#include <stdio.h>

#include "report/report.h"

/* Which threads held the GIL, by Python stack; without a GIL, which stopped the others. ENODATA:
 * none of that was recorded. */
int report_folded_on_gil(const struct analysis *analysis, FILE *out, struct error *err);

/* Which threads waited for it, by Python stack; without a GIL, which were blocked. ENODATA
 * likewise. */
int report_folded_off_gil(const struct analysis *analysis, FILE *out, struct error *err);

/* Which threads were not on a CPU, by the stack that left it; of the stacks pass. ENODATA
 * likewise. */
int report_folded_off_cpu(const struct analysis *analysis, FILE *out, struct error *err);

/* What threads were doing, by Python stack, in numbers of samples instead of ns. ENODATA likewise. */
int report_folded_samples(const struct analysis *analysis, FILE *out, struct error *err);

#endif
