/* SPDX-License-Identifier: MIT */
/* Whose fault the waiting for the GIL is; verdict.h has the rules. */
#ifndef GILTRACER_REPORT_CULPRIT_H
#define GILTRACER_REPORT_CULPRIT_H

#include "report/evidence.h"

/* Append to because and advice, and fill in the moment. */
void culprit_say(struct verdict *v, const struct evidence *e);

#endif
