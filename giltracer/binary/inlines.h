/* SPDX-License-Identifier: MIT */
/* Whether code that the compiler moved belongs to a function, according to debug information
 * (DWARF). */
#ifndef GILTRACER_BINARY_INLINES_H
#define GILTRACER_BINARY_INLINES_H

#include <stdint.h>

struct symbols;

enum inlines_answer {
	INLINES_SILENT, /* there is no debug information for this code */
	INLINES_NO,
	INLINES_YES,
};

/*
 * Whether the code at a link-time address belongs to a function of this name: to the function
 * itself, or to a copy that was inlined. *ret_into: the name of the function that contains it, or
 * NULL; caller frees.
 */
enum inlines_answer inlines_ask(struct symbols *symbols, uint64_t address, const char *name,
                                char **ret_into);

#endif
