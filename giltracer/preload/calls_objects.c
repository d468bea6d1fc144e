/* SPDX-License-Identifier: MIT */
/* Reads objects of the program: their types, their attributes, and the variables of functions. */
#include "preload/calls_tasks.h"

#include <limits.h>
#include <string.h>

/* PyTypeObject.tp_name. */
const char *calls_type_name(PyObject *object)
{
	return (const char *)pointer_at(pointer_at(object, 8), 24);
}

bool calls_is_type(PyObject *object, const char *name)
{
	const char *full = calls_type_name(object), *dot = strrchr(full, '.');

	return !strcmp(dot ? dot + 1 : full, name);
}

PyObject *calls_attribute(PyObject *object, const char *name)
{
	PyObject *value = python.PyObject_GetAttrString(object, name);

	if (!value)
		python.PyErr_Clear();
	return value;
}

PyObject *calls_frame(PyObject *at)
{
	if (python.minor < PYTHON_MONITORING)
		return at;
	return python.PyEval_GetFrame ? python.PyEval_GetFrame() : NULL;
}

/* PyFrameObject ends with f_localsplus[1]; 3.11: f_frame->localsplus. */
static PyObject *read_variable(PyObject *frame, unsigned index)
{
	size_t size;

	if (python.minor == 11)
		return pointer_at(pointer_at(frame, 24), 72 + index * sizeof(void *));
	size = (size_t)pointer_at(pointer_at(frame, 8), 32);
	return pointer_at(frame, size - sizeof(void *) + index * sizeof(void *));
}

PyObject *calls_variable(PyObject *frame, const char *name, unsigned index)
{
	PyObject *value;

	if (python.minor < PYTHON_MONITORING) {
		value = index == UINT_MAX ? NULL : read_variable(frame, index);
		if (value)
			python.Py_IncRef(value);
		return value;
	}
	value = python.PyFrame_GetVarString ? python.PyFrame_GetVarString(frame, name) : NULL;
	if (!value)
		python.PyErr_Clear();
	return value;
}

unsigned calls_variable_index(PyObject *code, const char *name)
{
	PyObject *names = calls_attribute(code, "co_varnames"), *item;
	char text[CALLS_TEXT_MAX];
	unsigned found = UINT_MAX;

	if (!names)
		return found;
	for (unsigned i = 0; (item = python.PyTuple_GetItem(names, (Py_ssize_t)i)); i++) {
		size_t len = calls_put_text(text, item);

		if (len == strlen(name) && !memcmp(text, name, len)) {
			found = i;
			break;
		}
	}
	python.PyErr_Clear();
	python.Py_DecRef(names);
	return found;
}

bool calls_ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}
