/* SPDX-License-Identifier: MIT */
/* Functions by the waiting they caused, for machines. */
#ifndef GILTRACER_REPORT_JSON_FUNCTIONS_H
#define GILTRACER_REPORT_JSON_FUNCTIONS_H

#include "analysis/recording.h"
#include "report/json/jsonw.h"

/* Members "hogs" and "functions" of an open object. */
void functions_json(struct jsonw *w, const struct recording_pass *pass);

#endif
