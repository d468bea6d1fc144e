/* SPDX-License-Identifier: MIT */
/* Looks up a module's tables and its DWARF scopes. */
#include "binary/symbolize.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "binary/fdetab.h"
#include "binary/module.h"

#define SCOPE_DEPTH 64

const struct function_symbol *symbolize(struct module *module, uint64_t vaddr)
{
	const struct function_table *table = module_functions(module);

	return table ? function_table_at(table, module_fdetab(module), vaddr) : NULL;
}

const struct function_symbol *symbolize_find(struct module *module, const char *name)
{
	const struct function_table *table = module_functions(module);

	return table ? function_table_find(table, name) : NULL;
}

bool symbolize_start(struct module *module, uint64_t vaddr, uint64_t *ret)
{
	const struct fdetab *fdetab = module_fdetab(module);
	uint64_t end;

	return fdetab && fdetab_find(fdetab, vaddr, ret, &end);
}

struct scopes {
	const char *names[SCOPE_DEPTH]; /* outermost first */
	size_t n;
};

/* Walks from die down to the innermost scope at pc, and collects inlined functions on the way. */
static void descend(Dwarf_Die die, Dwarf_Addr pc, struct scopes *scopes, unsigned depth)
{
	Dwarf_Die child;

	if (depth == SCOPE_DEPTH || dwarf_child(&die, &child) != 0)
		return;
	do {
		int tag = dwarf_tag(&child);
		const char *name;

		if (tag == DW_TAG_namespace || tag == DW_TAG_module) {
			descend(child, pc, scopes, depth + 1);
			continue;
		}
		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine &&
		    tag != DW_TAG_lexical_block)
			continue;
		if (dwarf_haspc(&child, pc) != 1)
			continue;
		name = tag == DW_TAG_inlined_subroutine ? dwarf_diename(&child) : NULL;
		if (name && scopes->n < SCOPE_DEPTH)
			scopes->names[scopes->n++] = name;
		descend(child, pc, scopes, depth + 1);
		return;
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* The compilation unit of an address. Not every compiler writes .debug_aranges (clang does not);
 * without it each unit must be checked. */
static Dwarf_Die *find_unit(struct module *module, Dwarf_Addr pc, Dwarf_Addr *bias)
{
	Dwarf_Die *cu = dwfl_module_addrdie(module->dwfl_module, pc, bias);

	if (cu)
		return cu;
	while ((cu = dwfl_module_nextcu(module->dwfl_module, cu, bias)))
		if (dwarf_haspc(cu, pc - *bias) == 1)
			return cu;
	return NULL;
}

size_t symbolize_inlined(struct module *module, uint64_t vaddr, const char **ret, size_t max)
{
	struct scopes scopes = { .n = 0 };
	Dwarf_Addr bias = 0;
	Dwarf_Die *cu;
	size_t n = 0;

	if (!module_open(module))
		return 0;
	cu = find_unit(module, vaddr + module->bias, &bias);
	if (!cu)
		return 0;
	descend(*cu, vaddr + module->bias - bias, &scopes, 0);
	while (scopes.n > 0 && n < max)
		ret[n++] = scopes.names[--scopes.n];
	return n;
}
