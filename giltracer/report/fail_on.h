/* SPDX-License-Identifier: MIT */
/* --fail-on: conditions that make giltracer exit with EXIT_FAIL_ON. */
#ifndef GILTRACER_REPORT_FAIL_ON_H
#define GILTRACER_REPORT_FAIL_ON_H

#include <stdbool.h>

#include "base/error.h"
#include "base/opts.h"
#include "base/vec.h"
#include "report/condition.h"
#include "report/session_report.h"

#define EXIT_FAIL_ON 3

#define FAIL_ON_OPT(list)                         \
	OPT_LIST(0, "fail-on", "CONDITION", list, \
	         "exit with status 3 if this is true, for example 'gil_wait>10%'")

/* @text: of each condition, borrowed */
struct fail_on {
	VEC(struct condition) conditions;
	VEC(const char *) texts;
};

/* Parse the conditions of an option; free with fail_on_done, even after an error. */
int fail_on_parse(struct fail_on *ret, const struct opt_list *list, bool change, struct error *err);
void fail_on_done(struct fail_on *fail_on);

/* Log the conditions that are true. Returns 0 or EXIT_FAIL_ON. a: see condition_holds. */
int fail_on_check(const struct fail_on *fail_on, const struct summary *a, const struct summary *b);

/* Call report_session and, if there are conditions, fail_on_check. Returns 0, EXIT_FAIL_ON or
 * -1. */
int fail_on_report(const struct fail_on *fail_on, const char *dir,
                   const struct report_outputs *outputs, struct error *err);

#endif
