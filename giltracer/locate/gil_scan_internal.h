/* SPDX-License-Identifier: MIT */
/*
 * What the gil_scan files share while they look for the GIL's functions. gil_scan.c asks
 * gil_scan_take.c and gil_scan_release.c, both ask gil_scan_calls.c.
 */
#ifndef GILTRACER_LOCATE_GIL_SCAN_INTERNAL_H
#define GILTRACER_LOCATE_GIL_SCAN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "locate/gil_scan.h"
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
	bool fixed; /* the one GIL of the process is at a fixed address: */
	int64_t cond, mutex;
};

/* In gil_scan_calls.c */

/*
 * What is known at a call, in a run of the function that it is in; *ret_function is its entry, also
 * where the call is in a part of it that was moved away. NULL if no run leads there.
 */
struct symexec *gil_scan_run_to(struct gil_scanner *scanner, uint64_t address,
                                uint64_t *ret_function);

/* Whether a call is of this import, about what this argument points to. */
bool gil_scan_is_call_of(const struct symexec_call *call, const char *import,
                         struct symexec_value argument);

/* Whether a call of pthread_cond_timedwait has the GIL's form. */
bool gil_scan_waits_for_gil(const struct symexec_call *call);

/* In gil_scan_take.c and gil_scan_release.c */

/* Fill in gil->takes, and fixed; then releases and complete; then whether takes are
 * confirmed. */
void gil_scan_find_takes(struct gil_scanner *scanner);
void gil_scan_find_releases(struct gil_scanner *scanner);
void gil_scan_confirm_takes(struct gil_scanner *scanner);

#endif
