/* SPDX-License-Identifier: MIT */
/* Who had the CPUs while threads stood in line for them. */
#ifndef GILTRACER_REPORT_STARVED_H
#define GILTRACER_REPORT_STARVED_H

#include <stdbool.h>
#include <stdio.h>

#include "base/str.h"
#include "report/jsonw.h"
#include "report/report.h"

/* The program that had a CPU, of a row by and name as in struct model_starved; NULL: a thread of
 * the model, nobody, or not known. Borrowed from the pass. */
const char *starved_program(const struct report_pass *pass, uint32_t by, uint32_t name);

/* The member "starvation": a row for each thread and whoever had the CPU that it waited for. If
 * those are more than most, one for each crowd and whoever, under the names of the two with the
 * largest row, at most so many; and a last one, of nobody, for the time of those that are left out.
 */
void starved_json(struct jsonw *w, const struct report_pass *pass, size_t most);

/* Who had the CPUs, in one sentence; false: that is not known. */
bool starved_say(struct str *out, const struct report_pass *pass);

/* Of the time in line of which it is known who had the CPU, what threads of this program had, in
 * percent; negative: that is not known. */
double starved_own_percent(const struct report_pass *pass);

/* A line on who had the CPUs, if threads stood in line for a share of their time worth mentioning.
 */
void starved_text(const struct report_pass *pass, FILE *out);

#endif
