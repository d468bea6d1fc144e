/* SPDX-License-Identifier: MIT */
/* Symbols that overlap, as in hand-written assembly and in files constructed to be slow. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
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

static void test_paths(void)
{
	static const char *const names[][2] = {
		{ "_ZN8pybind1112cpp_function10dispatcherEP7_objectS2_S2_",
		  "pybind11::cpp_function::dispatcher" },
		{ "_ZNK5torch4lazy5Shape4sizeEv", "torch::lazy::Shape::size" },
		{ "_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work" },
		{ "_ZN3app6EngineC2Ei", "app::Engine::Engine" },
		{ "_ZNSt6thread4joinEv", "std::thread::join" },
		{ "_Z4workid", "work" },
		{ "_ZL4workv", "work" },
		{ "_ZN6orjson9serialize5write17h0123456789abcdefE", "orjson::serialize::write" },
		{ "_ZN45_$LT$app..Page$u20$as$u20$core..ops..Drop$GT$4drop17h0123456789abcdefE",
		  "<app::Page as core::ops::Drop>::drop" },
		{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar" },
		{ "_RNCNvC7mycrate4main0B3_", "mycrate::main::{closure}" },
		{ "_ZN3fooIiE3barEv", NULL },
		{ "_Z3fooIiEvT_", NULL },
		{ "_ZN3fooplERKS_", NULL },
		{ "_ZTV3foo", NULL },
		{ "_RINvC1a1bmE", NULL },
		{ "_ZN999999999999999999999aE", NULL },
		{ "_ZN9abcE", NULL },
		{ "PyObject_Call", NULL },
		{ "_Z", NULL },
		{ "_RC", NULL },
		{ "", NULL },
	};
	unsigned beyond = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CLEANUP(str_done) struct str out = { 0 };
		const char *got = function_path(&out, names[i][0]) ? str_get(&out) : NULL;

		is_str(got ? got : "none", names[i][1] ? names[i][1] : "none",
		       "the path of a mangled name: %s", names[i][0]);
		for (size_t cut = strlen(names[i][0]); cut-- > 0;) {
			CLEANUP(free) char *part = xstrndup(names[i][0], cut);
			CLEANUP(str_done) struct str short_out = { 0 };

			function_path(&short_out, part);
			beyond += short_out.len > 2 * cut + 32;
		}
	}
	is_u64(beyond, 0, "a name that is cut off makes no longer path");
}

static void test_all(void)
{
	test_paths();
	if (!ok(build(FEW, "few") && build(GROWTH_FACTOR * FEW, "many"), "programs are built"))
		return;
	is_u64(look_up(FEW, "few"), 0, "an address has the name of the innermost symbol");
	growth_ok(name_all, FEW, "names of places between functions in a function");
}

int main(void)
{
	return built_main(test_all);
}
