/* SPDX-License-Identifier: MIT */
/* What code.c, code_take.c and code_release.c share while they look for the GIL's functions. */
#ifndef GILTRACER_LAUNCH_CODE_FINDER_H
#define GILTRACER_LAUNCH_CODE_FINDER_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/code.h"
#include "launch/codemap.h"
#include "launch/flow.h"
#include "launch/noreturn.h"
#include "launch/symbols.h"

/* Offsets in struct _gil_runtime_state. */
#define GIL_LOCKED       0x10
#define GIL_COND         0x20
#define GIL_MUTEX        0x50
#define GIL_SWITCH_COND  0x78
#define GIL_SWITCH_MUTEX 0xa8

struct code_finder {
	const struct symbols *symbols;
	struct codemap *map;
	struct noreturn *noreturn;
	struct code_gil *gil;
	bool fixed; /* the one GIL of the process is at a fixed address: */
	int64_t cond, mutex;
};

static inline struct flow_value code_at(struct flow_value base, int64_t off)
{
	return (struct flow_value){ base.node, base.off + off };
}

/*
 * What is known at a call, in a run of the function that it is in; *ret_function is its entry, also
 * where the call is in a part of it that was moved away. NULL if no run leads there.
 */
struct flow *code_run_to(struct code_finder *f, uint64_t address, uint64_t *ret_function);

/* Whether a call is of this import, about what this argument points to. */
bool code_is_call_of(const struct flow_call *call, const char *import, struct flow_value argument);

/* Whether a call of pthread_cond_timedwait has the GIL's form. */
bool code_waits_for_gil(const struct flow_call *call);

/* Fill in f->gil->takes, and f->fixed; then releases and complete; then whether takes are
 * confirmed. */
void code_find_takes(struct code_finder *f);
void code_find_releases(struct code_finder *f);
void code_confirm_takes(struct code_finder *f);

#endif
