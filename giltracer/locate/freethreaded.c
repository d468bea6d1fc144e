/* SPDX-License-Identifier: MIT */
/* Says what a report will lack with the probes of a free-threaded interpreter. */
#include "locate/freethreaded.h"

#include "base/str.h"

const char *freethreaded_note(const struct probe_set *set)
{
	for (size_t i = 0; i < set->probes.n; i++)
		if (str_has_prefix(set->probes.v[i].event, "stop_world"))
			return NULL;
	return "stop_the_world has no symbol: the report shows which threads were stopped and "
	       "which thread let them continue, but not how long the world was stopped, nor which "
	       "import turned the GIL on";
}
