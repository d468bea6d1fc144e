/* SPDX-License-Identifier: MIT */
/* From the few calls of pthread_cond_*wait and _signal in the file back to what they are about:
 * gil_scan_take.c looks at the waits, gil_scan_release.c at the signals. */
#include "locate/gil_scan.h"

#include <stdlib.h>
#include <string.h>

#include "locate/gil_scan_internal.h"

struct gil_scan *gil_scan_new(const struct symbols *symbols)
{
	struct gil_scanner finder = { .symbols = symbols, .gil = xcalloc(1, sizeof(*finder.gil)) };

	finder.map = codemap_new(symbols);
	finder.noreturn = noreturn_new(finder.map);
	gil_scan_find_takes(&finder);
	gil_scan_find_releases(&finder);
	gil_scan_confirm_takes(&finder);
	finder.gil->gave_up = codemap_is_spent(finder.map);
	finder.gil->complete &= !finder.gil->gave_up;
	noreturn_free(finder.noreturn);
	codemap_free(finder.map);
	return finder.gil;
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
