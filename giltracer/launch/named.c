/* SPDX-License-Identifier: MIT */
#include "named.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MOST 10000

void named_add(struct named *named, uint32_t pid, const char *text)
{
	char *name;
	unsigned long tid = strtoul(text, &name, 10);

	if (!tid || tid > INT32_MAX || *name != ' ')
		return;
	*vec_push(named) = (struct session_thread){ pid, (uint32_t)tid, xstrdup(name + 1) };
}

void named_read(struct named *named, const char *path)
{
	CLEANUP(fclose) FILE *file = fopen(path, "re");
	CLEANUP(free) char *line = NULL;
	size_t alloc = 0;
	ssize_t len;

	while (file && named->n < MOST && (len = getline(&line, &alloc, file)) > 0) {
		char *tid;
		unsigned long pid = strtoul(line, &tid, 10);

		if (line[len - 1] != '\n' || !pid || pid > INT32_MAX || *tid != ' ')
			continue;
		line[len - 1] = '\0';
		named_add(named, (uint32_t)pid, tid + 1);
	}
	if (file)
		unlink(path);
}
