/* SPDX-License-Identifier: MIT */
/* Short, stable names of caveats. */
#include "model/model.h"

const char *caveat_name(enum caveat_code code)
{
	static const char *const names[CAVEAT_CODES] = {
		[CAVEAT_LOST] = "lost-records",
		[CAVEAT_UNWRITTEN] = "unwritten-records",
		[CAVEAT_INFERRED_RELEASE] = "inferred-releases",
		[CAVEAT_ACQUIRE_NO_REQUEST] = "acquires-without-request",
		[CAVEAT_REQUEST_NO_ACQUIRE] = "requests-without-acquire",
		[CAVEAT_RELEASE_NO_HOLD] = "releases-without-hold",
		[CAVEAT_OPEN_HOLD] = "open-holds",
		[CAVEAT_TWO_HOLDERS] = "two-holders",
		[CAVEAT_UNORDERED] = "unordered-events",
		[CAVEAT_UNKNOWN_RECORDS] = "unknown-records",
		[CAVEAT_TRUNCATED] = "truncated",
		[CAVEAT_NO_GIL_EVENTS] = "no-gil-events",
		[CAVEAT_FORKED] = "forked",
		[CAVEAT_UNSEEN_WAKEUPS] = "unseen-wakeups",
		[CAVEAT_MISSED_WAKEUPS] = "missed-wakeups",
		[CAVEAT_OTHER_PYTHON] = "other-python",
		[CAVEAT_LEFT_BEHIND] = "left-behind",
		[CAVEAT_NO_TRACEPOINTS] = "no-tracepoints",
		[CAVEAT_COARSE] = "coarse",
		[CAVEAT_OVERDUE_BOUNDED] = "overdue-bounded",
		[CAVEAT_PROBE_COST] = "probe-cost",
		[CAVEAT_PROBES_SLOW] = "probes-slow",
		[CAVEAT_BROKEN_IDENTITY] = "broken-identity",
	};

	return names[code];
}
