/* SPDX-License-Identifier: MIT */
/*
 * ELF files: the addresses of functions, their names, and the build-id. Symbols come from the
 * file's own tables, and from its separate debug information (debugfile.h). This is for probing: it
 * finds functions by name. function_table.h names addresses of samples.
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
 * @name: as in the table, for instance "take_gil.constprop.0"; owned
 * @address: link-time address
 * @offset: file offset, as used for uprobes
 * @size: in bytes, 0 if the table does not contain it
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

/* The same, using only the file's own tables. */
int symbols_open_bare(struct symbols **ret, const char *path, struct error *err);

/* An error if the file or its debug file became shorter while it was read, so that what was or was
 * not found in it is wrong. */
int symbols_check(const struct symbols *symbols, struct error *err);

/* The file's identity when it was opened. Borrowed. */
const struct image_identity *symbols_identity(const struct symbols *symbols);

/* "symbol", "debug" or "code". */
const char *symbol_kind_name(enum symbol_kind kind);

/* libelf's handle of the file; borrowed. */
struct Elf *symbols_elf(const struct symbols *symbols);

/* The debug information of the file or of its debug file; NULL if neither has any. Borrowed. */
struct Dwarf *symbols_dwarf(struct symbols *symbols);

/* Lower-case hex. A file without a build-id gets "sum" and a hash of its code instead. */
const char *symbols_build_id(const struct symbols *symbols);

/* The path of the debug file in use, or NULL. */
const char *symbols_debug_path(const struct symbols *symbols);

/* The source of the symbols of kind SYMBOL_DEBUG: "debug file", "debug file from debuginfod". */
const char *symbols_debug_kind(const struct symbols *symbols);

/* Whether the file's own tables define the symbol. */
bool symbols_defines(const struct symbols *symbols, const char *name);

/*
 * All copies of a function as one list, by address: the function of this name and the compiler's
 * clones of it (.constprop, .isra, .part, .lto_priv, but not .cold). Returns their number. Free
 * with symbol_list_done.
 */
size_t symbols_find(const struct symbols *symbols, const char *name, struct symbol_list *ret);
void symbol_list_done(struct symbol_list *list);

/* Link-time address of a symbol with exactly this name, code or data. */
bool symbols_address(const struct symbols *symbols, const char *name, uint64_t *ret);

/* "FUNCTION+0xOFFSET" for an address in a function that has a name, otherwise "0xADDRESS". Caller
 * frees. */
char *symbols_describe(const struct symbols *symbols, uint64_t address);

/* File offset of a link-time address inside a loadable segment. */
bool symbols_offset(const struct symbols *symbols, uint64_t address, uint64_t *ret);

/* The bytes of the file at a link-time address, at most max; *ret_len is their number. NULL if the
 * address is not in a loadable segment. Borrowed until symbols_free. */
const uint8_t *symbols_bytes(const struct symbols *symbols, uint64_t address, size_t max,
                             size_t *ret_len);

DEFINE_CLEANUP(struct symbols *, symbols_free);

DEFINE_CLEANUP_IN(struct symbol_list, symbol_list_done);

#endif
