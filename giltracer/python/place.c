/* SPDX-License-Identifier: MIT */
/* Places come from symbols first. The code scan confirms them, and finds functions without a symbol
 * and releases that were inlined into other functions. */
#include "python/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "binary/inlines.h"
#include "python/freethreaded.h"
#include "python/placer.h"

/* What confirms that a function is what its symbol says; NULL: nothing. */
static const char *confirmed_by(const struct placer *p, const struct probedef_function *f,
                                uint64_t address)
{
	const struct gil_scan_take *taken = gil_scan_take_at(p->code, address);

	if (is_take(f))
		return taken ? taken->confirmed : NULL;
	return is_drop(f) && placer_release_of(p, address) ? "it releases the GIL" : NULL;
}

/* Whether drop_gil calls another function for the release. Then that function is probed instead,
 * because one release must not give two events. */
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
		placer_add_function(p, f, symbol, confirmed_by(p, f, symbol->address));
	}
	return n;
}

static void add_by_code(const struct placer *p, const struct probedef_function *f, uint64_t address,
                        const char *confirmed)
{
	struct symbol symbol = { .name = f->name, .address = address, .kind = SYMBOL_CODE };

	if (symbols_offset(p->symbols, address, &symbol.offset))
		placer_add_function(p, f, &symbol, confirmed);
}

/* If one copy of take_gil is confirmed, all other copies are probed, too. */
static size_t add_takes_by_code(const struct placer *p, const struct probedef_function *f)
{
	bool any = false;

	for (size_t i = 0; i < p->code->takes.n; i++)
		any |= p->code->takes.v[i].confirmed != NULL;
	for (size_t i = 0; any && i < p->code->takes.n; i++)
		add_by_code(p, f, p->code->takes.v[i].entry, p->code->takes.v[i].confirmed);
	return any ? p->code->takes.n : 0;
}

static size_t add_drops_by_code(const struct placer *p, const struct probedef_function *f)
{
	size_t n = 0;

	for (size_t i = 0; i < p->code->releases.n; i++) {
		const struct gil_scan_release *release = &p->code->releases.v[i];

		/* A compiler may make two calls of pthread_cond_signal from one. */
		if (!release->is_drop || placer_release_of(p, release->function) != release)
			continue;
		add_by_code(p, f, release->function, "it releases the GIL");
		n++;
	}
	return n;
}

/* Whether the address is in a part of drop_gil that is a function of its own, as in builds without
 * optimisation. */
static bool is_part_of_drop(const struct placer *p, uint64_t address)
{
	CLEANUP(free) char *name = symbols_describe(p->symbols, address);

	return p->has_drop && !strncmp(name, "drop_gil", strlen("drop_gil"));
}

/* Whether an entry probe of drop_gil covers this release, which may be in a part of drop_gil that
 * the compiler moved elsewhere. */
static bool is_covered(const struct placer *p, const struct gil_scan_release *release)
{
	if (is_part_of_drop(p, release->signal))
		return true;
	for (size_t i = 0; i < p->set->probes.n; i++) {
		const struct probe *probe = &p->set->probes.v[i];

		if (!strncmp(probe->event, "drop_gil", strlen("drop_gil")) &&
		    probe->address >= release->function &&
		    probe->address - release->function < PROLOGUE_MAX &&
		    (probe->address < release->signal || release->signal < release->function))
			return true;
	}
	return false;
}

/* Adds a probe for an inlined release. The debug information may contain the name of the inlined
 * function. */
static void add_release(const struct placer *p, const struct probedef_function *f,
                        const struct gil_scan_release *release)
{
	CLEANUP(free) char *into = NULL;
	enum inlines_answer answer = inlines_ask(p->symbols, release->signal, f->name, &into);
	enum symbol_kind kind = answer == INLINES_YES ? SYMBOL_DEBUG : SYMBOL_CODE;
	CLEANUP(free) char *how = NULL;

	if (answer == INLINES_YES)
		how = xasprintf("debug information and code: %s inlined into %s", f->name, into);
	else if (answer == INLINES_NO)
		how = xasprintf("code; according to the debug information it is part of %s", into);
	else
		how = xasprintf("code: an inlined %s", f->name);
	placer_add_point(p, f->entry, how,
	                 &(struct probe){ .address = release->signal,
	                                  .kind = kind,
	                                  .sure = answer != INLINES_NO,
	                                  .fetch = placer_release_arguments(p, release) });
	/* Several releases in a function may share the same wait, which gets one probe. */
	if (f->ret)
		placer_add_points(p, f->ret, release->waited.v, release->waited.n,
		                  "code: after the wait of an inlined drop_gil");
}

/* Handles a call of pthread_cond_signal that the code scan cannot explain. Returns whether the
 * debug information can. */
static bool add_unknown(const struct placer *p, const struct probedef_function *f, uint64_t signal)
{
	CLEANUP(free) char *into = NULL;
	CLEANUP(free) char *how = NULL;

	if (is_part_of_drop(p, signal))
		return true;
	switch (inlines_ask(p->symbols, signal, f->name, &into)) {
	case INLINES_YES:
		how = xasprintf("debug information: %s inlined into %s", f->name, into);
		placer_add_point(
			p, f->entry, how,
			&(struct probe){ .address = signal, .kind = SYMBOL_DEBUG, .sure = true });
		return true;
	case INLINES_NO:
		return true;
	default:
		return false;
	}
}

static void add_inlined(struct placer *p, const struct probedef_function *f)
{
	size_t n = p->code->releases.n, unknown = p->code->unknown.n;
	CLEANUP(free) bool *covered = xcalloc(n + 1, sizeof(*covered));

	for (size_t i = 0; i < n; i++)
		covered[i] = is_covered(p, &p->code->releases.v[i]);
	for (size_t i = 0; i < n; i++)
		if (!covered[i])
			add_release(p, f, &p->code->releases.v[i]);
	p->complete = (p->code->complete || unknown) && !p->code->gave_up;
	for (size_t i = 0; i < unknown; i++)
		p->complete &= add_unknown(p, f, p->code->unknown.v[i]);
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
	/* Any number will do, as long as all probes of this build use the same. */
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

static bool has_function(const struct placer *p, const char *name)
{
	CLEANUP(symbol_list_done) struct symbol_list list = { 0 };

	return symbols_find(p->symbols, name, &list) > 0;
}

/* What cannot be recorded because probes are missing; NULL: nothing. */
static const char *find_note(const struct placer *p)
{
	const char *note = p->def->free_threaded ? freethreaded_note(p->set) : NULL;

	if (note)
		return note;
	if (p->code->gave_up)
		return "the search of the machine code was ended because it takes too long for a "
		       "file of this size: functions or releases of the GIL may have no probe";
	if (!p->def->free_threaded && !p->set->releases_known)
		return "some releases of the GIL have no probe: the ends of these holds are "
		       "inferred";
	return NULL;
}

/* Probes all functions other than take_gil and drop_gil; fallbacks only if releases are missing. */
static void add_others(struct placer *p)
{
	const char *note;

	p->set->releases_known = p->complete || (p->has_drop && !p->has_lto);
	for (size_t i = 0; i < p->def->functions.n; i++) {
		const struct probedef_function *f = &p->def->functions.v[i];

		if (is_take(f) || is_drop(f) || (f->fallback && p->set->releases_known))
			continue;
		if (!f->without || !has_function(p, f->without))
			add_by_symbol(p, f);
	}
	note = find_note(p);
	p->set->note = note ? xstrdup(note) : NULL;
}

int place_probes(struct probe_set *set, const struct probedef *def, struct symbols *symbols,
                 unsigned frames, struct error *err)
{
	CLEANUP(gil_scan_free) struct gil_scan *code = gil_scan_new(symbols);
	struct placer placer = {
		.set = set, .def = def, .symbols = symbols, .code = code, .frames = frames
	};

	find_identity(&placer);
	if (add_all(&placer, err) < 0)
		return -1;
	add_others(&placer);
	return 0;
}
