/* SPDX-License-Identifier: MIT */
/* probes/X.Y.yaml, read and checked; probes/README.md says what may be in them. */
#ifndef GILTRACER_LAUNCH_PROBEDEF_H
#define GILTRACER_LAUNCH_PROBEDEF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

/**
 * One function to probe. All strings are owned.
 * @name: without a compiler's suffix
 * @entry, @ret: the events of its entry and return; NULL for none
 * @gil: where its entry finds the GIL's address: "+0x10(arg1)"; NULL if it cannot
 * @fallback: wanted only where not every release is seen
 * @line: in the file
 */
struct probedef_function {
	char *name;
	char *entry, *ret;
	char *gil;
	bool fallback;
	unsigned line;
};

/**
 * @major, @minor: the CPython it is for
 * @shared: one GIL per process, told apart by the link-time address of the first symbol in
 *          @identity that exists; else one per interpreter, reached through @gil
 */
struct probedef {
	unsigned major, minor;
	bool shared;
	VEC(char *) identity;
	VEC(struct probedef_function) functions;
};

/* name: for messages. Errors say NAME:LINE and are EINVAL. Free with probedef_free. */
int probedef_parse(struct probedef **ret, const char *name, const char *text, size_t len,
                   struct error *err);

/* Read and parse a file. */
int probedef_load(struct probedef **ret, const char *path, struct error *err);
void probedef_free(struct probedef *def);

/*
 * Translate a GIL expression into tracefs words for this machine: "+0x10(arg1)" is "+0x10(%di)".
 * NULL if it is not well formed: OFFSET(EXPRESSION) or argN, N from 1 to 4. Caller frees.
 */
char *probedef_fetch(const char *expression);

DEFINE_CLEANUP(struct probedef *, probedef_free);

#endif
