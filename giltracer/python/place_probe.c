/* SPDX-License-Identifier: MIT */
/* Makes one probe: its instruction, its name, and the phrase that says how it was found. */
#include "python/placer.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"

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

void placer_add_function(const struct placer *p, const struct probedef_function *f,
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

void placer_add_point(const struct placer *p, const char *event, const char *how,
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

void placer_add_points(const struct placer *p, const char *event, const uint64_t *addresses,
                       size_t count, const char *how)
{
	for (size_t i = 0; i < count; i++)
		if (!has_probe(p, addresses[i]))
			placer_add_point(p, event, how,
			                 &(struct probe){ .address = addresses[i],
			                                  .kind = SYMBOL_CODE,
			                                  .sure = true });
}
