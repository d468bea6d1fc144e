/* SPDX-License-Identifier: MIT */
/*
 * Each content of a register is stored once, as a node, so two registers have the same content if
 * and only if they have the same node. A load from a known place is a node, too: the chain of loads
 * back to an argument is the path that the program itself took.
 */
#include "binary/symexec_value.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/str.h"
#include "binary/symexec.h"

/* The base of a value. LOAD: the 8 bytes at {a, b}; ARG: number a; UNKNOWN: a value identified only
 * by a and b. */
struct node {
	enum symexec_kind kind;
	uint64_t a;
	int64_t b;
};

struct symexec_values {
	VEC(struct node) nodes;
	struct hash_seed seed;
	struct idmap by_content;
};

struct symexec_values *symexec_values_new(void)
{
	struct symexec_values *values = xcalloc(1, sizeof(*values));

	values->seed = hash_seed();
	*vec_push(&values->nodes) = (struct node){ SYMEXEC_NUMBER, 0, 0 };
	return values;
}

void symexec_values_free(struct symexec_values *values)
{
	vec_done(&values->nodes);
	idmap_done(&values->by_content);
	free(values);
}

/* Nodes with equal content are shared. If the keys of two contents collide, they are only not
 * shared. */
struct symexec_value symexec_value_of(struct symexec_values *values, enum symexec_kind kind,
                                      uint64_t a, int64_t b)
{
	struct hash_seed seed = values->seed;
	uint64_t key = hash_more(seed, hash_more(seed, kind, a), (uint64_t)b);
	uint32_t at = idmap_get(&values->by_content, key);
	const struct node *known = at == IDMAP_NONE ? NULL : &values->nodes.v[at];

	if (known && known->kind == kind && known->a == a && known->b == b)
		return (struct symexec_value){ at, 0 };
	at = (uint32_t)values->nodes.n;
	*vec_push(&values->nodes) = (struct node){ kind, a, b };
	idmap_set(&values->by_content, key, at);
	return (struct symexec_value){ at, 0 };
}

bool symexec_on_stack(const struct symexec_values *values, struct symexec_value address)
{
	return values->nodes.v[address.node].kind == SYMEXEC_STACK;
}

char *symexec_expression(const struct symexec *run, struct symexec_value value)
{
	CLEANUP(str_done) struct str text = { 0 };
	const struct node *node = &run->values->nodes.v[value.node];
	unsigned depth = 0;

	if (value.off)
		return NULL;
	while (node->kind == SYMEXEC_LOAD) {
		if (node->b < 0)
			return NULL;
		str_addf(&text, "+0x%llx(", (unsigned long long)node->b);
		depth++;
		node = &run->values->nodes.v[node->a];
	}
	if (node->kind != SYMEXEC_ARG || node->a > 4)
		return NULL;
	str_addf(&text, "arg%u", (unsigned)node->a);
	while (depth--)
		str_addc(&text, ')');
	return str_take(&text);
}

int symexec_depth(const struct symexec *run, struct symexec_value value)
{
	const struct node *node = &run->values->nodes.v[value.node];
	int depth = 0;

	for (; node->kind == SYMEXEC_LOAD; depth++)
		node = &run->values->nodes.v[node->a];
	return node->kind == SYMEXEC_ARG ? depth : -1;
}
