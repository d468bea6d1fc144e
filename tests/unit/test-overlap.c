/* SPDX-License-Identifier: MIT */
/* Symbols that overlap, as in hand-written assembly and in files constructed to be slow. */
#include <stdlib.h>

#include "base/file.h"
#include "binary/module.h"
#include "binary/symbolize.h"

#include "built.h"
#include "growth.h"

#define FEW 2000

/* A function around n others of one byte each, two bytes apart. */
static bool build(size_t n, const char *path)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	struct error err = { 0 };

	if (filewriter_open(&w, "x.s", &err) < 0)
		return false;
	fprintf(w.out, ".text\n.globl outer\n.type outer,@function\n.size outer,%zu\nouter:\n",
	        2 * n + 2);
	for (size_t i = 0; i < n; i++)
		fprintf(w.out, "nop\n.type f%zu,@function\n.size f%zu,1\nf%zu: nop\n", i, i, i);
	fputs("nop\nnop\n", w.out);
	return filewriter_commit(&w, &err) == 0 &&
	       RUN("cc", "-nostdlib", "-static", "-Wl,-e,outer,--build-id=none", "-o", path, "x.s");
}

/* The number of addresses with a wrong name. */
static size_t look_up(size_t n, const char *file)
{
	CLEANUP(free) char *path = realpath(file, NULL);
	struct modules *modules = modules_new(false);
	struct module *module = modules_get(modules, path, NULL);
	const struct function_symbol *outer = module_open(module) ? symbolize_find(module, "outer")
	                                                          : NULL;
	uint64_t start = outer ? outer->start : 0;
	size_t wrong = !outer;

	for (size_t i = 0; outer && i < 2 * n + 2; i++) {
		const struct function_symbol *f = symbolize(module, start + i);
		char name[32];

		snprintf(name, sizeof(name), "f%zu", i / 2);
		wrong += !f || strcmp(f->name, i % 2 && i / 2 < n ? name : "outer") != 0;
	}
	modules_free(modules);
	return wrong;
}

static void name_all(size_t n)
{
	if (look_up(n, n == FEW ? "few" : "many"))
		abort();
}

static void test_all(void)
{
	if (!ok(build(FEW, "few") && build(GROWTH_FACTOR * FEW, "many"), "programs are built"))
		return;
	is_u64(look_up(FEW, "few"), 0, "an address has the name of the innermost symbol");
	growth_ok(name_all, FEW, "names of places between functions in a function");
}

int main(void)
{
	return built_main(test_all);
}
