/* SPDX-License-Identifier: MIT */
/* The arguments with which a probe reads the address of its GIL, and the Python frames of its
 * thread. */
#include "python/placer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "python/framefetch.h"

const struct gil_scan_release *placer_release_of(const struct placer *p, uint64_t function)
{
	for (size_t i = 0; i < p->code->releases.n; i++)
		if (p->code->releases.v[i].function == function)
			return &p->code->releases.v[i];
	return NULL;
}

/* A clone may have lost or moved arguments. */
static bool keeps_arguments(const char *symbol)
{
	return !strstr(symbol, ".constprop") && !strstr(symbol, ".isra") &&
	       !strstr(symbol, ".part");
}

/* The path by which the code itself reaches the GIL is more reliable than the definition. */
static const char *gil_expression(const struct placer *p, const struct probedef_function *f,
                                  const struct symbol *symbol)
{
	const struct gil_scan_take *taken = gil_scan_take_at(p->code, symbol->address);
	const struct gil_scan_release *release = placer_release_of(p, symbol->address);

	if (is_take(f) && taken && taken->gil)
		return taken->gil;
	if (is_drop(f) && release && release->gil)
		return release->gil;
	return keeps_arguments(symbol->name) ? f->gil : NULL;
}

static char *gil_argument(const struct placer *p, const struct probedef_function *f,
                          const struct symbol *symbol)
{
	const char *expression;
	CLEANUP(free) char *fetch = NULL;

	if (p->def->shared)
		return xasprintf("gil=\\0x%" PRIx64 ":u64", p->identity);
	expression = gil_expression(p, f, symbol);
	fetch = expression ? probedef_fetch(expression) : NULL;
	return fetch ? xasprintf("gil=%s:u64", fetch) : NULL;
}

/* A wrong register is harmless: it does not lead to a code object, which is detected. */
static void add_frame_arguments(struct str *out, const struct placer *p,
                                const struct probedef_function *f, const struct probe *probe)
{
	const char *argument = keeps_arguments(probe->function) ? f->tstate : f->clone_tstate;
	CLEANUP(free) char *tstate = argument ? probedef_fetch(argument) : NULL;
	struct framefetch_at at = { 0 };

	if (!tstate || !p->frames || !p->def->has_frame ||
	    !symbols_address(p->symbols, "PyCode_Type", &at.code_type))
		return;
	symbols_address(p->symbols, "_Py_NoneStruct", &at.none);
	framefetch_add(out, p->def, tstate, probe->address, &at, p->frames);
}

/* The arguments of a clone are unknown. */
static void add_other_arguments(struct str *out, const struct probedef_function *f,
                                const struct probe *probe)
{
	for (size_t i = 0; keeps_arguments(probe->function) && i < f->fetch.n; i++) {
		const struct probedef_fetch *fetch = &f->fetch.v[i];
		CLEANUP(free) char *words = probedef_fetch(fetch->expression);

		str_addf(out, "%s%s=%s:%s", out->len ? " " : "", fetch->name, words, fetch->type);
	}
}

char *placer_entry_arguments(const struct placer *p, const struct probedef_function *f,
                             const struct symbol *symbol, const struct probe *probe)
{
	CLEANUP(free) char *gil = gil_argument(p, f, symbol);
	CLEANUP(str_done) struct str out = { 0 };

	if (gil)
		str_adds(&out, gil);
	add_other_arguments(&out, f, probe);
	add_frame_arguments(&out, p, f, probe);
	return out.len ? str_take(&out) : NULL;
}

/* For a probe at the call of pthread_cond_signal, which the kernel emulates. */
char *placer_release_arguments(const struct placer *p, const struct gil_scan_release *release)
{
	static const char *const registers[] = { "ax",  "cx",  "dx",  "bx", "sp",  "bp",
		                                 "si",  "di",  "r8",  "r9", "r10", "r11",
		                                 "r12", "r13", "r14", "r15" };

	if (p->def->shared)
		return xasprintf("gil=\\0x%" PRIx64 ":u64", p->identity);
	if (release->gil_register < 0)
		return NULL;
	return xasprintf("gil=%%%s:u64", registers[release->gil_register]);
}
