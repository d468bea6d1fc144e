/* SPDX-License-Identifier: MIT */
/* Definition + symbols of the interpreter = probe set. */
#include "probes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/datadir.h"
#include "base/str.h"
#include "launch/framefetch.h"
#include "launch/probedef.h"
#include "launch/python.h"

#define PROLOGUE_MAX 64

/* What resolving needs at hand. */
struct resolver {
	const struct python *python;
	const struct probedef *def;
	const struct symbols *symbols;
	struct probe_set *set;
	uint64_t identity; /* of the one GIL, where there is but one */
	unsigned frames;   /* how many Python frames to fetch */
};

static int load_definition(struct probedef **ret, const struct python *python, struct error *err)
{
	CLEANUP(free) char *name = xasprintf("probes/%u.%u.yaml", python->major, python->minor);
	CLEANUP(free) char *path = NULL;
	struct error ignored;

	if (datadir_find(&path, name, &ignored) < 0)
		return error_set(err, ENOTSUP, "%s is CPython %s: there is no %s", python->command,
		                 python->version, name);
	if (probedef_load(ret, path, err) < 0)
		return -1;
	if ((*ret)->major == python->major && (*ret)->minor == python->minor)
		return 0;
	error_set(err, EINVAL, "%s: is for Python %u.%u", path, (*ret)->major, (*ret)->minor);
	probedef_free(*ret);
	return -1;
}

/* Probes that fetch another number of frames are others, and may be in use at the same time. */
static char *group_name(const char *build_id, const char *path, unsigned frames)
{
	uint32_t hash = 0x811c9dc5;
	char *name;

	/* The same build may be installed twice, and then is two files to the kernel. */
	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 0x01000193;
	hash &= 0xffffff;
	if (frames == FRAMEFETCH_DEFAULT)
		name = xasprintf("giltracer_%.12s_%06x", build_id, hash);
	else
		name = xasprintf("giltracer_%.12s_%06x_f%u", build_id, hash, frames);
	return name;
}

/* A clone may have lost or moved arguments. */
static bool keeps_arguments(const char *symbol)
{
	return !strstr(symbol, ".constprop") && !strstr(symbol, ".isra") &&
	       !strstr(symbol, ".part");
}

static char *gil_argument(const struct resolver *r, const struct probedef_function *f,
                          const char *symbol)
{
	CLEANUP(free) char *fetch = NULL;

	if (r->def->shared)
		return xasprintf("gil=\\0x%" PRIx64 ":u64", r->identity);
	if (!f->gil || !keeps_arguments(symbol))
		return NULL;
	fetch = probedef_fetch(f->gil);
	return xasprintf("gil=%s:u64", fetch);
}

/* A wrong register leads to no frame: what is there is no code object. */
static void add_frame_arguments(struct str *out, const struct resolver *r,
                                const struct probedef_function *f, const struct probe *probe)
{
	const char *argument = keeps_arguments(probe->function) ? f->tstate : f->clone_tstate;
	CLEANUP(free) char *tstate = argument ? probedef_fetch(argument) : NULL;
	uint64_t code_type;

	if (!tstate || !r->frames || !r->def->has_frame ||
	    !symbols_address(r->symbols, "PyCode_Type", &code_type))
		return;
	framefetch_add(out, r->def, tstate, probe->address, code_type, r->frames);
}

/* NULL: none. The probe is where it will be. */
static char *fetch_arguments(const struct resolver *r, const struct probedef_function *f,
                             const struct probe *probe)
{
	CLEANUP(free) char *gil = gil_argument(r, f, probe->function);
	CLEANUP(str_done) struct str out = { 0 };

	if (gil)
		str_adds(&out, gil);
	add_frame_arguments(&out, r, f, probe);
	return out.len ? str_take(&out) : NULL;
}

static char *event_name(const char *event, size_t index)
{
	return index ? xasprintf("%s_%zu", event, index) : xstrdup(event);
}

static void place_probe(const struct resolver *r, struct probe *probe, bool with_return)
{
	struct insn_point point;
	size_t len = 0;
	const uint8_t *code = symbols_bytes(r->symbols, probe->address, PROLOGUE_MAX, &len);

	insn_entry_point(&point, code, code ? len : 0, with_return);
	probe->address += point.skip;
	probe->offset += point.skip;
	probe->cost = point.cost;
	probe->instruction = xstrdup(point.text);
}

static void add_probe(const struct resolver *r, const struct probedef_function *f,
                      const struct symbol *symbol, size_t index, bool ret)
{
	struct probe *probe = vec_push(&r->set->probes);

	*probe = (struct probe){
		.event = event_name(ret ? f->ret : f->entry, index),
		.function = xstrdup(symbol->name),
		.how = xstrdup(symbol->kind == SYMBOL_DEBUG ? symbols_debug_path(r->symbols)
		                                            : "symbol table"),
		.address = symbol->address,
		.offset = symbol->offset,
		.kind = symbol->kind,
		.ret = ret,
		.sure = true,
	};
	place_probe(r, probe, f->ret != NULL);
	if (!ret)
		probe->fetch = fetch_arguments(r, f, probe);
}

static size_t add_function(const struct resolver *r, const struct probedef_function *f)
{
	CLEANUP(symbol_list_done) struct symbol_list list = { 0 };
	size_t n = symbols_find(r->symbols, f->name, &list);

	for (size_t i = 0; i < n; i++) {
		/* Link-time optimisation inlines some copies: the others say nothing of those. */
		if (strstr(list.syms.v[i].name, ".lto_priv"))
			r->set->releases_known = false;
		if (f->entry)
			add_probe(r, f, &list.syms.v[i], i, false);
		if (f->ret)
			add_probe(r, f, &list.syms.v[i], i, true);
	}
	return n;
}

static void find_identity(struct resolver *r)
{
	for (size_t i = 0; i < r->def->identity.n; i++)
		if (symbols_address(r->symbols, r->def->identity.v[i], &r->identity))
			return;
	/* Any number will do that is the same for all probes of this build. */
	r->identity = 1;
}

static int add_functions(struct resolver *r, struct error *err)
{
	find_identity(r);
	r->set->releases_known = true;
	for (size_t i = 0; i < r->def->functions.n; i++) {
		const struct probedef_function *f = &r->def->functions.v[i];

		if (f->fallback && r->set->releases_known)
			continue;
		if (add_function(r, f) || f->fallback)
			continue;
		if (strcmp(f->entry ? f->entry : "", "take_gil") == 0)
			return error_set(err, ENOENT, "%s: %s was not found", r->set->path,
			                 f->name);
		r->set->releases_known = false;
	}
	if (!r->set->releases_known)
		r->set->note = xstrdup("not every release of the GIL has a probe, some ends of "
		                       "holds are inferred");
	return 0;
}

int probe_set_resolve(struct probe_set **ret, const struct python *python, unsigned frames,
                      struct error *err)
{
	CLEANUP(probe_set_free) struct probe_set *set = xcalloc(1, sizeof(*set));
	CLEANUP(probedef_free) struct probedef *def = NULL;
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	struct resolver resolver = { .python = python, .set = set, .frames = frames };

	if (load_definition(&def, python, err) < 0)
		return -1;
	if (symbols_open(&symbols, python->library, err) < 0)
		return -1;
	set->path = xstrdup(python->library);
	set->python = xstrdup(python->command);
	set->build_id = xstrdup(symbols_build_id(symbols));
	set->group = group_name(set->build_id, set->path, frames);
	resolver.def = def;
	resolver.symbols = symbols;
	if (add_functions(&resolver, err) < 0)
		return -1;
	*ret = take(set);
	return 0;
}

static void probe_done(struct probe *probe)
{
	free(probe->event);
	free(probe->function);
	free(probe->how);
	free(probe->instruction);
	free(probe->fetch);
}

void probe_set_free(struct probe_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->probes.n; i++)
		probe_done(&set->probes.v[i]);
	vec_done(&set->probes);
	free(set->path);
	free(set->python);
	free(set->build_id);
	free(set->group);
	free(set->note);
	free(set);
}
