/* SPDX-License-Identifier: MIT */
/* x86-64: relocations name the imports, and .plt* sections jump through them. */
#include "binary/codemap.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "binary/fdetab.h"
#include "binary/image.h"
#include "binary/symbols.h"
#include "binary/x86.h"

/* A word that the loader writes. */
struct slot {
	uint64_t address;
	const char *import; /* NULL: the loader writes value */
	uint64_t value;
};

struct stub {
	uint64_t address;
	const char *import; /* NULL: the stub leads to target */
	uint64_t target;
};

/* branches: offsets in bytes at which a branch may start, collected once for all searches */
struct section {
	uint64_t address;
	const uint8_t *bytes;
	size_t len;
	VEC(uint32_t) branches;
};

/* Budget of the searches, see codemap_spend: ten times the cost for the interpreters that we know,
 * which is up to 6 for each byte of the file. */
#define BUDGET_FIXED    10000000
#define BUDGET_PER_BYTE 60
#define COST_BYTE       4
#define COST_BRANCH     4

/* left: rest of the budget; separately allocated, because searches take a const map */
struct codemap {
	const struct symbols *symbols;
	uint64_t *left;
	VEC(struct slot) slots;
	VEC(struct stub) stubs;
	VEC(struct section) code;
	struct fdetab *functions;
};

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

bool codemap_spend(const struct codemap *map, uint64_t cost)
{
	*map->left -= cost < *map->left ? cost : *map->left;
	return *map->left;
}

bool codemap_is_spent(const struct codemap *map)
{
	return !*map->left;
}

static void add_relocation(struct codemap *map, Elf *elf, Elf_Data *symtab, size_t strings,
                           const GElf_Rela *rela)
{
	struct slot slot = { .address = rela->r_offset };
	GElf_Sym sym;

	switch (GELF_R_TYPE(rela->r_info)) {
	case R_X86_64_RELATIVE:
		slot.value = (uint64_t)rela->r_addend;
		break;
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
		if (!symtab || !gelf_getsym(symtab, (int)GELF_R_SYM(rela->r_info), &sym))
			return;
		slot.value = sym.st_value;
		if (sym.st_shndx == SHN_UNDEF)
			slot.import = elf_strptr(elf, strings, sym.st_name);
		break;
	default:
		return;
	}
	*vec_push(&map->slots) = slot;
}

static void read_relocations(struct codemap *map, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	Elf_Scn *symbols = elf_getscn(elf, sh->sh_link);
	Elf_Data *symtab = symbols && sh->sh_link ? elf_getdata(symbols, NULL) : NULL;
	GElf_Shdr symtab_sh = { 0 };
	GElf_Rela rela;

	if (!data || !sh->sh_entsize)
		return;
	if (symtab && !gelf_getshdr(symbols, &symtab_sh))
		return;
	if (!codemap_spend(map, data->d_size * COST_BYTE))
		return;
	for (size_t i = 0; i < data->d_size / sh->sh_entsize; i++)
		if (gelf_getrela(data, (int)i, &rela))
			add_relocation(map, elf, symtab, symtab_sh.sh_link, &rela);
}

static const struct slot *find_slot(const struct codemap *map, uint64_t address)
{
	return map->slots.n ? bsearch(&address, map->slots.v, map->slots.n, sizeof(*map->slots.v),
	                              by_address)
	                    : NULL;
}

/* Assigns each jmp *slot(%rip) to the stub at the multiple of the entry size before it. */
static void read_stubs(struct codemap *map, const GElf_Shdr *sh)
{
	uint64_t entry = sh->sh_entsize ? sh->sh_entsize : 16;
	size_t len = 0;
	const uint8_t *code = symbols_bytes(map->symbols, sh->sh_addr, sh->sh_size, &len);

	if (!codemap_spend(map, len * COST_BYTE))
		return;
	for (size_t i = 0; code && i < len; i++) {
		const struct slot *slot;
		struct x86_branch b;

		if (!x86_wide_branch(code + i, len - i, sh->sh_addr + i, &b) ||
		    b.kind != X86_JUMP || !b.slot)
			continue;
		slot = find_slot(map, b.target);
		if (slot)
			*vec_push(&map->stubs) = (struct stub){ sh->sh_addr + i - i % entry,
				                                slot->import, slot->value };
	}
}

static void read_code(struct codemap *map, const GElf_Shdr *sh)
{
	struct section section = { .address = sh->sh_addr };
	struct x86_branch ignored;

	section.bytes = symbols_bytes(map->symbols, sh->sh_addr, sh->sh_size, &section.len);
	if (!section.bytes || !codemap_spend(map, section.len * COST_BYTE))
		return;
	for (size_t i = 0; i < section.len && i <= UINT32_MAX; i++)
		if (x86_wide_branch(section.bytes + i, section.len - i, 0, &ignored))
			*vec_push(&section.branches) = (uint32_t)i;
	*vec_push(&map->code) = section;
}

/* Calls fn for every section with its name. The second pass needs the results of the first. */
static void each_section(struct codemap *map, Elf *elf,
                         void (*fn)(struct codemap *map, Elf *elf, Elf_Scn *scn,
                                    const GElf_Shdr *sh, const char *name))
{
	Elf_Scn *scn = NULL;
	size_t strings;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &strings) < 0)
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, strings, sh.sh_name)
		                                          : NULL;

		if (name)
			fn(map, elf, scn, &sh, name);
	}
}

static void first_pass(struct codemap *map, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh,
                       const char *name)
{
	(void)name;
	if (sh->sh_type == SHT_RELA && sh->sh_flags & SHF_ALLOC)
		read_relocations(map, elf, scn, sh);
}

static void second_pass(struct codemap *map, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh,
                        const char *name)
{
	(void)elf;
	(void)scn;
	if (sh->sh_type != SHT_PROGBITS || !(sh->sh_flags & SHF_EXECINSTR))
		return;
	if (str_has_prefix(name, ".plt"))
		read_stubs(map, sh);
	else
		read_code(map, sh);
}

struct codemap *codemap_new(const struct symbols *symbols)
{
	struct codemap *map = xcalloc(1, sizeof(*map));
	Elf *elf = symbols_elf(symbols);

	map->symbols = symbols;
	map->left = xcalloc(1, sizeof(*map->left));
	*map->left = BUDGET_FIXED + BUDGET_PER_BYTE * symbols_identity(symbols)->size;
	map->functions = fdetab_new(elf);
	each_section(map, elf, first_pass);
	vec_sort(&map->slots, by_address);
	each_section(map, elf, second_pass);
	vec_sort(&map->stubs, by_address);
	return map;
}

void codemap_free(struct codemap *map)
{
	if (!map)
		return;
	vec_done(&map->slots);
	vec_done(&map->stubs);
	for (size_t i = 0; i < map->code.n; i++)
		vec_done(&map->code.v[i].branches);
	vec_done(&map->code);
	fdetab_free(map->functions);
	free(map->left);
	free(map);
}

static const struct stub *find_stub(const struct codemap *map, uint64_t address)
{
	return map->stubs.n ? bsearch(&address, map->stubs.v, map->stubs.n, sizeof(*map->stubs.v),
	                              by_address)
	                    : NULL;
}

const char *codemap_import(const struct codemap *map, uint64_t address)
{
	const struct slot *slot = find_slot(map, address);
	const struct stub *stub = find_stub(map, address);

	if (stub)
		return stub->import;
	return slot ? slot->import : NULL;
}

uint64_t codemap_resolve(const struct codemap *map, uint64_t address)
{
	const struct stub *stub = find_stub(map, address);

	return stub && !stub->import && stub->target ? stub->target : address;
}

bool codemap_relocated(const struct codemap *map, uint64_t address, uint64_t *ret)
{
	const struct slot *slot = find_slot(map, address);

	if (!slot || slot->import)
		return false;
	*ret = slot->value;
	return true;
}

bool codemap_function(const struct codemap *map, uint64_t address, uint64_t *ret_start,
                      uint64_t *ret_end)
{
	return fdetab_find(map->functions, address, ret_start, ret_end);
}

/* All addresses that lead to an import: its stubs and its slots. There are one or two. */
static void import_addresses(const struct codemap *map, const char *import, struct addresses *ret)
{
	for (size_t i = 0; i < map->stubs.n; i++)
		if (map->stubs.v[i].import && !strcmp(map->stubs.v[i].import, import))
			*vec_push(&ret->v) = map->stubs.v[i].address;
	for (size_t i = 0; i < map->slots.n; i++)
		if (map->slots.v[i].import && !strcmp(map->slots.v[i].import, import))
			*vec_push(&ret->v) = map->slots.v[i].address;
}

static bool has_address(const struct addresses *addresses, uint64_t address)
{
	for (size_t i = 0; i < addresses->v.n; i++)
		if (addresses->v.v[i] == address)
			return true;
	return false;
}

/* A search for branches: to one of targets, or into [start, end). */
struct search {
	struct addresses targets;
	uint64_t start, end;
	struct addresses *ret;
};

/* Calls fn for each wide branch; bytes that only look like a branch are included. */
static void each_branch(const struct codemap *map, struct search *search,
                        void (*fn)(const struct codemap *map, struct search *search,
                                   uint64_t address, const struct x86_branch *b))
{
	for (size_t s = 0; s < map->code.n; s++) {
		const struct section *section = &map->code.v[s];

		if (!codemap_spend(map,
		                   section->branches.n * (1 + search->targets.v.n) * COST_BRANCH))
			return;
		for (size_t i = 0; i < section->branches.n; i++) {
			size_t at = section->branches.v[i];
			struct x86_branch b;

			if (x86_wide_branch(section->bytes + at, section->len - at,
			                    section->address + at, &b))
				fn(map, search, section->address + at, &b);
		}
	}
}

static void add_call(const struct codemap *map, struct search *search, uint64_t address,
                     const struct x86_branch *b)
{
	(void)map;
	if (b->kind != X86_CONDITIONAL && has_address(&search->targets, b->target))
		*vec_push(&search->ret->v) = address;
}

void codemap_find_calls(const struct codemap *map, const char *import, struct addresses *ret)
{
	struct search search = { .ret = ret };

	*ret = (struct addresses){ 0 };
	import_addresses(map, import, &search.targets);
	if (search.targets.v.n)
		each_branch(map, &search, add_call);
	vec_done(&search.targets.v);
}

static void add_owner(const struct codemap *map, struct search *search, uint64_t address,
                      const struct x86_branch *b)
{
	uint64_t owner, end;

	if (b->kind != X86_CALL && !b->slot && b->target >= search->start &&
	    b->target < search->end && codemap_function(map, address, &owner, &end) &&
	    owner != search->start && !has_address(search->ret, owner))
		*vec_push(&search->ret->v) = owner;
}

void codemap_find_owners(const struct codemap *map, uint64_t start, uint64_t end,
                         struct addresses *ret)
{
	struct search search = { .start = start, .end = end, .ret = ret };

	*ret = (struct addresses){ 0 };
	each_branch(map, &search, add_owner);
}

static void add_caller(const struct codemap *map, struct search *search, uint64_t address,
                       const struct x86_branch *b)
{
	(void)map;
	if (b->kind == X86_CALL && !b->slot && b->target == search->start)
		*vec_push(&search->ret->v) = address;
}

void codemap_find_callers(const struct codemap *map, uint64_t target, struct addresses *ret)
{
	struct search search = { .start = target, .ret = ret };

	*ret = (struct addresses){ 0 };
	each_branch(map, &search, add_caller);
}

size_t codemap_count_calls(const struct codemap *map, uint64_t target)
{
	struct addresses callers;
	size_t n;

	codemap_find_callers(map, target, &callers);
	n = callers.v.n;
	vec_done(&callers.v);
	return n;
}

const uint8_t *codemap_bytes(const struct codemap *map, uint64_t address, size_t max,
                             size_t *ret_len)
{
	return symbols_bytes(map->symbols, address, max, ret_len);
}
