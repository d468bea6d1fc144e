/* SPDX-License-Identifier: MIT */
/*
 * The names of functions by address, for samples: from the .symtab of the file or of its separate
 * debug file, from .gnu_debugdata, or from .dynsym, whichever libdwfl finds first. Names are as in
 * the symbol table.
 */
#ifndef GILTRACER_BINARY_FUNCTION_TABLE_H
#define GILTRACER_BINARY_FUNCTION_TABLE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct fdetab;
struct function_table;

/* A function: [start, end) in vaddrs. */
struct function_symbol {
	uint64_t start, end;
	const char *name;
};

/* Never NULL. file is borrowed until function_table_free, and so are the results of the next two
 * functions. */
struct function_table *function_table_new(Dwfl_Module *file);
void function_table_free(struct function_table *table);

/*
 * The function at vaddr, or NULL. Of several names for one address, a name is preferred if it has a
 * size, is not weak, is global, has the fewest leading underscores, and then if it is longest.
 * starts limits the symbols without a size.
 */
const struct function_symbol *function_table_at(const struct function_table *table,
                                                const struct fdetab *starts, uint64_t vaddr);

/*
 * The path of a function of C++ or Rust, "torch::autograd::Engine::execute", by its mangled name, if
 * that consists of plain identifiers; its parameters are left out. False: it is another name, or has
 * templates, operators or abbreviations. No library is used for this, because the names of a hostile
 * file can make those take any time and memory.
 */
bool function_path(struct str *out, const char *mangled);

/* The function with exactly this name. Slow, so callers should keep the answer. */
const struct function_symbol *function_table_find(const struct function_table *table,
                                                  const char *name);

#endif
