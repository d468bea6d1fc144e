/* SPDX-License-Identifier: MIT */
/* A server may have to be asked for symbols first. */
#include "resolve.h"

#include "base/log.h"
#include "launch/debugfile.h"
#include "launch/python.h"

int resolve_probes(struct probe_set **ret, const struct python *python, unsigned frames,
                   struct error *err)
{
	bool asks = debugfile_asks_server(python->library);
	int failed;

	if (asks)
		log_progress("asking debuginfod for the symbols of %s", python->library);
	failed = probe_set_resolve(ret, python, frames, err);
	if (asks)
		log_progress(NULL);
	return failed;
}
