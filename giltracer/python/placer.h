/* SPDX-License-Identifier: MIT */
/* One module in three files: place.c decides what to probe, place_probe.c makes the probes, and
 * place_fetch.c makes their arguments. */
#ifndef GILTRACER_PYTHON_PLACER_H
#define GILTRACER_PYTHON_PLACER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "python/gil_scan.h"
#include "python/probedef.h"
#include "python/probes.h"
#include "binary/symbols.h"

#define PROLOGUE_MAX 96 /* largest distance of an entry probe from the entry */

/* State while probes are placed. */
struct placer {
	struct probe_set *set;
	const struct probedef *def;
	struct symbols *symbols;
	const struct gil_scan *code;
	uint64_t identity; /* identifies the GIL, if the process has only one */
	unsigned frames;   /* number of Python frames to fetch */
	bool has_drop;     /* drop_gil was found by its symbol */
	bool has_lto;      /* some function has copies that are not in any symbol table */
	bool complete;     /* every call of pthread_cond_signal is explained */
};

static inline bool is_take(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "take_gil");
}

static inline bool is_drop(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "drop_gil");
}

/* The first release in a function, or NULL. */
const struct gil_scan_release *placer_release_of(const struct placer *p, uint64_t function);

/*
 * Adds probes at the entry and the return of a function, as in the definition. confirmed: what else
 * proves that it is the right function, a phrase, or NULL. If the code shows equivalent places
 * before the return, these are probed instead of the return.
 */
void placer_add_function(const struct placer *p, const struct probedef_function *f,
                         const struct symbol *symbol, const char *confirmed);

/* Adds a probe inside a function. point: its address, kind, sure, and fetch, which is taken over.
 * how is a phrase. */
void placer_add_point(const struct placer *p, const char *event, const char *how,
                      const struct probe *point);

/* The same, found by code, for each of the addresses that has no probe yet. */
void placer_add_points(const struct placer *p, const char *event, const uint64_t *addresses,
                       size_t count, const char *how);

/* The arguments of a probe at a function's entry, which is at its final place, and of a probe at
 * the call of pthread_cond_signal. NULL: none. Caller frees. */
char *placer_entry_arguments(const struct placer *p, const struct probedef_function *f,
                             const struct symbol *symbol, const struct probe *probe);
char *placer_release_arguments(const struct placer *p, const struct gil_scan_release *release);

#endif
