/* SPDX-License-Identifier: MIT */
/*
 * A recording in the formats of other tools, one file per format. All are made from the pass with
 * the GIL numbers; text that is not UTF-8 becomes U+FFFD; times are CLOCK_MONOTONIC. They are
 * written span by span, without keeping any of it in memory.
 */
#ifndef GILTRACER_EXPORT_EXPORT_H
#define GILTRACER_EXPORT_EXPORT_H

#include "base/opts.h"
#include "report/session_report.h"

struct export_format {
	const char *name;
	const char *summary; /* for --help */
	report_writer *write;
};

#define EXPORT_FORMATS 10

/* The table; the name after the last one is NULL. */
extern const struct export_format export_formats[EXPORT_FORMATS + 1];

/* The option of run and report: list is struct opt_list * of FORMAT=FILE. */
#define EXPORT_OPT(list)                           \
	OPT_LIST(0, "export", "FORMAT=FILE", list, \
	         "write the recording for another tool, see giltracer export --help")

/* The documents in list. The caller frees *ret, which borrows from the list. */
int export_parse(struct report_document **ret, const struct opt_list *list, struct error *err);

/* The writers. ENODATA: the recording contains nothing that the format can show. */
report_writer export_chrome, export_csv, export_firefox, export_perfetto, export_pprof,
	export_speedscope;

#endif
