/* SPDX-License-Identifier: MIT */
/* What the JSON document and the page's meta have in common. */
#ifndef GILTRACER_REPORT_JSON_H
#define GILTRACER_REPORT_JSON_H

#include "report/jsonw.h"
#include "report/report.h"

/* The members of a schema 1 thread, into the object that is open. */
void json_thread_members(struct jsonw *w, const struct report_pass *pass, uint32_t thread);

#endif
