/* SPDX-License-Identifier: MIT */
/* Candidates in order; each has to show that it is of the same build. */
#include "debugfile.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <libdeflate.h>

#include "base/alloc.h"
#include "base/debugdir.h"
#include "base/cleanup.h"
#include "launch/debuginfod.h"
#include "launch/image.h"

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) < 0 || stat(b, &y) < 0 || (x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* crc: what the debuglink says, NULL where there is none. A build-id says more, if there is one. */
static bool is_same_build(const struct image *file, const struct image *debug, const char *build_id,
                          const GElf_Word *crc)
{
	CLEANUP(free) char *theirs = NULL;

	if (image_has_build_id(file) != image_has_build_id(debug))
		return false;
	if (!image_has_build_id(file))
		return crc && libdeflate_crc32(0, debug->map.data, debug->map.size) == *crc;
	theirs = image_build_id(debug);
	return !strcmp(theirs, build_id);
}

static bool try_path(struct image *ret, const struct image *file, const char *build_id,
                     const char *path, const GElf_Word *crc)
{
	struct image image;
	struct error ignored;

	if (is_same_file(file->path, path) || image_open(&image, path, &ignored) < 0)
		return false;
	if (is_same_build(file, &image, build_id, crc)) {
		*ret = image;
		return true;
	}
	image_close(&image);
	return false;
}

static bool try_build_id(struct image *ret, const struct image *file, const char *build_id,
                         const char *root)
{
	CLEANUP(free) char *path = NULL;

	if (!image_has_build_id(file) || strlen(build_id) <= 2)
		return false;
	path = xasprintf("%s/.build-id/%.2s/%s.debug", root, build_id, build_id + 2);
	return try_path(ret, file, build_id, path, NULL);
}

static bool try_debuglink(struct image *ret, const struct image *file, const char *build_id,
                          const char *root)
{
	GElf_Word crc;
	const char *link = dwelf_elf_gnu_debuglink(file->elf, &crc);
	CLEANUP(free) char *path = realpath(file->path, NULL);
	CLEANUP(free) char *beside = NULL, *below = NULL, *rooted = NULL;
	const char *dir;

	if (!link || !path)
		return false;
	dir = dirname(path);
	beside = xasprintf("%s/%s", dir, link);
	below = xasprintf("%s/.debug/%s", dir, link);
	rooted = xasprintf("%s%s/%s", root, dir, link);
	return try_path(ret, file, build_id, beside, &crc) ||
	       try_path(ret, file, build_id, below, &crc) ||
	       try_path(ret, file, build_id, rooted, &crc);
}

static bool lacks_symbols(const struct image *file)
{
	return image_has_build_id(file) && !image_has_section(file, ".symtab");
}

static bool try_server(struct image *ret, const struct image *file, const char *build_id)
{
	CLEANUP(free) char *path = NULL;

	if (!lacks_symbols(file))
		return false;
	path = debuginfod_get(build_id);
	return path && try_path(ret, file, build_id, path, NULL);
}

/* The table is of the file itself: no other debug file may be looked for on its account. */
static int find_no_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
                             const char *file, const char *debuglink, GElf_Word crc, char **ret)
{
	(void)mod, (void)userdata, (void)name, (void)base, (void)file, (void)debuglink;
	(void)crc, (void)ret;
	return -1;
}

/* What libdwfl has unpacked: the only symbols that are neither in the file nor imported. */
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
	struct image image = { .fd = -1 };
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
	const char *root = debugdir();

	if (!root)
		return DEBUGFILE_NONE;
	if (try_build_id(ret, file, build_id, root) || try_debuglink(ret, file, build_id, root))
		return DEBUGFILE_DISK;
	if (try_server(ret, file, build_id))
		return DEBUGFILE_SERVER;
	return try_mini(ret, file) ? DEBUGFILE_MINI : DEBUGFILE_NONE;
}

bool debugfile_asks_server(const char *path)
{
	struct image file, debug = { .fd = -1 };
	CLEANUP(free) char *build_id = NULL;
	const char *root = debugdir();
	struct error ignored;
	bool asks;

	if (!root || !debuginfod_is_wanted() || image_open(&file, path, &ignored) < 0)
		return false;
	build_id = image_build_id(&file);
	asks = lacks_symbols(&file) && !try_build_id(&debug, &file, build_id, root) &&
	       !try_debuglink(&debug, &file, build_id, root);
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
