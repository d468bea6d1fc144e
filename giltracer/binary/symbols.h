/* SPDX-License-Identifier: MIT */
/*
 * ELF files: where a function is, under which of its names, and which build this is. Symbols come
 * from the file's own tables, and from its separate debug information (debugfile.h). This is for
 * probing: it finds functions by name. function_table.h names addresses of samples.
 */
#ifndef GILTRACER_BINARY_SYMBOLS_H
#define GILTRACER_BINARY_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

enum symbol_kind {
	SYMBOL_TABLE, /* .symtab or .dynsym of the file itself */
	SYMBOL_DEBUG, /* separate debug information */
	SYMBOL_CODE,  /* no symbol: found in the machine code */
};

/**
 * @name: as in the table, "take_gil.constprop.0"; owned
 * @address: link-time
 * @offset: in the file, what a uprobe wants
 * @size: in bytes, 0 if the table does not say
 */
struct symbol {
	char *name;
	uint64_t address, offset, size;
	enum symbol_kind kind;
};

struct symbol_list {
	VEC(struct symbol) syms;
};

struct image_identity;
struct symbols;

/* Open an ELF file of this machine's architecture. Free with symbols_free. */
int symbols_open(struct symbols **ret, const char *path, struct error *err);
void symbols_free(struct symbols *symbols);

/* The same without looking for anything outside of the file's own tables. */
int symbols_open_bare(struct symbols **ret, const char *path, struct error *err);

/* Which file it was when it was opened. Borrowed. */
const struct image_identity *symbols_identity(const struct symbols *symbols);

/* "symbol", "debug" or "code". */
const char *symbol_kind_name(enum symbol_kind kind);

/* libelf's handle of the file; borrowed. */
struct Elf *symbols_elf(const struct symbols *symbols);

/* Its debug information, or that of its debug file; NULL if neither has any. Borrowed. */
struct Dwarf *symbols_dwarf(struct symbols *symbols);

/* Lower-case hex. A file without a build-id gets "sum" and a hash of its code instead. */
const char *symbols_build_id(const struct symbols *symbols);

/* The debug file in use, NULL if there is none. */
const char *symbols_debug_path(const struct symbols *symbols);

/* Where the symbols of SYMBOL_DEBUG are from, a phrase: "debug file", "debug file from debuginfod".
 */
const char *symbols_debug_kind(const struct symbols *symbols);

/* Whether the file's own tables define the symbol. */
bool symbols_defines(const struct symbols *symbols, const char *name);

/*
 * Every copy of a function as one list, by address: name itself and the compiler's clones of it
 * (.constprop, .isra, .part, .lto_priv, never .cold). Returns how many; done by symbol_list_done.
 */
size_t symbols_find(const struct symbols *symbols, const char *name, struct symbol_list *ret);
void symbol_list_done(struct symbol_list *list);

/* Link-time address of one symbol of exactly this name, code or data. */
bool symbols_address(const struct symbols *symbols, const char *name, uint64_t *ret);

/* "FUNCTION+0xOFFSET" for an address in a function that has a name, else "0xADDRESS". Caller frees.
 */
char *symbols_describe(const struct symbols *symbols, uint64_t address);

/* File offset of a link-time address inside a loadable segment. */
bool symbols_offset(const struct symbols *symbols, uint64_t address, uint64_t *ret);

/* The bytes of the file at a link-time address, at most max; *ret_len is how many there are. NULL
 * if the address is in no loadable segment. Borrowed until symbols_free. */
const uint8_t *symbols_bytes(const struct symbols *symbols, uint64_t address, size_t max,
                             size_t *ret_len);

DEFINE_CLEANUP(struct symbols *, symbols_free);

static inline void cleanup_symbol_list_done(struct symbol_list *list)
{
	symbol_list_done(list);
}

#endif
