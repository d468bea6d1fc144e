/* SPDX-License-Identifier: MIT */
/*
 * The page's template: text with placeholders <!--gt:NAME-->, from a closed list, each exactly once
 * and in the list's order (share/report/FORMAT.md). It is parsed once, and inserted text is never
 * parsed, so that untrusted text cannot add a placeholder.
 */
#ifndef GILTRACER_REPORT_HTML_TEMPLATE_H
#define GILTRACER_REPORT_HTML_TEMPLATE_H

#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"

enum template_part {
	TEMPLATE_TITLE,
	TEMPLATE_VERDICT,
	TEMPLATE_TABLES,
	TEMPLATE_REPORT,
	TEMPLATE_META,
	TEMPLATE_OVERVIEW,
	TEMPLATE_BLOCKS,
	TEMPLATE_PARTS,
};

/* The text, with its parts before each placeholder and after the last. */
struct template
{
	char *text;
	size_t len;
	struct {
		size_t start, end;
	} between[TEMPLATE_PARTS + 1];
};

/* Check len bytes of text, which is malloced and owned by the template from now on, even after
 * an error. Errors name the line. Free with template_done. */
int template_parse(struct template *ret, char *text, size_t len, struct error *err);

/* Read and check the template at path. */
int template_load(struct template *ret, const char *path, struct error *err);

void template_done(struct template *t);

/* Write the template to out, calling fill(part, data, out, err) for each placeholder in turn. */
int template_write(const struct template *t,
                   int (*fill)(enum template_part part, const void *data, FILE *out,
                               struct error *err),
                   const void *data, FILE *out, struct error *err);

DEFINE_CLEANUP_IN(struct template, template_done);

#endif
