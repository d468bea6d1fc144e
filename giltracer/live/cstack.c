/* SPDX-License-Identifier: MIT */
#include "live/cstack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

struct cstack cstack_find(pid_t pid, uint64_t address)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/maps", (int)pid);
	CLEANUP(fclose) FILE *in = fopen(path, "re");
	CLEANUP(free) char *line = NULL;
	size_t size = 0;

	while (in && getline(&line, &size, in) > 0) {
		struct cstack found = { 0 };
		char *end;

		found.low = strtoull(line, &end, 16);
		found.high = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;
		found.of_main = strstr(line, " [stack]\n") != NULL;
		if (address >= found.low && address < found.high)
			return found;
	}
	return (struct cstack){ 0 };
}
