/* SPDX-License-Identifier: MIT */
/* Address spaces, and two related tables: numbers by key, and kernel symbols. */
#include <unistd.h>

#include "base/file.h"
#include "base/idmap.h"
#include "perfdata/kallsyms.h"
#include "perfdata/maps.h"

#include "tap.h"

struct fixture {
	struct modules *modules;
	struct maps *maps;
	struct module *a, *b;
};

static struct fixture setup(void)
{
	struct fixture f = { .modules = modules_new(false), .maps = maps_new() };

	f.a = modules_get(f.modules, "/lib/a.so", NULL);
	f.b = modules_get(f.modules, "/lib/b.so", NULL);
	return f;
}

static void teardown(struct fixture *f)
{
	maps_free(f->maps);
	modules_free(f->modules);
}

/* The mapping at address, as "base+offset". */
static const char *at(struct fixture *f, uint32_t pid, uint64_t address)
{
	static char text[64];
	const struct map *map = space_find(maps_space(f->maps, pid), address);

	if (!map)
		return "nothing";
	snprintf(text, sizeof(text), "%s+%#" PRIx64, map->module->base, map_offset(map, address));
	return text;
}

static size_t count(struct fixture *f, uint32_t pid)
{
	const struct map *map = NULL;
	size_t n = 0;

	while ((map = space_from(maps_space(f->maps, pid), map ? map->end : 0)))
		n++;
	return n;
}

static void test_mmap(void)
{
	struct fixture f = setup();
	uint32_t generation;

	maps_mmap(f.maps, 1, 0x1000, 0x4000, 0x100000, f.a);
	is_str(at(&f, 1, 0x1000), "a.so+0x100000", "the first byte is mapped");
	is_str(at(&f, 1, 0x4fff), "a.so+0x103fff", "the last byte is mapped");
	is_str(at(&f, 1, 0x5000), "nothing", "the byte after the mapping is not mapped");
	is_str(at(&f, 1, 0xfff), "nothing", "the byte before the mapping is not mapped");
	generation = maps_space(f.maps, 1)->generation;
	maps_mmap(f.maps, 1, 0x2000, 0x1000, 0, f.b);
	ok(maps_space(f.maps, 1)->generation != generation, "a mapping changes the generation");
	is_str(at(&f, 1, 0x1fff), "a.so+0x100fff",
	       "a mapping in the middle of another keeps its head");
	is_str(at(&f, 1, 0x2fff), "b.so+0xfff", "the new mapping is found");
	is_str(at(&f, 1, 0x3000), "a.so+0x102000", "the tail keeps its file offset");
	maps_mmap(f.maps, 1, 0x1800, 0x2000, 0x50000, f.b);
	is_str(at(&f, 1, 0x17ff), "a.so+0x1007ff",
	       "a mapping over three keeps the head of the first");
	is_str(at(&f, 1, 0x2000), "b.so+0x50800", "the mapping in the middle is replaced");
	is_str(at(&f, 1, 0x3800), "a.so+0x102800", "the tail of the last remains");
	is_u64(count(&f, 1), 3, "there are three mappings");
	maps_mmap(f.maps, 1, 0x8000, 0, 0, f.b);
	maps_mmap(f.maps, 1, UINT64_MAX - 10, 100, 0, f.b);
	is_u64(count(&f, 1), 3, "an empty mapping and one that wraps around are ignored");
	is_str(at(&f, 2, 0x1000), "nothing", "another process has other mappings");
	teardown(&f);
}

static void test_fork_exec(void)
{
	struct fixture f = setup();

	maps_mmap(f.maps, 1, 0x1000, 0x1000, 0, f.a);
	maps_fork(f.maps, 2, 1);
	maps_mmap(f.maps, 1, 0x1000, 0x1000, 0, f.b);
	is_str(at(&f, 2, 0x1000), "a.so+0", "a child keeps its parent's mappings");
	maps_fork(f.maps, 3, 2);
	maps_fork(f.maps, 4, 3);
	ok(maps_space(f.maps, 3)->root == maps_space(f.maps, 4)->root,
	   "a child shares its parent's tree until one of them changes it");
	ok(maps_space(f.maps, 3)->generation != maps_space(f.maps, 4)->generation,
	   "each space has its own generation");
	maps_mmap(f.maps, 3, 0x1800, 0x400, 0, f.b);
	is_str(at(&f, 3, 0x1800), "b.so+0", "a child maps another file");
	is_str(at(&f, 2, 0x1800), "a.so+0x800", "its parent's mappings do not change");
	is_str(at(&f, 4, 0x1800), "a.so+0x800", "its child's mappings do not change");
	maps_exec(f.maps, 4);
	is_str(at(&f, 2, 0x1000), "a.so+0", "exec in a grandchild does not affect the others");
	maps_fork(f.maps, 3, 2);
	is_str(at(&f, 3, 0x1800), "a.so+0x800", "a pid that is used again is another process");
	is_str(at(&f, 1, 0x1000), "b.so+0", "the parent keeps its own mappings");
	maps_fork(f.maps, 1, 1);
	is_str(at(&f, 1, 0x1000), "b.so+0", "a new thread changes nothing");
	maps_exec(f.maps, 2);
	is_str(at(&f, 2, 0x1000), "nothing", "exec unmaps everything");
	is_str(at(&f, 1, 0x1000), "b.so+0", "exec affects one process only");
	maps_fork(f.maps, 3, 99);
	is_str(at(&f, 3, 0x1000), "nothing", "the child of an unknown process has no mappings");
	teardown(&f);
}

/* Compares a random sequence with one number per page. */
static void test_random(void)
{
	struct fixture f = setup();
	uint64_t want[64] = { 0 }, wrong = 0, seed = 7;

	for (int round = 0; round < 5000; round++) {
		uint64_t start, n;

		seed = seed * 6364136223846793005 + 1442695040888963407;
		start = (seed >> 33) % 64;
		n = 1 + (seed >> 40) % (64 - start);
		for (uint64_t i = 0; i < n; i++)
			want[start + i] = (uint64_t)round * 64 + i + 1;
		maps_mmap(f.maps, 1, start << 12, n << 12, (uint64_t)(round * 64 + 1) << 12, f.a);
		for (uint64_t i = 0; i < 64; i++) {
			const struct map *map = space_find(maps_space(f.maps, 1), i << 12);

			wrong += (map ? map_offset(map, i << 12) >> 12 : 0) != want[i];
		}
	}
	is_u64(wrong, 0, "5,000 random mappings agree with a plain array");
	teardown(&f);
}

static void test_modules(void)
{
	struct fixture f = setup();
	struct build_id one = { 20, { 1 } }, two = { 20, { 2 } }, short_one = { 16, { 1 } };

	ok(modules_get(f.modules, "/lib/a.so", NULL) == f.a, "the same path is the same module");
	ok(modules_get(f.modules, "/lib/a.so", &one) != modules_get(f.modules, "/lib/a.so", &two),
	   "the same path in another build is another module");
	ok(build_id_equal(&one, &short_one), "zeros after a short build-id are padding");
	ok(!build_id_equal(&one, &two), "different build-ids are not equal");
	ok(!build_id_equal(&one, &(struct build_id){ 0 }), "an unknown build-id equals none");
	ok(!module_open(modules_get(f.modules, "/dev/zero", NULL)), "a device is not opened");
	ok(!module_open(modules_get(f.modules, "//anon", NULL)),
	   "a path that is not a file is not opened");
	ok(!module_open(modules_get(f.modules, "[vdso]", NULL)),
	   "another kernel's vdso is not opened");
	ok(!module_open(modules_get(f.modules, "/etc/passwd", NULL)),
	   "a file that is not ELF is not opened");
	teardown(&f);
}

static void test_idmap(void)
{
	struct idmap map = { 0 };
	uint32_t wrong = 0, value;

	ok(idmap_get(&map, 5) == IDMAP_NONE, "an empty table has no entries");
	for (uint64_t i = 0; i < 100000; i++)
		idmap_set(&map, i * 0x100000001, i);
	for (uint64_t i = 0; i < 100000; i++)
		wrong += idmap_get(&map, i * 0x100000001) != i;
	is_u64(wrong, 0, "100,000 numbers are found again");
	ok(idmap_get(&map, 12345) == IDMAP_NONE, "another number is not found");
	idmap_set(&map, 0, 77);
	ok(idmap_get(&map, 0) == 77 && map.n == 100000, "a number can be replaced");
	ok(!idmap_add(&map, 0, 78, &value) && value == 77, "idmap_add does not replace a value");
	ok(idmap_add(&map, 12345, 78, &value) && value == 78 && idmap_get(&map, 12345) == 78,
	   "idmap_add adds a new number");
	idmap_done(&map);
}

static struct kallsyms *kallsyms_of(const char *text)
{
	char path[] = "/tmp/test-maps-XXXXXX";
	int fd = mkstemp(path);
	struct kallsyms *ret;

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		exit(1);
	close(fd);
	ret = kallsyms_read(path);
	unlink(path);
	return ret;
}

static void test_kallsyms(void)
{
	struct kallsyms *k = kallsyms_of("ffffffff81000000 T _text\n"
	                                 "ffffffff81000100 T schedule\n"
	                                 "ffffffff81000180 D some_data\n"
	                                 "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
	                                 "broken\n");
	const char *module = "";
	uint64_t start = 0;

	if (!ok(k, "a kallsyms file is read"))
		return;
	is_str(kallsyms_find(k, 0xffffffff81000190, &module, &start), "schedule",
	       "the function before an address is found; data symbols are ignored");
	is_u64(start, 0xffffffff81000100, "the start of the function is known");
	is_str(module, "[kernel.kallsyms]", "its module is the kernel");
	is_str(kallsyms_find(k, 0xffffffffc0000010, &module, &start), "nf_hook",
	       "a function of a module is found");
	is_str(module, "[nf_tables]", "the module's name is known");
	ok(!kallsyms_find(k, 0x1000, &module, &start), "no function is found before the first");
	is_u64(kallsyms_address(k, "_text"), 0xffffffff81000000, "an address is found by name");
	kallsyms_free(k);
	ok(!kallsyms_of("0000000000000000 T _text\n0000000000000000 T schedule\n"),
	   "hidden addresses are not symbols");
	ok(!kallsyms_read("/nonexistent"), "a missing file has no symbols");
}

int main(void)
{
	test_mmap();
	test_fork_exec();
	test_random();
	test_modules();
	test_idmap();
	test_kallsyms();
	return done_testing();
}
