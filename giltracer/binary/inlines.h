/* SPDX-License-Identifier: MIT */
/* What the debug information (DWARF) says of code that the compiler put elsewhere. */
#ifndef GILTRACER_BINARY_INLINES_H
#define GILTRACER_BINARY_INLINES_H

#include <stdint.h>

struct symbols;

enum inlines_answer {
	INLINES_SILENT, /* there is no debug information on this code */
	INLINES_NO,
	INLINES_YES,
};

/*
 * Whether the code at a link-time address is of a function of this name: of itself, or of a copy
 * that was inlined somewhere. *ret_into is the name of the function that it is in now, NULL if it
 * has none; caller frees.
 */
enum inlines_answer inlines_ask(struct symbols *symbols, uint64_t address, const char *name,
                                char **ret_into);

#endif
