/* SPDX-License-Identifier: MIT */
/*
 * What depends on CPython's version, as data. This is the only place, with the rest of this folder,
 * that knows versions. The library inside the program has the same struct, from a file of the session
 * folder (PRELOAD_OFFSETS), and compiles this file itself: it needs only libc.
 */
#ifndef GILTRACER_PYTHON_LAYOUT_H
#define GILTRACER_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An offset that this version does not have, such as FRAME_CURRENT2 if one step is enough. */
#define PYTHON_NO_OFFSET UINT32_MAX

/* Offsets in bytes that lead from a PyThreadState to the names of its Python frames. */
enum python_frame_key {
	FRAME_CURRENT,     /* PyThreadState: its running frame, or the struct that has it at
	                    * FRAME_CURRENT2 */
	FRAME_CURRENT2,    /* 3.11, 3.12: the frame in PyThreadState.cframe */
	FRAME_PREVIOUS,    /* frame: its caller */
	FRAME_CODE,        /* frame: its PyCodeObject */
	FRAME_INSTRUCTION, /* frame: the instruction being executed, of FRAME_INSTRUCTION_SIZE */
	FRAME_INSTRUCTION_SIZE, /* 8: a pointer; 4: an int, f_lasti */
	FRAME_TYPE,             /* object: its type */
	FRAME_LINE,             /* code: co_firstlineno, an int */
	FRAME_NAME,             /* code: co_qualname, or co_name before 3.11, a str */
	FRAME_STATE,            /* str: PyASCIIObject.state */
	FRAME_TEXT,             /* str: the characters of a compact ASCII string */
	FRAME_KEYS,
};

/* Offsets in bytes that lead from the interpreter's root symbol to its threads, its GIL and the
 * contents of code objects. */
enum python_memory_key {
	MEMORY_INTERPRETERS,     /* root: the first PyInterpreterState */
	MEMORY_NEXT_INTERPRETER, /* PyInterpreterState: the next one */
	MEMORY_INTERPRETER_ID,   /* PyInterpreterState: its number; from 3.12 on */
	MEMORY_THREADS,          /* PyInterpreterState: its first PyThreadState */
	MEMORY_NEXT_THREAD,      /* PyThreadState: the next one */
	MEMORY_THREAD_ID,        /* PyThreadState: the pthread_t */
	MEMORY_NATIVE_ID,        /* PyThreadState: the tid; from 3.11 on */
	MEMORY_GIL,              /* shared: root: the GIL; otherwise PyInterpreterState: its
	                          * address */
	MEMORY_HOLDER,           /* GIL: PyThreadState of the last holder */
	MEMORY_LOCKED,           /* GIL: an int, 1 while it is held */
	MEMORY_GIL_SIZE,         /* GIL: its size */
	MEMORY_FILE,             /* code: co_filename, a str */
	MEMORY_TABLE,            /* code: co_linetable, or co_lnotab before 3.10, bytes */
	MEMORY_INSTRUCTIONS,     /* code: the first one; 0 before 3.11, which counts them */
	MEMORY_SIZE,             /* bytes: their number */
	MEMORY_BYTES,            /* bytes: the first one */
	MEMORY_LENGTH,           /* str: its length in characters */
	MEMORY_WIDE_TEXT,        /* str: the characters of a compact string that is not ASCII */
	MEMORY_MODULES,          /* PyInterpreterState: sys.modules, a dict */
	MEMORY_CACHED_KEYS,      /* PyHeapTypeObject: ht_cached_keys */
	MEMORY_DEBUGGER,         /* root: _Py_DebugOffsets.debugger_support; from 3.14 on */
	MEMORY_DEFINED,          /* from here on, only the interpreter's own table has it */
	MEMORY_INTERPRETER = MEMORY_DEFINED, /* PyThreadState: its PyInterpreterState */
	MEMORY_REQUESTS_GIL, /* PyThreadState: an int, 1 while it waits for the GIL; 3.15 on */
	MEMORY_GIL_ON,       /* GIL: an int, 0 while it is off; free-threaded builds */
	MEMORY_KEYS,
};

/* Offsets in bytes for recording calls before 3.12. */
enum python_call_key {
	CALL_GLOBALS,   /* frame: f_globals */
	CALL_STACK_TOP, /* PyFrameObject: f_stacktop, not NULL while it is suspended; before 3.10 */
	CALL_STATE,     /* PyFrameObject: f_state, -1 while it is suspended; 3.10 */
	CALL_EVALUATOR, /* PyInterpreterState: eval_frame; from 3.9 on, functions get and set it */
	CALL_OWNER,     /* frame: owner, 1: a generator; 3.11 */
	CALL_GENERATOR, /* how far gi_frame_state precedes the frame that a generator owns; 3.11 */
	CALL_LOCALS,    /* frame: localsplus; 3.11. Before, PyFrameObject ends with it */
	CALL_FLAGS,     /* code: co_flags; 3.11 */
	CALL_TRACEABLE, /* code: _co_firsttraceable; 3.11 */
	CALL_KEYS,
};

/* struct _gil_runtime_state, from 3.7 on. In a free-threaded build, a member precedes these. */
#define PYTHON_GIL_HOLDER       0x08
#define PYTHON_GIL_LOCKED       0x10
#define PYTHON_GIL_COND         0x20
#define PYTHON_GIL_MUTEX        0x50
#define PYTHON_GIL_SWITCH_COND  0x78
#define PYTHON_GIL_SWITCH_MUTEX 0xa8
#define PYTHON_GIL_SIZE         0xd0
#define PYTHON_GIL_AFTER_ON     8

/* Objects of _thread with a GIL, from 3.14 on: the PyMutex of a lock, and in an RLock the pthread_t
 * of the thread that has it; 0: none. PyTypeObject.tp_name, of all versions. */
#define PYTHON_LOCK_MUTEX  16
#define PYTHON_RLOCK_OWNER 24
#define PYTHON_RLOCK_NAME  "_thread.RLock"
#define PYTHON_TYPE_NAME   24

/**
 * @major, @minor: the version; @free_threaded: of its build without a GIL
 * @header: sizeof(PyObject)
 * @frame, @memory, @call: offsets, from probes/ or from the interpreter's own table
 * Behaviour:
 * @unit: bytes per unit in which a frame counts its instructions, if it does not point to one
 * @is_supported: calls can be recorded
 * @has_monitoring: it has sys.monitoring, which tells starts from resumptions
 * @has_evaluator: a function that evaluates frames (PEP 523) costs little
 * @has_qualname: code objects have co_qualname
 * @has_task_names: asyncio's tasks have names
 * @has_c_current_task: _asyncio has current_task; before, a dict _current_tasks
 * @has_eager_tasks: a task may run while it is made
 * @makes_task_inside: asyncio.ensure_future makes a task in _ensure_future
 * @knows_holder: the GIL has its holder at PYTHON_GIL_HOLDER
 * @holder_is_current: the state that a thread has by PyGILState need not be compared with it
 * @asks_rarely: the interpreter checks for a release request at calls and backward jumps only, not
 * between any two instructions
 * @states_know_thread: the first state of a subinterpreter has the ident and tid of the thread that
 * runs it, and not of the thread that made it
 */
struct python_layout {
	uint32_t major, minor;
	uint32_t free_threaded;
	uint32_t header;
	uint32_t frame[FRAME_KEYS];
	uint32_t memory[MEMORY_KEYS];
	uint32_t call[CALL_KEYS];
	struct {
		uint32_t name, size, vectorcall, hash, base; /* tp_… */
	} type;
	struct {
		uint32_t definition, self, module, vectorcall; /* PyCFunctionObject */
	} function;
	uint32_t method_definition; /* PyMethodDescrObject.d_method */
	uint32_t object_type;       /* PyObject.ob_type */
	uint32_t frame_inside;      /* PyFrameObject.f_frame; before 3.11, it is the frame */
	uint32_t unit;
	bool is_supported, has_monitoring, has_evaluator, has_qualname;
	bool has_task_names, has_c_current_task, has_eager_tasks, makes_task_inside;
	bool knows_holder, holder_is_current, asks_rarely, states_know_thread;
};

/* Whether CPython 3.minor has sys.monitoring. */
bool python_has_monitoring(unsigned minor);

/* Everything that follows from the version alone; the offsets of frame, memory and call are
 * PYTHON_NO_OFFSET. */
void python_layout_init(struct python_layout *ret, unsigned major, unsigned minor,
                        bool free_threaded);

/* From this version on, the interpreter publishes offsets at the symbol _PyRuntime. */
#define PYTHON_TABLE_FIRST 13

/* As many bytes of that table as are used. */
#define PYTHON_TABLE_SIZE 1024

/*
 * Takes frame and memory from the table (_Py_DebugOffsets), whose contents are untrusted. Where the
 * table has no such offset, the layout's own one remains, if it has one. Returns false, and changes
 * nothing, if it is not the table of this version and build, or if an offset is outside of its
 * struct.
 */
bool python_layout_from_table(struct python_layout *layout, const void *table, size_t size);

/* Completes a layout that has frames only: where code objects and strings have their other members. */
void python_layout_of_frames(struct python_layout *layout);

static inline bool python_layout_is_of(const struct python_layout *layout,
                                       const struct python_layout *other)
{
	return layout->major == other->major && layout->minor == other->minor &&
	       layout->free_threaded == other->free_threaded;
}

#endif
