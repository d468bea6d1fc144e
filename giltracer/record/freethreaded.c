/* SPDX-License-Identifier: MIT */
#include "record/freethreaded.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"

int freethreaded_without_probes(struct job *job, struct error *err)
{
	if (!job->program.python->free_threaded || err->code != ENOTSUP)
		return -1;
	job->events.unknown_build = true;
	log_warn("%s: thread states and the reasons for sleeps are recorded, but not the locks "
	         "that threads wait for",
	         err->text);
	return 0;
}

const char **freethreaded_early_events(const char *const *events)
{
	const char **early;
	size_t n = 0;

	while (events[n])
		n++;
	early = xcalloc(n + 1, sizeof(*early));
	n = 0;
	for (; *events; events++)
		if (str_has_suffix(*events, ":gil_module") ||
		    str_has_suffix(*events, ":enable_gil"))
			early[n++] = *events;
	return early;
}

const char *freethreaded_subject(const struct python *python)
{
	return python->free_threaded ? "what blocks threads" : "the GIL";
}
