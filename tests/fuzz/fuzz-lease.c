/* SPDX-License-Identifier: MIT */
/* Any bytes are read as the record of the owner of a group of probes. */
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "system/uprobes.h"

#include "budget.h"

#define GROUP "giltracer_0123456789abcdef_01234567"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/giltracer-fuzz-XXXXXX";

static void remove_folder(void)
{
	struct error ignored;

	file_remove_tree(dir, &ignored);
}

/* A folder of records for this process, with one record in it. */
static void write_record(const uint8_t *data, size_t size)
{
	static bool made;
	CLEANUP(free) char *path = NULL;
	FILE *file;

	if (!made && (!mkdtemp(dir) || setenv("GILTRACER_RUNDIR", dir, 1) < 0))
		abort();
	if (!made)
		atexit(remove_folder);
	made = true;
	path = xasprintf("%s/%s", dir, GROUP);
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		abort();
}

static void read_record(const uint8_t *data, size_t size)
{
	struct lease_record record = { 0 };
	struct error err = { 0 };

	write_record(data, size);
	lease_read(GROUP, &record);
	if (lease_is_used(GROUP))
		abort();
	if (lease_write(GROUP, "/dev/null", &err) < 0 || !lease_read(GROUP, &record))
		abort();
	lease_remove(GROUP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	budget_run(read_record, data, size);
	return 0;
}
