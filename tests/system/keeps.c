/* SPDX-License-Identifier: MIT */
/* An extension that keeps the GIL, asleep or busy, and returns for how many ns it did. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static PyObject *keep(PyObject *arg, int busy)
{
	long ms = PyLong_AsLong(arg);
	struct timespec nap = { .tv_nsec = ms * 1000000 };
	long long start = now_ns();

	if (!busy)
		nanosleep(&nap, NULL);
	while (now_ns() - start < ms * 1000000LL)
		continue;
	return PyLong_FromLongLong(now_ns() - start);
}

static PyObject *keeps_sleep(PyObject *self, PyObject *arg)
{
	(void)self;
	return keep(arg, 0);
}

static PyObject *keeps_spin(PyObject *self, PyObject *arg)
{
	(void)self;
	return keep(arg, 1);
}

static PyMethodDef methods[] = {
	{ "sleep", keeps_sleep, METH_O, NULL },
	{ "spin", keeps_spin, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "keeps", NULL, -1, methods };

PyMODINIT_FUNC PyInit_keeps(void);
PyMODINIT_FUNC PyInit_keeps(void)
{
	return PyModule_Create(&module);
}
