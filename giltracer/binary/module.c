/* SPDX-License-Identifier: MIT */
/* Executable files by path and build-id. */
#include "binary/module.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/filemap.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "binary/cfi.h"
#include "binary/debugfile.h"
#include "binary/fdetab.h"
#include "binary/packed.h"
#include "binary/segments.h"
#include "binary/function_table.h"

struct modules {
	bool same_kernel;
	VEC(struct module *) all;
	struct idmap index; /* see key_of */
	struct hash_seed seed;
};

struct modules *modules_new(bool same_kernel)
{
	struct modules *modules = xcalloc(1, sizeof(*modules));

	modules->same_kernel = same_kernel;
	modules->seed = hash_seed();
	return modules;
}

static void module_free(struct module *module)
{
	cfi_free(module->cfi);
	fdetab_free(module->fdetab);
	function_table_free(module->functions);
	filemap_done(&module->map);
	if (module->dwfl)
		dwfl_end(module->dwfl);
	free(module->path);
	free(module);
}

void modules_free(struct modules *modules)
{
	if (!modules)
		return;
	for (size_t i = 0; i < modules->all.n; i++)
		module_free(modules->all.v[i]);
	vec_done(&modules->all);
	idmap_done(&modules->index);
	free(modules);
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	uint8_t common = a->size < b->size ? a->size : b->size;

	if (!common || memcmp(a->bytes, b->bytes, common))
		return false;
	for (uint8_t i = common; i < BUILD_ID_MAX; i++)
		if ((i < a->size && a->bytes[i]) || (i < b->size && b->bytes[i]))
			return false;
	return true;
}

struct build_id build_id_of_elf(Elf *elf)
{
	struct build_id ret = { 0 };
	const void *bits = NULL;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &bits);

	if (size > 0 && size <= BUILD_ID_MAX) {
		ret.size = size;
		memcpy(ret.bytes, bits, size);
	}
	return ret;
}

static bool same_file(const struct module *m, const char *path, const struct build_id *id)
{
	if (strcmp(m->path, path))
		return false;
	if (!m->recorded.size || !id->size)
		return m->recorded.size == id->size;
	return build_id_equal(&m->recorded, id);
}

/* The key of a module in the index. If two keys collide, the second module is at the next free
 * key. */
static uint64_t key_of(const struct modules *modules, const char *path, const struct build_id *id)
{
	uint64_t hash = hash_text(modules->seed, path, strlen(path));
	size_t size = id->size;

	/* Zeros at the end are padding, see build_id_equal. */
	while (size && !id->bytes[size - 1])
		size--;
	return hash_more(modules->seed, hash, hash_text(modules->seed, id->bytes, size));
}

struct module *modules_get(struct modules *modules, const char *path, const struct build_id *id)
{
	static const struct build_id unknown;
	struct module *m;
	const char *slash = strrchr(path, '/');
	uint64_t key;
	uint32_t at;

	if (!id)
		id = &unknown;
	key = key_of(modules, path, id);
	for (; (at = idmap_get(&modules->index, key)) != IDMAP_NONE; key++)
		if (same_file(modules->all.v[at], path, id))
			return modules->all.v[at];
	idmap_set(&modules->index, key, (uint32_t)modules->all.n);
	m = xcalloc(1, sizeof(*m));
	m->path = xstrdup(path);
	m->base = slash && slash[1] ? m->path + (slash + 1 - path) : m->path;
	m->recorded = *id;
	m->id = modules->all.n;
	if (!modules->same_kernel && !id->size && !strcmp(path, "[vdso]"))
		snprintf(m->why, sizeof(m->why), "recorded on another kernel");
	*vec_push(&modules->all) = m;
	return m;
}

/* Our own vdso as a file, or -1. */
static int open_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	CLEANUP(close) int fd = memfd_create("vdso", MFD_CLOEXEC);
	Elf64_Ehdr header;
	size_t size;

	if (!image)
		errno = ENOENT;
	if (!image || fd < 0)
		return -1;
	memcpy(&header, image, sizeof(header));
	size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
	errno = EIO; /* of a short write */
	if (write(fd, image, size) != (ssize_t)size)
		return -1;
	return take_fd(&fd);
}

/* Opens a file whose path comes from the recording. Returns 0 or errno. */
static int open_file(int *ret, const char *path)
{
	struct error err;

	if (!strcmp(path, "[vdso]")) {
		*ret = open_vdso();
		return *ret < 0 ? errno : 0;
	}
	if (path[0] != '/')
		return ENOENT;
	*ret = file_open_regular(path, &err);
	return *ret < 0 ? err.code : 0;
}

/* Dwfl's callback. dwfl_standard_find_debuginfo would ask a debuginfod server if one is configured,
 * but a report must not need the network. */
static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
                          const char *file, const char *debuglink, GElf_Word crc, char **ret)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(mod, &bias);

	(void)userdata, (void)name, (void)base, (void)debuglink, (void)crc;
	return elf && file ? debugfile_open(ret, file, elf) : -1;
}

/* Checked because libdwfl would unpack a compressed file, however large the result is. */
static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, ELFMAG, sizeof(magic));
}

/* Creates the module's Dwfl, whose only Dwfl_Module is the file at fd. Takes fd. */
static bool report(struct module *module, int fd)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = find_debuginfo,
	};
	GElf_Addr bias = 0;
	const void *data;
	size_t size;

	module->dwfl = is_elf(fd) ? dwfl_begin(&callbacks) : NULL;
	if (!module->dwfl) {
		close(fd);
		return false;
	}
	dwfl_report_begin(module->dwfl);
	module->dwfl_module = dwfl_report_elf(module->dwfl, module->base, module->path, fd, 0,
	                                      true);
	dwfl_report_end(module->dwfl, NULL, NULL);
	if (!module->dwfl_module) {
		close(fd);
		return false;
	}
	module->elf = dwfl_module_getelf(module->dwfl_module, &bias);
	module->bias = bias;
	if (module->elf && (data = elf_rawfile(module->elf, &size)))
		filemap_watch(&module->map, data, size, module->path);
	return module->elf;
}

static void unusable(struct module *module, const char *why)
{
	snprintf(module->why, sizeof(module->why), "%s", why);
	filemap_done(&module->map);
	if (module->dwfl)
		dwfl_end(module->dwfl);
	module->dwfl = NULL;
	module->dwfl_module = NULL;
	module->elf = NULL;
}

bool module_open(struct module *module)
{
	struct build_id found;
	int fd, code;

	if (module->opened)
		return module->elf;
	module->opened = true;
	elf_version(EV_CURRENT);
	if (module->why[0])
		return false;
	filemap_guard_all();
	code = open_file(&fd, module->path);
	if (code) {
		unusable(module, strerror(code));
		return false;
	}
	if (!report(module, fd)) {
		unusable(module, "not an ELF file");
		return false;
	}
	if (!packed_fits(module->elf)) {
		unusable(module, PACKED_WHY);
		return false;
	}
	found = build_id_of_elf(module->elf);
	if (module->recorded.size && !build_id_equal(&found, &module->recorded))
		unusable(module, "not the build that was recorded");
	return module->elf;
}

bool module_vaddr(struct module *module, uint64_t offset, uint64_t *ret)
{
	return module_open(module) && segments_address(module->elf, offset, ret);
}

struct cfi *module_cfi(struct module *module)
{
	if (!module->cfi && module_open(module))
		module->cfi = cfi_new(module->dwfl_module);
	return module->cfi;
}

struct fdetab *module_fdetab(struct module *module)
{
	if (!module->fdetab && module_open(module))
		module->fdetab = fdetab_new(module->elf);
	return module->fdetab;
}

struct function_table *module_functions(struct module *module)
{
	if (!module->functions && module_open(module))
		module->functions = function_table_new(module->dwfl_module);
	return module->functions;
}
