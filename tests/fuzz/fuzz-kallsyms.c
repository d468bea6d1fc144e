/* SPDX-License-Identifier: MIT */
/* Any bytes as /proc/kallsyms: a symbol that is found starts at or before the requested address. */
#include <stdlib.h>

#include "perfdata/kallsyms.h"

#include "budget.h"
#include "file-bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct kallsyms *k, uint64_t address)
{
	const char *module = NULL;
	uint64_t start = 0;
	const char *name = kallsyms_find(k, address, &module, &start);

	if (name && (!*name || !module || start > address))
		abort();
	if (name)
		kallsyms_address(k, name);
}

static void read_symbols(const uint8_t *data, size_t size)
{
	struct file_bytes f = file_bytes_make(data, size);
	struct kallsyms *k = kallsyms_read(f.path);

	for (unsigned shift = 0; k && shift < 64; shift++)
		look_up(k, UINT64_MAX >> shift);
	kallsyms_free(k);
	close(f.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	budget_run(read_symbols, data, size);
	return 0;
}
