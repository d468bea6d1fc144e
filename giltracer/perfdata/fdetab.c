/* SPDX-License-Identifier: MIT */
/*
 * The sorted table of .eh_frame_hdr: where each function of a file starts, symbols or not. Format:
 * Linux Standard Base Core, "The .eh_frame_hdr section"; encodings DW_EH_PE_* of the same.
 */
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "perfdata/module.h"
#include "perfdata/symbolize.h"

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

/* Every linker we know writes these encodings; others leave the table empty. */
static struct fdetab *load(Elf *elf)
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

bool symbolize_start(struct module *module, uint64_t vaddr, uint64_t *ret)
{
	const struct fdetab *tab;
	size_t lo = 0, hi;

	if (!module_open(module))
		return false;
	if (!module->fdetab)
		module->fdetab = load(module->elf);
	tab = module->fdetab;
	for (hi = tab->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (row_start(tab, mid) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return false;
	*ret = row_start(tab, lo - 1);
	return true;
}
