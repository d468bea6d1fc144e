/* SPDX-License-Identifier: MIT */
/* Checks breakpoints in /proc/PID/mem; on x86-64, a breakpoint is an instruction of one byte. */
#include "record/probe_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "locate/probes.h"

#define MAPS_MAX   (16u << 20)
#define BREAKPOINT 0xcc

#ifdef __x86_64__
#define KNOWS_BREAKPOINTS true
#else
#define KNOWS_BREAKPOINTS false
#endif

/* A line of /proc/PID/maps; path points into that text. */
struct mapping {
	uint64_t start, end, offset;
	const char *path;
};

static bool parse(struct mapping *ret, const char *line)
{
	char rights[5];
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &ret->start,
	           &ret->end, rights, &ret->offset, &path) < 4 ||
	    rights[2] != 'x' || !path || line[path] != '/')
		return false;
	ret->path = line + path;
	return true;
}

static bool covers(const struct mapping *m, uint64_t offset)
{
	return offset >= m->offset && offset - m->offset < m->end - m->start;
}

/* Notes the probes that have their breakpoints in this mapping; returns the number of new ones. */
static size_t find_inserted(bool *inserted, int memory, const struct mapping *m,
                            const struct probe_set *set)
{
	size_t found = 0;

	for (size_t i = 0; i < set->probes.n; i++) {
		uint64_t offset = set->probes.v[i].offset;
		uint8_t byte;

		if (inserted[i] || !covers(m, offset) ||
		    pread(memory, &byte, 1, (off_t)(m->start + offset - m->offset)) != 1 ||
		    byte != BREAKPOINT)
			continue;
		inserted[i] = true;
		found++;
	}
	return found;
}

/* The last part of a path: the folder may differ in a container or behind a link. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_named_like(const struct mapping *m, const struct probe_set *set)
{
	const char *base = base_name(set->path);
	size_t len = strlen(base);
	const char *theirs = base_name(m->path);

	/* The kernel appends " (deleted)" to the name of a removed file. */
	return !strncmp(theirs, base, len) && (!theirs[len] || theirs[len] == ' ');
}

int probe_verify_file(const struct probe_set *set, struct error *err)
{
	if (probe_set_is_current(set))
		return 0;
	return error_set(err, ESTALE,
	                 "%s was replaced or changed after its probes were placed: run it again",
	                 set->path);
}

static int explain(const struct probe_set *set, const char *path, struct error *err)
{
	if (probe_verify_file(set, err) < 0)
		return -1;
	if (!path)
		return error_set(err, ESTALE,
		                 "the program does not run %s, which contains the probes",
		                 set->path);
	return error_set(err, ESTALE,
	                 "the kernel has not inserted the probes of %s into the program: an "
	                 "overlay copied the file after they were placed, or its file "
	                 "system does not support uprobes; place them again (giltracer "
	                 "setup), or use --no-gil-detect",
	                 set->path);
}

/* A file may have several executable segments, such as those of a BOLT-optimised build; their
 * mappings follow each other. */
static int check(char *maps, int memory, const struct probe_set *set, struct error *err)
{
	CLEANUP(free) bool *inserted = xcalloc(set->probes.n + 1, sizeof(*inserted));
	const char *path = NULL, *file = "";
	size_t count = 0;
	char *line;

	while ((line = strsep(&maps, "\n"))) {
		struct mapping m;

		if (!parse(&m, line))
			continue;
		if (strcmp(m.path, file) != 0) {
			memset(inserted, 0, set->probes.n * sizeof(*inserted));
			count = 0;
			file = m.path;
		}
		count += find_inserted(inserted, memory, &m, set);
		if (count == set->probes.n)
			return 0;
		if (is_named_like(&m, set))
			path = m.path;
	}
	return explain(set, path, err);
}

int probe_verify_process(pid_t pid, const struct probe_set *set, struct error *err)
{
	CLEANUP(free) char *maps_path = xasprintf("/proc/%d/maps", (int)pid);
	CLEANUP(free) char *memory_path = xasprintf("/proc/%d/mem", (int)pid);
	CLEANUP(close) int memory = open(memory_path, O_RDONLY | O_CLOEXEC);
	CLEANUP(free) char *maps = NULL;
	struct error ignored;

	if (!KNOWS_BREAKPOINTS || memory < 0 ||
	    file_read(&maps, NULL, maps_path, MAPS_MAX, &ignored) < 0)
		return 0;
	return check(maps, memory, set, err);
}
