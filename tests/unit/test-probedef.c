/* SPDX-License-Identifier: MIT */
/* Probe definitions: what is read, and that each mistake is reported with its line. */
#include <stdlib.h>

#include "python/probedef.h"

#include "tap.h"

#define HEAD      "schema: 1\npython: \"3.12\"\ngil: per-interpreter\n"
#define TAKE      "  - name: take_gil\n    entry: take_gil\n"
#define FUNCTIONS "functions:\n" TAKE
#define DEEP(x)   "+0x8(" x ")"
#define TOO_DEEP  DEEP(DEEP(DEEP(DEEP(DEEP(DEEP(DEEP(DEEP(DEEP("arg1")))))))))

static void test_good(void)
{
	static const char text[] = HEAD FUNCTIONS "    return: take_gil_ret\n"
						  "    gil: \"+0x180(+0x10(arg1))\"\n"
						  "  - name: PyEval_SaveThread\n"
						  "    entry: save_thread\n"
						  "    fallback: true\n";
	CLEANUP(probedef_free) struct probedef *def = NULL;
	struct error err = { 0 };

	if (!ok(probedef_parse(&def, "x", text, strlen(text), &err) == 0,
	        "a valid definition is read"))
		return;
	ok(def->layout.major == 3 && def->layout.minor == 12 && !def->shared,
	   "version and kind of GIL are read");
	is_u64(def->functions.n, 2, "functions are read");
	is_str(def->functions.v[0].gil, "+0x180(+0x10(arg1))",
	       "the expression of the GIL's address is read");
	is_str(def->functions.v[0].ret, "take_gil_ret", "the event of the return is read");
	ok(def->functions.v[1].fallback && !def->functions.v[1].ret, "a fallback is read");
	is_u64(def->functions.v[1].line, 9, "the line of a function is known");
}

static void test_bad(void)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{ "", "x:1: empty" },
		{ "a: [", "x:2: did not find expected node content" },
		{ "- a\n", "x:1: expected KEY: VALUE pairs" },
		{ "schema: 2\n", "x:1: unknown schema '2'" },
		{ "schema: 1\npython: 3.x\n", "x:2: not a CPython version, 3.N: '3.x'" },
		{ "schema: 1\npython: \"2.7\"\n", "x:2: not a CPython version, 3.N: '2.7'" },
		{ "schema: 1\n\ngil: mine\n", "x:3: neither shared nor per-interpreter: 'mine'" },
		{ HEAD "nonsense: 1\n", "x:4: unknown key 'nonsense'" },
		{ HEAD "schema: 1\n", "x:4: given twice: 'schema'" },
		{ HEAD, "x:1: missing key 'functions'" },
		{ HEAD "functions: []\n", "x:1: no functions" },
		{ HEAD "functions: 3\n", "x:4: expected a list of functions" },
		{ HEAD "functions:\n  - entry: take_gil\n", "x:5: missing key 'name'" },
		{ HEAD "functions:\n  - name: take_gil\n", "x:5: missing key 'entry' or 'return'" },
		{ HEAD "functions:\n  - name: a b\n", "x:5: not a name: 'a b'" },
		{ HEAD "functions:\n  - name: \"x/y\"\n", "x:5: not a name: 'x/y'" },
		{ HEAD FUNCTIONS "    name: twice\n", "x:7: given twice: 'name'" },
		{ HEAD FUNCTIONS "    fallback: maybe\n", "x:7: not true or false 'maybe'" },
		{ HEAD FUNCTIONS "    gil: \"%di\"\n",
		  "x:7: not OFFSET(EXPRESSION) or argN: '%di'" },
		{ HEAD FUNCTIONS "    gil: [1]\n", "x:7: not OFFSET(EXPRESSION) or argN:" },
		{ HEAD "memory:\n  file: 0x8\n" FUNCTIONS, "x:5: missing key 'interpreters'" },
		{ HEAD "memory:\n  file: -8\n" FUNCTIONS, "x:5: not an offset: '-8'" },
		{ HEAD "memory:\n  root: a\n  root: b\n" FUNCTIONS, "x:6: given twice: 'root'" },
		{ "schema: 1\npython: \"3.9\"\ngil: shared\n" FUNCTIONS,
		  "x:1: a shared GIL needs the key 'identity'" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct probedef *def = NULL;
		struct error err = { 0 };

		ok(probedef_parse(&def, "x", bad[i].text, strlen(bad[i].text), &err) < 0 && !def,
		   "mistake %zu is refused", i);
		is_str(err.text, bad[i].error, "the error names the mistake and its line");
	}
}

static void test_fetch(void)
{
	static const char *const bad[] = { "",
		                           "arg",
		                           "arg0",
		                           "arg5",
		                           "+0x10",
		                           "+(arg1)",
		                           "+0x10(arg1",
		                           "+0x10(arg1))",
		                           "arg1 ",
		                           "+x(arg1)",
		                           "%di",
		                           "+0x10(%di)",
		                           "+99999999999(arg1)",
		                           TOO_DEEP };
	CLEANUP(free) char *plain = probedef_fetch("arg2");
	CLEANUP(free) char *nested = probedef_fetch("+0x180(-8(arg1))");

#ifdef __x86_64__
	is_str(plain, "%si", "an argument becomes a register");
	is_str(nested, "+0x180(-8(%di))", "loads are kept");
#else
	ok(plain && nested, "expressions are translated");
#endif
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CLEANUP(free) char *fetch = probedef_fetch(bad[i]);

		ok(!fetch, "'%s' is refused", bad[i]);
	}
}

int main(void)
{
	test_good();
	test_bad();
	test_fetch();
	return done_testing();
}
