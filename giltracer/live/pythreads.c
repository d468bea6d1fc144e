/* SPDX-License-Identifier: MIT */
#include "live/pythreads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "python/memory.h"
#include "python/pyobject.h"

#define AGAIN_NS  NS_PER_SECOND /* a thread may be renamed */
#define SOONER_NS (20 * NS_PER_MS)
#define FIND_NS   (10 * AGAIN_NS) /* how often to look for the dicts */
#define SHARE     50
#define ENTRIES   500000 /* of all dicts, for one look */

#define MODULE_DICT 16 /* PyModuleObject.md_dict */
#define INT_DIGITS  24 /* PyLongObject: 30 bits each */
#define DIGIT       0x3fffffffu

/* ---- the dict */

static uint64_t find_active(struct target *target, uint64_t interpreter)
{
	struct pyentries entries = { 0 };
	uint64_t modules, module = 0, dict, ret = 0;

	if (memory_u64(target->pid, interpreter + target->def->memory[MEMORY_MODULES], &modules) &&
	    pyobject_dict(target, modules, &entries))
		module = pyentries_find(target, &entries, "threading");
	if (module && memory_u64(target->pid, module + MODULE_DICT, &dict) &&
	    pyobject_dict(target, dict, &entries))
		ret = pyentries_find(target, &entries, "_active");
	vec_done(&entries.v);
	return ret;
}

static uint64_t active_of(struct pythreads *p, struct target *target, uint64_t interpreter)
{
	uint64_t active;

	for (size_t i = 0; i < p->dicts.n; i++)
		if (p->dicts.v[i].interpreter == interpreter)
			return p->dicts.v[i].active;
	active = find_active(target, interpreter);
	if (active)
		*vec_push(&p->dicts) = (struct pythreads_dict){ interpreter, active };
	return active;
}

/* ---- a thread */

/* Copies as many whole characters as there is room for. */
static void copy_name(char *ret, const char *name)
{
	const char *end = name, *next = name;

	while (utf8_next(&next) && next - name < PYTHREAD_NAME)
		end = next;
	memcpy(ret, name, (size_t)(end - name));
	ret[end - name] = '\0';
}

static bool read_name(struct target *target, uint64_t object, struct pythread *ret)
{
	struct pyentries attributes = { 0 };
	CLEANUP(free) char *name = NULL;
	uint64_t text = 0;

	if (pyobject_attributes(target, object, &attributes))
		text = pyentries_find(target, &attributes, "_name");
	vec_done(&attributes.v);
	name = text ? target_text(target, text) : NULL;
	if (!name)
		return false;
	copy_name(ret->name, name);
	return true;
}

static struct pythread *find(const struct pythreads *p, uint64_t ident)
{
	uint32_t at = idmap_get(&p->by_ident, ident);

	return at == IDMAP_NONE ? NULL : &p->v.v[at];
}

/* A pthread_t from an int of two digits. */
static uint64_t ident_of(const uint8_t *digits)
{
	return (bytes_u32(digits, 0) & DIGIT) | (uint64_t)(bytes_u32(digits, 4) & DIGIT) << 30;
}

static void add_thread(struct pythreads *p, struct target *target, uint64_t ident, uint64_t object)
{
	struct pythread thread = { .ident = ident };
	struct pythread *known;

	if (!read_name(target, object, &thread))
		return;
	known = find(p, ident);
	if (!known) {
		idmap_set(&p->by_ident, ident, (uint32_t)p->v.n);
		known = vec_push(&p->v);
	}
	*known = thread;
}

/* ---- the threads of an interpreter */

static bool read_idents(struct target *target, const struct pyentries *entries,
                        uint8_t (*digits)[8])
{
	struct batch batch = { 0 };
	bool whole;

	for (size_t i = 0; i < entries->v.n; i++)
		if (entries->v.v[i].value)
			batch_add(&batch, entries->v.v[i].key + INT_DIGITS, digits[i], 8);
	whole = batch_read(&batch, target->pid);
	batch_done(&batch);
	return whole;
}

static bool is_same(const struct pyentries *a, const struct pyentries *b)
{
	return a->v.n == b->v.n && (!a->v.n || !memcmp(a->v.v, b->v.v, a->v.n * sizeof(*a->v.v)));
}

/* False: the dict changed meanwhile, so its data is not used. */
static bool look_at_active(struct pythreads *p, struct target *target, uint64_t active)
{
	struct pyentries entries = { 0 }, after = { 0 };
	CLEANUP(free) uint8_t(*digits)[8] = NULL;
	bool same;

	if (!pyobject_dict(target, active, &entries))
		return false;
	digits = xcalloc(entries.v.n + 1, sizeof(*digits));
	same = read_idents(target, &entries, digits);
	for (size_t i = 0; same && i < entries.v.n; i++)
		if (entries.v.v[i].value)
			add_thread(p, target, ident_of(digits[i]), entries.v.v[i].value);
	same = same && pyobject_dict(target, active, &after) && is_same(&entries, &after);
	vec_done(&entries.v);
	vec_done(&after.v);
	return same;
}

/* ---- all threads */

/* Threads that come and go shorten the interval, but the look never takes more than 1/SHARE of a
 * CPU. */
static bool is_due(const struct pythreads *p, uint64_t now, size_t changes)
{
	uint64_t since = now - p->looked_ns;

	if (!p->looked_ns)
		return true;
	return since >= p->cost_ns * SHARE &&
	       (since >= AGAIN_NS || (changes != p->changes && since >= SOONER_NS));
}

static bool look_at_all(struct pythreads *p, struct target *target, const uint64_t *interpreters,
                        size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t active = active_of(p, target, interpreters[i]);

		if (active && !look_at_active(p, target, active))
			return false;
	}
	return true;
}

bool pythreads_look(struct pythreads *p, struct target *target, const uint64_t *interpreters,
                    size_t n, size_t changes)
{
	uint64_t now = clock_now_ns();
	bool whole;

	if (!is_due(p, now, changes))
		return false;
	if (now - p->found_ns >= FIND_NS) {
		p->dicts.n = 0;
		p->found_ns = now;
	}
	p->v.n = 0;
	idmap_done(&p->by_ident);
	target->entries = ENTRIES;
	whole = look_at_all(p, target, interpreters, n);
	p->looked_ns = clock_now_ns();
	p->cost_ns = p->looked_ns - now;
	if (whole)
		p->changes = changes;
	return whole;
}

const char *pythreads_name(const struct pythreads *p, uint64_t ident)
{
	const struct pythread *thread = find(p, ident);

	return thread && *thread->name ? thread->name : NULL;
}

void pythreads_done(struct pythreads *p)
{
	vec_done(&p->v);
	idmap_done(&p->by_ident);
	vec_done(&p->dicts);
}
