/* SPDX-License-Identifier: MIT */
/* Names for addresses of a module: its symbols (function_table.h) and, from DWARF, inlined
 * functions. */
#ifndef GILTRACER_BINARY_SYMBOLIZE_H
#define GILTRACER_BINARY_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/function_table.h"

struct module;

/* The function at vaddr, as from function_table_at; NULL if the file cannot be used or has no
 * symbol there. Borrowed until the module is freed. */
const struct function_symbol *symbolize(struct module *module, uint64_t vaddr);

/*
 * Names of the functions inlined at vaddr, innermost first, at most max of them; 0 if there are
 * none or DWARF does not record them. Borrowed until the module is freed. Slow, so callers should
 * keep the answer.
 */
size_t symbolize_inlined(struct module *module, uint64_t vaddr, const char **ret, size_t max);

/*
 * The start of the function at vaddr according to the table of .eh_frame_hdr, which stripped files
 * have, too. Returns false if the file has no table that we can read.
 */
bool symbolize_start(struct module *module, uint64_t vaddr, uint64_t *ret);

/* The function with exactly this name, or NULL, as for symbolize. Slow, so callers should keep the
 * answer. */
const struct function_symbol *symbolize_find(struct module *module, const char *name);

/*
 * The start of the part of the named function that the compiler moved away, if it has no symbol, as
 * in stripped files: the function jumps into it more often than into any other function. Returns
 * false if there is none, or if this is not x86-64. Slow, so callers should keep the answer.
 */
bool symbolize_part(struct module *module, const char *name, uint64_t *ret);

#endif
