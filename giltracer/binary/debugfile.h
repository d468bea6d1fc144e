/* SPDX-License-Identifier: MIT */
/*
 * What is left of a stripped file's symbols, wherever that is: a debug file below /usr/lib/debug or
 * beside it, the compressed table in its own .gnu_debugdata, or a debug file that a debuginfod
 * server has.
 *
 * $GILTRACER_DEBUGDIR replaces /usr/lib/debug; set but empty, nothing of this is looked for.
 */
#ifndef GILTRACER_BINARY_DEBUGFILE_H
#define GILTRACER_BINARY_DEBUGFILE_H

#include <stdbool.h>

struct Elf;
struct image;

enum debugfile_source {
	DEBUGFILE_NONE,
	DEBUGFILE_DISK,
	DEBUGFILE_MINI,   /* .gnu_debugdata: names and places of functions, nothing else */
	DEBUGFILE_SERVER, /* debuginfod */
};

/*
 * The best there is, in this order: on disk, server, own table. What is not of the same build is
 * not used: a build-id that differs, or without build-ids another checksum than .gnu_debuglink
 * says. ret is closed on entry. A server is asked only if $DEBUGINFOD_URLS names one and the file
 * has no symbol table of its own.
 */
enum debugfile_source debugfile_find(struct image *ret, const struct image *file,
                                     const char *build_id);

/* The debug file on disk of the file at a path, which is open as elf: a descriptor, and its path,
 * which the caller frees; -1 if there is none. */
int debugfile_open(char **ret, const char *path, struct Elf *elf);

/* Whether a server would be asked about the file at a path, which can take a while. */
bool debugfile_asks_server(const char *path);

/* A phrase; "" for NONE. */
const char *debugfile_source_name(enum debugfile_source source);

#endif
