/* SPDX-License-Identifier: MIT */
/*
 * The syntax of --fail-on: FACT OPERATOR NUMBER UNIT, with or without spaces in between.
 *
 *	gil_wait>10%     longest_hold>=20ms     lost>0     gil_wait>+5% (of a comparison)
 *
 * FACT is one of fact_kinds (analysis/diff.h); OPERATOR is >, >=, < or <=; UNIT is %, ns, us, ms
 * or s, none for counts. A number may have decimals.
 */
#ifndef GILTRACER_REPORT_CONDITION_H
#define GILTRACER_REPORT_CONDITION_H

#include <stdbool.h>

#include "analysis/diff.h"
#include "base/error.h"
#include "base/str.h"

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

#endif
