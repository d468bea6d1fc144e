/* SPDX-License-Identifier: MIT */
/* x86-64: relocations name the imports, .plt* sections jump through them, .eh_frame_hdr is sorted.
 */
#include "codemap.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/search.h"
#include "base/str.h"
#include "base/x86.h"
#include "launch/symbols.h"

/* A word that the loader fills in. */
struct slot {
	uint64_t address;
	const char *import; /* NULL: value is what comes there */
	uint64_t value;
};

struct stub {
	uint64_t address;
	const char *import; /* NULL: it leads to target */
	uint64_t target;
};

struct section {
	uint64_t address, size;
};

struct codemap {
	const struct symbols *symbols;
	VEC(struct slot) slots;
	VEC(struct stub) stubs;
	VEC(struct section) code;
	VEC(uint64_t) functions;
};

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
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

/* Every jmp *slot(%rip) belongs to the stub that begins at the entry size's multiple before it. */
static void read_stubs(struct codemap *map, const GElf_Shdr *sh)
{
	uint64_t entry = sh->sh_entsize ? sh->sh_entsize : 16;
	size_t len = 0;
	const uint8_t *code = symbols_bytes(map->symbols, sh->sh_addr, sh->sh_size, &len);

	for (size_t i = 0; code && i + 6 <= len; i++) {
		const struct slot *slot;

		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		slot = find_slot(map, sh->sh_addr + i + 6 + (uint64_t)x86_rel32(code + i + 2));
		if (slot)
			*vec_push(&map->stubs) = (struct stub){ sh->sh_addr + i - i % entry,
				                                slot->import, slot->value };
	}
}

/* DWARF pointer encodings of the usual table: 4-byte offsets from the section itself. */
#define EH_SDATA4_DATAREL 0x3b
#define EH_UDATA4         0x03

static void read_functions(struct codemap *map, const GElf_Shdr *sh)
{
	size_t len = 0;
	const uint8_t *data = symbols_bytes(map->symbols, sh->sh_addr, sh->sh_size, &len);
	uint32_t count;

	/* version, three encodings, pointer to .eh_frame, count, then pairs (function, entry) */
	if (!data || len < 12 || data[0] != 1 || data[2] != EH_UDATA4 ||
	    data[3] != EH_SDATA4_DATAREL)
		return;
	memcpy(&count, data + 8, sizeof(count));
	for (size_t at = 12; count && at + 8 <= len; at += 8, count--)
		*vec_push(&map->functions) = sh->sh_addr + (uint64_t)x86_rel32(data + at);
}

/* fn for every section with its name; the second pass needs what the first has found. */
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
	if (sh->sh_type == SHT_RELA && sh->sh_flags & SHF_ALLOC)
		read_relocations(map, elf, scn, sh);
	if (!strcmp(name, ".eh_frame_hdr"))
		read_functions(map, sh);
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
		*vec_push(&map->code) = (struct section){ sh->sh_addr, sh->sh_size };
}

struct codemap *codemap_new(const struct symbols *symbols)
{
	struct codemap *map = xcalloc(1, sizeof(*map));
	Elf *elf = symbols_elf(symbols);

	map->symbols = symbols;
	each_section(map, elf, first_pass);
	if (map->slots.n)
		qsort(map->slots.v, map->slots.n, sizeof(*map->slots.v), by_address);
	if (map->functions.n)
		qsort(map->functions.v, map->functions.n, sizeof(*map->functions.v), by_address);
	each_section(map, elf, second_pass);
	if (map->stubs.n)
		qsort(map->stubs.v, map->stubs.n, sizeof(*map->stubs.v), by_address);
	return map;
}

void codemap_free(struct codemap *map)
{
	if (!map)
		return;
	vec_done(&map->slots);
	vec_done(&map->stubs);
	vec_done(&map->code);
	vec_done(&map->functions);
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
	size_t n = map->functions.n;
	size_t next = search_after(map->functions.v, n, sizeof(*map->functions.v), 0, address);

	if (!next)
		return false;
	*ret_start = map->functions.v[next - 1];
	*ret_end = next < n ? map->functions.v[next] : UINT64_MAX;
	return true;
}

/* call rel32, jmp rel32, call *slot(%rip), jmp *slot(%rip): the address it goes by, 0 for none. */
static uint64_t branch_target(const uint8_t *code, size_t left, uint64_t address)
{
	if (left >= 5 && (code[0] == 0xe8 || code[0] == 0xe9))
		return address + 5 + (uint64_t)x86_rel32(code + 1);
	if (left >= 6 && code[0] == 0xff && (code[1] == 0x15 || code[1] == 0x25))
		return address + 6 + (uint64_t)x86_rel32(code + 2);
	return 0;
}

/* All addresses that stand for an import: its stubs and its slots. There are one or two. */
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

void codemap_find_calls(const struct codemap *map, const char *import, struct addresses *ret)
{
	struct addresses targets = { 0 };

	*ret = (struct addresses){ 0 };
	import_addresses(map, import, &targets);
	for (size_t s = 0; s < map->code.n && targets.v.n; s++) {
		const struct section *section = &map->code.v[s];
		size_t len = 0;
		const uint8_t *code = symbols_bytes(map->symbols, section->address, section->size,
		                                    &len);

		for (size_t i = 0; code && i < len; i++) {
			uint64_t target = branch_target(code + i, len - i, section->address + i);

			if (target && has_address(&targets, target))
				*vec_push(&ret->v) = section->address + i;
		}
	}
	vec_done(&targets.v);
}

static void add_owner(const struct codemap *map, uint64_t jump, uint64_t start,
                      struct addresses *ret)
{
	uint64_t owner, end;

	if (codemap_function(map, jump, &owner, &end) && owner != start && !has_address(ret, owner))
		*vec_push(&ret->v) = owner;
}

void codemap_find_owners(const struct codemap *map, uint64_t start, uint64_t end,
                         struct addresses *ret)
{
	*ret = (struct addresses){ 0 };
	for (size_t s = 0; s < map->code.n; s++) {
		const struct section *section = &map->code.v[s];
		size_t len = 0;
		const uint8_t *code = symbols_bytes(map->symbols, section->address, section->size,
		                                    &len);

		for (size_t i = 0; code && i < len; i++) {
			uint64_t target = x86_jump_target(code + i, len - i, section->address + i);

			if (target >= start && target < end)
				add_owner(map, section->address + i, start, ret);
		}
	}
}

void codemap_find_callers(const struct codemap *map, uint64_t target, struct addresses *ret)
{
	*ret = (struct addresses){ 0 };
	for (size_t s = 0; s < map->code.n; s++) {
		const struct section *section = &map->code.v[s];
		size_t len = 0;
		const uint8_t *code = symbols_bytes(map->symbols, section->address, section->size,
		                                    &len);

		for (size_t i = 0; code && i + 5 <= len; i++)
			if (code[i] == 0xe8 &&
			    section->address + i + 5 + (uint64_t)x86_rel32(code + i + 1) == target)
				*vec_push(&ret->v) = section->address + i;
	}
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
