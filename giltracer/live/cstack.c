/* SPDX-License-Identifier: MIT */
#include "live/cstack.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/procfs.h"

struct cstack cstack_find(pid_t pid, uint64_t address)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);
	struct procfs_mapping m;
	char *rest = maps;

	while (procfs_next_mapping(&m, &rest))
		if (address >= m.start && address < m.end)
			return (struct cstack){ .low = m.start,
				                .high = m.end,
				                .of_main = !strcmp(m.path, "[stack]") };
	return (struct cstack){ 0 };
}
