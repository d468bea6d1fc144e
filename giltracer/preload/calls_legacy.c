/* SPDX-License-Identifier: MIT */
/*
 * Records calls by the function that evaluates a frame (PEP 523), in CPython 3.6 to 3.11: CPython
 * calls ours in place of its own, and ours calls that one. The program's own profile and trace
 * functions continue to work.
 *
 * CPython 3.11 calls no function in C for a frame unless there is such a function. That costs a few
 * nanoseconds a call, while a profile function makes each instruction slower, as it turns off the
 * specialised ones. But it uses C's stack, of which a program may not have enough.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "preload/calls_record.h"
#include "preload/count.h"
#include "preload/nogil.h"

/* Why profile functions cannot be used; NULL: they can. */
static const char *why_no_profile(void);

/**
 * @known: frames have the layout that this file expects, and the evaluator gets all of them
 * @left: of some interpreter, profile functions record the calls instead
 * @main: the main interpreter, in which that was checked
 * @next: the evaluator that ours calls, before 3.9
 * @next_in_thread: the same from 3.9 on, in the main interpreter
 * @plain_in_thread: in the other ones, CPython's own function
 */
static struct {
	bool known, left;
	char *main;
	evaluate_frame *next;
	evaluate_in_thread *next_in_thread, *plain_in_thread;
} eval;

/* ---- a frame */

/* A frame of CPython 3.11: not an object, and in C's stack only while an evaluator is set. */
static inline bool is_bare(void)
{
	return python.at.call[CALL_OWNER] != PYTHON_NO_OFFSET;
}

#define OWNED_BY_GENERATOR 1
#define CODE_MAKES         0x2a0 /* co_flags: a generator, a coroutine, an asynchronous generator */

static inline uint32_t u32_at(const void *p, size_t offset)
{
	return *(const uint32_t *)(const void *)((const char *)p + offset);
}

/* Whether an instruction of the function itself has run. In 3.11, others precede these, with which a
 * generator is made. */
static inline bool has_begun(const PyObject *frame)
{
	const PyObject *code;

	if (!is_bare())
		return (int32_t)u32_at(frame, python.at.frame[FRAME_INSTRUCTION]) >= 0;
	code = pointer_at(frame, python.at.frame[FRAME_CODE]);
	return (const char *)pointer_at(frame, python.at.frame[FRAME_INSTRUCTION]) >=
	       (const char *)code + python.at.memory[MEMORY_INSTRUCTIONS] +
	               2 * u32_at(code, python.at.call[CALL_TRACEABLE]);
}

/* Whether the frame only makes a generator, which runs in another frame later: that is not a call. Before
 * 3.11, there is no such frame. */
static inline bool only_makes(const PyObject *code, const PyObject *frame)
{
	return is_bare() && UNLIKELY(u32_at(code, python.at.call[CALL_FLAGS]) & CODE_MAKES) &&
	       ((const char *)frame)[python.at.call[CALL_OWNER]] != OWNED_BY_GENERATOR;
}

/**
 * A call that has begun.
 * @number: of its code; PRELOAD_CALL_CODES_MAX: it is not recorded
 * @generation: of that number: a forked child assigns other numbers
 * @after: address after the record of its beginning
 */
struct begun {
	uint32_t number, generation;
	const uint64_t *after;
};

static inline void put(struct calls_self *me, enum preload_call_type type, uint32_t number)
{
	if (LIKELY(calls_put_at_once(me, type, number)))
		return;
	calls_greenlet_watch();
	calls_put(me, type, number);
}

/* ---- the stack of 3.11 */

/* A program of 3.11 may call functions deeper than C's stack permits with an evaluator, and so much of it is
 * left for other code. */
#define STACK_LEFT ((size_t)512 << 10)

static __attribute__((noinline, cold)) bool find_depth(struct calls_self *me, uintptr_t here)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	if (me->shallow || pthread_getattr_np(pthread_self(), &attr))
		return true;
	if (pthread_attr_getstack(&attr, &low, &size) == 0 && size > STACK_LEFT) {
		size_t left = size / 2 > STACK_LEFT ? size / 2 : STACK_LEFT;

		me->deep = (uintptr_t)low + left;
		me->shallow = size - left;
	}
	pthread_attr_destroy(&attr);
	return here - me->deep >= me->shallow;
}

/* Whether more than half of the thread's stack is used, or another stack is. */
static inline bool is_deep(struct calls_self *me)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return UNLIKELY(here - me->deep >= me->shallow) && find_depth(me, here);
}

/* From here on, the profile functions record the interpreter's calls, and the ends of those that have
 * begun. */
static __attribute__((noinline, cold)) void leave_to_profile(void)
{
	PyObject *type, *value, *trace;

	python.PyErr_Fetch(&type, &value, &trace);
	eval.left = true;
	calls_eval_stop();
	calls_profile_start();
	python.PyErr_Restore(type, value, trace);
}

static inline struct begun begin(PyObject *frame, int throws)
{
	struct calls_self *me = &calls_self;
	PyObject *code = pointer_at(frame, python.at.frame[FRAME_CODE]);
	enum preload_call_type type = PRELOAD_CALL_START;
	uint32_t number;

	if (UNLIKELY(calls_are_over())) {
		calls_stop();
		return (struct begun){ .number = PRELOAD_CALL_CODES_MAX };
	}
	if (only_makes(code, frame))
		return (struct begun){ .number = PRELOAD_CALL_CODES_MAX };
	if (is_bare() && UNLIKELY(is_deep(me))) {
		leave_to_profile();
		return (struct begun){ .number = PRELOAD_CALL_CODES_MAX };
	}
	if (UNLIKELY(!calls_has_number(code, &number))) {
		calls_greenlet_watch();
		number = calls_code_search(code, pointer_at(frame, python.at.call[CALL_GLOBALS]));
	}
	if (UNLIKELY(number == PRELOAD_CALL_CODES_MAX))
		return (struct begun){ .number = number };
	if (UNLIKELY(has_begun(frame)))
		type = throws ? PRELOAD_CALL_THROW : PRELOAD_CALL_RESUME;
	if (UNLIKELY(number > PRELOAD_CALL_CODES_MAX)) {
		calls_record_role(NULL, type, number, frame, NULL);
		return (struct begun){ .number = number, .generation = codes.generation };
	}
	put(me, type, number);
	return (struct begun){ number, codes.generation, me->at };
}

/* Remove the record of a call that failed because the limit of recursion was reached: no
 * instruction of the frame has run, and a profile function is not told of such a call, either. If
 * records follow, the frame raised for another reason. */
static bool take_back(struct calls_self *me, const PyObject *frame, const struct begun *b)
{
	const uint32_t record = PRELOAD_CALL_WORD(PRELOAD_CALL_START, b->number, 0ull);
	const uint32_t mask = (1u << (PRELOAD_CALL_TYPE_BITS + PRELOAD_CALL_CODE_BITS)) - 1;

	if (has_begun(frame) || !me->at || me->at != b->after ||
	    ((uint32_t)me->at[-1] & mask) != record)
		return false;
	__atomic_store_n(--me->at, PRELOAD_CALL_END, __ATOMIC_RELEASE);
	return true;
}

static __attribute__((noinline)) void end_role(PyObject *frame, PyObject *result,
                                               const struct begun *b)
{
	calls_record_role(NULL,
	                  !result                      ? PRELOAD_CALL_UNWIND
	                  : python_is_suspended(frame) ? PRELOAD_CALL_YIELD
	                                               : PRELOAD_CALL_RETURN,
	                  b->number, frame, result);
}

static inline void end(PyObject *frame, PyObject *result, int throws, struct begun b)
{
	struct calls_self *me = &calls_self;

	if (UNLIKELY(b.number == PRELOAD_CALL_CODES_MAX || b.generation != codes.generation ||
	             !calls.on || (eval.left && !calls_eval_is_on())))
		return;
	if (UNLIKELY(b.number > PRELOAD_CALL_CODES_MAX)) {
		end_role(frame, result, &b);
		return;
	}
	if (UNLIKELY(!result)) {
		if (throws || !take_back(me, frame, &b))
			put(me, PRELOAD_CALL_UNWIND, b.number);
		return;
	}
	put(me, python_is_suspended(frame) ? PRELOAD_CALL_YIELD : PRELOAD_CALL_RETURN, b.number);
}

static PyObject *on_frame(PyObject *frame, int throws)
{
	const struct begun b = begin(frame, throws);
	PyObject *result = eval.next(frame, throws);

	end(frame, result, throws, b);
	return result;
}

static PyObject *on_frame_in_thread(void *thread, PyObject *frame, int throws)
{
	const struct begun b = begin(frame, throws);
	PyObject *result = eval.next_in_thread(thread, frame, throws);

	end(frame, result, throws, b);
	return result;
}

static PyObject *on_frame_elsewhere(void *thread, PyObject *frame, int throws)
{
	const struct begun b = begin(frame, throws);
	PyObject *result = eval.plain_in_thread(thread, frame, throws);

	end(frame, result, throws, b);
	return result;
}

/* ---- on and off */

/* Whether the layout has what this needs. */
static bool knows_frames(void)
{
	static const enum python_call_key bare[] = { CALL_GENERATOR, CALL_FLAGS, CALL_TRACEABLE };
	const uint32_t *at = python.at.call;
	bool knows = at[CALL_STATE] != PYTHON_NO_OFFSET || at[CALL_STACK_TOP] != PYTHON_NO_OFFSET ||
	             is_bare();

	for (unsigned i = 0; is_bare() && i < sizeof(bare) / sizeof(*bare); i++)
		knows = knows && at[bare[i]] != PYTHON_NO_OFFSET;
	return knows && python.at.frame[FRAME_CODE] != PYTHON_NO_OFFSET &&
	       at[CALL_GLOBALS] != PYTHON_NO_OFFSET;
}

/* Whether the running frame has the layout that this file expects. */
static bool is_frame_known(void)
{
	PyObject *object = python.PyEval_GetFrame(), *code, *frame;
	bool same;

	code = object ? python.PyObject_GetAttrString(object, "f_code") : NULL;
	frame = object ? python_frame(object) : NULL;
	same = code && code == pointer_at(frame, python.at.frame[FRAME_CODE]) &&
	       python.PyEval_GetGlobals() == pointer_at(frame, python.at.call[CALL_GLOBALS]) &&
	       has_begun(frame) && !python_is_suspended(frame);
	calls_drop(code);
	return same;
}

/*
 * ---- Up to 3.11.3, CPython calls __getitem__ without the evaluator once a subscript has been used
 * some times (BINARY_SUBSCR_GETITEM). That instruction keeps 16 bits of the number of the function's
 * version, and is not used if these are not enough. So the next number is made a larger one, and
 * functions that have a smaller one lose it, as they do if the program changes them: CPython assigns
 * another when it needs one.
 */
#define VERSIONS_SMALL 0x10000
#define SUBSCRIPTS     64

/* The thread in which frames are counted: others may run meanwhile. */
static void *counted_thread;
static unsigned counted;

static PyObject *count_frame(void *thread, PyObject *frame, int throws)
{
	counted += thread == counted_thread;
	return eval.next_in_thread(thread, frame, throws);
}

/* The names that the program has defined; NULL: it failed. */
static PyObject *run(const char *program)
{
	PyObject *globals = python.PyDict_New();

	if (!globals)
		python.PyErr_Clear();
	else if (calls_drop(python.PyRun_String(program, FILE_INPUT, globals, globals)))
		return globals;
	else
		python.Py_DecRef(globals);
	return NULL;
}

static bool gets_subscripts(void)
{
	PyObject *globals;

	counted = 0;
	counted_thread = python_thread();
	eval.next_in_thread = python._PyInterpreterState_GetEvalFrameFunc(eval.main);
	python._PyInterpreterState_SetEvalFrameFunc(eval.main, count_frame);
	globals = run("class A:\n"
	              "    def __getitem__(self, i):\n"
	              "        return i\n"
	              "a = A()\n"
	              "for i in range(64):\n"
	              "    a[i]\n");
	python._PyInterpreterState_SetEvalFrameFunc(eval.main, eval.next_in_thread);
	if (globals)
		python.Py_DecRef(globals);
	return globals && counted >= SUBSCRIPTS;
}

/* The last member of the object, before its padding. */
static uint32_t *version_of(PyObject *function)
{
	return (uint32_t *)(void *)((char *)function + python_size(function) - 8);
}

/* The number of a function that has just got one; 0: unknown. */
static uint32_t newest_version(void)
{
	PyObject *globals = run("def f():\n"
	                        "    pass\n"
	                        "for i in range(64):\n"
	                        "    f()\n");
	PyObject *function = globals ? python.PyDict_GetItemString(globals, "f") : NULL;
	uint32_t version = function ? *version_of(function) : 0;

	if (globals)
		python.Py_DecRef(globals);
	return version;
}

/* Words of the interpreter's data that may be the next number. */
struct words {
	uint32_t *at[1024];
	size_t n;
};

struct data {
	uint32_t *from, *to;
};

static int find_data(struct dl_phdr_info *info, size_t size, void *result)
{
	const uintptr_t code = (uintptr_t)python._PyEval_EvalFrameDefault;
	struct data *data = result;
	bool has_code = false;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		const uintptr_t from = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		has_code |= code >= from && code - from < part->p_memsz;
		if (!(part->p_flags & PF_W))
			continue;
		data->from = (uint32_t *)((from + 3) & ~(uintptr_t)3);
		data->to = data->from + (part->p_filesz - 3) / sizeof(uint32_t);
	}
	return has_code;
}

#define ROUNDS 4

/* The only word that was the next number several times. */
static uint32_t *next_version(void)
{
	struct data data = { 0 };
	struct words words = { .n = 0 };

	if (!dl_iterate_phdr(find_data, &data) || !data.from)
		return NULL;
	for (unsigned round = 0; round < ROUNDS; round++) {
		const uint32_t next = newest_version() + 1;
		size_t n = 0;

		if (next == 1)
			return NULL;
		for (uint32_t *p = data.from; !round && p < data.to; p++) {
			if (*p == next && words.n == sizeof(words.at) / sizeof(*words.at))
				return NULL;
			if (*p == next)
				words.at[words.n++] = p;
		}
		for (size_t i = 0; i < words.n; i++)
			if (*words.at[i] == next)
				words.at[n++] = words.at[i];
		words.n = n;
	}
	return words.n == 1 ? words.at[0] : NULL;
}

/* Of the main interpreter: in others, calls are recorded only if they are made later. */
static void forget_small_versions(void)
{
	const PyObject *type = dlsym(RTLD_DEFAULT, "PyFunction_Type");
	PyObject *gc = calls_import_gc(), *list, *one;

	list = gc ? python.PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
	for (Py_ssize_t i = 0; list && (one = python.PyList_GetItem(list, i)); i++)
		if (python_type(one) == type && *version_of(one) < VERSIONS_SMALL)
			*version_of(one) = 0;
	python.PyErr_Clear();
	calls_drop(list);
	calls_drop(gc);
}

static bool enlarge_versions(void)
{
	uint32_t *next = python.PyList_GetItem ? next_version() : NULL;

	if (!next)
		return false;
	if (*next < VERSIONS_SMALL)
		*next = VERSIONS_SMALL;
	forget_small_versions();
	return true;
}

/* Whether the evaluator gets all frames, perhaps after a change. */
static bool gets_all(void)
{
	if (!is_bare())
		return true;
	return python.PyDict_New && python.PyRun_String &&
	       python._PyInterpreterState_SetEvalFrameFunc &&
	       python._PyInterpreterState_GetEvalFrameFunc &&
	       (gets_subscripts() || (enlarge_versions() && gets_subscripts()));
}

void calls_eval_begin(void)
{
	if (!python.at.has_evaluator || eval.main || !knows_frames())
		return;
	eval.main = python_interpreter();
	eval.known = is_frame_known() && (calls.native || gets_all());
}

/* The address of interp->eval_frame, for versions without a function that sets it. */
static evaluate_frame **slot_of(char *interpreter)
{
	return (evaluate_frame **)(void *)(interpreter + python.at.call[CALL_EVALUATOR]);
}

/* In the main interpreter, ours calls the evaluator that was set before. In all others, only
 * CPython's own is supported, because one variable holds it for all of them. */
static bool set_by_function(char *interpreter)
{
	evaluate_in_thread *before = python._PyInterpreterState_GetEvalFrameFunc(interpreter);

	if (interpreter == eval.main) {
		eval.next_in_thread = before;
		python._PyInterpreterState_SetEvalFrameFunc(interpreter, on_frame_in_thread);
		return true;
	}
	if ((void *)before != (void *)python._PyEval_EvalFrameDefault)
		return false;
	eval.plain_in_thread = before;
	python._PyInterpreterState_SetEvalFrameFunc(interpreter, on_frame_elsewhere);
	return true;
}

static bool set_slot(char *interpreter)
{
	evaluate_frame **slot = slot_of(interpreter);

	/* If it has another value, this is not the slot, or another tool evaluates frames. */
	if (*slot != python._PyEval_EvalFrameDefault)
		return false;
	eval.next = *slot;
	*slot = on_frame;
	return true;
}

bool calls_eval_start(void)
{
	if (!eval.known || (is_bare() && why_no_profile()))
		return false;
	if (python.at.call[CALL_EVALUATOR] != PYTHON_NO_OFFSET)
		return python._PyEval_EvalFrameDefault && set_slot(python_interpreter());
	return python._PyInterpreterState_SetEvalFrameFunc && set_by_function(python_interpreter());
}

bool calls_eval_is_on(void)
{
	char *interpreter = python_interpreter();
	evaluate_in_thread *now;

	if (!eval.known)
		return false;
	if (python.at.call[CALL_EVALUATOR] != PYTHON_NO_OFFSET)
		return *slot_of(interpreter) == on_frame;
	if (!python._PyInterpreterState_GetEvalFrameFunc)
		return false;
	now = python._PyInterpreterState_GetEvalFrameFunc(interpreter);
	return now == on_frame_in_thread || now == on_frame_elsewhere;
}

/* If another tool has replaced our evaluator since, ours stays in use, because that tool calls
 * it. */
void calls_eval_stop(void)
{
	char *interpreter = python_interpreter();

	if (!calls_eval_is_on())
		return;
	if (python.at.call[CALL_EVALUATOR] != PYTHON_NO_OFFSET)
		*slot_of(interpreter) = eval.next;
	else
		python._PyInterpreterState_SetEvalFrameFunc(
			interpreter,
			interpreter == eval.main ? eval.next_in_thread : eval.plain_in_thread);
}

/*
 * ---- Records calls by the profile function of each thread, up to CPython 3.11, if the evaluator cannot
 * record, or calls of functions in C are recorded, too. A thread has only one
 * such function. One that the program has set is kept, and one that it sets later replaces ours.
 * From then on the thread's calls are missing, which is logged.
 */

/* PyTrace_* of pystate.h. */
#define PROFILE_CALL     0
#define PROFILE_RETURN   3
#define PROFILE_C_CALL   4
#define PROFILE_C_RAISE  5
#define PROFILE_C_RETURN 6

static PyObject *code_of(const PyObject *frame)
{
	return pointer_at(python_frame(frame), python.at.frame[FRAME_CODE]);
}

/* CPython's objects have the layout that this file expects. */
static bool known;

void calls_profile_begin(void)
{
	PyObject *frame = python.PyEval_GetFrame(), *code;

	if (known)
		return;
	code = frame ? python.PyObject_GetAttrString(frame, "f_code") : NULL;
	known = code && python.at.frame[FRAME_CODE] != PYTHON_NO_OFFSET && code == code_of(frame) &&
	        (!calls.native || calls_native_begin(NULL));
	calls_drop(code);
}

static int on_profile(PyObject *owner, PyObject *frame, int what, PyObject *arg)
{
	(void)owner;
	if (what == PROFILE_CALL)
		calls_record(code_of(frame), PRELOAD_CALL_START, frame, NULL);
	else if (what == PROFILE_RETURN)
		calls_record(code_of(frame), arg ? PRELOAD_CALL_RETURN : PRELOAD_CALL_UNWIND, frame,
		             arg);
	else if (calls.native && what >= PROFILE_C_CALL && what <= PROFILE_C_RETURN)
		calls_record_native(code_of(frame),
		                    what == PROFILE_C_CALL    ? PRELOAD_CALL_START
		                    : what == PROFILE_C_RAISE ? PRELOAD_CALL_UNWIND
		                                              : PRELOAD_CALL_RETURN,
		                    arg, NULL);
	return 0;
}

/* ---- the function of a thread */

static PyObject *on_restored(PyObject *capsule, PyObject *arguments);

static struct method restored = { "giltracer", on_restored, METH_VARARGS, NULL };

enum profiled { NOT_PROFILED, PROFILED_BY_US, PROFILED };

/* Whose profile function the current thread has. */
static enum profiled who_profiles(void)
{
	PyObject *get = python.PySys_GetObject("getprofile"), *function;
	enum profiled who = PROFILED;

	function = get ? python.PyObject_CallObject(get, NULL) : NULL;
	if (!function || function == python.none)
		who = NOT_PROFILED;
	else if (pointer_at(function, python.at.function.definition) == (PyObject *)&restored)
		who = PROFILED_BY_US;
	calls_drop(function);
	return who;
}

/* Log that calls of the current thread are missing. who: whose function it has; PROFILED_BY_US:
 * they were only missing for a while */
static void step_aside(enum profiled who)
{
	struct calls_self *me = &calls_self;

	if (me->stream && who != PROFILED_BY_US)
		calls_say(me, PRELOAD_SAY_ASIDE);
	process_log(&(struct preload_entry){ .type = PRELOAD_ASIDE,
	                                     .number = (uint64_t)process_gettid() },
	            NULL, 0);
}

/*
 * Called when the owner of a thread's profile function is freed. If that thread is running Python
 * code, it has set another function. Otherwise it is ending, or, in a forked child, does not exist.
 */
static void owner_gone(PyObject *capsule)
{
	void *thread = python.PyCapsule_GetPointer(capsule, NULL);

	if (calls.on && !*calls.over && thread == python_thread() && python.PyEval_GetFrame())
		step_aside(who_profiles());
}

/* Set our function for the current thread, whose state is thread. */
static void profile_current(void *thread)
{
	PyObject *capsule = python.PyCapsule_New(thread, NULL, owner_gone);
	PyObject *owner = capsule ? python.PyCFunction_NewEx(&restored, capsule, NULL) : NULL;

	if (!owner)
		python.PyErr_Clear();
	python.PyEval_SetProfile(on_profile, owner);
	if (capsule)
		python.Py_DecRef(capsule);
	if (owner)
		python.Py_DecRef(owner);
}

/* The program has passed to sys.setprofile() what sys.getprofile() returned while ours was set:
 * record the thread again. */
static PyObject *on_restored(PyObject *capsule, PyObject *arguments)
{
	(void)arguments;
	if (!calls.ended)
		profile_current(python.PyCapsule_GetPointer(capsule, NULL));
	else
		python.PyEval_SetProfile(NULL, NULL);
	python.Py_IncRef(python.none);
	return python.none;
}

/* The caller holds the GIL, so it can make any thread the current one for a while. */
static void profile_thread(void *thread)
{
	void *own = python.PyThreadState_Swap(thread);

	if (who_profiles() == PROFILED)
		step_aside(PROFILED);
	else
		profile_current(thread);
	python.PyThreadState_Swap(own);
	/* Setting a function raises an audit event, which notes the other thread's state. */
	calls_interpreters_note(own);
}

/* ---- all threads */

static void *first_thread(void)
{
	return python.PyInterpreterState_ThreadHead(python_interpreter());
}

/* Our function has been set for threads. */
static bool profiling;

static const char *why_no_profile(void)
{
	const char *(*allocator)(void), *name;

	if (!known)
		return "this interpreter is not built as CPython is";
	/* It ends the program in PyThreadState_Swap(), or at the next allocation, see profile_thread. */
	if (dlsym(RTLD_DEFAULT, "_Py_NegativeRefcount"))
		return "a debug build of Python does not permit it";
	*(void **)&allocator = dlsym(RTLD_DEFAULT, "_PyMem_GetCurrentAllocatorName");
	name = allocator ? allocator() : NULL;
	if (name && strstr(name, "debug"))
		return "Python's debugging allocator (-X dev, PYTHONMALLOC) does not permit it";
	return NULL;
}

const char *calls_profile_start(void)
{
	const char *why = why_no_profile();

	if (why)
		return why;
	profiling = true;
	for (void *thread = first_thread(); thread; thread = python.PyThreadState_Next(thread))
		profile_thread(thread);
	return NULL;
}

/* This ends recording in the current thread only. Every thread calls it at its next event. */
void calls_profile_stop(void)
{
	if (profiling)
		python.PyEval_SetProfile(NULL, NULL);
}

/* If CPython calls pthread_create, it holds the GIL and has just made the new thread's state, which
 * is the first one in the list. */
static void profile_new_thread(const char *caller)
{
	void *own = python_thread(), *thread;
	Dl_info ours, theirs;

	if (!own ||
	    (own != python.PyGILState_GetThisThreadState() && !calls_interpreters_runs(own)) ||
	    !dladdr(caller, &ours) || !dladdr((const void *)python.PyThreadState_Swap, &theirs) ||
	    ours.dli_fbase != theirs.dli_fbase)
		return;
	thread = first_thread();
	if (thread && thread != own && !calls_eval_is_on())
		profile_thread(thread);
}

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	if (UNLIKELY(counting.on || process.on))
		names_thread_starts(__builtin_return_address(0));
	if (UNLIKELY(profiling && !calls.ended))
		profile_new_thread(__builtin_return_address(0));
	return stream_create_thread(real, thread, attr, start, arg,
	                            nogil_is_python(__builtin_return_address(0)));
}
