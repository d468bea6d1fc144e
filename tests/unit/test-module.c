/* SPDX-License-Identifier: MIT */
/* Names of functions of stripped files in a report: from the folder that GILTRACER_DEBUGDIR names,
 * and of parts that the compiler moved away. */
#include <gelf.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "binary/module.h"
#include "binary/symbolize.h"

#include "built.h"
#include "tap.h"

static const char source[] = "static void __attribute__((used)) named(void) { for (;;); }\n";

/* often jumps into rare, after its start, and calls other at its end. */
static const char split[] =
	"#ifdef __x86_64__\n"
	"__asm__(\".globl often\\n.type often, @function\\noften: .cfi_startproc\\n\"\n"
	"\"jne rare + 1\\njne rare + 2\\njne rare + 3\\njmp rare + 4\\n\"\n"
	"\"jne other\\njne other + 1\\n\"\n"
	"\".cfi_endproc\\n.size often, . - often\\n.section .text.unlikely, \\\"ax\\\"\\n\"\n"
	"\".type rare, @function\\nrare: .cfi_startproc\\n.skip 8, 0x90\\nret\\n.cfi_endproc\\n\"\n"
	"\".size rare, . - rare\\n.type other, @function\\nother: .cfi_startproc\\n\"\n"
	"\".skip 8, 0x90\\nret\\n.cfi_endproc\\n.size other, . - other\\n\");\n"
	"#endif\n";

/* The name of the function at the entry of a file in this folder; *ret_id is the file's build-id.
 * Caller frees. NULL if there is none. */
static char *name_in(const char *file, struct build_id *ret_id)
{
	CLEANUP(free) char *path = realpath(file, NULL);
	struct modules *modules = modules_new(false);
	struct module *module = modules_get(modules, path ? path : "/nosuch", NULL);
	const struct function_symbol *symbol = NULL;
	char *name;
	GElf_Ehdr header;

	if (module_open(module) && gelf_getehdr(module->elf, &header)) {
		*ret_id = build_id_of_elf(module->elf);
		symbol = symbolize(module, header.e_entry);
	}
	name = symbol ? xstrdup(symbol->name) : NULL;
	modules_free(modules);
	return name;
}

static void test_folder(void)
{
	struct build_id id = { 0 };
	CLEANUP(free) char *usual = name_in("stripped", &id);
	CLEANUP(free) char *hex = xasprintf("%02x", id.bytes[0]);
	CLEANUP(free) char *folder = xasprintf("debug/.build-id/%s", hex);
	CLEANUP(str_done) struct str file = { 0 };
	CLEANUP(free) char *ours = NULL;
	CLEANUP(free) char *none = NULL;
	CLEANUP(free) char *absolute = NULL;

	ok(id.size && !usual, "a stripped file has no names");
	str_addf(&file, "%s/", folder);
	for (uint8_t i = 1; i < id.size; i++)
		str_addf(&file, "%02x", id.bytes[i]);
	str_adds(&file, ".debug");
	ok(RUN("mkdir", "-p", folder) && RUN("cp", "symbols", file.s),
	   "its debug file is moved to another folder");
	setenv("GILTRACER_DEBUGDIR", "/nosuch", 1);
	none = name_in("stripped", &id);
	ok(!none, "a debug file in an unknown folder is not found");
	absolute = realpath("debug", NULL);
	setenv("GILTRACER_DEBUGDIR", absolute ? absolute : "", 1);
	ours = name_in("stripped", &id);
	is_str(ours, "named", "a debug file below GILTRACER_DEBUGDIR is found");
}

static void test_none(void)
{
	struct build_id id = { 0 };
	CLEANUP(free) char *beside = NULL;
	CLEANUP(free) char *none = NULL;

	unsetenv("GILTRACER_DEBUGDIR");
	beside = name_in("linked", &id);
	is_str(beside, "named", "a debug file next to the file is found");
	setenv("GILTRACER_DEBUGDIR", "", 1);
	none = name_in("linked", &id);
	ok(!none, "an empty GILTRACER_DEBUGDIR disables the search");
}

static struct module *module_here(struct modules *modules, const char *file)
{
	CLEANUP(free) char *path = realpath(file, NULL);

	return modules_get(modules, path ? path : "/nosuch", NULL);
}

static void test_part(void)
{
#ifdef __x86_64__
	struct modules *modules = modules_new(false);
	struct module *whole = module_here(modules, "split.so");
	struct module *stripped = module_here(modules, "nameless.so");
	const struct function_symbol *symbol;
	uint64_t start = 0;

	ok(symbolize_part(stripped, "often", &start), "a part without a symbol is found");
	symbol = symbolize(whole, start);
	is_str(symbol ? symbol->name : "(none)", "rare",
	       "the part is the function that is jumped into most");
	ok(symbol && symbol->start == start, "the start of the part is found");
	ok(!symbolize_part(whole, "often", &start), "a part that has a symbol is not returned");
	ok(!symbolize_part(stripped, "rare", &start), "an unknown function has no part");
	modules_free(modules);
#endif
}

static void test_all(void)
{
	if (ok(built_write("x.c", source) &&
	               RUN("cc", "-nostdlib", "-Wl,--build-id=sha1,-e,named", "-o", "x", "x.c") &&
	               RUN("objcopy", "--only-keep-debug", "x", "symbols") &&
	               RUN("objcopy", "--strip-all", "x", "stripped") &&
	               RUN("objcopy", "--strip-all", "--add-gnu-debuglink=symbols", "x", "linked"),
	       "a program is compiled")) {
		test_folder();
		test_none();
	}
	if (ok(built_write("y.c", split) &&
	               RUN("cc", "-shared", "-nostdlib", "-o", "split.so", "y.c") &&
	               RUN("objcopy", "--strip-all", "split.so", "nameless.so"),
	       "a library is compiled"))
		test_part();
}

int main(void)
{
	return built_main(test_all);
}
