/* SPDX-License-Identifier: MIT */
/* Places of probes if the debug information explains calls that the code alone does not. */
#include <stdlib.h>

#include "base/str.h"
#include "python/place.h"
#include "python/probedef.h"
#include "python/probes.h"
#include "binary/symbols.h"

#include "built.h"
#include "tap.h"

/* A drop_gil that signals without a lock, so the code scan does not recognise it, inlined twice;
 * and another signal, which is not a release. */
static const char source[] =
	"#include <pthread.h>\n"
	"#include <time.h>\n"
	"struct gil { long a, b; int locked; pthread_cond_t cond; pthread_mutex_t mutex; } *gil;\n"
	"static __attribute__((noinline)) void take_gil(void *tstate)\n"
	"{ struct timespec t = { 0 }; gil = tstate; pthread_cond_timedwait(&gil->cond, "
	"&gil->mutex, &t); }\n"
	"static inline __attribute__((always_inline)) void drop_gil(void)\n"
	"{ pthread_cond_signal(&gil->cond); }\n"
	"void PyEval_SaveThread(void) { drop_gil(); gil->a = 1; }\n"
	"void PyEval_ReleaseThread(void *t) { drop_gil(); gil = t; }\n"
	"void PyEval_RestoreThread(void *t) { take_gil(t); }\n"
	"void PyEval_AcquireThread(void *t) { take_gil(t); }\n"
	"void other(void) { pthread_cond_signal(&gil->cond); gil->b = 2; }\n";

static const char definition[] =
	"schema: 1\npython: \"3.12\"\ngil: per-interpreter\nfunctions:\n"
	"  - name: take_gil\n    entry: take_gil\n    return: take_gil_ret\n"
	"    gil: arg1\n"
	"  - name: drop_gil\n    entry: drop_gil\n    return: drop_gil_ret\n"
	"    gil: arg1\n"
	"  - name: PyEval_SaveThread\n    entry: save_thread\n"
	"    fallback: true\n";

/* A release in a part of drop_gil, which has another name; and a signal that is not explained. */
static const char renamed_source[] =
	"#include <pthread.h>\n"
	"#include <time.h>\n"
	"struct gil { long a, b; int locked; long switches; "
	"pthread_cond_t cond; pthread_mutex_t mutex; } *gil;\n"
	"static __attribute__((noinline)) void take_gil(struct gil *g)\n"
	"{ struct timespec t = { 0 }; pthread_mutex_lock(&g->mutex); "
	"pthread_cond_timedwait(&g->cond, "
	"&g->mutex, &t); g->locked = 1; pthread_mutex_unlock(&g->mutex); }\n"
	"__attribute__((noinline)) void give_gil_impl(struct gil *g)\n"
	"{ pthread_mutex_lock(&g->mutex); g->locked = 0; pthread_cond_signal(&g->cond); "
	"pthread_mutex_unlock(&g->mutex); }\n"
	"__attribute__((noinline)) void give_gil(struct gil *g) { give_gil_impl(g); g->a = 1; }\n"
	"void PyEval_SaveThread(void) { give_gil(gil); gil->a = 1; }\n"
	"void PyEval_ReleaseThread(void *t) { give_gil(t); gil = t; }\n"
	"void PyEval_RestoreThread(void *t) { take_gil(t); gil->b = 1; }\n"
	"void PyEval_AcquireThread(void *t) { take_gil(t); gil->b = 2; }\n"
	"void other(void) { pthread_cond_signal(&gil->cond); gil->b = 2; }\n";

static const char renamed_definition[] =
	"schema: 1\npython: \"3.12\"\ngil: per-interpreter\nfunctions:\n"
	"  - name: take_gil\n    entry: take_gil\n    return: take_gil_ret\n"
	"    gil: arg1\n"
	"  - name: give_gil\n    entry: drop_gil\n    gil: arg1\n";

static struct probe_set *place(const char *path)
{
	CLEANUP(probe_set_free) struct probe_set *set = xcalloc(1, sizeof(*set));
	CLEANUP(probedef_free) struct probedef *def = NULL;
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	struct error err = { 0 };

	set->path = xstrdup(path);
	if (ok(probedef_load(&def, "3.12.yaml", &err) == 0 &&
	               symbols_open(&symbols, path, &err) == 0 &&
	               place_probes(set, def, symbols, 0, &err) == 0,
	       "%s: probes are placed", path))
		return take(set);
	printf("# %s\n", err.text);
	return NULL;
}

/* How the probes whose event begins with event were found, as one text; caller frees. */
static char *how(const struct probe_set *set, const char *event)
{
	CLEANUP(str_done) struct str text = { 0 };

	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *p = &set->probes.v[i];

		if (str_has_prefix(p->event, event))
			str_addf(&text, "%s (%s)%s. ", p->how, symbol_kind_name(p->kind),
			         p->sure ? "" : ", not sure");
	}
	return str_take(&text);
}

static void test_with_debug_file(void)
{
	CLEANUP(probe_set_free) struct probe_set *set = place("with.so");
	CLEANUP(free) char *text = set ? how(set, "drop_gil") : NULL;

	if (!set)
		return;
	is_str(text,
	       "debug information: drop_gil inlined into PyEval_SaveThread (debug). "
	       "debug information: drop_gil inlined into PyEval_ReleaseThread (debug). ",
	       "both inlined copies of drop_gil are found by the debug file");
	ok(set->releases_known && !set->note, "all releases are known then");
}

static void test_without(void)
{
	CLEANUP(probe_set_free) struct probe_set *set = place("without.so");
	CLEANUP(free) char *drop = set ? how(set, "drop_gil") : NULL;
	CLEANUP(free) char *save = set ? how(set, "save_thread") : NULL;

	if (!set)
		return;
	is_str(drop, "", "without the debug file no inlined copy is found");
	is_str(save, "symbol table (symbol). ",
	       "without the debug file a fallback function is probed");
	ok(!set->releases_known && set->note, "a note says that releases are missing");
}

static void test_renamed(void)
{
	CLEANUP(probe_set_free) struct probe_set *set = NULL;
	CLEANUP(free) char *drop = NULL;

	if (!ok(built_write("y.c", renamed_source) &&
	                built_write("3.12.yaml", renamed_definition) &&
	                RUN("cc", "-O1", "-shared", "-fPIC", "-o", "renamed.so", "y.c",
	                    "-lpthread"),
	        "a library with another name for drop_gil is made"))
		return;
	set = place("renamed.so");
	drop = set ? how(set, "drop_gil") : NULL;
	if (set)
		is_str(drop, "symbol table (symbol). ",
		       "one probe for a release in a part of drop_gil, whatever its name");
}

static void test_all(void)
{
	if (ok(built_write("x.c", source) && built_write("3.12.yaml", definition) &&
	               RUN("cc", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o",
	                   "x.so", "x.c", "-lpthread") &&
	               RUN("objcopy", "--only-keep-debug", "--compress-debug-sections", "x.so",
	                   "x.debug") &&
	               RUN("objcopy", "--strip-all", "--add-gnu-debuglink=x.debug", "x.so",
	                   "with.so") &&
	               RUN("objcopy", "--strip-debug", "x.so", "without.so"),
	       "a library and its debug file are made")) {
		test_with_debug_file();
		test_without();
	}
	test_renamed();
}

int main(void)
{
#ifndef __x86_64__
	printf("1..0 # SKIP x86-64 only\n");
	return 0;
#endif
	return built_main(test_all);
}
