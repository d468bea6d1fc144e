/* SPDX-License-Identifier: MIT */
/*
 * The syntax of --fail-on: FACT OPERATOR NUMBER UNIT, with or without spaces in between.
 *
 *	gil_wait>10%     longest_hold>=20ms     lost>0     gil_wait>+5% (of a comparison)
 *
 * FACT is one of fact_kinds (analysis/diff.h); OPERATOR is >, >=, < or <=; UNIT is %, ns, us, ms
 * or s, none for counts. A number may have decimals.
 */
#ifndef GILTRACER_REPORT_FAIL_ON_H
#define GILTRACER_REPORT_FAIL_ON_H

#include <stdbool.h>

#include "analysis/diff.h"
#include "base/error.h"
#include "base/opts.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/session_report.h"

enum condition_operator { OPERATOR_GT, OPERATOR_GE, OPERATOR_LT, OPERATOR_LE };

/**
 * @unit: which of the fact's
 * @limit: percent, ns or a count; negative only of a change
 */
struct condition {
	enum fact fact;
	enum condition_operator operator;
	enum fact_units unit;
	double limit;
};

/* change: of a comparison, whose numbers may have a sign. The error begins with the text. */
int condition_parse(struct condition *ret, const char *text, bool change, struct error *err);

/* Whether the condition is true of b or, if a is not NULL, of the change from a to b. If so, the
 * actual value is appended to why: "gil_wait is 48.2 %". */
bool condition_holds(const struct condition *condition, const struct summary *a,
                     const struct summary *b, struct str *why);

/* --fail-on: conditions that make giltracer exit with EXIT_FAIL_ON. */

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
