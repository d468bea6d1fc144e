/* SPDX-License-Identifier: MIT */
/* Reads and checks probes/X.Y.yaml; probes/README.md has the schema. */
#ifndef GILTRACER_PYTHON_PROBEDEF_H
#define GILTRACER_PYTHON_PROBEDEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "python/layout.h"

/**
 * One function to probe. All strings are owned.
 * @name: without a compiler's suffix
 * @entry, @ret: the events of its entry and return; NULL for none
 * @gil: expression for the GIL's address at the entry: "+0x10(arg1)"; NULL if there is none
 * @tstate: the argument that is the PyThreadState: "arg1"; NULL if there is none
 * @clone_tstate: the same for the compiler's clones, whose arguments may differ
 * @fallback: probe only if some releases have no probe
 * @line: its line in the file
 */
struct probedef_function {
	char *name;
	char *entry, *ret;
	char *gil;
	char *tstate, *clone_tstate;
	bool fallback;
	unsigned line;
};

/**
 * @layout: of this version
 * @shared: one GIL per process, identified by the link-time address of the first symbol in
 *          @identity that exists; otherwise one per interpreter, reached through @gil
 * @is_newer: for all versions from 3.13 on that have no definition of their own
 * @is_published: the layout is known from the interpreter alone
 * @has_frame: the layout contains how to find Python frames
 * @root: the symbol from which the layout's offsets lead to the threads of a running process; NULL:
 * there are no such offsets
 */
struct probedef {
	struct python_layout layout;
	bool is_newer, is_published;
	bool shared;
	bool has_frame;
	char *root;
	VEC(char *) identity;
	VEC(struct probedef_function) functions;
};

/* name: for messages. Errors contain NAME:LINE and are EINVAL. Free with probedef_free. */
int probedef_parse(struct probedef **ret, const char *name, const char *text, size_t len,
                   struct error *err);

struct python;

/* The definition of an interpreter. Error ENOTSUP: there is none for its version. */
int probedef_find(struct probedef **ret, const struct python *python, struct error *err);

/* Read and parse a file. */
int probedef_load(struct probedef **ret, const char *path, struct error *err);
void probedef_free(struct probedef *def);

/*
 * Translate a GIL expression into tracefs' syntax for this machine: "+0x10(arg1)" is "+0x10(%di)".
 * NULL if it is not well formed: OFFSET(EXPRESSION) or argN, N from 1 to 4. Caller frees.
 */
char *probedef_fetch(const char *expression);

DEFINE_CLEANUP(struct probedef *, probedef_free);

#endif
