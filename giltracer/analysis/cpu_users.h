/* SPDX-License-Identifier: MIT */
/* Programs that had the CPUs while threads of the traced program waited for one. */
#ifndef GILTRACER_ANALYSIS_CPU_USERS_H
#define GILTRACER_ANALYSIS_CPU_USERS_H

#include "analysis/recording.h"
#include "base/vec.h"

/**
 * The total of one program. @name: borrowed from the pass; NULL: threads of the traced program
 */
struct cpu_user {
	const char *name;
	uint64_t ns;
};

/* @list: most time first; @all_ns: all waiting, including that with an unknown CPU user */
struct cpu_users {
	VEC(struct cpu_user) list;
	uint64_t all_ns;
};

/* Free with vec_done(&users.list). */
struct cpu_users cpu_users_find(const struct recording_pass *pass);

/* The program that had a CPU, from the fields by and name of struct model_cpu_blame. NULL: a thread
 * of the model, no program, or unknown. Borrowed from the pass. */
const char *cpu_users_program(const struct recording_pass *pass, uint32_t by, uint32_t name);

/* The share of the runnable time with a known CPU user during which that user was a thread of the
 * traced program, in percent; negative: unknown. */
double cpu_users_own_percent(const struct recording_pass *pass);

#endif
