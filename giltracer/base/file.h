/* SPDX-License-Identifier: MIT */
/* Whole files: map one, read a small one, write one so that nothing half-written stays. */
#ifndef GILTRACER_BASE_FILE_H
#define GILTRACER_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cleanup.h"
#include "error.h"

/* Opens a regular file for reading whose path may come from somebody else. A FIFO or a device is
 * refused without being opened: opening alone waits for a writer, or starts a watchdog. */
int file_open_regular(const char *path, struct error *err);

struct filemap {
	const uint8_t *data; /* NULL when size is 0 */
	size_t size;
};

/* Map a regular file read-only. Unmap with filemap_done. An empty file is size 0, no error. */
int filemap_open(struct filemap *ret, const char *path, struct error *err);
void filemap_done(struct filemap *map);

/*
 * The whole of a small file (sysfs, tracefs, /proc, JSON) as terminated text; caller frees. More
 * than max bytes is an error. ret_len may be NULL.
 */
int file_read(char **ret, size_t *ret_len, const char *path, size_t max, struct error *err);

/* The same of a file whose path may come from somebody else: a regular one. */
int file_read_regular(char **ret, size_t *ret_len, const char *path, size_t max, struct error *err);

/* Write text to an existing control file (sysctl, tracefs) in one write(2); append opens O_APPEND.
 */
int file_write_control(const char *path, const char *text, int append, struct error *err);

/*
 * A file that appears whole or not at all: open, write to ->out, commit; filewriter_done removes
 * what was not committed. A path that is not a regular file (/dev/stdout, a FIFO) is written in
 * place. commit reports every write error since open, ENOSPC for one.
 */
struct filewriter {
	FILE *out;
	char *path;
	char *temp; /* NULL when written in place */
};

int filewriter_open(struct filewriter *ret, const char *path, struct error *err);
int filewriter_commit(struct filewriter *w, struct error *err);
void filewriter_done(struct filewriter *w);

/* Call fn(data, path, err) for each file of a folder whose name ends in suffix, until a call
 * fails, in the order of their names. -1 then, or if the folder cannot be read. */
int folder_each(const char *dir, const char *suffix,
                int (*fn)(void *data, const char *path, struct error *err), void *data,
                struct error *err);

/* Remove a folder and everything below it, without following links. Missing is no error. */
int file_remove_tree(const char *path, struct error *err);

static inline void cleanup_filemap_done(struct filemap *map)
{
	filemap_done(map);
}

static inline void cleanup_filewriter_done(struct filewriter *w)
{
	filewriter_done(w);
}

#endif
