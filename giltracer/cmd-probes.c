/* SPDX-License-Identifier: MIT */
/* giltracer probes: where the GIL functions of an interpreter are, how they were found, and what
 * probing them costs. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/opts.h"
#include "base/utf8.h"
#include "cmd.h"
#include "python/probes.h"
#include "python/probes.h"
#include "python/python.h"
#include "record/record.h"

static const char *cost_name(enum probe_cost cost)
{
	return cost == PROBE_EMULATED ? "emulated" : "single-stepped";
}

/* Prints the notes on single probes and on all. */
static void print_notes(const struct probe_set *set)
{
	const char *gap = "\n";

	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *p = &set->probes.v[i];

		if (!p->why_costly)
			continue;
		utf8_fprintf(stdout, "%s%s is single-stepped: %s\n", gap, p->event, p->why_costly);
		gap = "";
	}
	if (set->note)
		utf8_fprintf(stdout, "\n%s\n", set->note);
}

static void print_table(const struct python *py, const struct probe_set *set)
{
	utf8_fprintf(stdout, "python    %s (%s %s%s)\n", py->command, py->implementation,
	             py->version, py->free_threaded ? ", free-threaded" : "");
	utf8_fprintf(stdout, "file      %s\n", set->path);
	utf8_fprintf(stdout, "build-id  %s\n", set->build_id);
	utf8_fprintf(stdout, "group     %s\n\n", set->group);
	utf8_fprintf(stdout, "%-16s %-26s %10s  %-6s  %-4s  %-14s  %-22s  %s\n", "event",
	             "function", "offset", "kind", "sure", "cost", "instruction", "found in");
	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *p = &set->probes.v[i];

		utf8_fprintf(stdout, "%-16s %-26s %#10" PRIx64 "  %-6s  %-4s  %-14s  %-22s  %s\n",
		             p->event, p->function, p->offset, symbol_kind_name(p->kind),
		             p->sure ? "yes" : "no", cost_name(p->cost), p->instruction, p->how);
	}
	print_notes(set);
}

static json_t *probe_json(const struct probe *p)
{
	return json_pack("{s:s, s:s, s:I, s:b, s:s, s:s, s:b, s:s, s:s?, s:s, s:s?}", "event",
	                 p->event, "function", p->function, "offset", (json_int_t)p->offset,
	                 "return", p->ret, "kind", symbol_kind_name(p->kind), "how", p->how, "sure",
	                 p->sure, "cost", cost_name(p->cost), "costly_because", p->why_costly,
	                 "instruction", p->instruction, "fetch", p->fetch);
}

static int print_json(const struct python *py, const struct probe_set *set, struct error *err)
{
	json_auto_t *probes = json_array();
	json_auto_t *root = NULL;

	for (size_t i = 0; i < set->probes.n; i++)
		json_array_append_new(probes, probe_json(&set->probes.v[i]));
	root = json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:b, s:s?, s:O}", "command",
	                 py->command, "executable", py->executable, "version", py->version,
	                 "implementation", py->implementation, "free_threaded", py->free_threaded,
	                 "file", set->path, "build_id", set->build_id, "group", set->group,
	                 "releases_known", set->releases_known, "note", set->note, "probes",
	                 probes);
	if (!root)
		return error_set(err, EINVAL, "a path or name is not UTF-8");
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	return 0;
}

static int probes_run(int argc, char **argv, struct error *err)
{
	CLEANUP(python_free) struct python *py = NULL;
	CLEANUP(probe_set_free) struct probe_set *set = NULL;
	bool json = false, help = false;
	unsigned frames = FRAMEFETCH_DEFAULT;
	const char *wanted = NULL;
	const struct opt opts[] = {
		OPT_STR(0, "python", "PATH", &wanted, "the interpreter to show"),
		OPT_UINT(0, "frames", "COUNT", &frames, 0, FRAMEFETCH_MAX,
		         "show probes that fetch COUNT Python frames (2)"),
		OPT_FLAG(0, "json", &json, "print JSON"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int go_on = cmd_options(&cmd_probes, opts, &help, argc, argv, err);

	if (go_on <= 0)
		return go_on;
	if (python_find(&py, wanted, false, err) < 0 || resolve_probes(&set, py, frames, err) < 0)
		return -1;
	if (json)
		return print_json(py, set, err);
	print_table(py, set);
	return 0;
}

const struct cmd cmd_probes = {
	.name = "probes",
	.usage = "[OPTION]...",
	.summary = "show where the GIL functions of an interpreter are",
	.run = probes_run,
};
