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

/* A value that an entry probe fetches: its name, its place, "+0x28(arg1)", and its type in tracefs'
 * syntax, "u64". Owned. */
struct probedef_fetch {
	char *name, *expression, *type;
};

/**
 * One function to probe. All strings are owned.
 * @name: without a compiler's suffix
 * @entry, @ret: the events of its entry and return; NULL for none
 * @gil: expression for the GIL's address at the entry: "+0x10(arg1)"; NULL if there is none
 * @tstate: the argument that is the PyThreadState: "arg1"; NULL if there is none
 * @clone_tstate: the same for the compiler's clones, whose arguments may differ
 * @without: probe only if the function of this name was not found; NULL: always
 * @fetch: other values that its entry fetches
 * @fallback: probe only if some releases have no probe
 * @line: its line in the file
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

/* An optional offset that the definition does not contain, such as FRAME_CURRENT2 if one step is
 * enough. */
#define PROBEDEF_NO_OFFSET UINT32_MAX

/* Offsets in bytes that lead from a PyThreadState to the names of its Python frames. */
enum probedef_frame_key {
	FRAME_CURRENT,     /* PyThreadState: its running frame, or the struct that has it at
	                    * FRAME_CURRENT2 */
	FRAME_CURRENT2,    /* 3.11, 3.12: the frame in PyThreadState.cframe */
	FRAME_PREVIOUS,    /* frame: its caller */
	FRAME_CODE,        /* frame: its PyCodeObject */
	FRAME_INSTRUCTION, /* frame: the instruction being executed, of FRAME_INSTRUCTION_SIZE */
	FRAME_INSTRUCTION_SIZE, /* 8: a pointer; 4: an int, f_lasti */
	FRAME_TYPE,             /* object: its type */
	FRAME_LINE,             /* code: co_firstlineno, an int */
	FRAME_NAME,             /* code: co_qualname, or co_name before 3.11, a str */
	FRAME_STATE,            /* str: PyASCIIObject.state */
	FRAME_TEXT,             /* str: the characters of a compact ASCII string */
	FRAME_KEYS,
};

/* Offsets in bytes that lead from the interpreter's root symbol to its threads, its GIL and the
 * contents of code objects. */
enum probedef_memory_key {
	MEMORY_INTERPRETERS,     /* root: the first PyInterpreterState */
	MEMORY_NEXT_INTERPRETER, /* PyInterpreterState: the next one */
	MEMORY_INTERPRETER_ID,   /* PyInterpreterState: its number; from 3.12 on */
	MEMORY_THREADS,          /* PyInterpreterState: its first PyThreadState */
	MEMORY_NEXT_THREAD,      /* PyThreadState: the next one */
	MEMORY_THREAD_ID,        /* PyThreadState: the pthread_t */
	MEMORY_NATIVE_ID,        /* PyThreadState: the tid; from 3.11 on */
	MEMORY_GIL,              /* shared: root: the GIL; otherwise PyInterpreterState: its
	                          * address */
	MEMORY_HOLDER,           /* GIL: PyThreadState of the last holder */
	MEMORY_LOCKED,           /* GIL: an int, 1 while it is held */
	MEMORY_GIL_SIZE,         /* GIL: its size */
	MEMORY_FILE,             /* code: co_filename, a str */
	MEMORY_TABLE,            /* code: co_linetable, or co_lnotab before 3.10, bytes */
	MEMORY_INSTRUCTIONS,     /* code: the first one; 0 before 3.11, which counts them */
	MEMORY_SIZE,             /* bytes: their number */
	MEMORY_BYTES,            /* bytes: the first one */
	MEMORY_LENGTH,           /* str: its length in characters */
	MEMORY_WIDE_TEXT,        /* str: the characters of a compact string that is not ASCII */
	MEMORY_MODULES,          /* PyInterpreterState: sys.modules, a dict */
	MEMORY_CACHED_KEYS,      /* PyHeapTypeObject: ht_cached_keys */
	MEMORY_DEBUGGER,         /* root: _Py_DebugOffsets.debugger_support; from 3.14 on */
	MEMORY_KEYS,
};

/**
 * @major, @minor: version of CPython; @free_threaded: its build without a GIL, "3.13t"
 * @shared: one GIL per process, identified by the link-time address of the first symbol in
 *          @identity that exists; otherwise one per interpreter, reached through @gil
 * @frame, @has_frame: how to find Python frames, if the definition contains it
 * @root, @memory: how to find the threads of a running process; @root is NULL if the definition
 * does not contain it
 */
struct probedef {
	unsigned major, minor;
	bool free_threaded;
	bool shared;
	bool has_frame;
	uint32_t frame[FRAME_KEYS];
	char *root;
	uint32_t memory[MEMORY_KEYS];
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
