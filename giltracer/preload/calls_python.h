/* SPDX-License-Identifier: MIT */
/* The functions of CPython that the recorder of calls uses, by their names. */
#ifndef GILTRACER_PRELOAD_CALLS_PYTHON_H
#define GILTRACER_PRELOAD_CALLS_PYTHON_H

#include "preload/calls.h"
#include "python/layout.h"

/* Calling conventions of functions in C, from methodobject.h. */
#define METH_VARARGS  0x01
#define METH_NOARGS   0x04
#define METH_O        0x08
#define METH_FASTCALL 0x80

struct method {
	const char *name;
	void *function;
	int flags;
	const char *doc;
};

typedef int profile_function(PyObject *, PyObject *frame, int what, PyObject *arg);

/* Evaluators of frames: before 3.9, and from 3.9 on. */
typedef PyObject *evaluate_frame(PyObject *frame, int throws);
typedef PyObject *evaluate_in_thread(void *thread, PyObject *frame, int throws);

/* X(required, return type, name, parameters). Functions that are not required exist in the versions
 * in which they are used. */
#define PYTHON_FUNCTIONS(X)                                                                      \
	X(true, const char *, Py_GetVersion, (void))                                             \
	X(true, void, Py_IncRef, (PyObject *))                                                   \
	X(true, void, Py_DecRef, (PyObject *))                                                   \
	X(true, void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))                      \
	X(true, void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))                       \
	X(true, void, PyErr_Clear, (void))                                                       \
	X(true, void, PyErr_SetObject, (PyObject *, PyObject *))                                 \
	X(true, PyObject *, PyObject_GetAttrString, (PyObject *, const char *))                  \
	X(true, int, PyObject_SetAttrString, (PyObject *, const char *, PyObject *))             \
	X(true, PyObject *, PyObject_CallMethod, (PyObject *, const char *, const char *, ...))  \
	X(true, PyObject *, PyUnicode_FromString, (const char *))                                \
	X(true, PyObject *, PyUnicode_AsEncodedString, (PyObject *, const char *, const char *)) \
	X(true, int, PyBytes_AsStringAndSize, (PyObject *, char **, Py_ssize_t *))               \
	X(true, long, PyLong_AsLong, (PyObject *))                                               \
	X(true, PyObject *, PyTuple_Pack, (Py_ssize_t, ...))                                     \
	X(true, PyObject *, PyTuple_GetItem, (PyObject *, Py_ssize_t))                           \
	X(true, PyObject *, PyCFunction_NewEx, (struct method *, PyObject *, PyObject *))        \
	X(true, PyObject *, PyCapsule_New, (void *, const char *, void (*)(PyObject *)))         \
	X(true, void *, PyCapsule_GetPointer, (PyObject *, const char *))                        \
	X(true, PyObject *, PyObject_CallObject, (PyObject *, PyObject *))                       \
	X(true, PyObject *, PyEval_GetGlobals, (void))                                           \
	X(true, PyObject *, PyDict_GetItemString, (PyObject *, const char *))                    \
	X(true, PyObject *, PyDict_GetItem, (PyObject *, PyObject *))                            \
	X(true, PyObject *, PySys_GetObject, (const char *))                                     \
	X(true, void *, PyEval_SaveThread, (void))                                               \
	X(true, void, PyEval_RestoreThread, (void *))                                            \
	X(true, void *, PyThreadState_Swap, (void *))                                            \
	X(false, void *, PyThreadState_Next, (void *))                                           \
	X(false, void *, PyInterpreterState_ThreadHead, (void *))                                \
	X(false, void *, PyInterpreterState_Head, (void))                                        \
	X(false, void *, PyInterpreterState_Next, (void *))                                      \
	X(false, void *, PyGILState_GetThisThreadState, (void))                                  \
	X(false, void *, _PyThreadState_UncheckedGet, (void))                                    \
	X(false, void *, PyThreadState_GetUnchecked, (void))                                     \
	X(false, int64_t, PyInterpreterState_GetID, (void *))                                    \
	X(false, int, PySys_AddAuditHook, (int (*)(const char *, PyObject *, void *), void *))   \
	X(true, void, PyEval_SetProfile, (profile_function *, PyObject *))                       \
	X(true, PyObject *, PyEval_GetFrame, (void))                                             \
	X(false, void *, PyInterpreterState_Get, (void))                                         \
	X(false, void *, _PyInterpreterState_Get, (void))                                        \
	X(false, PyObject *, _PyEval_EvalFrameDefault, (PyObject *, int))                        \
	X(false, evaluate_in_thread *, _PyInterpreterState_GetEvalFrameFunc, (void *))           \
	X(false, void, _PyInterpreterState_SetEvalFrameFunc, (void *, evaluate_in_thread *))     \
	X(true, double, PyFloat_AsDouble, (PyObject *))                                          \
	X(false, int, PyCode_Addr2Line, (PyObject *, int))                                       \
	X(false, PyObject *, PyDict_New, (void))                                                 \
	X(false, PyObject *, PyRun_String, (const char *, int, PyObject *, PyObject *))          \
	X(false, PyObject *, PyList_GetItem, (PyObject *, Py_ssize_t))                           \
	X(false, int, PyFrame_GetLineNumber, (PyObject *))                                       \
	X(false, PyObject *, PyFrame_GetVarString, (PyObject *, const char *))

/* @at: the layout of this version. The functions for the extra data of code objects have other names
 * from 3.12 on. */
struct python_api {
	struct python_layout at;
#define MEMBER(required, type, name, parameters) type(*name) parameters;
	PYTHON_FUNCTIONS(MEMBER)
#undef MEMBER
	Py_ssize_t (*request_extra)(void (*free_extra)(void *));
	int (*get_extra)(PyObject *, Py_ssize_t, void **);
	int (*set_extra)(PyObject *, Py_ssize_t, void *);
	PyObject *none, *object;         /* None, and the base class object */
	PyObject *builtin, *method;      /* types: PyCFunction, PyCMethod */
	PyObject *descriptor;            /* type of methods in C that are not bound */
	PyObject *module, *code, *frame; /* types */
	PyObject **import_error;
};

extern struct python_api python;

/* Returns false if this is not a CPython that can be recorded. Of its layout, only what follows from
 * the version is known then. */
bool python_find(void);

/* The rest of the layout, once the process has a folder. */
void python_find_layout(void);

/* The current PyThreadState; NULL: there is none. */
void *python_thread(void);

/* The current PyInterpreterState; before 3.8 the main one. */
void *python_interpreter(void);

#endif
