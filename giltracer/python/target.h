/* SPDX-License-Identifier: MIT */
/* A running Python process, read from outside: locates its interpreters and code objects. */
#ifndef GILTRACER_PYTHON_TARGET_H
#define GILTRACER_PYTHON_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "python/probedef.h"
#include "python/process.h"

/**
 * A code object of the process, read once. Strings are owned, UTF-8, "?" if unreadable.
 * @raw: its header, by whose name, file, line table and first line it is recognized
 * @checked: value of target.look when that was last checked
 */
struct live_code {
	uint64_t address;
	uint32_t first_line;
	char *name, *file;
	uint8_t *table;
	size_t table_len;
	uint8_t raw[192];
	uint64_t checked;
};

struct codes;

/**
 * @root: address of the interpreter's root in the process (probedef.root)
 * @code_type: address of PyCode_Type
 * @look: the number of looks at the process; a code object is read at most once per look
 * @line_bytes: of line tables that were decoded for this look
 * @entries: of dicts that may still be read (python/pythreads.c)
 */
struct target {
	pid_t pid;
	struct process_python process;
	struct probedef *def;
	uint64_t root, code_type;
	uint64_t look, line_bytes, entries;
	struct codes *codes;
};

/* Errors are those of process_python_find; EPERM: its memory may not be read. Free with
 * target_close. */
int target_open(struct target **ret, pid_t pid, struct error *err);
void target_close(struct target *target);

/* The same for an interpreter whose addresses are known. Takes def. */
int target_open_at(struct target **ret, pid_t pid, struct probedef *def, uint64_t root,
                   uint64_t code_type, struct error *err);

/* A look at the process begins. Its work is bounded, whatever the process has in its memory. */
void target_begin(struct target *target);

/* The present code object at address; NULL: none. If more were seen than any program has, name and
 * file of further ones are "?". Borrowed until target_close. */
const struct live_code *target_code(struct target *target, uint64_t address);

/* A str object as UTF-8; "?" if it cannot be read. Caller frees. */
char *target_text(const struct target *target, uint64_t object);

/* Whether the str whose first bytes are raw is ASCII; then its characters begin at FRAME_TEXT. */
bool target_is_ascii(const struct target *target, const uint8_t *raw);

/* The code object at an index, from 0, among all that target_code has found; NULL after
 * the last. */
const struct live_code *target_code_at(const struct target *target, size_t index);

/* The line of a frame with this instruction (a pointer from 3.11 on, an index before); 0 if it is
 * in no line. */
uint32_t target_line(struct target *target, const struct live_code *code, uint64_t instruction);

DEFINE_CLEANUP(struct target *, target_close);

/* ---- writes the code objects seen in running processes as a list that reports read */

/* Write those of n processes, at least one, to path in the format of python/pycode.h, completely or
 * not at all, in addition to those that are there; those of another version than the first one's are
 * left out. */
int codes_write(struct target *const *targets, size_t n, const char *path, struct error *err);

#endif
