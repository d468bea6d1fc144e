/* SPDX-License-Identifier: MIT */
/* libelf's view of a file. */
#include "binary/image.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "binary/packed.h"

#ifdef __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

void image_close(struct image *image)
{
	if (image->dwfl)
		dwfl_end(image->dwfl);
	else if (image->elf)
		elf_end(image->elf);
	filemap_done(&image->map);
	free(image->path);
	*image = (struct image){ 0 };
}

static void identify(struct image_identity *ret, const struct stat *st)
{
	*ret = (struct image_identity){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		/* The time of the last status change, because the time of the last modification can
		 * be set back. */
		.changed_ns = st->st_ctim.tv_sec * 1000000000LL + st->st_ctim.tv_nsec,
	};
}

bool image_identify(struct image_identity *ret, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	identify(ret, &st);
	return true;
}

bool image_identity_equal(const struct image_identity *a, const struct image_identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->changed_ns == b->changed_ns;
}

int image_open(struct image *ret, const char *path, struct error *err)
{
	CLEANUP(close) int fd = file_open_regular(path, err);
	struct image image = { 0 };
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return error_errno(err, "%s", path);
	/* libelf notes in the section headers that it has decompressed a section. */
	if (filemap_open_copy(&image.map, fd, path, err) < 0)
		return -1;
	elf_version(EV_CURRENT);
	image.path = xstrdup(path);
	if (image.map.size)
		image.elf = elf_memory((char *)(uintptr_t)image.map.data, image.map.size);
	if (!image.elf || elf_kind(image.elf) != ELF_K_ELF) {
		image_close(&image);
		return error_set(err, ENOEXEC, "%s: is not an ELF file", path);
	}
	if (!packed_fits(image.elf)) {
		image_close(&image);
		return error_set(err, EFBIG, "%s: " PACKED_WHY, path);
	}
	identify(&image.identity, &st);
	*ret = image;
	return 0;
}

int image_check(const struct image *image, struct error *err)
{
	return filemap_check(&image->map, err);
}

bool image_is_ours(const struct image *image)
{
	GElf_Ehdr ehdr;

	return gelf_getehdr(image->elf, &ehdr) && ehdr.e_machine == MACHINE &&
	       ehdr.e_ident[EI_CLASS] == ELFCLASS64;
}

static char *hex(const uint8_t *bytes, size_t n)
{
	CLEANUP(str_done) struct str text = { 0 };

	for (size_t i = 0; i < n; i++)
		str_addf(&text, "%02x", bytes[i]);
	return str_take(&text);
}

/* FNV-1a over the executable segments: as good as a build-id for checking whether the code is the
 * same. */
static char *code_sum(const struct image *image)
{
	uint64_t sum = 0xcbf29ce484222325;
	size_t count = 0, size = 0;
	const char *file = elf_rawfile(image->elf, &size);
	GElf_Phdr ph;

	elf_getphdrnum(image->elf, &count);
	for (size_t i = 0; file && i < count; i++) {
		if (!gelf_getphdr(image->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    !(ph.p_flags & PF_X) || ph.p_offset > size || ph.p_filesz > size - ph.p_offset)
			continue;
		for (uint64_t at = 0; at < ph.p_filesz; at++)
			sum = (sum ^ (uint8_t)file[ph.p_offset + at]) * 0x100000001b3;
	}
	return xasprintf("sum%016" PRIx64, sum);
}

char *image_build_id(const struct image *image)
{
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(image->elf, &bytes);

	return n > 0 ? hex(bytes, (size_t)n) : code_sum(image);
}

bool image_has_section(const struct image *image, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t strings;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(image->elf, &strings) < 0)
		return false;
	while ((scn = elf_nextscn(image->elf, scn))) {
		const char *found = gelf_getshdr(scn, &sh)
		                            ? elf_strptr(image->elf, strings, sh.sh_name)
		                            : NULL;

		/* A debug file also lists the sections whose contents only the stripped file
		 * has. */
		if (found && !strcmp(found, name) && sh.sh_type != SHT_NOBITS)
			return true;
	}
	return false;
}
