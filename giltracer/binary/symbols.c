/* SPDX-License-Identifier: MIT */
/* Symbol tables of a file and of its debug file, through libelf and libdw, with one look-up for
 * both. */
#include "binary/symbols.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "binary/clone.h"
#include "binary/debugfile.h"
#include "binary/image.h"
#include "binary/segments.h"

struct symbols {
	struct image file, debug;
	enum debugfile_source source;
	char *build_id;
	Dwarf *dwarf; /* NULL until requested, or if there is none */
	bool dwarf_tried;
};

int symbols_open_bare(struct symbols **ret, const char *path, struct error *err)
{
	CLEANUP(symbols_free) struct symbols *symbols = xcalloc(1, sizeof(*symbols));

	if (image_open(&symbols->file, path, err) < 0)
		return -1;
	if (!image_is_ours(&symbols->file))
		return error_set(err, ENOEXEC, "%s: is for another architecture", path);
	symbols->build_id = image_build_id(&symbols->file);
	*ret = take(symbols);
	return 0;
}

int symbols_open(struct symbols **ret, const char *path, struct error *err)
{
	struct symbols *symbols;

	if (symbols_open_bare(&symbols, path, err) < 0)
		return -1;
	symbols->source = debugfile_find(&symbols->debug, &symbols->file, symbols->build_id);
	*ret = symbols;
	return 0;
}

int symbols_check(const struct symbols *symbols, struct error *err)
{
	return image_check(&symbols->file, err) < 0 || image_check(&symbols->debug, err) < 0 ? -1
	                                                                                     : 0;
}

const struct image_identity *symbols_identity(const struct symbols *symbols)
{
	return &symbols->file.identity;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->dwarf)
		dwarf_end(symbols->dwarf);
	image_close(&symbols->debug);
	image_close(&symbols->file);
	free(symbols->build_id);
	free(symbols);
}

const char *symbol_kind_name(enum symbol_kind kind)
{
	static const char *const names[] = { "symbol", "debug", "code" };

	return names[kind];
}

struct Elf *symbols_elf(const struct symbols *symbols)
{
	return symbols->file.elf;
}

struct Dwarf *symbols_dwarf(struct symbols *symbols)
{
	const struct image *images[] = { &symbols->debug, &symbols->file };

	for (size_t i = 0; !symbols->dwarf_tried && !symbols->dwarf && i < 2; i++)
		if (images[i]->elf && image_has_section(images[i], ".debug_info"))
			symbols->dwarf = dwarf_begin_elf(images[i]->elf, DWARF_C_READ, NULL);
	symbols->dwarf_tried = true;
	return symbols->dwarf;
}

const char *symbols_build_id(const struct symbols *symbols)
{
	return symbols->build_id;
}

const char *symbols_debug_path(const struct symbols *symbols)
{
	return symbols->debug.path;
}

const char *symbols_debug_kind(const struct symbols *symbols)
{
	return debugfile_source_name(symbols->source);
}

/* A function that is called for each defined symbol of an image; it returns true to stop. */
struct visitor {
	bool (*fn)(const char *name, const GElf_Sym *sym, void *data);
	void *data;
};

static bool walk_section(Elf *elf, Elf_Scn *scn, const struct visitor *visitor)
{
	Elf_Data *table = elf_getdata(scn, NULL);
	GElf_Shdr sh;
	GElf_Sym sym;

	if (!gelf_getshdr(scn, &sh) || !table || !sh.sh_entsize)
		return false;
	for (size_t i = 0; i < table->d_size / sh.sh_entsize; i++) {
		const char *name;

		if (!gelf_getsym(table, (int)i, &sym) || sym.st_shndx == SHN_UNDEF || !sym.st_value)
			continue;
		name = elf_strptr(elf, sh.sh_link, sym.st_name);
		if (name && visitor->fn(name, &sym, visitor->data))
			return true;
	}
	return false;
}

static bool walk(const struct image *image,
                 bool (*fn)(const char *name, const GElf_Sym *sym, void *data), void *data)
{
	const struct visitor visitor = { fn, data };
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	if (!image->elf)
		return false;
	while ((scn = elf_nextscn(image->elf, scn)))
		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM) &&
		    walk_section(image->elf, scn, &visitor))
			return true;
	return false;
}

struct exact {
	const char *name;
	uint64_t address;
};

static bool match_exact(const char *name, const GElf_Sym *sym, void *data)
{
	struct exact *exact = data;

	if (strcmp(name, exact->name) != 0)
		return false;
	exact->address = sym->st_value;
	return true;
}

bool symbols_defines(const struct symbols *symbols, const char *name)
{
	struct exact exact = { .name = name };

	return walk(&symbols->file, match_exact, &exact);
}

bool symbols_address(const struct symbols *symbols, const char *name, uint64_t *ret)
{
	struct exact exact = { .name = name };

	if (!walk(&symbols->file, match_exact, &exact) &&
	    !walk(&symbols->debug, match_exact, &exact))
		return false;
	*ret = exact.address;
	return true;
}

struct around {
	uint64_t address, start;
	char *name;
};

static bool match_around(const char *name, const GElf_Sym *sym, void *data)
{
	struct around *around = data;

	if (GELF_ST_TYPE(sym->st_info) != STT_FUNC || around->address < sym->st_value ||
	    around->address - sym->st_value >= sym->st_size)
		return false;
	around->start = sym->st_value;
	around->name = xstrdup(name);
	return true;
}

char *symbols_describe(const struct symbols *symbols, uint64_t address)
{
	struct around around = { .address = address };
	CLEANUP(free) char *name = NULL;

	if (!walk(&symbols->file, match_around, &around) &&
	    !walk(&symbols->debug, match_around, &around))
		return xasprintf("%#" PRIx64, address);
	name = around.name;
	if (around.start == address)
		return take(name);
	return xasprintf("%s+%#" PRIx64, name, address - around.start);
}

struct clones {
	const struct symbols *symbols;
	const char *name;
	enum symbol_kind kind;
	struct symbol_list *ret;
};

static bool match_clone(const char *name, const GElf_Sym *sym, void *data)
{
	struct clones *clones = data;
	struct symbol *new;
	uint64_t offset;

	if (GELF_ST_TYPE(sym->st_info) != STT_FUNC || !clone_is_whole(name, clones->name) ||
	    !symbols_offset(clones->symbols, sym->st_value, &offset))
		return false;
	for (size_t i = 0; i < clones->ret->syms.n; i++)
		if (clones->ret->syms.v[i].address == sym->st_value)
			return false;
	new = vec_push(&clones->ret->syms);
	*new = (struct symbol){ .name = xstrdup(name),
		                .address = sym->st_value,
		                .offset = offset,
		                .size = sym->st_size,
		                .kind = clones->kind };
	return false;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

size_t symbols_find(const struct symbols *symbols, const char *name, struct symbol_list *ret)
{
	struct clones clones = { symbols, name, SYMBOL_TABLE, ret };

	*ret = (struct symbol_list){ 0 };
	walk(&symbols->file, match_clone, &clones);
	clones.kind = SYMBOL_DEBUG;
	walk(&symbols->debug, match_clone, &clones);
	vec_sort(&ret->syms, by_address);
	return ret->syms.n;
}

void symbol_list_done(struct symbol_list *list)
{
	for (size_t i = 0; i < list->syms.n; i++)
		free(list->syms.v[i].name);
	vec_done(&list->syms);
}

bool symbols_offset(const struct symbols *symbols, uint64_t address, uint64_t *ret)
{
	uint64_t left;

	return segments_offset(symbols->file.elf, address, ret, &left);
}

const uint8_t *symbols_bytes(const struct symbols *symbols, uint64_t address, size_t max,
                             size_t *ret_len)
{
	return segments_bytes(symbols->file.elf, address, max, ret_len);
}
