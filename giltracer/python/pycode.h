/* SPDX-License-Identifier: MIT */
/*
 * The code objects of a traced Python process, written by the process itself when tracing ended
 * (share/python/codes.py). They give the function, the file and the line for two pointers that a
 * probe fetched.
 *
 * The file, little-endian, no padding:
 *
 *	"GTCODES1"  u8 major  u8 minor  u16 0  u32 base  u64 count
 *	count × { u64 address  u32 first line  u32 n, n bytes: qualified name
 *	          u32 n, n bytes: file  u32 n, n bytes: line table }
 *
 * giltracer's own code, which runs the program, has no name, no file and no table.
 *
 * address is that of the PyCodeObject; base is the offset of its first instruction in it
 * (co_code_adaptive, 3.11 and later), or 0 if instructions are counted from 0 (f_lasti, before).
 * The line table is co_lnotab up to 3.9, co_linetable later (Objects/lnotab_notes.txt of CPython
 * 3.6 and 3.10, Objects/locations.md of 3.11).
 */
#ifndef GILTRACER_PYTHON_PYCODE_H
#define GILTRACER_PYTHON_PYCODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct pycode;

/* name, file and table are not terminated and borrowed until pycode_close. */
struct pycode_entry {
	uint64_t address;
	uint32_t first_line;
	uint32_t name_len, file_len, table_len;
	const char *name, *file;
	const uint8_t *table;
};

/* A truncated file, or one with wrong sizes, is an error that names the offset. */
int pycode_open(struct pycode **ret, const char *path, struct error *err);

/* The same from memory, which is borrowed until pycode_close. */
int pycode_open_memory(struct pycode **ret, const void *data, size_t size, struct error *err);
void pycode_close(struct pycode *pycode);

size_t pycode_count(const struct pycode *pycode);

/* By index, 0 to pycode_count - 1, in the order of addresses. */
const struct pycode_entry *pycode_get(const struct pycode *pycode, size_t index);

/* The code object at address whose first line is first_line: both must match, since an address can
 * be reused. NULL: unknown. */
const struct pycode_entry *pycode_find(const struct pycode *pycode, uint64_t address,
                                       uint32_t first_line);

/* The line of an instruction of entry, in the interpreter's form: a pointer from 3.11 on,
 * f_lasti before (bytes; code units in 3.10). 0: outside of the code, or code without a line. */
uint32_t pycode_line(const struct pycode *pycode, const struct pycode_entry *entry,
                     uint64_t instruction);

/* The same for a table of version 3.minor and an offset in bytes; negative: before the first
 * instruction, whose line is first_line. */
uint32_t pycode_table_line(unsigned minor, uint32_t first_line, const uint8_t *table, size_t len,
                           int64_t offset);

DEFINE_CLEANUP(struct pycode *, pycode_close);

#endif
