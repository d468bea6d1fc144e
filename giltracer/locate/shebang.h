/* SPDX-License-Identifier: MIT */
/* The first line of a script, "#!INTERPRETER OPTION": who would run it if it were executed. */
#ifndef GILTRACER_LOCATE_SHEBANG_H
#define GILTRACER_LOCATE_SHEBANG_H

#include <stdbool.h>

#include "base/vec.h"

/**
 * All strings are owned.
 * @line: what follows "#!", for a person; NULL if there is none
 * @python: the interpreter, a path, or a name to look up in PATH; NULL if the line names no Python
 * @options: of one letter without a value, as "-Es", that stand before the script
 * @left_out: there are options that are not such
 */
struct shebang {
	char *line;
	char *python;
	VEC(char *) options;
	bool left_out;
};

/*
 * Read it as Linux, env(1) and env -S do. Installers write "#!/bin/sh" and "'''exec' PYTHON ..."
 * on the second line where the path is too long for the kernel, or has blanks; that is read, too. A
 * script that cannot be read has none.
 */
void shebang_read(struct shebang *ret, const char *script);

void shebang_done(struct shebang *shebang);

#endif
