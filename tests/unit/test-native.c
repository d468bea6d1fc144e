/* SPDX-License-Identifier: MIT */
/* The C function that a Python function called, told from native stacks. */
#include "trace/names.h"
#include "trace/native.h"
#include "trace/stacks.h"

#include "tap.h"

static struct names *names;
static struct stacks *stacks;

/* Frames from the outermost on, NULL-terminated; "=" before a name makes it an eval frame, "?" one
 * without a symbol, "<" the one in which the dump ended; "@" says that it is libpython's, "#" that it
 * is libc's, "%" another file's. */
static uint32_t stack(const char *const *frames)
{
	uint32_t id = 0;

	for (; *frames; frames++) {
		const char *module = **frames == '@'   ? "libpython3.14.so.1.0"
		                     : **frames == '#' ? "libc.so.6"
		                     : **frames == '%' ? "fast.abi3.so"
		                                       : NULL;
		const char *mark = *frames + !!module,
			   *name = mark + (strchr("=?<", *mark) != NULL);
		struct stack_frame frame = {
			.parent = id,
			.name = names_id(names, name, strlen(name)),
			.module = module ? names_id(names, module, strlen(module)) : 0,
			.flags = *mark == '='   ? STACK_EVAL
			         : *mark == '?' ? STACK_UNKNOWN
			         : *mark == '<' ? STACK_TRUNCATED
			                        : 0,
		};

		id = stacks_id(stacks, &frame);
	}
	return id;
}

static const char *callee(uint32_t id)
{
	id = native_callee(stacks, id).callee;
	return id ? names_get(names, stacks_get(stacks, id)->name) : "(none)";
}

static const char *file(uint32_t id)
{
	id = native_callee(stacks, id).file;
	return id ? names_get(names, stacks_get(stacks, id)->name) : "(none)";
}

static bool is_decided(uint32_t id)
{
	return native_callee(stacks, id).decided;
}

#define decided(...) is_decided(stack((const char *const[]){ __VA_ARGS__, NULL }))

#define is_callee(want, sentence, ...) \
	is_str(callee(stack((const char *const[]){ __VA_ARGS__, NULL })), want, sentence)

#define is_file(want, sentence, ...) \
	is_str(file(stack((const char *const[]){ __VA_ARGS__, NULL })), want, sentence)

int main(void)
{
	names = names_new();
	stacks = stacks_new(names);
	is_callee("builtin_pow", "below the call protocol", "start_thread",
	          "=_PyEval_EvalFrameDefault", "PyObject_Vectorcall",
	          "cfunction_vectorcall_FASTCALL_KEYWORDS", "builtin_pow", "PyNumber_Power",
	          "long_pow", "k_mul");
	is_callee("builtin_pow", "the same under a tracer", "=_PyEval_EvalFrameDefault",
	          "trace_call_function", "cfunction_vectorcall_FASTCALL", "builtin_pow");
	is_callee("long_add", "an operator has no call", "=_PyEval_EvalFrameDefault", "long_add");
	is_callee("list_sort_impl", "the innermost Python function's", "=_PyEval_EvalFrameDefault",
	          "map_next", "=_PyEval_EvalFrameDefault", "PyObject_Vectorcall", "list_sort_impl");
	is_callee("(none)", "Python itself runs", "main", "=_PyEval_EvalFrameDefault");
	is_callee("(none)", "a stack that was cut before", "builtin_pow", "long_pow");
	is_callee("(none)", "an allocator is Python's own work", "=_PyEval_EvalFrameDefault",
	          "PyNumber_Add", "PyObject_Malloc", "malloc");
	is_callee("long_pow", "a helper is passed over", "=_PyEval_EvalFrameDefault",
	          "PyNumber_Power", "long_pow");
	is_callee("list_sort_impl", "a stack that ends in a large frame", "<list_sort_impl",
	          "merge_at");
	is_callee("list_dealloc", "what is freed, however that is called",
	          "=_PyEval_EvalFrameDefault", "_Py_DECREF", "_Py_Dealloc", "list_dealloc",
	          "_Py_XDECREF", "long_dealloc");
	is_callee("list_dealloc", "also by the function of an extension's",
	          "=_PyEval_EvalFrameDefault", "Py_XDECREF", "list_dealloc", "Py_DECREF");
	is_callee("list_dealloc", "also at the end of a function", "=_PyEval_EvalFrameDefault",
	          "_PyEvalFrameClearAndPop", "clear_thread_frame", "_PyFrame_ClearExceptCode",
	          "list_dealloc");
	is_callee("memcpy", "what has no symbol is passed over", "=_PyEval_EvalFrameDefault",
	          "?[x+0x10]", "memcpy");
	is_callee("memcpy", "also in libpython", "=_PyEval_EvalFrameDefault", "@?[x+0x10]",
	          "memcpy");
	is_callee("(none)", "but what is beyond may be another's", "=_PyEval_EvalFrameDefault",
	          "@PySequence_List", "@?[x+0x10]", "@?[x+0x20]");
	is_callee("(none)", "nor is it at the end of what is known", "<PyEval_EvalCode",
	          "@?[x+0x10]");
	is_callee("fast.abi3.so", "a file without symbols is known by its name",
	          "=_PyEval_EvalFrameDefault", "@PyObject_Vectorcall", "%?[x+0x10]", "%?[x+0x20]",
	          "#memcpy");
	is_callee("list_copy", "but libc works for its caller", "=_PyEval_EvalFrameDefault",
	          "@list_copy", "#?[x+0x10]");
	is_file("fast.abi3.so", "the file of a function", "=_PyEval_EvalFrameDefault", "%fast_do",
	        "#memcpy");
	is_file("fast.abi3.so", "also below an interpreter without symbols",
	        "=_PyEval_EvalFrameDefault", "@?[x+0x10]", "%fast_do", "%?[x+0x20]");
	is_file("libpython3.14.so.1.0", "and the interpreter's own", "=_PyEval_EvalFrameDefault",
	        "@?[x+0x10]", "@?[x+0x20]", "#memcpy");
	is_file("(none)", "none if Python itself runs", "=_PyEval_EvalFrameDefault");
	is_file("(none)", "nor if the stack has no Python", "start_thread", "%fast_do");
	is_file("fast.abi3.so", "but the evaluation loop may have no symbol", "main", "@?[x+0x10]",
	        "%?[x+0x20]");
	is_callee("gc_collect_main", "garbage is collected", "=_PyEval_EvalFrameDefault",
	          "PyList_New", "@gc_collect_main", "@deduce_unreachable");
	is_callee("gc_collect_main", "also where other functions have no symbol",
	          "=_PyEval_EvalFrameDefault", "@?[x+0x20]", "@gc_collect_main", "@?[x+0x10]");
	is_callee("collect.constprop.0", "also by a clone", "=_PyEval_EvalFrameDefault",
	          "PyList_New", "@collect.constprop.0");
	is_callee("make", "a collector of another's", "=_PyEval_EvalFrameDefault", "make",
	          "collect");
	is_callee("(none)", "nothing has a symbol", "=_PyEval_EvalFrameDefault", "?[x+0x10]");
	is_u64(native_callee(stacks, 0).callee, 0, "no stack, no function");
	ok(decided("=_PyEval_EvalFrameDefault", "list_sort_impl", "?[x+0x10]"),
	   "a function below which there is no symbol is certain");
	ok(decided("main", "=_PyEval_EvalFrameDefault"), "so is that Python itself runs");
	ok(decided("=_PyEval_EvalFrameDefault", "PyList_New", "@gc_collect_main", "@?[x+0x10]") &&
	           decided("=_PyEval_EvalFrameDefault", "@?[x+0x10]", "@gc_collect_main",
	                   "@?[x+0x10]"),
	   "and a collection");
	ok(!decided("=_PyEval_EvalFrameDefault", "match", "@?[plt+0x10]"),
	   "a stub of the interpreter without a symbol hides who called it");
	ok(!decided("<list_sort_impl", "merge_at"), "the dump may have cut the caller");
	ok(!decided("start_thread", "work"), "a stack without Python is not decided");
	ok(!is_decided(0), "nor is none");
	stacks_free(stacks);
	names_free(names);
	return done_testing();
}
