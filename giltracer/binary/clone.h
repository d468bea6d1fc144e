/* SPDX-License-Identifier: MIT */
/* Names that compilers give to copies and parts of functions: take_gil.constprop.0,
 * collect.cold. */
#ifndef GILTRACER_BINARY_CLONE_H
#define GILTRACER_BINARY_CLONE_H

#include <stdbool.h>

/* Whether a symbol is the function of this name, a clone of it, or a part of either of them. */
bool clone_of(const char *symbol, const char *name);

/* The same without parts: whether a call of the function may go to the start of the symbol. Each
 * word after the name must be one that denotes a complete function (GCC: constprop, isra, part,
 * lto_priv; LLVM: llvm) or a number. "cold" is not one of them. */
bool clone_is_whole(const char *symbol, const char *name);

#endif
