/* SPDX-License-Identifier: MIT */
/* The symbols that libdwfl finds, by address. */
#include "binary/symtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/search.h"
#include "base/vec.h"
#include "binary/fdetab.h"

/* rank: of several symbols at one address the highest names it. sized: its end is not our guess. */
struct candidate {
	struct symtab_function function;
	uint32_t rank;
	bool sized;
};

/* highest: a tree over all, as an array. highest[leaves + i] is the end of symbol i, and
 * highest[k] the higher of highest[2 * k] and highest[2 * k + 1]. leaves is a power of two, and
 * more than there are symbols. */
struct symtab {
	VEC(struct candidate) all;
	uint64_t *highest;
	size_t leaves;
};

void symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return;
	vec_done(&symtab->all);
	free(symtab->highest);
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

	if (x->function.start != y->function.start)
		return x->function.start < y->function.start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(y->function.name, x->function.name);
}

/* Keeps the best symbol of each start; one without a size ends at the next start. */
static void choose_names(struct symtab *tab)
{
	size_t n = 0;

	if (tab->all.n)
		qsort(tab->all.v, tab->all.n, sizeof(*tab->all.v), by_start);
	for (size_t i = 0; i < tab->all.n; i++)
		if (i + 1 == tab->all.n ||
		    tab->all.v[i].function.start != tab->all.v[i + 1].function.start)
			tab->all.v[n++] = tab->all.v[i];
	tab->all.n = n;
	for (size_t i = 0; i < n; i++) {
		struct symtab_function *s = &tab->all.v[i].function;

		if (s->end == s->start)
			s->end = i + 1 < n ? tab->all.v[i + 1].function.start : s->start + 1;
	}
}

static void make_highest(struct symtab *tab)
{
	uint64_t *highest;

	for (tab->leaves = 1; tab->leaves <= tab->all.n;)
		tab->leaves *= 2;
	tab->highest = highest = xcalloc(2 * tab->leaves, sizeof(*highest));
	for (size_t i = 0; i < tab->all.n; i++)
		highest[tab->leaves + i] = tab->all.v[i].function.end;
	for (size_t k = tab->leaves; k-- > 1;)
		highest[k] = highest[2 * k] > highest[2 * k + 1] ? highest[2 * k]
		                                                 : highest[2 * k + 1];
}

/* The last of the first n symbols that ends above vaddr; n if there is none. */
static size_t last_above(const struct symtab *tab, size_t n, uint64_t vaddr)
{
	for (size_t k = tab->leaves + n; k > 1; k /= 2) {
		/* What is left of an odd node, and has the same parent, is all before n. */
		if (k % 2 == 0 || tab->highest[k - 1] <= vaddr)
			continue;
		for (k--; k < tab->leaves;)
			k = 2 * k + (tab->highest[2 * k + 1] > vaddr);
		return k - tab->leaves;
	}
	return n;
}

struct symtab *symtab_new(Dwfl_Module *file)
{
	struct symtab *tab = xcalloc(1, sizeof(*tab));
	int n = dwfl_module_getsymtab(file);

	for (int i = 0; i < n; i++) {
		GElf_Word shndx;
		GElf_Sym sym;
		GElf_Addr addr;
		Elf *elf = NULL;
		const char *name = dwfl_module_getsym_info(file, i, &sym, &addr, &shndx, &elf,
		                                           NULL);

		if (!is_code(&sym, shndx, elf, name))
			continue;
		addr = sym.st_value;
		*vec_push(&tab->all) = (struct candidate){
			.function = { addr, addr + sym.st_size, name },
			.rank = rank_of(name, &sym),
			.sized = sym.st_size != 0,
		};
	}
	choose_names(tab);
	make_highest(tab);
	return tab;
}

/* A symbol without a size must not swallow a function that has no symbol. */
static bool reaches(const struct candidate *c, const struct fdetab *starts, uint64_t vaddr)
{
	uint64_t start, end;

	if (c->function.end <= vaddr)
		return false;
	return c->sized || !fdetab_find(starts, vaddr, &start, &end) || start <= c->function.start;
}

const struct symtab_function *symtab_at(const struct symtab *symtab, const struct fdetab *starts,
                                        uint64_t vaddr)
{
	size_t n = SEARCH_AFTER(symtab->all.v, symtab->all.n, function.start, vaddr);
	size_t at = last_above(symtab, n, vaddr);

	/* Symbols may be nested: the one that starts last and still reaches vaddr. One without a
	 * size ends at the next, so that only the last can be one that does not reach it. */
	if (at < n && !reaches(&symtab->all.v[at], starts, vaddr)) {
		n = at;
		at = last_above(symtab, n, vaddr);
	}
	return at < n ? &symtab->all.v[at].function : NULL;
}

const struct symtab_function *symtab_find(const struct symtab *symtab, const char *name)
{
	for (size_t i = 0; i < symtab->all.n; i++)
		if (!strcmp(symtab->all.v[i].function.name, name))
			return &symtab->all.v[i].function;
	return NULL;
}
