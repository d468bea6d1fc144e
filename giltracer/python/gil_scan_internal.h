/* SPDX-License-Identifier: MIT */
/*
 * Shared by the gil_scan files. gil_scan.c calls gil_scan_take.c and gil_scan_release.c, which both
 * call gil_scan_calls.c.
 */
#ifndef GILTRACER_PYTHON_GIL_SCAN_INTERNAL_H
#define GILTRACER_PYTHON_GIL_SCAN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "python/gil_scan.h"
#include "binary/codemap.h"
#include "binary/symexec.h"
#include "binary/noreturn.h"
#include "binary/symbols.h"

/* Offsets in struct _gil_runtime_state. */
#define GIL_LOCKED       0x10
#define GIL_COND         0x20
#define GIL_MUTEX        0x50
#define GIL_SWITCH_COND  0x78
#define GIL_SWITCH_MUTEX 0xa8

struct gil_scanner {
	const struct symbols *symbols;
	struct codemap *map;
	struct noreturn *noreturn;
	struct gil_scan *gil;
	/* The process has one GIL at a fixed address; its cond and mutex are at these addresses. */
	bool fixed;
	int64_t cond, mutex;
};

/* In gil_scan_calls.c */

/* As codemap_find_calls, without calls in code that is never executed, because BOLT moved its
 * function elsewhere and left the old code behind. */
void gil_scan_find_calls(const struct gil_scanner *scanner, const char *import,
                         struct addresses *ret);

/*
 * The state at a call, from a run of the function that contains it; *ret_function is the entry of
 * that function, even if the call is in a part that was moved away. NULL if no run reaches it.
 */
struct symexec *gil_scan_run_to(struct gil_scanner *scanner, uint64_t address,
                                uint64_t *ret_function);

/* Whether a call is of this import, with this value as its first argument. */
bool gil_scan_is_call_of(const struct symexec_call *call, const char *import,
                         struct symexec_value argument);

/* Whether a call of pthread_cond_timedwait has the GIL's form. */
bool gil_scan_waits_for_gil(const struct symexec_call *call);

/* In gil_scan_take.c and gil_scan_release.c */

/* The first sets gil->takes and fixed; the second releases and complete; the third sets whether
 * takes are confirmed. */
void gil_scan_find_takes(struct gil_scanner *scanner);
void gil_scan_find_releases(struct gil_scanner *scanner);
void gil_scan_confirm_takes(struct gil_scanner *scanner);

#endif
