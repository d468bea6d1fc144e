/* SPDX-License-Identifier: MIT */
/* Prints, from the headers of a free-threaded interpreter, what giltracer/preload has about its layout.
 * Compiled by nogil.t. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_interp.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_runtime.h"

#define PUBLISHED(member)        printf(" %zu,", offsetof(_Py_DebugOffsets, member) / sizeof(uint64_t))
#define PART(type, member, size) printf("{ 0x%zx, 0x%zx,\n", offsetof(type, member), (size_t)(size))
#define INTERP(member)           PART(PyInterpreterState, member, 1)
#define RUNTIME(member)          PART(_PyRuntimeState, member, 1)

#define AFTER_EVENT(member)                                  \
	((int)offsetof(struct _stoptheworld_state, member) - \
	 (int)offsetof(struct _stoptheworld_state, stop_event))

int main(void)
{
	printf("{");
	PUBLISHED(runtime_state.size);
	PUBLISHED(interpreter_state.size);
	PUBLISHED(interpreter_state.gc);
	PUBLISHED(interpreter_state.threads_head);
	PUBLISHED(thread_state.next);
	PUBLISHED(thread_state.interp);
	PUBLISHED(thread_state.current_frame);
	PUBLISHED(thread_state.native_thread_id);
	PUBLISHED(thread_state.status);
	PUBLISHED(interpreter_frame.previous);
	PUBLISHED(interpreter_frame.executable);
	PUBLISHED(interpreter_frame.localsplus);
	PUBLISHED(code_object.localsplusnames);
	PUBLISHED(pyobject.ob_type);
	PUBLISHED(type_object.tp_name);
	PUBLISHED(tuple_object.ob_item);
	PUBLISHED(tuple_object.ob_size);
	PUBLISHED(dict_object.ma_keys);
	printf(" %zu }\n", offsetof(_Py_DebugOffsets, gc.collecting) / sizeof(uint64_t));
	printf(".interp_size = 0x%zx,\n", sizeof(PyInterpreterState));
	printf(".runtime_size = 0x%zx,\n", sizeof(_PyRuntimeState));
	INTERP(ceval.pending.mutex);
	INTERP(imports.lock.mutex);
	INTERP(codecs.search_path_mutex);
	INTERP(warnings.mutex);
	INTERP(stoptheworld.mutex);
	INTERP(qsbr.mutex);
	PART(PyInterpreterState, brc, sizeof(struct _brc_state));
	PART(PyInterpreterState, weakref_locks, NUM_WEAKREF_LIST_LOCKS);
	INTERP(func_state.mutex);
	INTERP(code_state.mutex);
	INTERP(exc_state.memerrors_lock);
	INTERP(mem_free_queue.mutex);
	INTERP(types.mutex);
	RUNTIME(interpreters.mutex);
	RUNTIME(allocators.mutex);
	RUNTIME(imports.extensions.mutex);
	RUNTIME(ceval.pending_mainthread.mutex);
	RUNTIME(ceval.sys_trace_profile_mutex);
	RUNTIME(stoptheworld.mutex);
	printf("#define MUTEX_IN_OBJECT %zu\n", offsetof(PyObject, ob_mutex));
	printf("#define MODULE_GIL %zu\n", offsetof(PyModuleObject, md_gil) - sizeof(PyObject));
	printf("#define AFTER_STATUS %zu\n",
	       offsetof(PyThreadState, state) - offsetof(PyThreadState, _status));
	printf("#define STOP_MUTEX     (%d)\n", AFTER_EVENT(mutex));
	printf("#define STOP_REQUESTED (%d)\n", AFTER_EVENT(requested));
	printf("#define STOP_REQUESTER %d\n", AFTER_EVENT(requester));
	return 0;
}
