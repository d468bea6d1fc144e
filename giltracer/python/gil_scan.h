/* SPDX-License-Identifier: MIT */
/*
 * The GIL's functions by what their code does: take_gil waits on the GIL's condition variable with
 * a timeout, a release stores 0 to its locked word and signals that variable. This works on
 * stripped and link-time optimised builds; for other builds it confirms the symbols.
 *
 * It relies on struct _gil_runtime_state since 3.7 (Include/internal/pycore_gil.h): locked,
 * switch_number, cond, mutex, switch_cond, switch_mutex in this order, and the size of glibc's and
 * musl's pthread_cond_t (48 bytes) and pthread_mutex_t (40).
 */
#ifndef GILTRACER_PYTHON_GIL_SCAN_H
#define GILTRACER_PYTHON_GIL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"

struct symbols;

/**
 * A copy of take_gil.
 * @entry: link-time address
 * @gil: how to reach the GIL at the entry, "+0x10(+0x10(arg1))"; NULL if the code does not show it
 * @confirmed: what else proves that it is take_gil, a phrase; NULL if nothing does
 * @returned: each return passes one of these conditional jumps, after which only the return
 *            follows; empty if the code does not show them
 */
struct gil_scan_take {
	uint64_t entry;
	char *gil;
	const char *confirmed;
	VEC(uint64_t) returned;
};

/**
 * A place that releases the GIL.
 * @function: entry of the function, or function part, that contains it
 * @signal: the call of pthread_cond_signal; the GIL is free when it is reached
 * @waited: where the thread continues after having waited for the switch, one address for each path
 *          that the compiler made; empty if it never waits. Every forced release reaches one, even
 *          if the switch was over before the thread could wait
 * @is_drop: @function is drop_gil itself and not a function into which it was inlined
 * @gil: how to reach the GIL at the entry of @function; NULL if the code does not show it
 * @gil_register: encoding of the register that contains the GIL's address at @signal, -1 for none
 */
struct gil_scan_release {
	uint64_t function, signal;
	VEC(uint64_t) waited;
	bool is_drop;
	char *gil;
	int gil_register;
};

/**
 * @unknown: calls of pthread_cond_signal in the file that could not be explained
 * @complete: there are such calls, and all are explained
 * @gave_up: the search exceeded the budget for a file of this size, so something may be missing
 */
struct gil_scan {
	VEC(struct gil_scan_take) takes;
	VEC(struct gil_scan_release) releases;
	VEC(uint64_t) unknown;
	bool complete;
	bool gave_up;
};

/* Never NULL; empty if nothing was found. */
struct gil_scan *gil_scan_new(const struct symbols *symbols);
void gil_scan_free(struct gil_scan *gil);

const struct gil_scan_take *gil_scan_take_at(const struct gil_scan *gil, uint64_t entry);

DEFINE_CLEANUP(struct gil_scan *, gil_scan_free);

#endif
