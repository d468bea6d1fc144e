/* SPDX-License-Identifier: MIT */
/* Resolves an interpreter's probe set: its definition, its file, and the name of the group. */
#include "python/probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "python/probes.h"
#include "python/place.h"
#include "python/probedef.h"
#include "python/python.h"

static uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x01000193;
	return hash;
}

/*
 * The same build may be installed twice, and is then two files for the kernel. Probes with other
 * places or other arguments, because of --frames or of another version of giltracer, may be in use
 * at the same time.
 */
static char *group_name(const struct probe_set *set, const char *suffix)
{
	uint32_t hash = hash_text(0x811c9dc5, set->path);

	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *p = &set->probes.v[i];

		hash = hash_text(hash, p->event);
		hash = hash_text(hash ^ (uint32_t)p->offset ^ p->ret, p->fetch);
	}
	return xasprintf("giltracer_%.12s_%06x%s", set->build_id, hash & 0xffffff, suffix);
}

int probe_set_resolve(struct probe_set **ret, const struct python *python, unsigned frames,
                      const char *group_suffix, struct error *err)
{
	CLEANUP(probe_set_free) struct probe_set *set = xcalloc(1, sizeof(*set));
	CLEANUP(probedef_free) struct probedef *def = NULL;
	CLEANUP(symbols_free) struct symbols *symbols = NULL;

	if (probedef_find(&def, python, err) < 0)
		return -1;
	if (symbols_open(&symbols, python->library, err) < 0)
		return -1;
	set->path = xstrdup(python->library);
	set->python = xstrdup(python->command);
	set->frames = frames;
	set->identity = *symbols_identity(symbols);
	set->build_id = xstrdup(symbols_build_id(symbols));
	if ((place_probes(set, def, symbols, frames, err) | symbols_check(symbols, err)) < 0)
		return -1;
	set->group = group_name(set, group_suffix);
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

bool probe_set_is_current(const struct probe_set *set)
{
	struct image_identity now;

	return image_identify(&now, set->path) && image_identity_equal(&now, &set->identity);
}
