/* SPDX-License-Identifier: MIT */
/*
 * The executable files of a recording: they are found by path, and used only if their build-id is
 * the recorded one. Addresses called "vaddr" are those of the file's program headers.
 */
#ifndef GILTRACER_BINARY_MODULE_H
#define GILTRACER_BINARY_MODULE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/filemap.h"

#define BUILD_ID_MAX 20

/* size 0: not known. */
struct build_id {
	uint8_t size;
	uint8_t bytes[BUILD_ID_MAX];
};

/**
 * One build of a file. Opened when it is first needed.
 * @path: as recorded; @base: the part after its last slash; @id: its index in the table
 * @recorded: the build-id in the recording
 * @dwfl_module: NULL if the file cannot be used; @why has the reason
 * @bias: offset of dwfl_module's addresses to vaddrs
 */
struct module {
	char *path;
	const char *base;
	uint32_t id;
	struct build_id recorded;

	bool opened;
	char why[160];
	Dwfl *dwfl;
	Dwfl_Module *dwfl_module;
	Elf *elf;
	struct filemap map; /* of the file, by libelf */
	uint64_t bias;
	struct cfi *cfi;                  /* module_cfi */
	struct fdetab *fdetab;            /* module_fdetab */
	struct function_table *functions; /* module_functions */
};

struct modules;

/* same_kernel: the recording was made on the running kernel, so our own [vdso] can be used for
 * it. */
struct modules *modules_new(bool same_kernel);
void modules_free(struct modules *modules);

/* The module of path and build-id (NULL: unknown); borrowed until modules_free. Never fails. */
struct module *modules_get(struct modules *modules, const char *path, const struct build_id *id);

/* Open the file. Returns false if it does not exist, is not an ELF file or is another build; ->why
 * has the reason. */
bool module_open(struct module *module);

/* The vaddr of a file offset. Returns false if the file cannot be used or does not load that
 * offset. */
bool module_vaddr(struct module *module, uint64_t offset, uint64_t *ret);

/* Information about the file's code, read when it is first requested: how to unwind it, where
 * functions start, and their names. NULL if the file cannot be used. Borrowed. */
struct cfi *module_cfi(struct module *module);
struct fdetab *module_fdetab(struct module *module);
struct function_table *module_functions(struct module *module);

/* The build-id note of an ELF file; size 0 if there is none. */
struct build_id build_id_of_elf(Elf *elf);

/* Whether both are known and equal; bytes beyond the shorter one must be zero (kernels before 5.13
 * pad short ids). */
bool build_id_equal(const struct build_id *a, const struct build_id *b);

#endif
