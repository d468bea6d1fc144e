/* SPDX-License-Identifier: MIT */
/* The page's template: a closed list of placeholders. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "report/html/template.h"

#include "tap.h"

#define ALL                                                                           \
	"<html><!--gt:title-->a<!--gt:verdict-->\nb<!--gt:tables-->c<!--gt:report-->" \
	"d<!--gt:meta-->e<!--gt:overview-->f<!--gt:blocks--></html>"

static int parse(struct template *ret, const char *text, struct error *err)
{
	return template_parse(ret, xstrdup(text), strlen(text), err);
}

static int fill(enum template_part part, const void *data, FILE *out, struct error *err)
{
	if (data && part == *(const enum template_part *)data)
		return error_set(err, EIO, "no");
	fprintf(out, "[%d<!--gt:blocks-->]", (int)part);
	return 0;
}

static void test_fill(void)
{
	CLEANUP(template_done) struct template t = { 0 };
	enum template_part stop = TEMPLATE_META;
	CLEANUP(free) char *text = NULL;
	struct error err;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ok(parse(&t, ALL, &err) == 0, "a template with all placeholders");
	ok(template_write(&t, fill, NULL, out, &err) == 0, "is written");
	fflush(out);
	is_str(text,
	       "<html>[0<!--gt:blocks-->]a[1<!--gt:blocks-->]\nb[2<!--gt:blocks-->]c"
	       "[3<!--gt:blocks-->]d[4<!--gt:blocks-->]e[5<!--gt:blocks-->]f[6<!--gt:blocks-->]"
	       "</html>",
	       "what is filled in is not looked at again");
	ok(template_write(&t, fill, &stop, out, &err) == -1, "a failing part stops it");
	is_str(err.text, "no", "with its own error");
	fclose(out);
}

static void is_refused(const char *text, const char *want, const char *name)
{
	struct error err = { 0 };
	struct template t;

	ok(parse(&t, text, &err) == -1, "%s is refused", name);
	is_str(err.text, want, "%s: message", name);
}

static void test_refused(void)
{
	CLEANUP(free) char *twice = xasprintf("%s<!--gt:title-->", ALL);

	is_refused("", "no placeholder 'title'", "an empty file");
	is_refused("<!--gt:title-->\n<!--gt:nope-->",
	           "line 2: placeholder 'nope' where verdict is expected", "an unknown one");
	is_refused("<!--gt:verdict-->", "line 1: placeholder 'verdict' where title is expected",
	           "a wrong order");
	is_refused("<!--gt:title", "line 1: a placeholder that does not end", "an open one");
	is_refused(twice, "line 2: placeholder 'title' where none is expected", "one too many");
}

int main(void)
{
	test_fill();
	test_refused();
	return done_testing();
}
