/* SPDX-License-Identifier: MIT */
/* Finds the probes, with a message if a debuginfod server is asked for symbols first. */
#include "record/resolve.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "binary/debugfile.h"
#include "locate/python.h"
#include "system/probe_lease.h"

int resolve_probes(struct probe_set **ret, const struct python *python, unsigned frames,
                   struct error *err)
{
	CLEANUP(free) char *group_suffix = lease_suffix();
	bool asks = debugfile_asks_server(python->library);
	int failed;

	if (asks)
		log_progress("asking debuginfod for the symbols of %s", python->library);
	failed = probe_set_resolve(ret, python, frames, group_suffix, err);
	if (asks)
		log_progress(NULL);
	return failed;
}
