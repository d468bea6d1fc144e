/* SPDX-License-Identifier: MIT */
/*
 * Each thing that a register can have is kept once, as a node, so that two registers have the same
 * if and only if they have the same number. What is loaded from a known place is a node, too: the
 * chain of loads back to an argument is the way that the program itself went.
 */
#include "flow_value.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/addrtable.h"
#include "launch/flow.h"

/* What a value is counted from; LOAD: the 8 bytes at {a, b}; ARG: number a; UNKNOWN: what only
 * place a, b tells from others. */
struct node {
	enum flow_kind kind;
	uint64_t a;
	int64_t b;
};

struct flow_values {
	VEC(struct node) nodes;
	struct addrtable by_content;
};

struct flow_values *flow_values_new(void)
{
	struct flow_values *values = xcalloc(1, sizeof(*values));

	*vec_push(&values->nodes) = (struct node){ FLOW_NUMBER, 0, 0 };
	return values;
}

void flow_values_free(struct flow_values *values)
{
	vec_done(&values->nodes);
	addrtable_done(&values->by_content);
	free(values);
}

/* Nodes of equal content are one. Should two contents collide, they merely stay apart. */
struct flow_value flow_value_of(struct flow_values *values, enum flow_kind kind, uint64_t a,
                                int64_t b)
{
	uint64_t key = addrtable_mix(addrtable_mix(addrtable_mix(kind + 1) + a) + (uint64_t)b);
	uint32_t *slot = addrtable_slot(&values->by_content, key);
	const struct node *known = *slot ? &values->nodes.v[*slot - 1] : NULL;

	if (known && known->kind == kind && known->a == a && known->b == b)
		return (struct flow_value){ *slot - 1, 0 };
	values->by_content.used += !*slot;
	*vec_push(&values->nodes) = (struct node){ kind, a, b };
	*slot = (uint32_t)values->nodes.n;
	return (struct flow_value){ *slot - 1, 0 };
}

bool flow_on_stack(const struct flow_values *values, struct flow_value address)
{
	return values->nodes.v[address.node].kind == FLOW_STACK;
}

char *flow_expression(const struct flow *flow, struct flow_value value)
{
	CLEANUP(str_done) struct str text = { 0 };
	const struct node *node = &flow->values->nodes.v[value.node];
	unsigned depth = 0;

	if (value.off)
		return NULL;
	while (node->kind == FLOW_LOAD) {
		if (node->b < 0)
			return NULL;
		str_addf(&text, "+0x%llx(", (unsigned long long)node->b);
		depth++;
		node = &flow->values->nodes.v[node->a];
	}
	if (node->kind != FLOW_ARG || node->a > 4)
		return NULL;
	str_addf(&text, "arg%u", (unsigned)node->a);
	while (depth--)
		str_addc(&text, ')');
	return str_take(&text);
}

int flow_depth(const struct flow *flow, struct flow_value value)
{
	const struct node *node = &flow->values->nodes.v[value.node];
	int depth = 0;

	for (; node->kind == FLOW_LOAD; depth++)
		node = &flow->values->nodes.v[node->a];
	return node->kind == FLOW_ARG ? depth : -1;
}
