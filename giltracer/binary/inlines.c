/* SPDX-License-Identifier: MIT */
/* Uses libdw: walks the scopes around an address, from a function to the copies inlined in it. */
#include "binary/inlines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "binary/symbols.h"

/* An inlined copy gets its name from the original function. */
static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));
}

static bool is_scope(Dwarf_Die *die, uint64_t address)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
		return dwarf_haspc(die, address) > 0;
	default:
		return false;
	}
}

/* Moves from a scope around the address to the next one inside. */
static bool next_scope(Dwarf_Die *die, uint64_t address)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		if (is_scope(&child, address)) {
			*die = child;
			return true;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* dwarf_getscopes would find nothing if a copy is of a function of another unit. */
enum inlines_answer inlines_ask(struct symbols *symbols, uint64_t address, const char *name,
                                char **ret_into)
{
	Dwarf *dwarf = symbols_dwarf(symbols);
	enum inlines_answer answer = INLINES_SILENT;
	Dwarf_Die scope;

	*ret_into = NULL;
	if (!dwarf || !dwarf_addrdie(dwarf, address, &scope))
		return INLINES_SILENT;
	while (next_scope(&scope, address)) {
		const char *found = name_of(&scope);

		if (!found)
			continue;
		if (!*ret_into) {
			*ret_into = xstrdup(found);
			answer = INLINES_NO;
		}
		if (!strcmp(found, name))
			answer = INLINES_YES;
	}
	return answer;
}
