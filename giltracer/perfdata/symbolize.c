/* SPDX-License-Identifier: MIT */
/* Symbol tables and DWARF scopes of a module. */
#include "perfdata/symbolize.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/search.h"
#include "base/vec.h"
#include "perfdata/module.h"

#define SCOPE_DEPTH 64

/* rank: of several symbols at one address the highest names it. sized: its end is not our guess. */
struct candidate {
	struct symbol symbol;
	uint32_t rank;
	bool sized;
};

/* limit[i]: the highest end among the symbols 0 … i, so that a search can stop early. */
struct symtab {
	VEC(struct candidate) all;
	uint64_t *limit;
};

void symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return;
	vec_done(&symtab->all);
	free(symtab->limit);
	free(symtab);
}

static uint32_t rank_of(const char *name, const GElf_Sym *sym)
{
	size_t underscores = strspn(name, "_"), len = strlen(name);
	uint32_t rank = sym->st_size != 0;

	rank = rank << 1 | (GELF_ST_BIND(sym->st_info) != STB_WEAK);
	rank = rank << 1 | (GELF_ST_BIND(sym->st_info) == STB_GLOBAL);
	rank = rank << 8 | (255 - (underscores < 255 ? underscores : 255));
	return rank << 16 | (len < UINT16_MAX ? len : UINT16_MAX);
}

static bool in_code(Elf *elf, GElf_Word shndx)
{
	Elf_Scn *scn = elf_getscn(elf, shndx);
	GElf_Shdr shdr;

	return scn && gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_EXECINSTR;
}

static bool is_code(const GElf_Sym *sym, GElf_Word shndx, Elf *elf, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (!name || !name[0] || shndx == SHN_UNDEF)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && elf && shndx < SHN_LORESERVE && in_code(elf, shndx);
}

static int by_start(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->symbol.start != y->symbol.start)
		return x->symbol.start < y->symbol.start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(y->symbol.name, x->symbol.name);
}

/* Keeps the best name of each start; one without a size reaches to the next start. */
static void settle(struct symtab *tab)
{
	uint64_t limit = 0;
	size_t n = 0;

	if (tab->all.n)
		qsort(tab->all.v, tab->all.n, sizeof(*tab->all.v), by_start);
	for (size_t i = 0; i < tab->all.n; i++)
		if (i + 1 == tab->all.n ||
		    tab->all.v[i].symbol.start != tab->all.v[i + 1].symbol.start)
			tab->all.v[n++] = tab->all.v[i];
	tab->all.n = n;
	tab->limit = xcalloc(n + 1, sizeof(*tab->limit));
	for (size_t i = 0; i < n; i++) {
		struct symbol *s = &tab->all.v[i].symbol;

		if (s->end == s->start)
			s->end = i + 1 < n ? tab->all.v[i + 1].symbol.start : s->start + 1;
		limit = s->end > limit ? s->end : limit;
		tab->limit[i] = limit;
	}
}

static struct symtab *load(struct module *module)
{
	struct symtab *tab = xcalloc(1, sizeof(*tab));
	int n = dwfl_module_getsymtab(module->dwfl_module);

	for (int i = 0; i < n; i++) {
		GElf_Word shndx;
		GElf_Sym sym;
		GElf_Addr addr;
		Elf *elf = NULL;
		const char *name = dwfl_module_getsym_info(module->dwfl_module, i, &sym, &addr,
		                                           &shndx, &elf, NULL);

		if (!is_code(&sym, shndx, elf, name))
			continue;
		addr = sym.st_value;
		*vec_push(&tab->all) = (struct candidate){
			.symbol = { addr, addr + sym.st_size, name },
			.rank = rank_of(name, &sym),
			.sized = sym.st_size != 0,
		};
	}
	settle(tab);
	return tab;
}

/* A symbol without a size must not swallow a function that has no symbol. */
static bool reaches(struct module *module, const struct candidate *c, uint64_t vaddr)
{
	uint64_t start;

	if (c->symbol.end <= vaddr)
		return false;
	return c->sized || !symbolize_start(module, vaddr, &start) || start <= c->symbol.start;
}

const struct symbol *symbolize(struct module *module, uint64_t vaddr)
{
	const struct symtab *tab;
	size_t lo;

	if (!module_open(module))
		return NULL;
	if (!module->symtab)
		module->symtab = load(module);
	tab = module->symtab;
	lo = SEARCH_AFTER(tab->all.v, tab->all.n, symbol.start, vaddr);
	/* Symbols may be nested: the one that starts last and still reaches vaddr. */
	while (lo > 0 && tab->limit[lo - 1] > vaddr) {
		if (reaches(module, &tab->all.v[lo - 1], vaddr))
			return &tab->all.v[lo - 1].symbol;
		lo--;
	}
	return NULL;
}

const struct symbol *symbolize_find(struct module *module, const char *name)
{
	if (!module_open(module))
		return NULL;
	if (!module->symtab)
		module->symtab = load(module);
	for (size_t i = 0; i < module->symtab->all.n; i++)
		if (!strcmp(module->symtab->all.v[i].symbol.name, name))
			return &module->symtab->all.v[i].symbol;
	return NULL;
}

struct scopes {
	const char *names[SCOPE_DEPTH]; /* outermost first */
	size_t n;
};

/* Walks down from die to the innermost scope at pc, noting inlined functions on the way. */
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

/* The compilation unit of an address. Not every compiler writes .debug_aranges (clang does not),
 * and without them only the units themselves know. */
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
