/* SPDX-License-Identifier: MIT */
/* Whole files: read a small one, or write one so that no partial file remains. */
#ifndef GILTRACER_BASE_FILE_H
#define GILTRACER_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cleanup.h"
#include "error.h"

/* Opens a regular file for reading; use it if the path may be chosen by another user. A FIFO, a
 * device, or a file of procfs, sysfs or tracefs is refused without being opened, because opening or
 * reading may wait for a writer, start a watchdog, or remove what is read. */
int file_open_regular(const char *path, struct error *err);

/* The same for a file in a folder of giltracer's, such as a session, which may be of another user: path
 * may not be a link, since what is behind it may be readable to us only. */
int file_open_member(const char *path, struct error *err);

/* Opens such a file to append to it, or makes one that only its user may read. */
int file_open_append(const char *path, struct error *err);

/*
 * Reads a small file (sysfs, tracefs, /proc, JSON) as terminated text; caller frees. More than max
 * bytes is an error. ret_len may be NULL.
 */
int file_read(char **ret, size_t *ret_len, const char *path, size_t max, struct error *err);

/* The same for a file that file_open_member opens. */
int file_read_member(char **ret, size_t *ret_len, const char *path, size_t max, struct error *err);

/* Write text to an existing control file (sysctl, tracefs) in one write(2); if append, with
 * O_APPEND. */
int file_write_control(const char *path, const char *text, int append, struct error *err);

/*
 * A file that appears complete or not at all: open, write to ->out, commit; filewriter_done removes
 * what was not committed. A FIFO of ours that is read, and what is named in /dev or /proc
 * (/dev/stdout, /dev/fd/63), is written in place. Devices with other names, FIFOs of other users and
 * block devices are refused, because whoever can write a folder can put them or links to them there.
 * commit reports every write error since open, for instance ENOSPC.
 */
struct filewriter {
	FILE *out;
	char *path;
	char *temp; /* NULL when written in place, or while it has no name */
	bool unnamed;
};

/* Whether the path is written in place; -1: it is refused. Opens nothing. */
int filewriter_check(const char *path, struct error *err);

int filewriter_open(struct filewriter *ret, const char *path, struct error *err);
int filewriter_commit(struct filewriter *w, struct error *err);
void filewriter_done(struct filewriter *w);

/* Calls fn(data, path, err) for each file of a folder whose name ends in suffix, in the order of
 * the names, until a call fails; once for a file that has several names. Returns -1 if a call fails
 * or if the folder cannot be read. */
int folder_each(const char *dir, const char *suffix,
                int (*fn)(void *data, const char *path, struct error *err), void *data,
                struct error *err);

/* Remove a folder and everything below it, without following links. A missing folder is not an
 * error. */
int file_remove_tree(const char *path, struct error *err);

/* The same for the open folder, which has this name in the folder in: if it has been moved, what is there now
 * loses nothing. -1: see errno. */
int file_remove_folder(int in, const char *name, int folder);

DEFINE_CLEANUP_IN(struct filewriter, filewriter_done);

#endif
