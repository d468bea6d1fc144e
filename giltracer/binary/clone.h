/* SPDX-License-Identifier: MIT */
/* Names that compilers give to copies and parts of functions: take_gil.constprop.0, collect.cold */
#ifndef GILTRACER_BINARY_CLONE_H
#define GILTRACER_BINARY_CLONE_H

#include <stdbool.h>

/* Whether a symbol is the function of this name, a clone of it, or a part of either. */
bool clone_of(const char *symbol, const char *name);

/* The same without parts: whether a call of the function may go to the symbol's beginning. Each
 * word after the name is one of those known for whole functions (GCC: constprop, isra, part,
 * lto_priv; LLVM: llvm) or a number. cold is none. */
bool clone_is_whole(const char *symbol, const char *name);

#endif
