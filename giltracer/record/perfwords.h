/* SPDX-License-Identifier: MIT */
/*
 * A plan as words such as "pid=42" for giltracer-perf, which builds perf's arguments from them. The
 * words limit what perf may do for a member of the group: it records neither the whole machine, nor
 * probes that are not ours, nor any event of the kernel but the scheduler's.
 */
#ifndef GILTRACER_RECORD_PERFWORDS_H
#define GILTRACER_RECORD_PERFWORDS_H

#include "base/error.h"
#include "record/perfcmd.h"

/* The argument vector of giltracer-perf, NULL-terminated; free with argv_free. */
char **perfwords_argv(const struct perf_plan *plan);

/* Borrows the words; free with perfwords_done. Error EINVAL: a word is unknown, or its value is
 * not permitted. */
int perfwords_parse(struct perf_plan *ret, char *const *words, struct error *err);
void perfwords_done(struct perf_plan *plan);

#endif
