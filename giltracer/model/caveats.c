/* SPDX-License-Identifier: MIT */
/* What we do not know, and what that means for the numbers. */
#include "model/model.h"

static const struct {
	const char *name, *text;
} caveats[CAVEAT_CODES] = {
	[CAVEAT_LOST] = { "lost-records",
	                  "records were lost: the threads concerned are unknown meanwhile; larger "
	                  "buffers (kernel.perf_event_mlock_kb, giltracer setup) avoid it" },
	[CAVEAT_INFERRED_RELEASE] = { "inferred-releases", "holds whose release no probe saw: they "
	                                                   "are shown as lasting until "
	                                                   "the thread asks for the GIL again or "
	                                                   "another one gets it, and "
	                                                   "may have been shorter" },
	[CAVEAT_ACQUIRE_NO_REQUEST] = { "acquires-without-request",
	                                "acquires whose request was not recorded: these waits are "
	                                "missing" },
	[CAVEAT_REQUEST_NO_ACQUIRE] = { "requests-without-acquire",
	                                "requests for the GIL that never returned, as when a "
	                                "thread ends "
	                                "while the interpreter shuts down" },
	[CAVEAT_RELEASE_NO_HOLD] = { "releases-without-hold", "releases by threads that were not "
	                                                      "known to hold the GIL: these holds "
	                                                      "are missing" },
	[CAVEAT_OPEN_HOLD] = { "open-holds", "holds that were cut by the end of the recording or "
	                                     "of their thread" },
	[CAVEAT_TWO_HOLDERS] = { "two-holders", "releases of a GIL that another thread had "
	                                        "meanwhile: the recording "
	                                        "contradicts itself, and these holds are cut at "
	                                        "the other's acquire" },
	[CAVEAT_UNORDERED] = { "unordered-events", "events that came out of order: their times are "
	                                           "moved to the latest before "
	                                           "them" },
	[CAVEAT_UNKNOWN_RECORDS] = { "unknown-records", "records of an unknown type were skipped" },
	[CAVEAT_TRUNCATED] = { "truncated", "the recording is cut: what follows is missing" },
	[CAVEAT_NO_GIL_EVENTS] = { "no-gil-events", "no probe fired: nobody waited for the GIL "
	                                            "while it was traced, or the "
	                                            "probes are not those of this interpreter" },
	[CAVEAT_FORKED] = { "forked", "child processes inherited a held GIL: it counts as theirs "
	                              "until they take "
	                              "theirs, run another program or end" },
	[CAVEAT_UNSEEN_WAKEUPS] = { "unseen-wakeups",
	                            "sleeps that a timer or another program ended: when is not "
	                            "recorded, so time in line for a CPU at their end counts as "
	                            "sleep (--state-detect as root, or after giltracer setup, "
	                            "records all wake-ups)" },
	[CAVEAT_MISSED_WAKEUPS] = { "missed-wakeups",
	                            "sleeps whose end the kernel did not report, although all "
	                            "wake-ups were recorded: time in line for a CPU at their end "
	                            "counts as sleep (unseen_runnable_ns of the thread in --json "
	                            "says how long at most)" },
	[CAVEAT_OTHER_PYTHON] = { "other-python",
	                          "another Python ran, which has no probes: what its threads did "
	                          "with their GIL is not known, and counts as none (--python "
	                          "chooses which one is probed)" },
	[CAVEAT_LEFT_BEHIND] = { "left-behind",
	                         "processes that the program started were still there when it had "
	                         "ended, and with it the recording: what they did then is missing "
	                         "(have a server stay in the foreground)" },
	[CAVEAT_NO_TRACEPOINTS] = { "no-tracepoints", "sched_switch was not recorded: a thread in "
	                                              "the disk (D) counts as "
	                                              "sleeping" },
	[CAVEAT_BROKEN_IDENTITY] = { "broken-identity", "the numbers do not add up: please report "
	                                                "this with the session" },
};

const char *caveat_name(enum caveat_code code)
{
	return caveats[code].name;
}

const char *caveat_text(enum caveat_code code)
{
	return caveats[code].text;
}
