/* SPDX-License-Identifier: MIT */
/* Reads program headers and dynamic symbols. */
#include "binary/dynamic.h"

#include <gelf.h>
#include <string.h>

#include "base/cleanup.h"
#include "binary/image.h"

static void read_interpreter(struct dynamic *ret, Elf *elf)
{
	size_t count = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &count) < 0)
		return;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &ph); i++) {
		Elf_Data *data;

		if (ph.p_type != PT_INTERP || ph.p_filesz >= sizeof(ret->interpreter))
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
		if (data && data->d_buf)
			memcpy(ret->interpreter, data->d_buf, data->d_size);
	}
}

static bool has_symbol(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; data && i < count && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *text = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (text && !strcmp(text, name))
			return true;
	}
	return false;
}

static bool is_sanitized(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM &&
		    has_symbol(elf, section, &header, "__asan_init"))
			return true;
	return false;
}

int dynamic_read(struct dynamic *ret, const char *path, struct error *err)
{
	CLEANUP(image_close) struct image image = { 0 };

	if (image_open(&image, path, err) < 0)
		return -1;
	*ret = (struct dynamic){ .ours = image_is_ours(&image) };
	read_interpreter(ret, image.elf);
	ret->sanitized = is_sanitized(image.elf);
	return image_check(&image, err);
}
