/* SPDX-License-Identifier: MIT */
#include "record/thread_names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MOST 10000

void thread_names_add(struct thread_names *named, uint32_t pid, const char *text)
{
	char *name;
	unsigned long tid = strtoul(text, &name, 10);

	if (!tid || tid > INT32_MAX || *name != ' ')
		return;
	*vec_push(named) = (struct session_thread){ pid, (uint32_t)tid, xstrdup(name + 1) };
}

void thread_names_read(struct thread_names *named, const char *path)
{
	CLEANUP(fclose) FILE *file = fopen(path, "re");
	CLEANUP(free) char *line = NULL;
	size_t alloc = 0;
	ssize_t len;
	struct thread_names last = *named;

	*named = (struct thread_names){ 0 };
	while (file && named->n < MOST && (len = getline(&line, &alloc, file)) > 0) {
		char *tid;
		unsigned long pid = strtoul(line, &tid, 10);

		if (line[len - 1] != '\n' || !pid || pid > INT32_MAX || *tid != ' ')
			continue;
		line[len - 1] = '\0';
		thread_names_add(named, (uint32_t)pid, tid + 1);
	}
	for (size_t i = 0; i < last.n; i++)
		*vec_push(named) = last.v[i];
	vec_done(&last);
	if (file)
		unlink(path);
}
