/* SPDX-License-Identifier: MIT */
/* Says what a report will lack with the probes of a free-threaded interpreter. */
#include "python/freethreaded.h"

#include "base/str.h"

const char *freethreaded_note(const struct probe_set *set)
{
	for (size_t i = 0; i < set->probes.n; i++)
		if (str_has_prefix(set->probes.v[i].event, "stop_world"))
			return NULL;
	return "stop_the_world has no symbol: a stop is shown from when the first thread "
	       "stopped; the report does not show which import turned the GIL on";
}
