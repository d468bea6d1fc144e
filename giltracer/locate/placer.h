/* SPDX-License-Identifier: MIT */
/* One module in three files: place.c decides what to probe, place_probe.c makes the probes, and
 * place_fetch.c their arguments. */
#ifndef GILTRACER_LOCATE_PLACER_H
#define GILTRACER_LOCATE_PLACER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "locate/gil_scan.h"
#include "locate/probedef.h"
#include "locate/probes.h"
#include "binary/symbols.h"

#define PROLOGUE_MAX 96 /* an entry probe is not further inside */

/* What placing needs at hand. */
struct placer {
	struct probe_set *set;
	const struct probedef *def;
	struct symbols *symbols;
	const struct gil_scan *code;
	uint64_t identity; /* of the one GIL, where there is but one */
	unsigned frames;   /* how many Python frames to fetch */
	bool has_drop;     /* by symbol */
	bool has_lto;      /* some function has copies that are not in any table */
	bool complete;     /* every call of pthread_cond_signal is accounted for */
};

static inline bool is_take(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "take_gil");
}

static inline bool is_drop(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "drop_gil");
}

/* The first release in a function; NULL if there is none. */
const struct gil_scan_release *placer_release_of(const struct placer *p, uint64_t function);

/*
 * Probes at the entry and the return of a function, as the definition wants them. confirmed: how
 * else it is known to be the right one, a phrase, or NULL. Instead of the return, places that come
 * to the same are probed if the code tells of them.
 */
void placer_add_function(const struct placer *p, const struct probedef_function *f,
                         const struct symbol *symbol, const char *confirmed);

/* A probe inside of a function: its address, kind and sure, and its fetch, which is taken over.
 * how is a phrase. */
void placer_add_point(const struct placer *p, const char *event, const char *how,
                      const struct probe *point);

/* The same, found by code, for each of several addresses that have no probe yet. */
void placer_add_points(const struct placer *p, const char *event, const uint64_t *addresses,
                       size_t count, const char *how);

/* Arguments, NULL for none: of a probe that stands where it will be, at a function's entry, and of
 * one at the call of pthread_cond_signal. Caller frees. */
char *placer_entry_arguments(const struct placer *p, const struct probedef_function *f,
                             const struct symbol *symbol, const struct probe *probe);
char *placer_release_arguments(const struct placer *p, const struct gil_scan_release *release);

#endif
