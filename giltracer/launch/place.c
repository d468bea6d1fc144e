/* SPDX-License-Identifier: MIT */
/*
 * Symbols say where the functions are that have one; the code confirms them, and finds those that
 * have none, and the releases that were inlined elsewhere.
 */
#include "place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/code.h"
#include "launch/framefetch.h"
#include "launch/probedef.h"
#include "launch/probes.h"
#include "launch/symbols.h"

#define PROLOGUE_MAX 64

/* What placing needs at hand. */
struct placer {
	struct probe_set *set;
	const struct probedef *def;
	const struct symbols *symbols;
	const struct code_gil *code;
	uint64_t identity; /* of the one GIL, where there is but one */
	unsigned frames;   /* how many Python frames to fetch */
	bool has_drop;     /* by symbol */
	bool has_lto;      /* some function has copies that are not in any table */
};

static bool is_take(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "take_gil");
}

static bool is_drop(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "drop_gil");
}

static char *event_name(const struct placer *p, const char *event)
{
	for (unsigned index = 0;; index++) {
		CLEANUP(free)
		char *name = index ? xasprintf("%s_%u", event, index) : xstrdup(event);
		bool taken = false;

		for (size_t i = 0; i < p->set->probes.n; i++)
			taken |= !strcmp(p->set->probes.v[i].event, name);
		if (!taken)
			return take(name);
	}
}

/* A clone may have lost or moved arguments. */
static bool keeps_arguments(const char *symbol)
{
	return !strstr(symbol, ".constprop") && !strstr(symbol, ".isra") &&
	       !strstr(symbol, ".part");
}

static const struct code_release *release_of(const struct placer *p, uint64_t function)
{
	for (size_t i = 0; i < p->code->releases.n; i++)
		if (p->code->releases.v[i].function == function)
			return &p->code->releases.v[i];
	return NULL;
}

/* The way to the GIL that the code itself goes is better than what the definition says. */
static const char *gil_expression(const struct placer *p, const struct probedef_function *f,
                                  const struct symbol *symbol)
{
	const struct code_take *taken = code_gil_take(p->code, symbol->address);
	const struct code_release *release = release_of(p, symbol->address);

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

/* A wrong register leads to no frame: what is there is no code object. */
static void add_frame_arguments(struct str *out, const struct placer *p,
                                const struct probedef_function *f, const struct probe *probe)
{
	const char *argument = keeps_arguments(probe->function) ? f->tstate : f->clone_tstate;
	CLEANUP(free) char *tstate = argument ? probedef_fetch(argument) : NULL;
	uint64_t code_type;

	if (!tstate || !p->frames || !p->def->has_frame ||
	    !symbols_address(p->symbols, "PyCode_Type", &code_type))
		return;
	framefetch_add(out, p->def, tstate, probe->address, code_type, p->frames);
}

/* NULL: none. The probe is where it will be. */
static char *fetch_arguments(const struct placer *p, const struct probedef_function *f,
                             const struct symbol *symbol, const struct probe *probe)
{
	CLEANUP(free) char *gil = gil_argument(p, f, symbol);
	CLEANUP(str_done) struct str out = { 0 };

	if (gil)
		str_adds(&out, gil);
	add_frame_arguments(&out, p, f, probe);
	return out.len ? str_take(&out) : NULL;
}

/* At the call of pthread_cond_signal, which the kernel emulates. */
static char *fetch_at_release(const struct placer *p, const struct code_release *release)
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

/* Move a probe to the cheap instruction of a prologue. */
static void cheapen(const struct placer *p, struct probe *probe, bool with_return)
{
	struct insn_point point;
	size_t len = 0;
	const uint8_t *code = symbols_bytes(p->symbols, probe->address, PROLOGUE_MAX, &len);

	insn_entry_point(&point, probe->address, code, code ? len : 0, with_return);
	probe->address += point.skip;
	probe->offset += point.skip;
	probe->cost = point.cost;
	probe->instruction = xstrdup(point.text);
}

static const char *how_found(const struct placer *p, const struct symbol *symbol, bool confirmed)
{
	switch (symbol->kind) {
	case SYMBOL_TABLE:
		return confirmed ? "symbol table, and its code" : "symbol table";
	case SYMBOL_DEBUG:
		return confirmed ? "debug file, and its code" : "debug file";
	default:
		return symbols_debug_path(p->symbols) ? "code alone, beside a debug file" : "code";
	}
}

static void add_entry(const struct placer *p, const struct probedef_function *f,
                      const struct symbol *symbol, bool ret, bool confirmed)
{
	struct probe probe = {
		.event = event_name(p, ret ? f->ret : f->entry),
		.function = xstrdup(symbol->name),
		.how = xstrdup(how_found(p, symbol, confirmed)),
		.address = symbol->address,
		.offset = symbol->offset,
		.kind = symbol->kind,
		.ret = ret,
		.sure = confirmed || symbol->kind != SYMBOL_CODE,
	};

	cheapen(p, &probe, f->ret != NULL);
	if (!ret)
		probe.fetch = fetch_arguments(p, f, symbol, &probe);
	*vec_push(&p->set->probes) = probe;
}

static void add_function(const struct placer *p, const struct probedef_function *f,
                         const struct symbol *symbol, bool confirmed)
{
	if (f->entry)
		add_entry(p, f, symbol, false, confirmed);
	if (f->ret)
		add_entry(p, f, symbol, true, confirmed);
}

static bool is_confirmed(const struct placer *p, const struct probedef_function *f,
                         uint64_t address)
{
	const struct code_take *taken = code_gil_take(p->code, address);

	if (is_take(f))
		return taken && taken->confirmed;
	return is_drop(f) && release_of(p, address);
}

/* A drop_gil that leaves the releasing to a function that it calls is not the place to look at:
 * that other one has probes, and one release must not be seen twice. */
static bool releases_elsewhere(const struct placer *p, const struct symbol *symbol)
{
	for (size_t i = 0; i < p->code->releases.n; i++) {
		uint64_t signal = p->code->releases.v[i].signal;

		if (p->code->releases.v[i].function == symbol->address ||
		    (signal >= symbol->address && signal - symbol->address < symbol->size))
			return false;
	}
	return p->code->complete;
}

static size_t add_by_symbol(struct placer *p, const struct probedef_function *f)
{
	CLEANUP(symbol_list_done) struct symbol_list list = { 0 };
	size_t n = symbols_find(p->symbols, f->name, &list);

	for (size_t i = 0; i < n; i++) {
		const struct symbol *symbol = &list.syms.v[i];

		p->has_lto |= strstr(symbol->name, ".lto_priv") != NULL;
		if (is_drop(f) && releases_elsewhere(p, symbol))
			continue;
		p->has_drop |= is_drop(f);
		add_function(p, f, symbol, is_confirmed(p, f, symbol->address));
	}
	return n;
}

static void add_by_code(const struct placer *p, const struct probedef_function *f, uint64_t address,
                        bool confirmed)
{
	struct symbol symbol = { .name = f->name, .address = address, .kind = SYMBOL_CODE };

	if (symbols_offset(p->symbols, address, &symbol.offset))
		add_function(p, f, &symbol, confirmed);
}

/* Copies that nobody confirms are believed where there is one that is confirmed. */
static size_t add_takes_by_code(const struct placer *p, const struct probedef_function *f)
{
	bool any = false;

	for (size_t i = 0; i < p->code->takes.n; i++)
		any |= p->code->takes.v[i].confirmed;
	for (size_t i = 0; any && i < p->code->takes.n; i++)
		add_by_code(p, f, p->code->takes.v[i].entry, p->code->takes.v[i].confirmed);
	return any ? p->code->takes.n : 0;
}

static size_t add_drops_by_code(const struct placer *p, const struct probedef_function *f)
{
	size_t n = 0;

	for (size_t i = 0; i < p->code->releases.n; i++)
		if (p->code->releases.v[i].is_drop) {
			add_by_code(p, f, p->code->releases.v[i].function, true);
			n++;
		}
	return n;
}

static void add_point(const struct placer *p, const char *event, uint64_t address, char *fetch)
{
	struct probe probe = {
		.event = event_name(p, event),
		.function = symbols_describe(p->symbols, address),
		.how = xstrdup("code: an inlined drop_gil"),
		.fetch = fetch,
		.address = address,
		.kind = SYMBOL_CODE,
		.sure = true,
	};

	symbols_offset(p->symbols, address, &probe.offset);
	cheapen(p, &probe, true);
	*vec_push(&p->set->probes) = probe;
}

/* A part of drop_gil that is a function of its own, as in builds without optimisation. */
static bool is_part_of_drop(const struct placer *p, const struct code_release *release)
{
	CLEANUP(free) char *name = symbols_describe(p->symbols, release->signal);

	return p->has_drop && !strncmp(name, "drop_gil", strlen("drop_gil"));
}

/* Whether an entry probe of drop_gil sees this release already. */
static bool is_covered(const struct placer *p, const struct code_release *release)
{
	if (is_part_of_drop(p, release))
		return true;
	for (size_t i = 0; i < p->set->probes.n; i++) {
		const struct probe *probe = &p->set->probes.v[i];

		if (!strncmp(probe->event, "drop_gil", strlen("drop_gil")) &&
		    probe->address >= release->function &&
		    probe->address - release->function < PROLOGUE_MAX &&
		    probe->address < release->signal)
			return true;
	}
	return false;
}

/* Two releases in one function may come to the same wait. */
static bool has_probe(const struct placer *p, uint64_t address)
{
	for (size_t i = 0; i < p->set->probes.n; i++)
		if (p->set->probes.v[i].address == address)
			return true;
	return false;
}

static void add_waited(const struct placer *p, const char *event,
                       const struct code_release *release)
{
	for (size_t i = 0; i < release->waited.n; i++)
		if (!has_probe(p, release->waited.v[i]))
			add_point(p, event, release->waited.v[i], NULL);
}

static void add_inlined(const struct placer *p, const struct probedef_function *f)
{
	size_t n = p->code->releases.n;
	CLEANUP(free) bool *covered = xcalloc(n + 1, sizeof(*covered));

	for (size_t i = 0; i < n; i++)
		covered[i] = is_covered(p, &p->code->releases.v[i]);
	for (size_t i = 0; i < n; i++) {
		const struct code_release *release = &p->code->releases.v[i];

		if (covered[i])
			continue;
		add_point(p, f->entry, release->signal, fetch_at_release(p, release));
		if (f->ret)
			add_waited(p, f->ret, release);
	}
}

static int add_takes(struct placer *p, const struct probedef_function *f, struct error *err)
{
	if (add_by_symbol(p, f) || add_takes_by_code(p, f))
		return 0;
	return error_set(err, ENOENT,
	                 "%s: %s has no symbol and was not found in the code: install the debug "
	                 "symbols of this Python",
	                 p->set->path, f->name);
}

static void find_identity(struct placer *p)
{
	for (size_t i = 0; i < p->def->identity.n; i++)
		if (symbols_address(p->symbols, p->def->identity.v[i], &p->identity))
			return;
	/* Any number will do that is the same for all probes of this build. */
	p->identity = 1;
}

static int add_all(struct placer *p, struct error *err)
{
	for (size_t i = 0; i < p->def->functions.n; i++) {
		const struct probedef_function *f = &p->def->functions.v[i];

		if (is_take(f) && add_takes(p, f, err) < 0)
			return -1;
		if (is_drop(f)) {
			if (!add_by_symbol(p, f))
				add_drops_by_code(p, f);
			add_inlined(p, f);
		}
	}
	return 0;
}

/* What is no lock function itself; those that are marked so only where they are needed. */
static void add_others(struct placer *p)
{
	p->set->releases_known = p->code->complete || (p->has_drop && !p->has_lto);
	for (size_t i = 0; i < p->def->functions.n; i++) {
		const struct probedef_function *f = &p->def->functions.v[i];

		if (!is_take(f) && !is_drop(f) && !(f->fallback && p->set->releases_known))
			add_by_symbol(p, f);
	}
	if (!p->set->releases_known)
		p->set->note = xstrdup("not every release of the GIL has a probe, some ends of "
		                       "holds are inferred");
}

int place_probes(struct probe_set *set, const struct probedef *def, const struct symbols *symbols,
                 unsigned frames, struct error *err)
{
	CLEANUP(code_gil_free) struct code_gil *code = code_find_gil(symbols);
	struct placer placer = {
		.set = set, .def = def, .symbols = symbols, .code = code, .frames = frames
	};

	find_identity(&placer);
	if (add_all(&placer, err) < 0)
		return -1;
	add_others(&placer);
	return 0;
}
