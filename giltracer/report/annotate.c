/* SPDX-License-Identifier: MIT */
/* Writes workflow commands. */
#include "report/annotate.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"
#include "report/phrases.h"
#include "report/words.h"

const char *const annotate_names[] = { "none", "github", NULL };

/* Escapes as actions/toolkit does: a message ends at a newline, a property also at ':' and ','. */
static void add_escaped(struct str *out, const char *text, bool property)
{
	for (; *text; text++) {
		if (*text == '%' || *text == '\r' || *text == '\n' ||
		    (property && (*text == ':' || *text == ',')))
			str_addf(out, "%%%02X", (unsigned)*text);
		else
			str_addc(out, *text);
	}
}

/* Makes text safe for a terminal, too. */
static void add_safe(struct str *out, const char *text, bool property)
{
	CLEANUP(str_done) struct str safe = { 0 };

	utf8_add_safe(&safe, text, UINT_MAX);
	add_escaped(out, str_get(&safe), property);
}

static const char *below(const char *file, const char *root)
{
	size_t len = strlen(root);

	while (len > 1 && root[len - 1] == '/')
		len--;
	return len > 1 && !strncmp(file, root, len) && file[len] == '/' ? file + len + 1 : file;
}

static void add_place(struct str *line, const struct function *f, const char *root)
{
	char cwd[PATH_MAX];

	if (!root)
		root = getcwd(cwd, sizeof(cwd)) ? cwd : "";
	str_adds(line, "file=");
	add_safe(line, below(f->file, root), true);
	if (f->line)
		str_addf(line, ",line=%" PRIu32, f->line);
}

static void put_function(const struct analysis *a, const struct function_row *row, const char *root,
                         FILE *out)
{
	struct function f = function_of(a->pass, row->hog);
	CLEANUP(str_done) struct str line = { 0 };
	CLEANUP(str_done) struct str name = { 0 };
	CLEANUP(str_done) struct str text = { 0 };

	utf8_add_safe(&name, f.name ? f.name : "", 80);
	say_annotate_held(&text, facts_percent(row->wait_ns, a->evidence.totals.blamed_ns),
	                  row->wait_ns, str_get(&name));
	str_adds(&line, "::warning ");
	add_place(&line, &f, root);
	str_adds(&line, ",title=giltracer::");
	add_escaped(&line, str_get(&text), false);
	fprintf(out, "%s\n", str_get(&line));
}

static void put_verdict(const struct analysis *a, FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 };
	CLEANUP(str_done) struct str line = { 0 };

	verdict_add_text(&text, a, &a->verdict.headline);
	add_escaped(&line, str_get(&text), false);
	fprintf(out, "::notice title=giltracer::%s\n", str_get(&line));
}

void annotate_github(const struct analysis *a, const char *root, FILE *out)
{
	uint64_t all_ns = a->evidence.totals.blamed_ns;
	unsigned n = 0;

	if (a->verdict.kind == VERDICT_GIL_BOUND || a->verdict.kind == VERDICT_GIL_SOME)
		for (size_t i = 0; i < a->holders.v.n && n < ANNOTATE_MAX; i++) {
			const struct function_row *row = &a->holders.v.v[i];

			if (!*function_of(a->pass, row->hog).file ||
			    facts_percent(row->wait_ns, all_ns) < ANNOTATE_PERCENT)
				continue;
			put_function(a, row, root, out);
			n++;
		}
	if (!n)
		put_verdict(a, out);
}
