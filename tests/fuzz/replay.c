/* SPDX-License-Identifier: MIT */
/* The main of a fuzz target without libFuzzer: it tests the empty input, and the seeds in
 * tests/fuzz/seeds/NAME, with one TAP point for each. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/filemap.h"
#include "base/str.h"
#include "tests/unit/tap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
	CLEANUP(filemap_done) struct filemap map = { 0 };
	const char *slash = strrchr(path, '/');
	struct error err = { 0 };

	if (filemap_open(&map, path, &err) < 0) {
		ok(false, "%s", err.text);
		return;
	}
	LLVMFuzzerTestOneInput(map.data, map.size);
	ok(true, "%s", slash ? slash + 1 : path);
}

static int is_seed(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay_folder(const char *dir)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_seed, alphasort);

	for (int i = 0; i < n; i++) {
		CLEANUP(free) char *path = xasprintf("%s/%s", dir, entries[i]->d_name);

		replay(path);
		free(entries[i]);
	}
	free(entries);
}

/* Further files may be given, such as those that libFuzzer left behind. */
int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];
	const char *top = getenv("top_srcdir");
	CLEANUP(free) char *dir = NULL;

	name = str_has_prefix(name, "fuzz-") ? name + strlen("fuzz-") : name;
	dir = xasprintf("%s/tests/fuzz/seeds/%s", top ? top : ".", name);
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	ok(true, "the empty input");
	replay_folder(dir);
	if (!top && argc == 1)
		ok(false, "top_srcdir names the folder in which tests/fuzz/seeds is");
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	return done_testing();
}
