/* SPDX-License-Identifier: MIT */
/* Starts from the few calls of pthread_cond_*wait and _signal in the file, and finds out which lock
 * each is about: gil_scan_take.c checks the waits, gil_scan_release.c the signals. */
#include "python/gil_scan.h"

#include <stdlib.h>
#include <string.h>

#include "python/gil_scan_internal.h"

struct gil_scan *gil_scan_new(const struct symbols *symbols)
{
	struct gil_scanner scanner = { .symbols = symbols,
		                       .gil = xcalloc(1, sizeof(*scanner.gil)) };

	scanner.map = codemap_new(symbols);
	scanner.noreturn = noreturn_new(scanner.map);
	gil_scan_find_takes(&scanner);
	gil_scan_find_releases(&scanner);
	gil_scan_confirm_takes(&scanner);
	scanner.gil->gave_up = codemap_is_spent(scanner.map);
	scanner.gil->complete &= !scanner.gil->gave_up;
	noreturn_free(scanner.noreturn);
	codemap_free(scanner.map);
	return scanner.gil;
}

void gil_scan_free(struct gil_scan *gil)
{
	if (!gil)
		return;
	for (size_t i = 0; i < gil->takes.n; i++) {
		free(gil->takes.v[i].gil);
		vec_done(&gil->takes.v[i].returned);
	}
	for (size_t i = 0; i < gil->releases.n; i++) {
		free(gil->releases.v[i].gil);
		vec_done(&gil->releases.v[i].waited);
	}
	vec_done(&gil->takes);
	vec_done(&gil->releases);
	vec_done(&gil->unknown);
	free(gil);
}
