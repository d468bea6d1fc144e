/* SPDX-License-Identifier: MIT */
/*
 * Which interpreter, and which file on disk holds its GIL. Everything is asked of the interpreter
 * itself, so that pyenv's shims, virtual environments, wrapper scripts and shared, static or
 * relocated builds all come out right.
 */
#ifndef GILTRACER_LOCATE_PYTHON_H
#define GILTRACER_LOCATE_PYTHON_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"

/**
 * All strings are owned.
 * @command: the file to start, absolute: what was asked for, found in PATH. Start this one and not
 *           @executable, since a wrapper may set up an environment first
 * @executable: sys.executable
 * @image: the ELF file that the process runs
 * @library: the ELF file that holds the GIL functions: @image or its libpython
 * @implementation: platform.python_implementation(), "CPython" after python_find
 * @version: "3.11.7"
 * @viztracer: its version, NULL if the interpreter cannot import it
 * @managed: pip installs nothing here, but in a virtual environment (PEP 668); false if @viztracer
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
 * wanted: a path, or a name to look up in PATH; NULL is the interpreter of VIRTUAL_ENV, else
 * python3, else python. Starts the interpreter twice, without the program. Errors: ENOENT not
 * found, EACCES cannot be executed, ENOTSUP another implementation or a version below 3.6, each
 * naming what was found. Free with python_free.
 */
int python_find(struct python **ret, const char *wanted, struct error *err);

/* The file that wanted names, absolute, as python_find finds it; nothing is started. Caller frees.
 */
int python_command(char **ret, const char *wanted, struct error *err);

/* How to get VizTracer where it is not, as words that can stand behind a colon. Caller frees. */
char *python_viztracer_advice(const struct python *python);
void python_free(struct python *python);

DEFINE_CLEANUP(struct python *, python_free);

#endif
