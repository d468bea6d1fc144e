/* SPDX-License-Identifier: MIT */
/*
 * Files mapped into memory for reading, also if their owner shortens them meanwhile: reading a page
 * that no longer exists would end the process by SIGBUS. Instead, the rest of the mapping is then
 * zeros, and filemap_check returns an error that names the file.
 *
 * A file can change in any other way, too, so what has been checked must not be read again.
 */
#ifndef GILTRACER_BASE_FILEMAP_H
#define GILTRACER_BASE_FILEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct filemap_guard;

/* { 0 } is empty. Copies are valid until one of them is closed. */
struct filemap {
	const uint8_t *data; /* NULL when size is 0 */
	size_t size, dropped;
	struct filemap_guard *guard;
};

/* Map a file that file_open_member opens, read-only. Unmap with filemap_done. An empty file has size 0
 * and is not an error. */
int filemap_open(struct filemap *ret, const char *path, struct error *err);

/* The same for a file that is open, of at most max bytes. Changes by its writers are seen. */
int filemap_open_fd(struct filemap *ret, int fd, const char *path, size_t max, struct error *err);

/* The same for a library that writes to the memory, which does not change the file. */
int filemap_open_copy(struct filemap *ret, int fd, const char *path, struct error *err);

/* The same for a file that a library has mapped, and unmaps after filemap_done. */
void filemap_watch(struct filemap *ret, const void *data, size_t size, const char *path);

void filemap_done(struct filemap *map);

/* The bytes before offset will hardly be read again: takes no memory for them, in steps, since each costs a
 * system call. */
#define FILEMAP_DROP_STEP (1U << 20)
void filemap_drop_to(struct filemap *map, size_t offset);

static inline void filemap_drop(struct filemap *map, size_t offset)
{
	if (map->size && offset >= map->dropped + FILEMAP_DROP_STEP)
		filemap_drop_to(map, offset);
}

/* Whether some of the bytes that were read are zeros that are not in the file. */
bool filemap_is_cut(const struct filemap *map);

/* The same as an error: "PATH: became shorter while it was read". */
int filemap_check(const struct filemap *map, struct error *err);

/* The same for all that are open. */
int filemap_check_all(struct error *err);

/* Has to be called before a library maps a file by itself: a page that no longer exists is then
 * zeros, too. */
void filemap_guard_all(void);

DEFINE_CLEANUP_IN(struct filemap, filemap_done);

#endif
