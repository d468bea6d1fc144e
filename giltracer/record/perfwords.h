/* SPDX-License-Identifier: MIT */
/*
 * A plan as words, "pid=42", for giltracer-perf, which makes perf's arguments of them itself. What
 * may stand there is all that a member of the group may have perf do: nothing of the whole machine,
 * no probe but ours, no event of the kernel's but the scheduler's.
 */
#ifndef GILTRACER_RECORD_PERFWORDS_H
#define GILTRACER_RECORD_PERFWORDS_H

#include "base/error.h"
#include "record/perfcmd.h"

/* The argument vector of giltracer-perf, NULL-terminated; free with argv_free. */
char **perfwords_argv(const struct perf_plan *plan);

/* Borrows the words; free with perfwords_done. Errors: EINVAL a word that is not known or says what
 * is not permitted. */
int perfwords_parse(struct perf_plan *ret, char *const *words, struct error *err);
void perfwords_done(struct perf_plan *plan);

#endif
