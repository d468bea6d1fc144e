/* SPDX-License-Identifier: MIT */
/* The running kernel's symbols, from /proc/kallsyms (format: "ADDRESS TYPE NAME\t[MODULE]"). */
#ifndef GILTRACER_PERFDATA_KALLSYMS_H
#define GILTRACER_PERFDATA_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct kallsyms;

/* Read path ("/proc/kallsyms"). NULL if it cannot be read or hides the addresses. */
struct kallsyms *kallsyms_read(const char *path);
void kallsyms_free(struct kallsyms *kallsyms);

/* The function at address, or NULL. *ret_module: "[kernel.kallsyms]" or "[name]" of a module;
 * *ret_start: where the function starts. Borrowed until kallsyms_free. */
const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address,
                          const char **ret_module, uint64_t *ret_start);

/* The address of a symbol; 0 if there is none. Slow. */
uint64_t kallsyms_address(const struct kallsyms *kallsyms, const char *name);

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

#endif
