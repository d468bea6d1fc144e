/* SPDX-License-Identifier: MIT */
/* Finds the part of a function that the compiler moved away, by the jumps of the function that lead
 * there. */
#include <gelf.h>

#include "base/idmap.h"
#include "base/vec.h"
#include "binary/x86.h"
#include "binary/module.h"
#include "binary/segments.h"
#include "binary/symbolize.h"

/* Calls at the end of a function are jumps, too, but to starts of functions. By chance, one byte in
 * a million looks like a jump to some place. */
#define JUMPS_MIN 4

#define FUNCTION_MAX (1u << 20)

struct target {
	uint64_t part;
	unsigned jumps;
};

struct targets {
	VEC(struct target) v;
	struct idmap by_part;
};

static void count(struct targets *targets, uint64_t part)
{
	uint32_t at;

	if (idmap_add(&targets->by_part, part, (uint32_t)targets->v.n, &at))
		*vec_push(&targets->v) = (struct target){ part, 0 };
	targets->v.v[at].jumps++;
}

static bool most(const struct targets *targets, uint64_t *ret)
{
	unsigned jumps = JUMPS_MIN - 1;

	for (size_t i = 0; i < targets->v.n; i++) {
		if (targets->v.v[i].jumps > jumps) {
			jumps = targets->v.v[i].jumps;
			*ret = targets->v.v[i].part;
		}
	}
	return jumps >= JUMPS_MIN;
}

bool symbolize_part(struct module *module, const char *name, uint64_t *ret)
{
	const struct function_symbol *function = symbolize_find(module, name);
	const uint8_t *code = NULL;
	struct targets targets = { 0 };
	size_t len = 0;
	GElf_Ehdr ehdr;
	bool found;

	if (function && module->elf && gelf_getehdr(module->elf, &ehdr) &&
	    ehdr.e_machine == EM_X86_64 && function->end - function->start <= FUNCTION_MAX)
		code = segments_bytes(module->elf, function->start, function->end - function->start,
		                      &len);
	for (size_t i = 0; code && i < len; i++) {
		struct x86_branch b;
		uint64_t part;

		if (x86_wide_branch(code + i, len - i, function->start + i, &b) && !b.slot &&
		    b.kind != X86_CALL &&
		    (b.target < function->start || b.target >= function->end) &&
		    symbolize_start(module, b.target, &part) && part != b.target &&
		    part != function->start && !symbolize(module, part))
			count(&targets, part);
	}
	found = most(&targets, ret);
	vec_done(&targets.v);
	idmap_done(&targets.by_part);
	return found;
}
