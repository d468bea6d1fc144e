/* SPDX-License-Identifier: MIT */
/* probes/X.Y.yaml, read and checked; probes/README.md says what may be in them. */
#ifndef GILTRACER_LAUNCH_PROBEDEF_H
#define GILTRACER_LAUNCH_PROBEDEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

/* A value that an entry fetches: its name, where it is, "+0x28(arg1)", and its type in tracefs'
 * words, "u64". Owned. */
struct probedef_fetch {
	char *name, *expression, *type;
};

/**
 * One function to probe. All strings are owned.
 * @name: without a compiler's suffix
 * @entry, @ret: the events of its entry and return; NULL for none
 * @gil: where its entry finds the GIL's address: "+0x10(arg1)"; NULL if it cannot
 * @tstate: the argument that is the PyThreadState: "arg1"; NULL if none is
 * @clone_tstate: the same of the compiler's clones, whose arguments may be others
 * @without: wanted only where the function of this name was not found; NULL: always
 * @fetch: what else its entry fetches
 * @fallback: wanted only where not every release is seen
 * @line: in the file
 */
struct probedef_function {
	char *name;
	char *entry, *ret;
	char *gil;
	char *tstate, *clone_tstate;
	char *without;
	VEC(struct probedef_fetch) fetch;
	bool fallback;
	unsigned line;
};

/* FRAME_CURRENT2 of a definition that needs but one step. */
#define PROBEDEF_NO_OFFSET UINT32_MAX

/* Offsets in bytes that lead from a PyThreadState to the names of its Python frames. */
enum probedef_frame_key {
	FRAME_CURRENT,     /* PyThreadState: its running frame, or what has it at FRAME_CURRENT2 */
	FRAME_CURRENT2,    /* 3.11, 3.12: the frame in PyThreadState.cframe */
	FRAME_PREVIOUS,    /* frame: its caller */
	FRAME_CODE,        /* frame: its PyCodeObject */
	FRAME_INSTRUCTION, /* frame: the instruction that it executes, of FRAME_INSTRUCTION_SIZE */
	FRAME_INSTRUCTION_SIZE, /* 8: a pointer; 4: an int, f_lasti */
	FRAME_TYPE,             /* object: its type */
	FRAME_LINE,             /* code: co_firstlineno, an int */
	FRAME_NAME,             /* code: co_qualname, or co_name before 3.11, a str */
	FRAME_STATE,            /* str: PyASCIIObject.state */
	FRAME_TEXT,             /* str: the characters of a compact ASCII one */
	FRAME_KEYS,
};

/**
 * @major, @minor: the CPython it is for; @free_threaded: its build without a GIL, "3.13t"
 * @shared: one GIL per process, told apart by the link-time address of the first symbol in
 *          @identity that exists; else one per interpreter, reached through @gil
 * @frame, @has_frame: how to find Python frames, if the definition says
 */
struct probedef {
	unsigned major, minor;
	bool free_threaded;
	bool shared;
	bool has_frame;
	uint32_t frame[FRAME_KEYS];
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
