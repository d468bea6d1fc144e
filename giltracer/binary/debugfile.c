/* SPDX-License-Identifier: MIT */
/*
 * libdwfl's own search (dwfl_standard_find_debuginfo) uses the same places, but asks a debuginfod
 * server even if it was not told to, and stops neither on a signal nor after 15 seconds.
 */
#include "binary/debugfile.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <libdeflate.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "binary/debuginfod.h"
#include "binary/image.h"
#include "binary/packed.h"

/* The folder of debug files. NULL: do not use any separate debug information. */
static const char *debugdir(void)
{
	const char *dir = getenv("GILTRACER_DEBUGDIR");

	if (!dir)
		return "/usr/lib/debug";
	return *dir ? dir : NULL;
}

/* Properties that a debug file has to match. id: NULL if the file has no build-id; link: NULL if it
 * has no .gnu_debuglink. */
struct wanted {
	const char *path, *link;
	const uint8_t *id;
	size_t id_size;
	GElf_Word crc;
};

static const uint8_t *build_id_of(Elf *elf, size_t *ret_size)
{
	const void *bytes;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);

	*ret_size = size > 0 ? (size_t)size : 0;
	return size > 0 ? bytes : NULL;
}

static struct wanted wanted_for(const char *path, Elf *elf)
{
	struct wanted wanted = { .path = path };

	wanted.id = build_id_of(elf, &wanted.id_size);
	wanted.link = dwelf_elf_gnu_debuglink(elf, &wanted.crc);
	return wanted;
}

/* Compares build-ids, or the checksum of .gnu_debuglink if neither file has a build-id. */
static bool is_same_build(const struct wanted *wanted, Elf *elf)
{
	size_t size = 0;
	const uint8_t *id = build_id_of(elf, &size);
	const char *file;

	if (wanted->id || id)
		return wanted->id && id && size == wanted->id_size && !memcmp(id, wanted->id, size);
	file = elf_rawfile(elf, &size);
	return file && wanted->link && libdeflate_crc32(0, file, size) == wanted->crc;
}

static bool is_file_itself(const struct wanted *wanted, int fd)
{
	struct stat x, y;

	return stat(wanted->path, &x) < 0 || fstat(fd, &y) < 0 ||
	       (x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* Frees path. Returns the open file, or -1. */
static int try_path(char **ret, const struct wanted *wanted, char *path)
{
	CLEANUP(free) char *mine = path;
	struct error ignored;
	CLEANUP(close) int fd = file_open_regular(path, &ignored);
	bool same;
	Elf *elf;

	if (fd < 0 || is_file_itself(wanted, fd))
		return -1;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	same = elf && is_same_build(wanted, elf) && packed_fits(elf);
	elf_end(elf);
	if (!same)
		return -1;
	*ret = take(mine);
	return take_fd(&fd);
}

static char *build_id_path(const char *root, const uint8_t *id, size_t size)
{
	CLEANUP(str_done) struct str path = { 0 };

	str_addf(&path, "%s/.build-id/%02x/", root, id[0]);
	for (size_t i = 1; i < size; i++)
		str_addf(&path, "%02x", id[i]);
	str_addf(&path, ".debug");
	return str_take(&path);
}

static int try_debuglink(char **ret, const struct wanted *wanted, const char *root)
{
	CLEANUP(free) char *path = realpath(wanted->path, NULL);
	const char *link = wanted->link, *dir;
	int fd;

	if (!link || !path)
		return -1;
	dir = dirname(path);
	fd = try_path(ret, wanted, xasprintf("%s/%s", dir, link));
	if (fd < 0)
		fd = try_path(ret, wanted, xasprintf("%s/.debug/%s", dir, link));
	if (fd < 0)
		fd = try_path(ret, wanted, xasprintf("%s%s/%s", root, dir, link));
	return fd;
}

int debugfile_open(char **ret, const char *path, Elf *elf)
{
	const struct wanted wanted = wanted_for(path, elf);
	const char *root = debugdir();
	int fd = -1;

	if (root && wanted.id_size > 1)
		fd = try_path(ret, &wanted, build_id_path(root, wanted.id, wanted.id_size));
	return fd < 0 && root ? try_debuglink(ret, &wanted, root) : fd;
}

static bool try_disk(struct image *ret, const struct image *file)
{
	CLEANUP(free) char *path = NULL;
	CLEANUP(close) int fd = debugfile_open(&path, file->path, file->elf);
	struct error ignored;

	return fd >= 0 && image_open(ret, path, &ignored) == 0;
}

/* Only a file with a build-id can be requested, and a file with .symtab needs nothing. */
static bool lacks_symbols(const struct image *file)
{
	size_t size;

	return build_id_of(file->elf, &size) && !image_has_section(file, ".symtab");
}

static bool try_server(struct image *ret, const struct image *file, const char *build_id)
{
	const struct wanted wanted = wanted_for(file->path, file->elf);
	char *cached = lacks_symbols(file) ? debuginfod_get(build_id) : NULL;
	CLEANUP(free) char *path = NULL;
	CLEANUP(close) int fd = cached ? try_path(&path, &wanted, cached) : -1;
	struct error ignored;

	return fd >= 0 && image_open(ret, path, &ignored) == 0;
}

/* libdwfl is only used for .gnu_debugdata, so it must not look for a debug file. */
static int find_no_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
                             const char *file, const char *debuglink, GElf_Word crc, char **ret)
{
	(void)mod, (void)userdata, (void)name, (void)base, (void)file, (void)debuglink;
	(void)crc, (void)ret;
	return -1;
}

/* The ELF file that libdwfl unpacked from .gnu_debugdata: the file of the symbols that are not in
 * file itself. */
static Elf *unpacked(Dwfl_Module *mod, const Elf *file)
{
	int count = dwfl_module_getsymtab(mod);

	for (int i = 0; i < count; i++) {
		Elf *elf = NULL;
		GElf_Sym sym;
		GElf_Addr address;

		if (dwfl_module_getsym_info(mod, i, &sym, &address, NULL, &elf, NULL) && elf &&
		    elf != file)
			return elf;
	}
	return NULL;
}

static bool try_mini(struct image *ret, const struct image *file)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf,
		                                  .find_debuginfo = find_no_debuginfo };
	struct image image = { 0 };
	Dwfl_Module *mod;
	GElf_Addr bias;

	if (!image_has_section(file, ".gnu_debugdata") || !(image.dwfl = dwfl_begin(&callbacks)))
		return false;
	dwfl_report_begin(image.dwfl);
	mod = dwfl_report_elf(image.dwfl, file->path, file->path, -1, 0, true);
	dwfl_report_end(image.dwfl, NULL, NULL);
	image.elf = mod ? unpacked(mod, dwfl_module_getelf(mod, &bias)) : NULL;
	if (!image.elf) {
		image_close(&image);
		return false;
	}
	image.path = xstrdup(file->path);
	*ret = image;
	return true;
}

enum debugfile_source debugfile_find(struct image *ret, const struct image *file,
                                     const char *build_id)
{
	if (!debugdir())
		return DEBUGFILE_NONE;
	if (try_disk(ret, file))
		return DEBUGFILE_DISK;
	if (try_server(ret, file, build_id))
		return DEBUGFILE_SERVER;
	return try_mini(ret, file) ? DEBUGFILE_MINI : DEBUGFILE_NONE;
}

bool debugfile_asks_server(const char *path)
{
	struct image file, debug = { 0 };
	struct error ignored;
	bool asks;

	if (!debugdir() || !debuginfod_is_wanted() || image_open(&file, path, &ignored) < 0)
		return false;
	asks = lacks_symbols(&file) && !try_disk(&debug, &file);
	image_close(&debug);
	image_close(&file);
	return asks;
}

const char *debugfile_source_name(enum debugfile_source source)
{
	static const char *const names[] = { "", "debug file", "compressed symbols in the file",
		                             "debug file from debuginfod" };

	return names[source];
}
