/* SPDX-License-Identifier: MIT */
/*
 * Code objects and their numbers. A code object contains its number itself (PEP 523's co_extra),
 * so a new code object that reuses its memory has none. The names of a code object are written to
 * the log when it is first seen.
 */
#include "preload/calls_record.h"

#include <string.h>

struct calls_codes codes;

struct described {
	struct preload_function head;
	char text[2 * CALLS_TEXT_MAX];
};

size_t calls_put_text(char *ret, PyObject *text)
{
	PyObject *bytes = python.PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
	char *data;
	Py_ssize_t size = 0;

	if (!bytes || python.PyBytes_AsStringAndSize(bytes, &data, &size) < 0)
		size = 0;
	if (size > CALLS_TEXT_MAX)
		size = CALLS_TEXT_MAX;
	if (size)
		memcpy(ret, data, (size_t)size);
	if (bytes)
		python.Py_DecRef(bytes);
	return (size_t)size;
}

size_t calls_put_attribute(char *ret, PyObject *object, const char *attribute)
{
	PyObject *text = python.PyObject_GetAttrString(object, attribute);
	size_t size = text ? calls_put_text(ret, text) : 0;

	if (text)
		python.Py_DecRef(text);
	return size;
}

static uint32_t first_line(PyObject *code)
{
	PyObject *line = python.PyObject_GetAttrString(code, "co_firstlineno");
	long value = line ? python.PyLong_AsLong(line) : 0;

	if (line)
		python.Py_DecRef(line);
	return value > 0 ? (uint32_t)value : 0;
}

static void describe(PyObject *code, uint32_t number, enum calls_role role)
{
	struct described d = { .head.first_line = first_line(code) };
	uint64_t value = python.at.minor | (role == CALLS_OF_COROUTINE ? PRELOAD_COROUTINE : 0);
	size_t name, file;

	name = calls_put_attribute(d.text, code,
	                           python.at.has_qualname ? "co_qualname" : "co_name");
	file = calls_put_attribute(d.text + name, code, "co_filename");
	d.head.name_len = (uint32_t)name;
	d.head.file_len = (uint32_t)file;
	process_log(
		&(struct preload_entry){ .type = PRELOAD_CALLED, .number = number, .value = value },
		&d, sizeof(d.head) + name + file);
}

/* Whether name is one of the modules between commas, or a submodule of one. */
static bool is_listed(const char *modules, const char *name, size_t len)
{
	for (const char *at = modules; *at;) {
		size_t n = strcspn(at, ",");

		if (n && n <= len && !memcmp(at, name, n) && (n == len || name[n] == '.'))
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

/* Whether the module of a new function is recorded. globals: of the function; NULL: the current
 * ones */
static bool is_wanted(PyObject *globals)
{
	const char *modules = process.control ? process.control->modules : "";
	PyObject *name, *bytes;
	char *text;
	Py_ssize_t size;
	bool wanted = false;

	if (!*modules)
		return true;
	if (!globals)
		globals = python.PyEval_GetGlobals();
	name = globals ? python.PyDict_GetItemString(globals, "__name__") : NULL;
	bytes = name ? python.PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass") : NULL;
	if (bytes && python.PyBytes_AsStringAndSize(bytes, &text, &size) == 0)
		wanted = is_listed(modules, text, (size_t)size);
	if (bytes)
		python.Py_DecRef(bytes);
	return wanted;
}

/* The folder of giltracer's own Python code, with a slash at its end. */
static char own_folder[CALLS_TEXT_MAX];
static size_t own_len;

static bool is_own(PyObject *code)
{
	char file[CALLS_TEXT_MAX];

	return own_len && calls_put_attribute(file, code, "co_filename") > own_len &&
	       !memcmp(file, own_folder, own_len);
}

/* code: of the function that starts the recording, which is giltracer's own */
static void find_own(PyObject *code)
{
	own_len = calls_put_attribute(own_folder, code, "co_filename");
	while (own_len && own_folder[own_len - 1] != '/')
		own_len--;
}

uint32_t calls_code_new(void)
{
	uint32_t number = 0;

	calls_lock();
	if (codes.next < codes.own)
		number = codes.next++;
	calls_unlock();
	return number;
}

static uint32_t new_own(void)
{
	uint32_t number = 0;

	calls_lock();
	if (codes.next < codes.own)
		number = --codes.own;
	calls_unlock();
	return number;
}

static bool are_used_up(void)
{
	return __atomic_load_n(&codes.next, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&codes.own, __ATOMIC_RELAXED);
}

static bool get_number(PyObject *code, uint32_t *ret)
{
	void *extra = NULL;

	python.get_extra(code, codes.index, &extra);
	*ret = (uint32_t)(uintptr_t)extra;
	return (uintptr_t)extra >> 32 == codes.generation;
}

/* Without a GIL, several threads may call a new function at the same time: the first one gives it its number.
 * Returns that; 0: impossible. */
static uint32_t set_number(PyObject *code, uint32_t number, bool *ret_first)
{
	uint32_t other;

	calls_lock();
	*ret_first = !get_number(code, &other);
	if (!*ret_first)
		number = other;
	else if (python.set_extra(code, codes.index,
	                          (void *)((uintptr_t)codes.generation << 32 | number)) < 0)
		number = 0;
	calls_unlock();
	return number;
}

static __attribute__((noinline, cold)) uint32_t new_number(PyObject *code, PyObject *globals)
{
	PyObject *type, *value, *trace;
	uint32_t number = PRELOAD_CALL_CODES_MAX;
	enum calls_role role;
	bool is_first;

	if (are_used_up())
		return 0;
	python.PyErr_Fetch(&type, &value, &trace);
	if (is_wanted(globals))
		number = is_own(code) ? new_own() : calls_code_new();
	role = calls_role_of(code);
	if (number)
		number = set_number(code, calls_with_role(number, role), &is_first);
	if (number && is_first && (number & PRELOAD_CALL_CODES_MAX) != PRELOAD_CALL_CODES_MAX)
		describe(code, number & PRELOAD_CALL_CODES_MAX, role);
	python.PyErr_Clear();
	python.PyErr_Restore(type, value, trace);
	return number;
}

uint32_t calls_code_search(PyObject *code, PyObject *globals)
{
	uint32_t number;

	return get_number(code, &number) ? number : new_number(code, globals);
}

/* The offset of the list of such numbers in a code object. It is the only member that setting a
 * first number changes: from NULL to a list with this number. Returns 0 if it is unknown. */
static uint32_t find_offset(PyObject *code, void *number)
{
	size_t size = python_size(code), found = 0;
	PyObject *before[128];

	if (size > sizeof(before))
		return 0;
	memcpy(before, (const void *)code, size);
	if (python.set_extra(code, codes.index, number) < 0)
		return 0;
	for (size_t at = python.at.header; at + sizeof(void *) <= size; at += sizeof(void *)) {
		PyObject *list = pointer_at(code, at);

		if (list == before[at / sizeof(void *)])
			continue;
		if (found || before[at / sizeof(void *)] ||
		    (Py_ssize_t)pointer_at(list, 0) <= codes.index ||
		    pointer_at(list, sizeof(void *) * (1 + (size_t)codes.index)) != number)
			return 0;
		found = at;
	}
	return (uint32_t)found;
}

static void look_at_one(void)
{
	PyObject *frame = python.PyEval_GetFrame ? python.PyEval_GetFrame() : NULL;
	PyObject *code = frame ? python.PyObject_GetAttrString(frame, "f_code") : NULL;

	/* This is a number of generation 0, so the code still has to get a valid one. */
	if (code)
		codes.offset = find_offset(code, (void *)8);
	if (code && calls.native)
		find_own(code);
	python.PyErr_Clear();
	if (code)
		python.Py_DecRef(code);
}

/* Code objects have their numbers at the same index in all interpreters, since those of CPython
 * 3.11's own modules are the same objects in all. Each interpreter assigns indices in ascending
 * order. */
bool calls_codes_have_index(void)
{
	Py_ssize_t index;

	do
		index = python.request_extra(NULL);
	while (index >= 0 && index < codes.index);
	return index == codes.index;
}

bool calls_codes_begin(void)
{
	if (codes.generation)
		return true;
	codes.index = python.request_extra(NULL);
	if (codes.index < 0)
		return false;
	look_at_one();
	codes.generation = codes.next = 1;
	codes.own = PRELOAD_CALL_CODES_MAX;
	return true;
}

void calls_codes_in_child(void)
{
	if (!codes.generation)
		return;
	codes.generation++;
	codes.next = 1;
	codes.own = PRELOAD_CALL_CODES_MAX;
}
