/* SPDX-License-Identifier: MIT */
/* Places come from symbols first. The code scan confirms them, and finds functions without a symbol
 * and releases that were inlined into other functions. */
#include "python/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "binary/inlines.h"
#include "binary/symbols.h"
#include "python/gil_scan.h"
#include "python/probedef.h"
#include "python/probes.h"

#define PROLOGUE_MAX 96 /* largest distance of an entry probe from the entry */

/* State while probes are placed. */
struct placer {
	struct probe_set *set;
	const struct probedef *def;
	struct symbols *symbols;
	const struct gil_scan *code;
	uint64_t identity; /* identifies the GIL, if the process has only one */
	unsigned frames;   /* number of Python frames to fetch */
	bool has_drop;     /* drop_gil was found by its symbol */
	bool has_lto;      /* some function has copies that are not in any symbol table */
	bool complete;     /* every call of pthread_cond_signal is explained */
};

static bool is_take(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "take_gil");
}

static bool is_drop(const struct probedef_function *f)
{
	return f->entry && !strcmp(f->entry, "drop_gil");
}

/* ---- the fetch arguments of Python frames */

/*
 * The arguments, in tracefs' syntax, with which a probe fetches the running Python frames. For each
 * frame K, from 0, the running one, outwards:
 *
 * - tK text: the bytes of its code's type pointer, up to a zero byte: it is a code object if this
 *   equals __probe_ip + ct
 * - cK u64: the code object's address
 * - lK u32: co_firstlineno
 * - iK u64: the instruction (u32: f_lasti)
 * - sK u32: PyASCIIObject.state of its name
 * - qK text: the name's characters, if it is compact ASCII according to sK
 *
 * and once, ct u64: the address of PyCode_Type relative to the probe; from 3.13 on, if there is
 * more than one frame, also cn u64: the same for None, which is the code of frames that do not
 * belong to a function. If the first byte of tK is zero, it is left out.
 *
 * tK is text because a number whose address cannot be read keeps the value of an earlier event in
 * the kernel's buffer (store_trace_args in kernel/trace/trace_probe_tmpl.h), while a text becomes
 * empty: a matching tK proves that its frame and code were read for this event.
 */

/* The value at offset from the address inner. Decimal is shorter: an expression may have 62
 * characters (MAX_ARGSTR_LEN in kernel/trace/trace_probe.h). */
static char *deref(const char *inner, uint32_t offset)
{
	return xasprintf("+%u(%s)", offset, inner);
}

static char *current_frame(const struct probedef *def, const char *tstate)
{
	char *first = deref(tstate, def->layout.frame[FRAME_CURRENT]);
	char *second;

	if (def->layout.frame[FRAME_CURRENT2] == PYTHON_NO_OFFSET)
		return first;
	second = deref(first, def->layout.frame[FRAME_CURRENT2]);
	free(first);
	return second;
}

static void add_frame(struct str *out, const uint32_t *at, const char *frame, uint32_t type,
                      unsigned k)
{
	CLEANUP(free) char *code = deref(frame, at[FRAME_CODE]);
	CLEANUP(free) char *name = deref(code, at[FRAME_NAME]);

	str_addf(out, " t%u=+%u(%s):ustring", k, type, code);
	str_addf(out, " c%u=%s:u64", k, code);
	str_addf(out, " i%u=+%u(%s):u%u", k, at[FRAME_INSTRUCTION], frame,
	         at[FRAME_INSTRUCTION_SIZE] * 8);
	str_addf(out, " l%u=+%u(%s):u32", k, at[FRAME_LINE], code);
	str_addf(out, " s%u=+%u(%s):u32", k, at[FRAME_STATE], name);
	str_addf(out, " q%u=+%u(%s):ustring", k, at[FRAME_TEXT], name);
}

/*
 * Append " NAME=…" for count frames. tstate is the expression for the PyThreadState in tracefs'
 * syntax ("%di"); probe and the members of at are link-time addresses; none is 0 if it is not
 * known.
 */
struct framefetch_at {
	uint64_t code_type, none; /* PyCode_Type, _Py_NoneStruct */
};
static void framefetch_add(struct str *out, const struct probedef *def, const char *tstate,
                           uint64_t probe, const struct framefetch_at *at, unsigned count)
{
	CLEANUP(free) char *frame = current_frame(def, tstate);
	/* Loading a file moves it by whole pages, so the lowest byte of an address does not
	 * change. */
	uint32_t type = def->layout.frame[FRAME_TYPE] + !(at->code_type & 0xff);

	str_addf(out, "%sct=\\0x%" PRIx64 ":u64", out->len ? " " : "", at->code_type - probe);
	if (at->none && def->layout.minor >= 13 && count > 1)
		str_addf(out, " cn=\\0x%" PRIx64 ":u64", at->none - probe);
	for (unsigned k = 0; k < count; k++) {
		char *caller;

		add_frame(out, def->layout.frame, frame, type, k);
		caller = deref(frame, def->layout.frame[FRAME_PREVIOUS]);
		free(frame);
		frame = caller;
	}
}

static const struct gil_scan_release *placer_release_of(const struct placer *p, uint64_t function)
{
	for (size_t i = 0; i < p->code->releases.n; i++)
		if (p->code->releases.v[i].function == function)
			return &p->code->releases.v[i];
	return NULL;
}

/*
 * ---- The arguments with which a probe reads the address of its GIL, and the Python frames of its
 * thread.
 */

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

/* The arguments of a probe at a function's entry, which is at its final place, and of a probe at
 * the call of pthread_cond_signal. NULL: none. Caller frees. */
static char *placer_entry_arguments(const struct placer *p, const struct probedef_function *f,
                                    const struct symbol *symbol, const struct probe *probe)
{
	CLEANUP(free) char *gil = gil_argument(p, f, symbol);
	CLEANUP(str_done) struct str out = { 0 };

	if (gil)
		str_adds(&out, gil);
	add_frame_arguments(&out, p, f, probe);
	return out.len ? str_take(&out) : NULL;
}

/* For a probe at the call of pthread_cond_signal, which the kernel emulates. */
static char *placer_release_arguments(const struct placer *p,
                                      const struct gil_scan_release *release)
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

/* ---- makes one probe: its instruction, its name, and the phrase that says how it was found */

#define FUNCTION_MAX 4096 /* bytes to search for jumps back to an entry */

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

/* Moves a probe to the cheapest instruction of the prologue. */
static void cheapen(const struct placer *p, struct probe *probe, bool with_return)
{
	struct probe_site point;
	size_t len = 0;
	const uint8_t *code = symbols_bytes(p->symbols, probe->address, FUNCTION_MAX, &len);

	probe_site_find(&point, probe->address, code, code ? len : 0, with_return);
	probe->address += point.skip;
	probe->offset += point.skip;
	probe->cost = point.cost;
	probe->why_costly = point.why;
	probe->instruction = xstrdup(point.text);
}

/* A phrase; caller frees. */
static char *how_found(const struct placer *p, const struct symbol *symbol, const char *confirmed)
{
	switch (symbol->kind) {
	case SYMBOL_TABLE:
		return xstrdup(confirmed ? "symbol table, and its code" : "symbol table");
	case SYMBOL_DEBUG:
		return xasprintf("%s%s", symbols_debug_kind(p->symbols),
		                 confirmed ? ", and its code" : "");
	default:
		return xasprintf("code: %s", confirmed ? confirmed : "similar to a confirmed copy");
	}
}

/* Entry and return probe share one breakpoint, so they are at the same address. */
static void add_entry(const struct placer *p, const struct probedef_function *f,
                      const struct symbol *symbol, bool ret, bool with_return,
                      const char *confirmed)
{
	struct probe probe = {
		.event = event_name(p, ret ? f->ret : f->entry),
		.function = xstrdup(symbol->name),
		.how = how_found(p, symbol, confirmed),
		.address = symbol->address,
		.offset = symbol->offset,
		.kind = symbol->kind,
		.ret = ret,
		.sure = confirmed || symbol->kind != SYMBOL_CODE,
	};

	cheapen(p, &probe, with_return);
	if (!ret)
		probe.fetch = placer_entry_arguments(p, f, symbol, &probe);
	*vec_push(&p->set->probes) = probe;
}

/* Adds a probe inside a function. point: its address, kind, sure, and fetch, which is taken over.
 * how is a phrase. */
static void placer_add_point(const struct placer *p, const char *event, const char *how,
                             const struct probe *point)
{
	struct probe probe = *point;

	probe.event = event_name(p, event);
	probe.function = symbols_describe(p->symbols, point->address);
	probe.how = xstrdup(how);
	symbols_offset(p->symbols, point->address, &probe.offset);
	cheapen(p, &probe, true);
	*vec_push(&p->set->probes) = probe;
}

static bool has_probe(const struct placer *p, uint64_t address)
{
	for (size_t i = 0; i < p->set->probes.n; i++)
		if (p->set->probes.v[i].address == address)
			return true;
	return false;
}

/* The same, found by code, for each of the addresses that has no probe yet. */
static void placer_add_points(const struct placer *p, const char *event, const uint64_t *addresses,
                              size_t count, const char *how)
{
	for (size_t i = 0; i < count; i++)
		if (!has_probe(p, addresses[i]))
			placer_add_point(p, event, how,
			                 &(struct probe){ .address = addresses[i],
			                                  .kind = SYMBOL_CODE,
			                                  .sure = true });
}

/*
 * Adds probes at the entry and the return of a function, as in the definition. confirmed: what else
 * proves that it is the right function, a phrase, or NULL. If the code shows equivalent places
 * before the return, these are probed instead of the return.
 */
static void placer_add_function(const struct placer *p, const struct probedef_function *f,
                                const struct symbol *symbol, const char *confirmed)
{
	const struct gil_scan_take *taken = gil_scan_take_at(p->code, symbol->address);
	/* Probes before the return are cheaper than a return probe, which stops the thread twice.
	 * For drop_gil they cannot be used: its path without a wait has no such place, and a thread
	 * that was overtaken by others has waited for them even on that path. */
	bool apart = f->ret && is_take(f) && taken && taken->returned.n;

	if (f->entry)
		add_entry(p, f, symbol, false, f->ret && !apart, confirmed);
	if (apart)
		placer_add_points(p, f->ret, taken->returned.v, taken->returned.n,
		                  "code: the exit of take_gil");
	else if (f->ret)
		add_entry(p, f, symbol, true, true, confirmed);
}

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
static bool is_part_of_drop(const struct placer *p, const struct probedef_function *f,
                            uint64_t address)
{
	CLEANUP(free) char *name = symbols_describe(p->symbols, address);

	return p->has_drop && !strncmp(name, f->name, strlen(f->name));
}

/* Whether an entry probe of drop_gil covers this release, which may be in a part of drop_gil that
 * the compiler moved elsewhere. */
static bool is_covered(const struct placer *p, const struct probedef_function *f,
                       const struct gil_scan_release *release)
{
	if (is_part_of_drop(p, f, release->signal))
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

	if (is_part_of_drop(p, f, signal))
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
		covered[i] = is_covered(p, f, &p->code->releases.v[i]);
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

/* What cannot be recorded because probes are missing; NULL: nothing. */
static const char *find_note(const struct placer *p)
{
	if (p->code->gave_up)
		return "the search of the machine code was ended because it takes too long for a "
		       "file of this size: functions or releases of the GIL may have no probe";
	if (!p->set->releases_known)
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
