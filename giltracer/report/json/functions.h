/* SPDX-License-Identifier: MIT */
/* Functions by the waiting that they caused, as JSON. */
#ifndef GILTRACER_REPORT_JSON_FUNCTIONS_H
#define GILTRACER_REPORT_JSON_FUNCTIONS_H

#include "analysis/recording.h"
#include "base/jsonw.h"

/* Write the members "hogs" and "functions" into the open object. */
void functions_json(struct jsonw *w, const struct recording *recording,
                    const struct recording_pass *pass);

#endif
