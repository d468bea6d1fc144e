/* SPDX-License-Identifier: MIT */
/* The executable mappings of this process, fed to a struct maps as MMAP2 records would be. */
#ifndef GILTRACER_TESTS_SELF_MAPS_H
#define GILTRACER_TESTS_SELF_MAPS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "perfdata/maps.h"

static void map_self(struct maps *maps, struct modules *modules, uint32_t pid,
                     const struct build_id *id)
{
	struct error err;
	char *text = NULL;

	if (file_read(&text, NULL, "/proc/self/maps", 1 << 22, &err) < 0) {
		puts(err.text);
		exit(1);
	}
	for (char *line = text, *next; line && *line; line = next) {
		uint64_t start, end, offset;
		char perms[5], path[4096] = "//anon";

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %4095[^\n]",
		           &start, &end, perms, &offset, path) >= 4 &&
		    perms[2] == 'x')
			maps_mmap(maps, pid, start, end - start, offset,
			          modules_get(modules, path, id));
	}
	free(text);
}

#endif
