/* SPDX-License-Identifier: MIT */
/* The words for facts from samples. */
#ifndef GILTRACER_REPORT_SAMPLED_TEXT_H
#define GILTRACER_REPORT_SAMPLED_TEXT_H

#include "analysis/analysis.h"
#include "base/str.h"
#include "report/phrases.h"

/* "has the GIL" */
const char *sampled_what_text(enum sampled_what what);

/* "recv_into (socket.py:706) called by fetch (client.py:12)"; safe for a terminal. Returns the
 * columns used. */
unsigned sampled_add_place(struct str *out, const struct recording_pass *pass,
                           const struct sampled_place *place, unsigned columns);

/* Append the sentence for a reason about samples. */
void sampled_add_reason(struct str *out, const struct analysis *a, const struct reason *r);

#endif
