/* SPDX-License-Identifier: MIT */
/*
 * Calls of functions in C, where they are asked for. They have numbers as code objects have: by their
 * definition and by what they belong to, a module or the type of the object that they are called for.
 */
#include "preload/calls_record.h"

#include <string.h>
#include <sys/mman.h>

#define PLACES_FIRST 1024

/**
 * What a function is called.
 * @name: of its PyMethodDef; @module: a str, NULL: it has none; @type: of its object, NULL: it has none
 */
struct called {
	const char *definition, *name;
	PyObject *module, *type;
};

/* @hash: of the type's name: another type may come to have its memory */
struct place {
	struct called called;
	uint32_t hash, number;
};

/* @place: open addressing, a power of two, of which at most half are used; of that generation */
static struct {
	struct place *place;
	size_t count, used;
	uint32_t generation;
	PyObject *missing;
} table;

bool calls_native_begin(PyObject *missing)
{
	static struct method method = { "none", NULL, METH_NOARGS, NULL };
	PyObject *function;
	bool known;

	if (!python.builtin || !python.descriptor)
		return false;
	table.missing = missing;
	function = python.PyCFunction_NewEx(&method, python.none, (PyObject *)python.builtin);
	if (!function)
		return false;
	known = pointer_at(function, 8) == python.builtin &&
	        pointer_at(function, 16) == (PyObject *)&method &&
	        pointer_at(function, 24) == python.none &&
	        pointer_at(function, 32) == python.builtin;
	python.Py_DecRef(function);
	return known;
}

/* ---- what is called */

/* PyTypeObject.tp_name. */
static const char *type_name(PyObject *type)
{
	return (const char *)pointer_at(type, 24);
}

/* PyCFunctionObject: m_ml, m_self and m_module; PyMethodDescrObject: d_method. False: it is no
 * function in C, or a method that nothing is given to. */
static bool look_at(struct called *ret, PyObject *function, PyObject *first)
{
	PyObject *kind = pointer_at(function, 8), *object = first;

	*ret = (struct called){ 0 };
	if (kind == python.builtin || (python.method && kind == python.method)) {
		ret->definition = (const char *)pointer_at(function, 16);
		object = pointer_at(function, 24);
		ret->module = pointer_at(function, 32);
	} else if (kind == python.descriptor && first && first != table.missing) {
		ret->definition = (const char *)pointer_at(function, 40);
	} else {
		return false;
	}
	ret->name = (const char *)pointer_at(ret->definition, 0);
	if (!ret->module && object)
		ret->type = pointer_at(object, 8);
	return true;
}

static uint32_t hash_of(const struct called *c)
{
	uint32_t hash = 2166136261;

	for (const char *at = c->type ? type_name(c->type) : ""; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619;
	return hash;
}

static size_t put_string(char *ret, const char *text)
{
	size_t len = strnlen(text, CALLS_TEXT_MAX);

	memcpy(ret, text, len);
	return len;
}

static void describe(const struct called *c, uint32_t number)
{
	struct {
		struct preload_function head;
		char text[2 * CALLS_TEXT_MAX + 1];
	} d = { .head = { 0 } };
	PyObject *type, *value, *trace;
	size_t len = 0;

	python.PyErr_Fetch(&type, &value, &trace);
	if (c->module)
		len = calls_put_text(d.text, c->module);
	else if (c->type)
		len = put_string(d.text, type_name(c->type));
	if (len)
		d.text[len++] = '.';
	len += put_string(d.text + len, c->name);
	d.head.name_len = (uint32_t)len;
	process_log(&(struct preload_entry){ .type = PRELOAD_CALLED,
	                                     .number = number,
	                                     .value = python.minor | PRELOAD_NATIVE },
	            &d, sizeof(d.head) + len);
	python.PyErr_Clear();
	python.PyErr_Restore(type, value, trace);
}

/* ---- numbers */

static struct place *find(struct place *place, size_t count, const struct called *c, uint32_t hash)
{
	uint64_t mixed = ((uintptr_t)c->definition >> 3 ^ (uintptr_t)c->module ^
	                  (uintptr_t)c->type << 7) *
	                 0x9e3779b97f4a7c15u;

	for (size_t i = mixed >> 32;; i++) {
		struct place *p = &place[i & (count - 1)];

		if (!p->number || (p->hash == hash && !memcmp(&p->called, c, sizeof(*c))))
			return p;
	}
}

static bool grow(void)
{
	size_t count = table.count ? 2 * table.count : PLACES_FIRST;
	void *map = mmap(NULL, count * sizeof(struct place), PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return false;
	for (size_t i = 0; i < table.count; i++) {
		const struct place *p = &table.place[i];

		if (p->number)
			*find(map, count, &p->called, p->hash) = *p;
	}
	if (table.place)
		munmap(table.place, table.count * sizeof(struct place));
	table.place = map;
	table.count = count;
	return true;
}

/* Those of a forked child's parent are in the parent's log. */
static void begin_generation(void)
{
	if (table.place)
		memset(table.place, 0, table.count * sizeof(*table.place));
	table.used = 0;
	table.generation = codes.generation;
}

static __attribute__((noinline, cold)) uint32_t new_number(const struct called *c, uint32_t hash)
{
	uint32_t number;

	if (2 * table.used >= table.count && !grow())
		return 0;
	number = calls_code_new();
	if (!number)
		return 0;
	*find(table.place, table.count, c, hash) = (struct place){ *c, hash, number };
	table.used++;
	describe(c, number);
	return number;
}

static uint32_t number_of(const struct called *c)
{
	uint32_t hash = hash_of(c);
	const struct place *p;

	if (UNLIKELY(table.generation != codes.generation))
		begin_generation();
	p = table.count ? find(table.place, table.count, c, hash) : NULL;
	return p && p->number ? p->number : new_number(c, hash);
}

/* Of a function that is not wanted, or is ours, its calls are neither. */
static bool is_recorded(PyObject *code)
{
	uint32_t number;

	if (UNLIKELY(!calls_has_number(code, &number)))
		number = calls_code_search(code, NULL);
	return (number & PRELOAD_CALL_CODES_MAX) < codes.own;
}

void calls_record_native(PyObject *code, enum preload_call_type type, PyObject *function,
                         PyObject *first)
{
	struct calls_self *me = &calls_self;
	struct called c;
	uint32_t number;

	if (UNLIKELY(*calls.over)) {
		calls_stop();
		return;
	}
	if (!look_at(&c, function, first) || !is_recorded(code))
		return;
	number = number_of(&c);
	if (UNLIKELY(!calls_put_at_once(me, type, number)))
		calls_put(me, type, number);
}
