/* SPDX-License-Identifier: MIT */
/* The part of a function that the compiler moved away, by the jumps of the function that lead
 * there. */
#include <libelf.h>
#include <gelf.h>

#include "base/vec.h"
#include "base/x86.h"
#include "perfdata/module.h"
#include "perfdata/symbolize.h"

/* Calls at the end of a function are jumps as well, to beginnings; one byte in a million looks like
 * a jump to somewhere by chance. */
#define JUMPS_MIN 4

#define FUNCTION_MAX (1u << 20)

struct target {
	uint64_t part;
	unsigned jumps;
};

struct targets {
	VEC(struct target) v;
};

/* The file's bytes of [start, end); NULL if it does not load them. */
static const uint8_t *bytes_of(Elf *elf, uint64_t start, uint64_t end)
{
	size_t n = 0;

	if (elf_getphdrnum(elf, &n) != 0 || end - start > FUNCTION_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr phdr;
		Elf_Data *data;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    start < phdr.p_vaddr || end > phdr.p_vaddr + phdr.p_filesz)
			continue;
		data = elf_getdata_rawchunk(elf, (off_t)(phdr.p_offset + (start - phdr.p_vaddr)),
		                            end - start, ELF_T_BYTE);
		return data ? data->d_buf : NULL;
	}
	return NULL;
}

static void count(struct targets *targets, uint64_t part)
{
	for (size_t i = 0; i < targets->v.n; i++) {
		if (targets->v.v[i].part == part) {
			targets->v.v[i].jumps++;
			return;
		}
	}
	*vec_push(&targets->v) = (struct target){ part, 1 };
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
	const struct symbol *function = symbolize_find(module, name);
	const uint8_t *code = NULL;
	struct targets targets = { 0 };
	GElf_Ehdr ehdr;
	bool found;

	if (function && module->elf && gelf_getehdr(module->elf, &ehdr) &&
	    ehdr.e_machine == EM_X86_64)
		code = bytes_of(module->elf, function->start, function->end);
	for (uint64_t at = function ? function->start : 0; code && at < function->end; at++) {
		uint64_t target = x86_jump_target(code + (at - function->start), function->end - at,
		                                  at);
		uint64_t part;

		if (target && (target < function->start || target >= function->end) &&
		    symbolize_start(module, target, &part) && part != target &&
		    part != function->start && !symbolize(module, part))
			count(&targets, part);
	}
	found = most(&targets, ret);
	vec_done(&targets.v);
	return found;
}
