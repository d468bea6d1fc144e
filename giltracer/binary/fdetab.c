/* SPDX-License-Identifier: MIT */
/*
 * The table of .eh_frame_hdr, which the linker sorts by address. Format: Linux Standard Base Core,
 * "The .eh_frame_hdr section"; encodings DW_EH_PE_* of the same.
 */
#include "binary/fdetab.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

#define ENC_UDATA4         0x03
#define ENC_DATAREL_SDATA4 0x3b
#define HEADER_BYTES       12 /* version, three encodings, eh_frame pointer, count */

struct fdetab {
	uint64_t base;       /* vaddr of the section */
	const uint8_t *rows; /* pairs of i32, relative to base: start, FDE */
	size_t n;
};

void fdetab_free(struct fdetab *fdetab)
{
	free(fdetab);
}

static bool find_segment(Elf *elf, GElf_Phdr *ret)
{
	size_t n = 0;

	if (elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, i, ret) && ret->p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

/* All linkers that we know write these encodings; with others the table is empty. */
struct fdetab *fdetab_new(Elf *elf)
{
	struct fdetab *tab = xcalloc(1, sizeof(*tab));
	GElf_Phdr ph;
	Elf_Data *data;
	uint32_t count;

	if (!find_segment(elf, &ph))
		return tab;
	data = elf_getdata_rawchunk(elf, ph.p_offset, ph.p_filesz, ELF_T_BYTE);
	if (!data || data->d_size < HEADER_BYTES)
		return tab;
	tab->rows = data->d_buf;
	if (tab->rows[0] != 1 || tab->rows[2] != ENC_UDATA4 || tab->rows[3] != ENC_DATAREL_SDATA4)
		return tab;
	memcpy(&count, tab->rows + 8, sizeof(count));
	tab->rows += HEADER_BYTES;
	tab->base = ph.p_vaddr;
	tab->n = (data->d_size - HEADER_BYTES) / 8;
	if (count < tab->n)
		tab->n = count;
	return tab;
}

static uint64_t row_start(const struct fdetab *tab, size_t i)
{
	int32_t start;

	memcpy(&start, tab->rows + i * 8, sizeof(start));
	return tab->base + (int64_t)start;
}

bool fdetab_find(const struct fdetab *fdetab, uint64_t address, uint64_t *ret_start,
                 uint64_t *ret_end)
{
	size_t after = SEARCH(fdetab->n, i, row_start(fdetab, i) <= address);

	if (after == 0)
		return false;
	*ret_start = row_start(fdetab, after - 1);
	*ret_end = after < fdetab->n ? row_start(fdetab, after) : UINT64_MAX;
	return true;
}
