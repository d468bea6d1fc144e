/* SPDX-License-Identifier: MIT */
/* Executable files by path and build-id. */
#include "perfdata/module.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/debugdir.h"
#include "base/vec.h"
#include "perfdata/cfi.h"
#include "perfdata/symbolize.h"

struct modules {
	bool same_kernel;
	VEC(struct module *) all;
};

struct modules *modules_new(bool same_kernel)
{
	struct modules *modules = xcalloc(1, sizeof(*modules));

	modules->same_kernel = same_kernel;
	return modules;
}

static void module_free(struct module *module)
{
	cfi_free(module->cfi);
	fdetab_free(module->fdetab);
	symtab_free(module->symtab);
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

struct module *modules_get(struct modules *modules, const char *path, const struct build_id *id)
{
	static const struct build_id unknown;
	struct module *m;
	const char *slash = strrchr(path, '/');

	if (!id)
		id = &unknown;
	for (size_t i = 0; i < modules->all.n; i++)
		if (same_file(modules->all.v[i], path, id))
			return modules->all.v[i];
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

/* Our own vdso as a file, -1 if there is none. */
static int open_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	CLEANUP(close) int fd = memfd_create("vdso", MFD_CLOEXEC);
	Elf64_Ehdr header;
	size_t size;

	if (!image || fd < 0)
		return -1;
	memcpy(&header, image, sizeof(header));
	size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
	if (write(fd, image, size) != (ssize_t)size)
		return -1;
	return take_fd(&fd);
}

/* Never waits and never touches a device: paths come from the recording. */
static int open_regular(const char *path)
{
	CLEANUP(close) int fd = -1;
	struct stat st;

	if (path[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return take_fd(&fd);
}

/* Whether fd holds the separate debug information of the file with this build-id. */
static bool debug_file_fits(int fd, const struct build_id *want)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	struct build_id got = elf ? build_id_of_elf(elf) : (struct build_id){ 0 };

	elf_end(elf);
	return build_id_equal(&got, want);
}

static int try_debug(char **path, const struct build_id *want)
{
	CLEANUP(close) int fd = open_regular(*path);

	if (fd < 0 || !debug_file_fits(fd, want)) {
		free(*path);
		*path = NULL;
		return -1;
	}
	return take_fd(&fd);
}

static char *build_id_path(const char *root, const struct build_id *id)
{
	char hex[2 * BUILD_ID_MAX + 1] = "";

	for (uint8_t i = 0; i < id->size; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	return xasprintf("%s/.build-id/%.2s/%s.debug", root, hex, hex + 2);
}

/*
 * Dwfl's callback. Not dwfl_standard_find_debuginfo, which may ask a debuginfod server: a report
 * must not need the network. Only files of the same build-id count.
 */
static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
                          const char *file, const char *debuglink, GElf_Word crc, char **ret)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	const char *root = debugdir();
	struct build_id id = { 0 };
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(mod, &bias);
	int fd;

	(void)userdata, (void)name, (void)base, (void)crc;
	if (elf)
		id = build_id_of_elf(elf);
	if (!id.size || !root)
		return -1;
	*ret = build_id_path(root, &id);
	fd = try_debug(ret, &id);
	for (size_t i = 0; fd < 0 && debuglink && slash && i < 3; i++) {
		int dir = slash - file;

		*ret = i == 0   ? xasprintf("%.*s/%s", dir, file, debuglink)
		       : i == 1 ? xasprintf("%.*s/.debug/%s", dir, file, debuglink)
		                : xasprintf("%s%.*s/%s", root, dir, file, debuglink);
		fd = try_debug(ret, &id);
	}
	return fd;
}

/* The only Dwfl_Module of a Dwfl whose module is the file at fd. Takes fd. */
static bool report(struct module *module, int fd)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = find_debuginfo,
	};
	GElf_Addr bias = 0;

	module->dwfl = dwfl_begin(&callbacks);
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
	return module->elf;
}

static void unusable(struct module *module, const char *why)
{
	snprintf(module->why, sizeof(module->why), "%s", why);
	if (module->dwfl)
		dwfl_end(module->dwfl);
	module->dwfl = NULL;
	module->dwfl_module = NULL;
	module->elf = NULL;
}

bool module_open(struct module *module)
{
	bool vdso = !strcmp(module->path, "[vdso]");
	struct build_id found;
	int fd;

	if (module->opened)
		return module->elf;
	module->opened = true;
	elf_version(EV_CURRENT);
	if (module->why[0])
		return false;
	fd = vdso ? open_vdso() : open_regular(module->path);
	if (fd < 0) {
		unusable(module, strerror(errno));
		return false;
	}
	if (!report(module, fd)) {
		unusable(module, "not an ELF file");
		return false;
	}
	found = build_id_of_elf(module->elf);
	if (module->recorded.size && !build_id_equal(&found, &module->recorded))
		unusable(module, "not the build that was recorded");
	return module->elf;
}

bool module_vaddr(struct module *module, uint64_t offset, uint64_t *ret)
{
	size_t n = 0;
	GElf_Phdr ph;

	if (!module_open(module) || elf_getphdrnum(module->elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(module->elf, i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (offset >= ph.p_offset && offset - ph.p_offset < ph.p_filesz) {
			*ret = ph.p_vaddr + (offset - ph.p_offset);
			return true;
		}
	}
	return false;
}
