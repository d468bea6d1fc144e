/* SPDX-License-Identifier: MIT */
/* What was mapped where: one address space per process, kept by MMAP, FORK and exec records. */
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
 * @generation: another one whenever what is mapped may have changed, and of no other space; 0 where
 *              nothing ever was
 * @root: a tree by start, none overlapping; processes share parts of it
 */
struct address_space {
	uint32_t pid;
	uint32_t generation;
	struct map_node *root;
};

struct maps;

struct maps *maps_new(void);
void maps_free(struct maps *maps);

/* A mapping of length bytes; it replaces what it covers. Empty ones and such that wrap are left
 * out. */
void maps_mmap(struct maps *maps, uint32_t pid, uint64_t start, uint64_t length, uint64_t offset,
               struct module *module);

/* The child starts with the parent's mappings. A new thread (pid == parent_pid) changes nothing. */
void maps_fork(struct maps *maps, uint32_t pid, uint32_t parent_pid);

/* The process executes another program: nothing is mapped any more. */
void maps_exec(struct maps *maps, uint32_t pid);

/* The process's space; it is made if it is not known. Borrowed until maps_free. */
struct address_space *maps_space(struct maps *maps, uint32_t pid);

/* The mapping that is there or, if there is none, the next one above; NULL if there is none
 * either. Borrowed until the space's generation changes. */
const struct map *space_from(const struct address_space *space, uint64_t address);

/* NULL if nothing known is mapped there. Borrowed as that of space_from. */
const struct map *space_find(const struct address_space *space, uint64_t address);

/* The file offset of an address in map. */
static inline uint64_t map_offset(const struct map *map, uint64_t address)
{
	return address - map->start + map->offset;
}

#endif
