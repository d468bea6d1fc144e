/* SPDX-License-Identifier: MIT */
/*
 * Calls of functions in C, if the user asked for them. These functions have numbers as code
 * objects have: one for each definition together with what it belongs to, which is a module or the
 * type of the object that the function is called for.
 */
#include "preload/calls_record.h"

#include <string.h>
#include <sys/mman.h>

#define PLACES_FIRST 1024

/**
 * A function in C.
 * @definition: its PyMethodDef; @name: from there
 * @module: a str; NULL: it has none
 * @type: of the object that it is called for, if it has no module; NULL: there is none
 */
struct called {
	const char *definition, *name;
	PyObject *module, *type;
};

/* @hash: of the type's name, because another type may reuse the type's memory; @number: 0: the
 * place is free; it is written after the other members, which do not change from then on */
struct place {
	struct called called;
	uint32_t hash, number;
};

/**
 * All interpreters share one table, because their functions in C are the same. It is written with
 * the lock held, and read without it.
 * @count: number of places, a power of two; @used: at most half of them
 * @place: a hash table with open addressing
 */
struct table {
	size_t count, used;
	struct place place[];
};

static struct table *table;

/* @known: functions in C have the expected layout; @missing: see calls_native_begin; from 3.12 on,
 * all interpreters share this object, which is never freed */
static struct {
	bool known;
	PyObject *missing;
} native;

bool calls_native_begin(PyObject *missing)
{
	static struct method method = { "none", NULL, METH_NOARGS, NULL };
	PyObject *function;
	bool known;

	if (native.known)
		return missing == native.missing;
	if (!python.builtin || !python.descriptor)
		return false;
	function = python.PyCFunction_NewEx(&method, python.none, (PyObject *)python.builtin);
	if (!function)
		return false;
	known = python_type(function) == python.builtin &&
	        pointer_at(function, python.at.function.definition) == (PyObject *)&method &&
	        pointer_at(function, python.at.function.self) == python.none &&
	        pointer_at(function, python.at.function.module) == python.builtin;
	python.Py_DecRef(function);
	native.missing = missing;
	native.known = known;
	return known;
}

/* ---- what is called */

/* Reads m_ml, m_self and m_module of a PyCFunctionObject, and d_method of a PyMethodDescrObject.
 * Returns false if it is not a function in C, or is a method called without an object. */
static bool look_at(struct called *ret, PyObject *function, PyObject *first)
{
	PyObject *kind = python_type(function), *object = first;

	*ret = (struct called){ 0 };
	if (kind == python.builtin || (python.method && kind == python.method)) {
		ret->definition = (const char *)pointer_at(function, python.at.function.definition);
		object = pointer_at(function, python.at.function.self);
		ret->module = pointer_at(function, python.at.function.module);
	} else if (kind == python.descriptor && first && first != native.missing) {
		ret->definition = (const char *)pointer_at(function, python.at.method_definition);
	} else {
		return false;
	}
	ret->name = (const char *)pointer_at(ret->definition, 0);
	if (!ret->module && object)
		ret->type = python_type(object);
	return true;
}

static uint32_t hash_of(const struct called *c)
{
	uint32_t hash = 2166136261;

	for (const char *at = c->type ? python_type_name(c->type) : ""; *at; at++)
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
		len = put_string(d.text, python_type_name(c->type));
	if (len)
		d.text[len++] = '.';
	len += put_string(d.text + len, c->name);
	d.head.name_len = (uint32_t)len;
	process_log(&(struct preload_entry){ .type = PRELOAD_CALLED,
	                                     .number = number,
	                                     .value = python.at.minor | PRELOAD_NATIVE },
	            &d, sizeof(d.head) + len);
	python.PyErr_Clear();
	python.PyErr_Restore(type, value, trace);
}

/* ---- numbers */

/* The place that the function has, or would get. */
static struct place *find(struct table *t, const struct called *c, uint32_t hash)
{
	uint64_t mixed = ((uintptr_t)c->definition >> 3 ^ (uintptr_t)c->module ^
	                  (uintptr_t)c->type << 7) *
	                 0x9e3779b97f4a7c15u;

	for (size_t i = mixed >> 32;; i++) {
		struct place *p = &t->place[i & (t->count - 1)];

		if (!__atomic_load_n(&p->number, __ATOMIC_ACQUIRE) ||
		    (p->hash == hash && !memcmp(&p->called, c, sizeof(*c))))
			return p;
	}
}

/* Smaller tables are not freed, because other threads may be reading them. Together they are no
 * larger than the largest one. */
static struct table *grow(struct table *old)
{
	size_t count = old ? 2 * old->count : PLACES_FIRST;
	struct table *t = mmap(NULL, sizeof(*t) + count * sizeof(struct place),
	                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	t->count = count;
	for (size_t i = 0; old && i < old->count; i++) {
		const struct place *p = &old->place[i];

		if (p->number)
			*find(t, &p->called, p->hash) = *p;
	}
	t->used = old ? old->used : 0;
	__atomic_store_n(&table, t, __ATOMIC_RELEASE);
	return t;
}

/* Another thread may have added the function meanwhile. Returns its number; 0: there is no room. */
static uint32_t put(const struct called *c, uint32_t hash, uint32_t number)
{
	struct table *t = table;
	struct place *p;

	if (!t || 2 * t->used >= t->count)
		t = grow(t);
	if (!t)
		return 0;
	p = find(t, c, hash);
	if (p->number)
		return p->number;
	p->called = *c;
	p->hash = hash;
	__atomic_store_n(&p->number, number, __ATOMIC_RELEASE);
	t->used++;
	return number;
}

static __attribute__((noinline, cold)) uint32_t new_number(const struct called *c, uint32_t hash)
{
	uint32_t number = calls_code_new(), now;

	if (!number)
		return 0;
	calls_lock();
	now = put(c, hash, number);
	calls_unlock();
	if (now == number)
		describe(c, number);
	return now;
}

static uint32_t number_of(const struct called *c)
{
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint32_t hash = hash_of(c), number = t ? find(t, c, hash)->number : 0;

	return number ? number : new_number(c, hash);
}

/* The functions are described in the parent's log. The child must describe them again in its
 * own. */
void calls_native_in_child(void)
{
	if (table)
		munmap(table, sizeof(*table) + table->count * sizeof(struct place));
	table = NULL;
}

/* Whether calls of functions in C by this code are recorded: not if the code is not recorded
 * itself, or is giltracer's own. */
static bool is_recorded(PyObject *code)
{
	uint32_t number;

	if (UNLIKELY(!calls_has_number(code, &number)))
		number = calls_code_search(code, NULL);
	return (number & PRELOAD_CALL_CODES_MAX) < __atomic_load_n(&codes.own, __ATOMIC_RELAXED);
}

void calls_record_native(PyObject *code, enum preload_call_type type, PyObject *function,
                         PyObject *first)
{
	struct calls_self *me = &calls_self;
	struct called c;
	uint32_t number;

	if (UNLIKELY(calls_are_over())) {
		calls_stop();
		return;
	}
	if (!look_at(&c, function, first) || !is_recorded(code))
		return;
	number = number_of(&c);
	if (UNLIKELY(!calls_put_at_once(me, type, number)))
		calls_put(me, type, number);
}
