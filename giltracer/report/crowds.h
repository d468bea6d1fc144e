/* SPDX-License-Identifier: MIT */
/*
 * Crowds: threads whose names differ in digits only, such as those of a pool or of a server that
 * starts one for each request. Where there are many threads, crowds are what a person can look at.
 */
#ifndef GILTRACER_REPORT_CROWDS_H
#define GILTRACER_REPORT_CROWDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "report/report.h"

#define CROWDS_FROM 12 /* more threads than that are shown in crowds */
#define CROWD_LEAST 4  /* fewer of a name are shown one by one nevertheless */

/**
 * @name: with "*" for each run of digits; any bytes
 * @first: one of its threads; @threads: how many it has
 * @sum: their times added up, as of one thread; of the longest waits, holds and stops the maximum.
 * No lanes
 */
struct crowd {
	struct str name;
	uint32_t first, threads;
	struct model_thread sum;
};

/* In the order of facts_compare_threads. @of: by thread, its crowd. Every thread is in one, alone
 * perhaps; main threads always are. */
struct crowds {
	VEC(struct crowd) v;
	uint32_t *of;
};

/* Free with crowds_done. */
void crowds_init(struct crowds *crowds, const struct report_pass *pass);
void crowds_done(struct crowds *crowds);

/* The same for tables: small crowds, and all where there are few threads, are taken apart. */
void crowds_init_table(struct crowds *crowds, const struct report_pass *pass);

/* A thread in a sentence: its name, and its id only where others have the same. Safe for terminals.
 */
void crowd_add_thread(struct str *out, const struct report_pass *pass, uint32_t thread);

#endif
