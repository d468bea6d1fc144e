/* SPDX-License-Identifier: MIT */
/*
 * The symbols of a stripped file: in a debug file below /usr/lib/debug or next to the file, in the
 * compressed table in its own .gnu_debugdata, or in a debug file from a debuginfod server.
 *
 * $GILTRACER_DEBUGDIR replaces /usr/lib/debug; if it is set but empty, none of these is used.
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
 * Finds the best source, in this order: disk, server, own table. Debug files of another build are
 * ignored, that is, with another build-id or, without build-ids, with another checksum than in
 * .gnu_debuglink. ret is closed on entry. A server is asked only if $DEBUGINFOD_URLS names one and
 * the file has no symbol table of its own.
 */
enum debugfile_source debugfile_find(struct image *ret, const struct image *file,
                                     const char *build_id);

/* The debug file on disk for the file at path, which is open as elf. Returns a descriptor and its
 * path, which the caller frees, or -1. */
int debugfile_open(char **ret, const char *path, struct Elf *elf);

/* Whether a server would be asked about the file at path, which can take a while. */
bool debugfile_asks_server(const char *path);

/* A short description; "" for NONE. */
const char *debugfile_source_name(enum debugfile_source source);

#endif
