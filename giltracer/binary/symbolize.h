/* SPDX-License-Identifier: MIT */
/* Names for addresses of a module: its symbols (function_table.h) and, from DWARF, inlined functions.
 */
#ifndef GILTRACER_BINARY_SYMBOLIZE_H
#define GILTRACER_BINARY_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/function_table.h"

struct module;

/* The function at vaddr, as function_table_at; NULL if the file cannot be used or has no symbol
 * there. Borrowed until the module is freed. */
const struct function_symbol *symbolize(struct module *module, uint64_t vaddr);

/*
 * Names of the functions inlined at vaddr, innermost first, at most max of them; 0 if there are
 * none or no DWARF says so. Borrowed until the module is freed. Slow: callers keep the answer.
 */
size_t symbolize_inlined(struct module *module, uint64_t vaddr, const char **ret, size_t max);

/*
 * Where the function at vaddr starts according to .eh_frame_hdr's table, which stripped files have
 * as well. False if the file has none that we can read.
 */
bool symbolize_start(struct module *module, uint64_t vaddr, uint64_t *ret);

/* The function of exactly this name; NULL as symbolize. Slow: callers keep the answer. */
const struct function_symbol *symbolize_find(struct module *module, const char *name);

/*
 * Where the part of the named function starts that the compiler moved away, if it has no symbol,
 * as in stripped files: the function jumps into it, and into nothing else so often. False if there
 * is none, or this is no x86-64. Slow: callers keep the answer.
 */
bool symbolize_part(struct module *module, const char *name, uint64_t *ret);

#endif
