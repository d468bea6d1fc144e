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

/* FORMAT(WRITER, NAME, SUMMARY) for each format, sorted by name: export_WRITER() writes it. */
/* clang-format off */
#define EXPORT_FORMATS(FORMAT) \
	FORMAT(chrome, "chrome", "Trace Event JSON, for VizTracer, catapult and Perfetto") \
	FORMAT(csv, "csv", "one line per state of a thread, for spreadsheets and pandas") \
	FORMAT(firefox, "firefox", "processed profile, for profiler.firefox.com") \
	FORMAT(folded, "folded", "holds of the GIL, for flamegraph.pl and inferno") \
	FORMAT(folded_lock_waits, "folded-lock-waits", "waits for locks by stack") \
	FORMAT(folded_off_cpu, "folded-off-cpu", "time off-CPU by stack; needs --state-detect") \
	FORMAT(folded_samples, "folded-samples", "samples by stack; needs --sample") \
	FORMAT(folded_waits, "folded-waits", "waits for the GIL by stack") \
	FORMAT(perfetto, "perfetto", "TrackEvent protobuf, for ui.perfetto.dev") \
	FORMAT(pprof, "pprof", "for go tool pprof: which functions held the GIL and made others wait") \
	FORMAT(speedscope, "speedscope", "for speedscope.app")
/* clang-format on */

/* The writers. ENODATA: the recording contains nothing that the format can show. */
#define EXPORT_WRITER(writer, name, summary) report_writer export_##writer;
EXPORT_FORMATS(EXPORT_WRITER)

#define EXPORT_ONE(writer, name, summary) +1
enum { EXPORT_FORMAT_COUNT = EXPORT_FORMATS(EXPORT_ONE) };

/* The table; the name after the last one is NULL. */
extern const struct export_format export_formats[EXPORT_FORMAT_COUNT + 1];

/* The option of run and report: list is struct opt_list * of FORMAT=FILE. */
#define EXPORT_OPT(list)                           \
	OPT_LIST(0, "export", "FORMAT=FILE", list, \
	         "write the recording for another tool, see giltracer export --help")

/* The documents in list. The caller frees *ret, which borrows from the list. */
int export_parse(struct report_document **ret, const struct opt_list *list, struct error *err);

#endif
