/* SPDX-License-Identifier: MIT */
/*
 * Which interpreter to use, and which file on disk contains its GIL. All of this is asked of the
 * interpreter itself, so that the answer is right for pyenv's shims, virtual environments, wrapper
 * scripts, and shared, static or relocated builds.
 */
#ifndef GILTRACER_PYTHON_PYTHON_H
#define GILTRACER_PYTHON_PYTHON_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"

/**
 * All strings are owned.
 * @command: the file to start, absolute: the requested command, found in PATH. Start this and not
 *           @executable, because a wrapper may set up an environment first
 * @executable: sys.executable
 * @image: the ELF file that the process runs
 * @library: the ELF file that contains the GIL functions: @image or its libpython
 * @implementation: platform.python_implementation(), "CPython" after python_find
 * @version: "3.11.7"
 * @viztracer: its version, NULL if the interpreter cannot import it, or python_find_viztracer was not called
 * @managed: with it: pip only installs in a virtual environment (PEP 668); false if @viztracer
 * @free_threaded: built without the GIL (PEP 703)
 * @debug: built with Py_DEBUG
 */
struct python {
	char *command;
	char *executable;
	char *image;
	char *library;
	char *implementation;
	char *version;
	char *viztracer;
	unsigned major, minor, micro;
	bool managed;
	bool free_threaded;
	bool debug;
};

/*
 * wanted: a path, or a name to look up in PATH; NULL is the interpreter of VIRTUAL_ENV, otherwise
 * python3, otherwise python. to_run: a program will run by it, in the current folder. Starts the
 * interpreter, without the program. If another user controls its file, and we are root, it
 * runs with that user's rights, and inherits nothing of ours. Errors, which name what was found: ENOENT
 * not found, EACCES cannot be executed, ENOTSUP another implementation or a version below 3.6. Free
 * with python_free.
 */
int python_find(struct python **ret, const char *wanted, bool to_run, struct error *err);

/* The file that wanted names, absolute, as found by python_find; nothing is started. Caller
 * frees. */
int python_command(char **ret, const char *wanted, struct error *err);

/* Whether VizTracer is installed: starts the interpreter again. to_run: as in python_find. */
void python_find_viztracer(struct python *python, bool to_run);

/* How to install VizTracer, as words that can follow a colon. Caller frees. */
char *python_viztracer_advice(const struct python *python);
void python_free(struct python *python);

/* Whether the library knows the layout of this free-threaded build: see members in preload/nogil.c. */
static inline bool python_is_known_free_threaded(const struct python *python)
{
	return python->free_threaded && python->major == 3 && python->minor == 13;
}

DEFINE_CLEANUP(struct python *, python_free);

#endif
