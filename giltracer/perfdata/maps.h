/* SPDX-License-Identifier: MIT */
/* The mappings of each process, derived from MMAP, FORK and exec records. */
#ifndef GILTRACER_PERFDATA_MAPS_H
#define GILTRACER_PERFDATA_MAPS_H

#include <stdint.h>

#include "binary/module.h"

/* [start, end) maps module from file offset on. */
struct map {
	uint64_t start, end, offset;
	struct module *module;
};

/**
 * @generation: changes whenever the mappings may have changed, and differs from that of any other
 *              space; 0: nothing was ever mapped
 * @root: a tree of non-overlapping mappings, sorted by start; processes share parts of it
 */
struct address_space {
	uint32_t pid;
	uint32_t generation;
	struct map_node *root;
};

struct maps;

struct maps *maps_new(void);
void maps_free(struct maps *maps);

/* Adds a mapping of length bytes, which replaces what it covers. Empty mappings and such that wrap
 * around are ignored. */
void maps_mmap(struct maps *maps, uint32_t pid, uint64_t start, uint64_t length, uint64_t offset,
               struct module *module);

/* The child starts with the parent's mappings. A new thread (pid == parent_pid) changes nothing. */
void maps_fork(struct maps *maps, uint32_t pid, uint32_t parent_pid);

/* The process executes another program, so nothing is mapped any more. */
void maps_exec(struct maps *maps, uint32_t pid);

/* The process's space, created if necessary. Borrowed until maps_free. */
struct address_space *maps_space(struct maps *maps, uint32_t pid);

/* The mapping at address or, if there is none, the next one above, or NULL. Borrowed until the
 * space's generation changes. */
const struct map *space_from(const struct address_space *space, uint64_t address);

/* The mapping at address, or NULL. Borrowed as for space_from. */
const struct map *space_find(const struct address_space *space, uint64_t address);

/* The file offset of an address in map. */
static inline uint64_t map_offset(const struct map *map, uint64_t address)
{
	return address - map->start + map->offset;
}

#endif
