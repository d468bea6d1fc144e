/* SPDX-License-Identifier: MIT */
/* Finds CPython's functions by their names. */
#include "preload/calls_python.h"

#include <dlfcn.h>
#include <stdlib.h>

struct python_api python;

static void *symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static void *either(const char *name, const char *before)
{
	void *found = symbol(name);

	return found ? found : symbol(before);
}

static bool find_functions(void)
{
#define FIND(required, type, name, parameters)  \
	*(void **)&python.name = symbol(#name); \
	if ((required) && !python.name)         \
		return false;
	PYTHON_FUNCTIONS(FIND)
#undef FIND
	*(void **)&python.request_extra = either("PyUnstable_Eval_RequestCodeExtraIndex",
	                                         "_PyEval_RequestCodeExtraIndex");
	*(void **)&python.get_extra = either("PyUnstable_Code_GetExtra", "_PyCode_GetExtra");
	*(void **)&python.set_extra = either("PyUnstable_Code_SetExtra", "_PyCode_SetExtra");
	python.none = symbol("_Py_NoneStruct");
	python.object = symbol("PyBaseObject_Type");
	python.builtin = symbol("PyCFunction_Type");
	python.method = symbol("PyCMethod_Type");
	python.descriptor = symbol("PyMethodDescr_Type");
	python.module = symbol("PyModule_Type");
	python.code = symbol("PyCode_Type");
	python.frame = symbol("PyFrame_Type");
	python.import_error = symbol("PyExc_ImportError");
	return python.request_extra && python.get_extra && python.set_extra && python.none &&
	       python.import_error;
}

bool python_find(void)
{
	char *end;

	if (python.at.major)
		return true;
	if (!find_functions() || strtoul(python.Py_GetVersion(), &end, 10) != 3 || *end != '.')
		return false;
	python_layout_init(&python.at, 3, (unsigned)strtoul(end + 1, NULL, 10),
	                   symbol("_Py_MergeZeroLocalRefcount"));
	return python.at.is_supported &&
	       (python.PyThreadState_GetUnchecked || python._PyThreadState_UncheckedGet);
}

void python_find_layout(void)
{
	frames_layout(&python.at, symbol("_PyRuntime"));
}

void *python_thread(void)
{
	return python.PyThreadState_GetUnchecked ? python.PyThreadState_GetUnchecked()
	                                         : python._PyThreadState_UncheckedGet();
}

/* Before 3.8, this returns the main interpreter, which is the last one in the list. */
void *python_interpreter(void)
{
	void *interpreter, *next;

	if (python.PyInterpreterState_Get)
		return python.PyInterpreterState_Get();
	if (python._PyInterpreterState_Get)
		return python._PyInterpreterState_Get();
	interpreter = python.PyInterpreterState_Head();
	while ((next = python.PyInterpreterState_Next(interpreter)))
		interpreter = next;
	return interpreter;
}
