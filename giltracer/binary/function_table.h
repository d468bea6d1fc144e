/* SPDX-License-Identifier: MIT */
/*
 * The names of functions by address, for samples: from .symtab, of the file or of its separate debug
 * file, from .gnu_debugdata, or from .dynsym, whichever libdwfl finds first. Names are as the
 * linker has them: C++ ones are not demangled, since no library that giltracer links does that.
 */
#ifndef GILTRACER_BINARY_FUNCTION_TABLE_H
#define GILTRACER_BINARY_FUNCTION_TABLE_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

struct fdetab;
struct function_table;

/* A function: [start, end) in vaddrs. */
struct function_symbol {
	uint64_t start, end;
	const char *name;
};

/* Never NULL. file is borrowed until function_table_free, and so is what the next two return. */
struct function_table *function_table_new(Dwfl_Module *file);
void function_table_free(struct function_table *table);

/*
 * The function at vaddr, NULL if there is none. Of several names for one place: the one with a
 * size, not weak, global, with the fewest leading underscores, then the longest. starts limits the
 * symbols that have no size.
 */
const struct function_symbol *function_table_at(const struct function_table *table,
                                                const struct fdetab *starts, uint64_t vaddr);

/* The function of exactly this name. Slow: callers keep the answer. */
const struct function_symbol *function_table_find(const struct function_table *table,
                                                  const char *name);

#endif
