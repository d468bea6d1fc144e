/* SPDX-License-Identifier: MIT */
#include "python/pythreads.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "python/memory.h"
#include "python/target.h"

/*
 * ---- Reads dicts and attributes of objects in a running process. The process is not stopped, so the
 * data may mix two states; reading it twice with the same result makes that unlikely.
 */

/* Addresses of two objects; value 0: the entry is empty or was deleted. */
struct pyentry {
	uint64_t key, value;
};

/* Reading stops for good after target->entries entries, counting each dict as one more: the caller
 * sets how many are enough.
 *
 * { 0 } is empty; free with vec_done(&entries.v). */
struct pyentries {
	VEC(struct pyentry) v;
};

/*
 * ---- Layouts from Include/internal/pycore_dict.h (before 3.11 Objects/dict-common.h) and
 * Include/cpython/object.h. Constants that are the same in all builds of a version are defined
 * here, others in probes/. tests/system/live.t compares them with what each interpreter reports.
 */

#define ENTRIES_MAX 65536

/* PyDictObject, after the header that each object has */
#define DICT_SIZE   32
#define DICT_KEYS   16
#define DICT_VALUES 24

/* PyDictKeysObject, before 3.11 */
#define OLD_KEYS_SIZE    40
#define OLD_KEYS_SLOTS   8
#define OLD_KEYS_ENTRIES 32

/* PyDictKeysObject, from 3.11 on */
#define KEYS_SIZE        32
#define KEYS_INDEX_BYTES 9 /* log2 of the size of the index */
#define KEYS_KIND        10
#define KEYS_ENTRIES     24

/* struct _dictvalues, from 3.13 on */
#define VALUES_VALID 3
#define VALUES_FIRST 8

/* PyTypeObject, after the header */
#define TYPE_BASIC_SIZE  16
#define TYPE_FLAGS       152
#define TYPE_DICT_OFFSET 272
#define TYPE_SIZE        280

#define FLAG_INLINE_VALUES (1u << 2)
#define FLAG_MANAGED_DICT  (1u << 4)

/* Location and layout of the entries of a table of keys. A table with only str keys has no
 * hashes. */
struct keys {
	uint64_t entries, count;
	unsigned entry_size, key_at;
};

static bool read_old_keys(struct target *target, uint64_t address, struct keys *ret)
{
	uint8_t raw[OLD_KEYS_SIZE];
	uint64_t slots, width;

	if (!memory_read(target->pid, address, raw, sizeof(raw)))
		return false;
	slots = bytes_u64(raw, OLD_KEYS_SLOTS);
	width = slots <= 0xff ? 1 : slots <= 0xffff ? 2 : 4;
	*ret = (struct keys){
		.entries = address + OLD_KEYS_SIZE + slots * width,
		.count = bytes_u64(raw, OLD_KEYS_ENTRIES),
		.entry_size = 24,
		.key_at = 8,
	};
	return slots <= UINT32_MAX && ret->count <= ENTRIES_MAX;
}

static bool read_keys(struct target *target, uint64_t address, struct keys *ret)
{
	uint8_t raw[KEYS_SIZE];
	bool general;

	if (target->def->layout.minor < 11)
		return read_old_keys(target, address, ret);
	if (!memory_read(target->pid, address, raw, sizeof(raw)) || raw[KEYS_INDEX_BYTES] > 32)
		return false;
	general = raw[KEYS_KIND] == 0;
	*ret = (struct keys){
		.entries = address + KEYS_SIZE + ((uint64_t)1 << raw[KEYS_INDEX_BYTES]),
		.count = bytes_u64(raw, KEYS_ENTRIES),
		.entry_size = general ? 24 : 16,
		.key_at = general ? 8 : 0,
	};
	return ret->count <= ENTRIES_MAX;
}

/* values: the address of the values; 0: they are in the table itself. */
static bool read_table(struct target *target, uint64_t address, uint64_t values,
                       struct pyentries *ret)
{
	CLEANUP(free) uint8_t *raw = NULL;
	CLEANUP(free) uint64_t *apart = NULL;
	struct keys keys;

	ret->v.n = 0;
	if (!read_keys(target, address, &keys) || keys.count >= target->entries)
		return false;
	target->entries -= keys.count + 1;
	raw = xcalloc(keys.count, keys.entry_size);
	apart = xcalloc(keys.count, sizeof(*apart));
	if (!keys.count)
		return true;
	if (!memory_read(target->pid, keys.entries, raw, keys.count * keys.entry_size) ||
	    (values && !memory_read(target->pid, values, apart, keys.count * sizeof(*apart))))
		return false;
	for (size_t i = 0; i < keys.count; i++) {
		size_t at = i * keys.entry_size + keys.key_at;

		*vec_push(&ret->v) = (struct pyentry){
			.key = bytes_u64(raw, at),
			.value = values ? apart[i] : bytes_u64(raw, at + 8),
		};
	}
	return true;
}

/* Read the entries of a dict. False: it cannot be read. ret is overwritten. */
static bool pyobject_dict(struct target *target, uint64_t dict, struct pyentries *ret)
{
	uint8_t raw[DICT_SIZE];
	uint64_t values;

	ret->v.n = 0;
	if (!dict || !memory_read(target->pid, dict + target->def->layout.header, raw, sizeof(raw)))
		return false;
	values = bytes_u64(raw, DICT_VALUES);
	if (values && target->def->layout.minor >= 13)
		values += VALUES_FIRST;
	return read_table(target, bytes_u64(raw, DICT_KEYS), values, ret);
}

/* ---- attributes */

/* From 3.13 on, values follow the object as long as it has no dict. */
static uint64_t inline_values(struct target *target, uint64_t object, const uint8_t *type)
{
	uint64_t values = object + bytes_u64(type, TYPE_BASIC_SIZE);
	uint8_t head[VALUES_FIRST];

	if (!(bytes_u64(type, TYPE_FLAGS) & FLAG_INLINE_VALUES) ||
	    !memory_read(target->pid, values, head, sizeof(head)) || !head[VALUES_VALID])
		return 0;
	return values + VALUES_FIRST;
}

/* The dict whose address precedes the object, or its values if it has no dict. */
static bool find_managed(struct target *target, uint64_t object, const uint8_t *type,
                         uint64_t *ret_dict, uint64_t *ret_values)
{
	/* In free-threaded builds, no members for the garbage collector are in between. */
	const uint64_t at = target->def->layout.free_threaded ? 16 : 32;
	uint8_t before[16];
	uint64_t values, dict;

	if (!memory_read(target->pid, object - at, before, sizeof(before)))
		return false;
	values = bytes_u64(before, 0);
	dict = bytes_u64(before, 8);
	if (target->def->layout.minor == 12) {
		values = dict & 1 ? dict + 1 : 0;
		dict = dict & 1 ? 0 : dict;
	} else if (target->def->layout.minor > 12) {
		values = dict ? 0 : inline_values(target, object, type);
	}
	*ret_dict = values ? 0 : dict;
	*ret_values = values;
	return true;
}

/* Read the attributes in an object's own __dict__, whether or not the dict has been created. */
static bool pyobject_attributes(struct target *target, uint64_t object, struct pyentries *ret)
{
	uint8_t raw[TYPE_SIZE];
	uint64_t type, dict = 0, values = 0, keys, at;

	ret->v.n = 0;
	if (!memory_u64(target->pid, object + target->def->layout.frame[FRAME_TYPE], &type) ||
	    !memory_read(target->pid, type + target->def->layout.header, raw, sizeof(raw)))
		return false;
	at = bytes_u64(raw, TYPE_DICT_OFFSET);
	if (target->def->layout.minor >= 11 && bytes_u64(raw, TYPE_FLAGS) & FLAG_MANAGED_DICT) {
		if (!find_managed(target, object, raw, &dict, &values))
			return false;
	} else if (at > INT32_MAX || !at || !memory_u64(target->pid, object + at, &dict)) {
		return false;
	}
	if (!values)
		return pyobject_dict(target, dict, ret);
	return memory_u64(target->pid, type + target->def->layout.memory[MEMORY_CACHED_KEYS],
	                  &keys) &&
	       read_table(target, keys, values, ret);
}

/* ---- names */

static bool is_name(struct target *target, const uint8_t *raw, const char *name)
{
	size_t len = strlen(name);

	return bytes_u64(raw, target->def->layout.memory[MEMORY_LENGTH]) == len &&
	       target_is_ascii(target, raw) &&
	       !memcmp(raw + target->def->layout.frame[FRAME_TEXT], name, len);
}

/* The value for the key name, an ASCII str; 0: none. */
static uint64_t pyentries_find(struct target *target, const struct pyentries *entries,
                               const char *name)
{
	size_t size = target->def->layout.frame[FRAME_TEXT] + strlen(name) + 1;
	CLEANUP(free) uint8_t *raw = xcalloc(entries->v.n + 1, size);
	struct batch batch = { 0 };
	uint64_t ret = 0;
	bool whole;

	for (size_t i = 0; i < entries->v.n; i++)
		if (entries->v.v[i].key && entries->v.v[i].value)
			batch_add(&batch, entries->v.v[i].key, raw + i * size, size);
	whole = batch_read(&batch, target->pid);
	batch_done(&batch);
	for (size_t i = 0; whole && i < entries->v.n && !ret; i++)
		if (entries->v.v[i].value && is_name(target, raw + i * size, name))
			ret = entries->v.v[i].value;
	return ret;
}

#define AGAIN_NS  NS_PER_SECOND /* a thread may be renamed */
#define SOONER_NS (20 * NS_PER_MS)
#define FIND_NS   (10 * AGAIN_NS) /* how often to look for the dicts */
#define SHARE     50
#define ATTEMPTS  8      /* threads may come and go meanwhile */
#define ENTRIES   500000 /* of all dicts, for one look */

/* After the header: PyModuleObject.md_dict, and the digits of PyLongObject, 30 bits each. */
#define MODULE_DICT 0
#define INT_DIGITS  8
#define DIGIT       0x3fffffffu

/* ---- the dict */

static uint64_t find_active(struct target *target, uint64_t interpreter)
{
	struct pyentries entries = { 0 };
	uint64_t modules, module = 0, dict, ret = 0;

	if (memory_u64(target->pid, interpreter + target->def->layout.memory[MEMORY_MODULES],
	               &modules) &&
	    pyobject_dict(target, modules, &entries))
		module = pyentries_find(target, &entries, "threading");
	if (module &&
	    memory_u64(target->pid, module + target->def->layout.header + MODULE_DICT, &dict) &&
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
			batch_add(&batch,
			          entries->v.v[i].key + target->def->layout.header + INT_DIGITS,
			          digits[i], 8);
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
	bool whole = false;

	if (!is_due(p, now, changes))
		return false;
	if (now - p->found_ns >= FIND_NS) {
		p->dicts.n = 0;
		p->found_ns = now;
	}
	target->entries = ENTRIES;
	for (unsigned i = 0; i < ATTEMPTS && !whole; i++) {
		p->v.n = 0;
		idmap_done(&p->by_ident);
		whole = look_at_all(p, target, interpreters, n);
	}
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
