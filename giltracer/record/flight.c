/* SPDX-License-Identifier: MIT */
#include "record/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int flight_parse(uint64_t *ret_ns, const char *text, struct error *err)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1e9 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 } };
	char *end = NULL;
	double value = strspn(text, "0123456789.") ? strtod(text, &end) : 0;

	for (size_t i = 0; end && i < sizeof(units) / sizeof(*units); i++) {
		double ns = value * units[i].ns;

		if (strcmp(end, units[i].name) != 0)
			continue;
		if (ns < 1e6 || ns > FLIGHT_MAX_S * 1e9)
			break;
		*ret_ns = (uint64_t)ns;
		return 0;
	}
	return error_set(err, EINVAL,
	                 "'%.40s': expected a time such as 500ms, 30s or 5m, at most %dm", text,
	                 FLIGHT_MAX_S / 60);
}

/* The first given option that records something of which everything is kept. */
static const char *excluded(const struct record_options *o)
{
	return o->state_detect                             ? "--state-detect"
	       : o->no_gil_detect                          ? "--no-gil-detect"
	       : o->sample_hz                              ? "--sample"
	       : o->events.n                               ? "--event"
	       : o->python_trace == PYTHON_TRACE_VIZTRACER ? "--python-trace viztracer"
	       : o->probes && o->probes != PROBES_PRELOAD  ? "--probes"
	                                                   : NULL;
}

int flight_options(struct record_options *options, struct error *err)
{
	const char *option = options->flight ? excluded(options) : NULL;

	if (!options->flight)
		return 0;
	if (option)
		return error_set(
			err, EINVAL,
			"option %s: has no meaning with --flight, for which the library in the "
			"program records",
			option);
	if (flight_parse(&options->flight_ns, options->flight, err) < 0)
		return error_prefix(err, "option --flight");
	options->probes = PROBES_PRELOAD;
	if (options->max_mib == RECORD_MAX_MIB)
		options->max_mib = FLIGHT_MAX_MIB;
	return 0;
}
