/* SPDX-License-Identifier: MIT */
/* The formats by name. */
#include "export/export.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "report/folded.h"

/* clang-format off */
const struct export_format export_formats[EXPORT_FORMATS + 1] = {
	{ "chrome", "Trace Event JSON, for VizTracer, catapult and Perfetto", export_chrome },
	{ "csv", "one line per state of a thread, for spreadsheets and pandas", export_csv },
	{ "firefox", "processed profile, for profiler.firefox.com", export_firefox },
	{ "folded", "holds of the GIL, for flamegraph.pl and inferno", report_folded_on_gil },
	{ "folded-off-cpu", "time off-CPU by stack; needs --state-detect", report_folded_off_cpu },
	{ "folded-samples", "samples by stack; needs --sample", report_folded_samples },
	{ "folded-waits", "waits for the GIL by stack", report_folded_off_gil },
	{ "perfetto", "TrackEvent protobuf, for ui.perfetto.dev", export_perfetto },
	{ "pprof", "for go tool pprof: which functions held the GIL and made others wait", export_pprof },
	{ "speedscope", "for speedscope.app", export_speedscope },
	{ NULL, NULL, NULL },
};
/* clang-format on */

static const struct export_format *find(const char *name, size_t len)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		if (strlen(f->name) == len && !memcmp(f->name, name, len))
			return f;
	return NULL;
}

static void set_unknown(struct error *err, const char *name, size_t len)
{
	CLEANUP(str_done) struct str all = { 0 };

	for (const struct export_format *f = export_formats; f->name; f++)
		str_addf(&all, "%s%s", f == export_formats ? "" : ", ", f->name);
	error_set(err, EINVAL, "'%.*s' is not one of the formats %s", (int)(len < 40 ? len : 40),
	          name, str_get(&all));
}

static int parse_one(struct report_document *ret, const char *word, struct error *err)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct export_format *format = find(word, len);

	if (!format) {
		set_unknown(err, word, len);
		return -1;
	}
	if (!equals || !equals[1])
		return error_set(err, EINVAL, "%s needs a file: write %s=FILE", format->name,
		                 format->name);
	*ret = (struct report_document){ format->write, equals + 1 };
	return 0;
}

int export_parse(struct report_document **ret, const struct opt_list *list, struct error *err)
{
	CLEANUP(free) struct report_document *documents = xcalloc(list->n + 1, sizeof(*documents));

	for (unsigned i = 0; i < list->n; i++)
		if (parse_one(&documents[i], list->v[i], err) < 0)
			return error_prefix(err, "option --export");
	*ret = take(documents);
	return 0;
}
