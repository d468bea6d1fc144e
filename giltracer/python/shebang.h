/* SPDX-License-Identifier: MIT */
/* The first line of a script, "#!INTERPRETER OPTION": the interpreter that would run the script if
 * it were executed. */
#ifndef GILTRACER_PYTHON_SHEBANG_H
#define GILTRACER_PYTHON_SHEBANG_H

#include <stdbool.h>

#include "base/vec.h"

/**
 * All strings are owned.
 * @line: the text after "#!", for a person; NULL if there is none
 * @python: the interpreter, a path, or a name to look up in PATH; NULL if the line names no Python
 * @options: one-letter options without values, such as "-Es", before the script
 * @left_out: there are other options
 */
struct shebang {
	char *line;
	char *python;
	VEC(char *) options;
	bool left_out;
};

/*
 * Reads it as Linux, env(1) and env -S do. If the path is too long for the kernel, or contains
 * blanks, installers write "#!/bin/sh", and "'''exec' PYTHON ..." on the second line; that is read,
 * too. A script that cannot be read has no first line.
 */
void shebang_read(struct shebang *ret, const char *script);

void shebang_done(struct shebang *shebang);

#endif
