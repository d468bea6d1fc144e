/* SPDX-License-Identifier: MIT */
/* Uses program headers: every file that can be loaded has them, but it need not have sections. */
#include "binary/segments.h"

#include <gelf.h>

enum where { AT_ADDRESS, AT_OFFSET };

/* Finds the loadable segment whose contents include an address or a file offset. */
static bool find(Elf *elf, enum where where, uint64_t at, GElf_Phdr *ret)
{
	size_t n = 0;

	if (elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t start;

		if (!gelf_getphdr(elf, (int)i, ret) || ret->p_type != PT_LOAD)
			continue;
		start = where == AT_ADDRESS ? ret->p_vaddr : ret->p_offset;
		if (at >= start && at - start < ret->p_filesz)
			return true;
	}
	return false;
}

bool segments_offset(Elf *elf, uint64_t address, uint64_t *ret, uint64_t *ret_left)
{
	GElf_Phdr ph;

	if (!find(elf, AT_ADDRESS, address, &ph))
		return false;
	*ret = address - ph.p_vaddr + ph.p_offset;
	*ret_left = ph.p_filesz - (address - ph.p_vaddr);
	return true;
}

bool segments_address(Elf *elf, uint64_t offset, uint64_t *ret)
{
	GElf_Phdr ph;

	if (!find(elf, AT_OFFSET, offset, &ph))
		return false;
	*ret = ph.p_vaddr + (offset - ph.p_offset);
	return true;
}

const uint8_t *segments_bytes(Elf *elf, uint64_t address, uint64_t max, size_t *ret_len)
{
	uint64_t offset, left;
	size_t size = 0;
	const char *file = elf_rawfile(elf, &size);

	if (!file || !segments_offset(elf, address, &offset, &left) || offset >= size)
		return NULL;
	if (left > size - offset)
		left = size - offset;
	*ret_len = left < max ? (size_t)left : (size_t)max;
	return (const uint8_t *)file + offset;
}
