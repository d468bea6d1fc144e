/* SPDX-License-Identifier: MIT */
/*
 * Names for addresses of a module: from .symtab, of the file or of its separate debug file, from
 * .gnu_debugdata, or from .dynsym, whichever libdwfl finds first; inlined functions from DWARF.
 * Names are as the linker has them: C++ ones are not demangled, since no library that giltracer
 * links does that.
 */
#ifndef GILTRACER_PERFDATA_SYMBOLIZE_H
#define GILTRACER_PERFDATA_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module;
struct symtab;
struct fdetab;

/* A function: [start, end) in vaddrs. name is borrowed until the module is freed. */
struct symbol {
	uint64_t start, end;
	const char *name;
};

/* The function at vaddr; NULL if the file cannot be used or has no symbol there. Of several names
 * for one place: the one with a size, not weak, global, with the fewest leading underscores, then
 * the longest. */
const struct symbol *symbolize(struct module *module, uint64_t vaddr);

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
const struct symbol *symbolize_find(struct module *module, const char *name);

/*
 * Where the part of the named function starts that the compiler moved away, if it has no symbol,
 * as in stripped files: the function jumps into it, and into nothing else so often. False if there
 * is none, or this is no x86-64. Slow: callers keep the answer.
 */
bool symbolize_part(struct module *module, const char *name, uint64_t *ret);

void symtab_free(struct symtab *symtab);
void fdetab_free(struct fdetab *fdetab);

#endif
