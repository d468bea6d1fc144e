/* SPDX-License-Identifier: MIT */
/* A common form for functions of both kinds of Python stacks: frames read by the probes, and
 * calls. */
#ifndef GILTRACER_EXPORT_PLACE_H
#define GILTRACER_EXPORT_PLACE_H

#include <stdint.h>

/* Valid UTF-8, malloced; free with place_done. @line: 0 if unknown */
struct place {
	char *name, *file;
	uint32_t line;
};

/* From the name of a call in VizTracer's form, "name (file:line)"; any other text becomes the
 * name. */
void place_of_call(struct place *ret, const char *text);

/* From separate parts; NULL becomes "". */
void place_of(struct place *ret, const char *name, const char *file, uint32_t line);
void place_done(struct place *place);

/* A copy of text with U+FFFD for invalid UTF-8; the caller frees it. */
char *place_text(const char *text);

#endif
