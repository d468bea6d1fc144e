/* SPDX-License-Identifier: MIT */
/* An extension whose calls keep the GIL or, with free, release it: work(ms, free) uses that much
 * CPU time, nap(ms, free) sleeps for that long. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

static void spend(long ms)
{
	struct timespec ts;
	long long end = 0;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		if (!end)
			end = ts.tv_sec * 1000000000LL + ts.tv_nsec + ms * 1000000LL;
	} while (ts.tv_sec * 1000000000LL + ts.tv_nsec < end);
}

static void sleep_for(long ms)
{
	struct timespec nap = { .tv_nsec = ms * 1000000 };

	nanosleep(&nap, NULL);
}

static PyObject *call(PyObject *args, void (*function)(long))
{
	long ms;
	int let_go;

	if (!PyArg_ParseTuple(args, "lp", &ms, &let_go))
		return NULL;
	if (let_go) {
		Py_BEGIN_ALLOW_THREADS;
		function(ms);
		Py_END_ALLOW_THREADS;
	} else {
		function(ms);
	}
	Py_RETURN_NONE;
}

static PyObject *switchable_work(PyObject *self, PyObject *args)
{
	(void)self;
	return call(args, spend);
}

static PyObject *switchable_nap(PyObject *self, PyObject *args)
{
	(void)self;
	return call(args, sleep_for);
}

static PyMethodDef methods[] = {
	{ "work", switchable_work, METH_VARARGS, NULL },
	{ "nap", switchable_nap, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "switchable", NULL, -1, methods };

PyMODINIT_FUNC PyInit_switchable(void);
PyMODINIT_FUNC PyInit_switchable(void)
{
	return PyModule_Create(&module);
}
