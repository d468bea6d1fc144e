/* SPDX-License-Identifier: MIT */
/*
 * The functions of a file by address: from .symtab, of the file or of its separate debug file, from
 * .gnu_debugdata, or from .dynsym, whichever libdwfl finds first. Names are as the linker has them:
 * C++ ones are not demangled, since no library that giltracer links does that.
 */
#ifndef GILTRACER_BINARY_SYMTAB_H
#define GILTRACER_BINARY_SYMTAB_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

struct fdetab;
struct symtab;

/* A function: [start, end) in vaddrs. */
struct symtab_function {
	uint64_t start, end;
	const char *name;
};

/* Never NULL. file is borrowed until symtab_free, and what the next two return until then. */
struct symtab *symtab_new(Dwfl_Module *file);
void symtab_free(struct symtab *symtab);

/*
 * The function at vaddr, NULL if there is none. Of several names for one place: the one with a
 * size, not weak, global, with the fewest leading underscores, then the longest. starts limits the
 * symbols that have no size.
 */
const struct symtab_function *symtab_at(const struct symtab *symtab, const struct fdetab *starts,
                                        uint64_t vaddr);

/* The function of exactly this name. Slow: callers keep the answer. */
const struct symtab_function *symtab_find(const struct symtab *symtab, const char *name);

#endif
