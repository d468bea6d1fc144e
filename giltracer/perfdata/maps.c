/* SPDX-License-Identifier: MIT */
/* Address spaces of processes. */
#include "perfdata/maps.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"

/*
 * A treap: sorted by start, and each node's priority, which is random, is above those of its
 * children, so no order of mappings makes the tree deep. A child process shares its parent's nodes;
 * a shared node is copied before it is changed.
 */
struct map_node {
	uint32_t users, priority;
	struct map map;
	struct map_node *left, *right;
};

/* Spaces are allocated one by one, because callers borrow them. */
struct maps {
	VEC(struct address_space *) spaces;
	struct idmap by_pid;
	struct hash_seed seed;
	uint32_t generation;
};

struct maps *maps_new(void)
{
	struct maps *maps = xcalloc(1, sizeof(*maps));

	maps->seed = hash_seed();
	return maps;
}

static struct map_node *share(struct map_node *node)
{
	if (node)
		node->users++;
	return node;
}

/* Recursive, because the tree is not deep. */
static void drop(struct map_node *node)
{
	if (!node || --node->users)
		return;
	drop(node->left);
	drop(node->right);
	free(node);
}

/* Returns the node itself if it is not shared, otherwise a copy in its place. */
static struct map_node *own(struct map_node *node)
{
	struct map_node *copy;

	if (node->users == 1)
		return node;
	copy = xcalloc(1, sizeof(*copy));
	*copy = *node;
	copy->users = 1;
	share(copy->left);
	share(copy->right);
	drop(node);
	return copy;
}

/* Splits the tree node into *ret_below, the mappings that start below address, and *ret_rest. */
static void split(struct map_node *node, uint64_t address, struct map_node **ret_below,
                  struct map_node **ret_rest)
{
	if (!node) {
		*ret_below = *ret_rest = NULL;
		return;
	}
	node = own(node);
	if (node->map.start < address) {
		split(node->right, address, &node->right, ret_rest);
		*ret_below = node;
	} else {
		split(node->left, address, ret_below, &node->left);
		*ret_rest = node;
	}
}

/* Merges two trees; all mappings of below start below those of rest. */
static struct map_node *merge(struct map_node *below, struct map_node *rest)
{
	struct map_node *top;

	if (!below || !rest)
		return below ? below : rest;
	if (below->priority >= rest->priority) {
		top = own(below);
		top->right = merge(top->right, rest);
	} else {
		top = own(rest);
		top->left = merge(below, top->left);
	}
	return top;
}

static struct map_node *node_new(struct maps *maps, const struct map *map)
{
	struct map_node *node = xcalloc(1, sizeof(*node));
	/* Hashed twice, because hashes of consecutive numbers are not independent of each other. */
	uint64_t hash = hash_number(maps->seed, hash_number(maps->seed, maps->generation));

	*node = (struct map_node){ .users = 1, .priority = (uint32_t)hash, .map = *map };
	return node;
}

void maps_free(struct maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->spaces.n; i++) {
		drop(maps->spaces.v[i]->root);
		free(maps->spaces.v[i]);
	}
	vec_done(&maps->spaces);
	idmap_done(&maps->by_pid);
	free(maps);
}

struct address_space *maps_space(struct maps *maps, uint32_t pid)
{
	struct address_space *space;
	uint32_t at;

	if (!idmap_add(&maps->by_pid, pid, (uint32_t)maps->spaces.n, &at))
		return maps->spaces.v[at];
	space = xcalloc(1, sizeof(*space));
	space->pid = pid;
	*vec_push(&maps->spaces) = space;
	return space;
}

/* The last mapping that starts below address. */
static const struct map *last_below(const struct map_node *node, uint64_t address)
{
	const struct map *found = NULL;

	while (node) {
		if (node->map.start < address)
			found = &node->map;
		node = node->map.start < address ? node->right : node->left;
	}
	return found;
}

const struct map *space_from(const struct address_space *space, uint64_t address)
{
	const struct map *found = NULL;

	for (const struct map_node *node = space->root; node;) {
		if (node->map.end > address)
			found = &node->map;
		node = node->map.end > address ? node->left : node->right;
	}
	return found;
}

const struct map *space_find(const struct address_space *space, uint64_t address)
{
	const struct map *map = space_from(space, address);

	return map && map->start <= address ? map : NULL;
}

/* The part of map from address on, or NULL. */
static struct map_node *tail_of(struct maps *maps, const struct map *map, uint64_t address)
{
	struct map tail;

	if (!map || map->end <= address)
		return NULL;
	tail = *map;
	tail.offset += address - map->start;
	tail.start = address;
	return node_new(maps, &tail);
}

/* Ends the last mapping of a tree at address, if it extends beyond it. */
static struct map_node *trim(struct map_node *node, uint64_t address)
{
	const struct map *last = last_below(node, UINT64_MAX);
	struct map_node *rest;

	if (!last || last->end <= address)
		return node;
	split(node, last->start, &node, &rest);
	rest->map.end = address;
	return merge(node, rest);
}

void maps_mmap(struct maps *maps, uint32_t pid, uint64_t start, uint64_t length, uint64_t offset,
               struct module *module)
{
	struct address_space *space = maps_space(maps, pid);
	struct map map = { start, start + length, offset, module };
	struct map_node *below, *covered, *tail, *rest;

	if (map.end <= map.start)
		return;
	space->generation = ++maps->generation;
	tail = tail_of(maps, last_below(space->root, map.end), map.end);
	split(space->root, start, &below, &rest);
	split(rest, map.end, &covered, &rest);
	drop(covered);
	below = merge(trim(below, start), node_new(maps, &map));
	space->root = merge(merge(below, tail), rest);
}

void maps_fork(struct maps *maps, uint32_t pid, uint32_t parent_pid)
{
	struct address_space *child, *parent;

	if (pid == parent_pid)
		return;
	child = maps_space(maps, pid);
	parent = maps_space(maps, parent_pid);
	drop(child->root);
	child->root = share(parent->root);
	child->generation = ++maps->generation;
}

void maps_exec(struct maps *maps, uint32_t pid)
{
	struct address_space *space = maps_space(maps, pid);

	drop(space->root);
	space->root = NULL;
	space->generation = ++maps->generation;
}
