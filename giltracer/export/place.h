/* SPDX-License-Identifier: MIT */
/* Functions of either kind of Python stack, in the same terms: what the probes read, and calls. */
#ifndef GILTRACER_EXPORT_PLACE_H
#define GILTRACER_EXPORT_PLACE_H

#include <stdint.h>

/* Valid UTF-8, malloced; free with place_done. @line: 0 if it is not known */
struct place {
	char *name, *file;
	uint32_t line;
};

/* Of a call: VizTracer's "name (file:line)"; a text that is not of this form is all name. */
void place_of_call(struct place *ret, const char *text);

/* The parts as they are; NULL is "". */
void place_of(struct place *ret, const char *name, const char *file, uint32_t line);
void place_done(struct place *place);

/* text with U+FFFD for what is no UTF-8; caller frees. */
char *place_text(const char *text);

#endif
