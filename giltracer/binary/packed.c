/* SPDX-License-Identifier: MIT */
/*
 * Compressed debug information has a third or a fifth of its size, but zeros have a thousandth: a
 * file of 6 MB could demand 3 GB of memory.
 */
#include "binary/packed.h"

#include <gelf.h>
#include <lzma.h>
#include <stdint.h>
#include <string.h>

#define RATIO_MAX  32
#define ALWAYS_MAX (1U << 20)   /* this much is harmless, whatever the ratio */
#define XZ_MEMORY  (128U << 20) /* more than xz -9 needs to unpack */
#define CHUNK      65536

static uint64_t limit_of(uint64_t size)
{
	return size * RATIO_MAX + ALWAYS_MAX;
}

/* Unpacks .gnu_debugdata without storing it. Corrupt data is left to libdwfl, which rejects it. */
static bool xz_fits(const Elf_Data *data)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint64_t max = limit_of(data->d_size);
	uint8_t out[CHUNK];
	lzma_ret status;

	if (lzma_auto_decoder(&stream, XZ_MEMORY, 0) != LZMA_OK)
		return false;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	do {
		stream.next_out = out;
		stream.avail_out = sizeof(out);
		status = lzma_code(&stream, LZMA_FINISH);
	} while (status == LZMA_OK && stream.total_out <= max);
	lzma_end(&stream);
	return stream.total_out <= max && status != LZMA_MEMLIMIT_ERROR;
}

/* The old format, before ELF had a flag for compression: "ZLIB" and the size. */
static uint64_t old_size(Elf_Scn *scn)
{
	const Elf_Data *data = elf_rawdata(scn, NULL);
	uint64_t size = 0;

	if (!data || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
		return 0;
	for (unsigned i = 4; i < 12; i++)
		size = size << 8 | ((const uint8_t *)data->d_buf)[i];
	return size;
}

/* The size of a section's contents according to its header; libelf checks that it is right. */
static uint64_t stated_size(Elf_Scn *scn, const GElf_Shdr *sh, const char *name)
{
	GElf_Chdr compressed;

	if (sh->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(scn, &compressed) ? compressed.ch_size : 0;
	return strncmp(name, ".zdebug", 7) == 0 ? old_size(scn) : 0;
}

bool packed_fits(Elf *elf)
{
	size_t strings, size = 0;
	bool seen = false;
	Elf_Scn *scn = NULL;
	uint64_t left;
	GElf_Shdr sh;

	if (!elf_rawfile(elf, &size) || elf_getshdrstrndx(elf, &strings) < 0)
		return true;
	left = limit_of(size);
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, strings, sh.sh_name)
		                                          : NULL;
		const Elf_Data *data;
		uint64_t stated;

		if (!name)
			continue;
		stated = stated_size(scn, &sh, name);
		if (stated > left)
			return false;
		left -= stated;
		/* Only the first section of that name is unpacked. */
		if (seen || strcmp(name, ".gnu_debugdata") != 0)
			continue;
		seen = true;
		data = elf_rawdata(scn, NULL);
		if (data && data->d_buf && !xz_fits(data))
			return false;
	}
	return true;
}
