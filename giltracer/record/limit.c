/* SPDX-License-Identifier: MIT */
/* Ends a recording at a limit of time, size or disk space. */
#include "record/limit.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "record/notes.h"

#define MIB UINT64_C(1048576)

/* How often sizes are checked. perf writes at most some 100 MB a second. */
#define LOOK_MS 200

/* Bytes to leave free: perf still has buffered data to write at the end, and other programs
 * write, too. */
#define LEAST_FREE (256 * MIB)

/* The free bytes of the file system that contains path. */
static uint64_t free_bytes(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

void limit_begin(struct limit *limit, const char *folder)
{
	uint64_t quarter = free_bytes(folder) / 4;

	limit->folder = folder;
	limit->least_free = quarter < LEAST_FREE ? quarter : LEAST_FREE;
}

int limit_wait_ms(const struct limit *limit, uint64_t elapsed_ns)
{
	uint64_t end_ns = limit->duration_s * NS_PER_SECOND;

	if (!limit->duration_s || end_ns > elapsed_ns + LOOK_MS * NS_PER_SECOND / 1000)
		return LOOK_MS;
	return end_ns > elapsed_ns ? (int)((end_ns - elapsed_ns) / 1000000) + 1 : 0;
}

static uint64_t size_of(const struct perf_plan *recordings, size_t count)
{
	uint64_t size = 0;
	struct stat st;

	for (size_t i = 0; i < count; i++)
		if (stat(recordings[i].output, &st) == 0)
			size += (uint64_t)st.st_size;
	return size;
}

char *limit_size_text(const struct limit *limit, uint64_t elapsed_ns)
{
	return xasprintf(NOTE_MAX_SIZE, (double)elapsed_ns / 1e9, limit->max_mib);
}

char *limit_reached(const struct limit *limit, uint64_t elapsed_ns,
                    const struct perf_plan *recordings, size_t count)
{
	if (limit->duration_s && elapsed_ns >= limit->duration_s * NS_PER_SECOND)
		return xasprintf(NOTE_DURATION, limit->duration_s);
	if (limit->max_mib && size_of(recordings, count) >= limit->max_mib * MIB)
		return limit_size_text(limit, elapsed_ns);
	if (limit->folder && free_bytes(limit->folder) < limit->least_free)
		return xasprintf(NOTE_DISK_FULL, (double)elapsed_ns / 1e9);
	return NULL;
}
