/* SPDX-License-Identifier: MIT */
/* Python calls on native stacks: each stack is written as text, outermost frame first. */
#include "base/str.h"
#include "base/vec.h"
#include "trace/stack_merge.h"
#include "trace/names.h"
#include "trace/slices.h"
#include "trace/stacks.h"

#include "tap.h"

#define TID 7

struct fixture {
	struct names *names;
	struct stacks *stacks;
	struct slices slices;
	struct slice_thread thread;
	VEC(struct slice) calls;
	struct join *join;
};

static void call(struct fixture *f, uint64_t start, uint64_t end, uint16_t depth, const char *name)
{
	*vec_push(&f->calls) = (struct slice){
		.start_ns = start,
		.dur_ns = end - start,
		.name = names_id(f->slices.names, name, strlen(name)),
		.depth = depth,
	};
}

/* main() calls work(), which calls time.sleep and then work() again. */
static void setup(struct fixture *f, bool one_to_one)
{
	*f = (struct fixture){ .names = names_new() };
	f->stacks = stacks_new(f->names);
	f->slices.names = names_new();
	call(f, 100, 900, 0, "main (/src/prog.py:10)");
	call(f, 200, 800, 1, "Worker.work (/src/lib/worker.py:20)");
	call(f, 300, 400, 2, "time.sleep");
	call(f, 500, 600, 2, "Worker.work (/src/lib/worker.py:20)");
	f->thread = (struct slice_thread){ .pid = 1, .tid = TID, .v = f->calls.v, .n = f->calls.n };
	f->slices.threads = &f->thread;
	f->slices.thread_count = 1;
	f->join = join_new(&(struct join_options){ .slices = &f->slices,
	                                           .names = f->names,
	                                           .stacks = f->stacks,
	                                           .one_to_one = one_to_one });
}

static void teardown(struct fixture *f)
{
	join_free(f->join);
	stacks_free(f->stacks);
	names_free(f->names);
	names_free(f->slices.names);
	vec_done(&f->calls);
}

/* A stack of one-letter frames: E evaluates Python, T is a cut outermost frame. */
static uint32_t stack_of(struct fixture *f, const char *text)
{
	uint32_t id = 0;

	for (; *text; text++)
		id = stacks_id(f->stacks,
		               &(struct stack_frame){ .parent = id,
		                                      .name = names_id(f->names, text, 1),
		                                      .flags = *text == 'E'   ? STACK_EVAL
		                                               : *text == 'T' ? STACK_TRUNCATED
		                                                              : 0 });
	return id;
}

static void text_of(struct fixture *f, uint32_t id, struct str *out)
{
	const struct stack_frame *frame = stacks_get(f->stacks, id);

	if (frame->parent) {
		text_of(f, frame->parent, out);
		str_addc(out, ' ');
	}
	str_adds(out, names_get(f->names, frame->name));
	if (frame->flags & STACK_PYTHON)
		str_addf(out, "@%s:%u", names_get(f->names, frame->module), frame->line);
	if (frame->flags & STACK_MISMATCH)
		str_addc(out, '?');
}

static void expect(struct fixture *f, const char *native, uint64_t time, const char *want,
                   const char *what)
{
	CLEANUP(str_done) struct str got = { 0 };

	text_of(f, join_stack(f->join, stack_of(f, native), time, 1, TID), &got);
	is_str(str_get(&got), want, "%s", what);
}

static void test_one_to_one(void)
{
	struct fixture f;

	setup(&f, true);
	expect(&f, "aEbEc", 250, "a E main@prog.py:10 b E Worker.work@worker.py:20 c",
	       "3.10: as many calls as evaluations");
	expect(&f, "aEbEc", 350, "a E main@prog.py:10 b E Worker.work@worker.py:20 c",
	       "a C function is no Python frame");
	expect(&f, "aEEEc", 550,
	       "a E main@prog.py:10 E Worker.work@worker.py:20 E Worker.work@worker.py:20 c",
	       "recursion");
	expect(&f, "xEyEaEc", 250, "x E? y E main@prog.py:10 a E Worker.work@worker.py:20 c",
	       "an evaluation that began before the trace is marked");
	expect(&f, "aEc", 250, "a E main@prog.py:10? Worker.work@worker.py:20 c",
	       "a call too many is marked");
	expect(&f, "abc", 250, "a? b c", "calls without any evaluation: nothing is added");
	is_u64(join_stats(f.join)->mismatched, 3, "three of them were marked");
	is_u64(join_stats(f.join)->joined, 6, "of six");
	teardown(&f);
}

static void test_many(void)
{
	struct fixture f;

	setup(&f, false);
	expect(&f, "aEc", 550,
	       "a E main@prog.py:10 Worker.work@worker.py:20 Worker.work@worker.py:20 c",
	       "3.11: one evaluation runs all calls");
	expect(&f, "aEbEc", 250, "a E b E main@prog.py:10? Worker.work@worker.py:20 c",
	       "of several, only the innermost call is sure");
	expect(&f, "TEc", 250, "T E main@prog.py:10? Worker.work@worker.py:20 c",
	       "so it is where the stack is cut");
	expect(&f, "aEc", 150, "a E main@prog.py:10 c", "one call");
	teardown(&f);
}

static void test_times(void)
{
	struct fixture f;

	setup(&f, false);
	expect(&f, "aE", 99, "a E", "before the first call");
	expect(&f, "aE", 100, "a E main@prog.py:10", "its first nanosecond");
	expect(&f, "aE", 899, "a E main@prog.py:10", "its last");
	expect(&f, "aE", 900, "a E", "after it");
	expect(&f, "aE", 800, "a E main@prog.py:10", "back in time, when another one has ended");
	expect(&f, "aE", 600, "a E main@prog.py:10 Worker.work@worker.py:20",
	       "back once more, when the inner one has ended");
	is_u64(join_stack(f.join, stack_of(&f, "aE"), 250, 1, TID + 1), stack_of(&f, "aE"),
	       "a thread that the trace does not know");
	is_u64(join_stack(f.join, 0, 250, 1, TID), 0, "no stack stays none");
	is_u64(join_stats(f.join)->bare, 3, "three stacks had no call");
	teardown(&f);
}

/* Names that are nearly, or oddly, a function and its place. */
static void test_names(void)
{
	static const char *const plain[] = { "f", "f (x)",     "f (x:)", "f (:",  "(a.py:1)",
		                             "",  "f (a.py:1", ")",      "f (1)", ":1)" };
	struct fixture f;
	uint32_t wrong = 0, id;

	setup(&f, false);
	join_free(f.join);
	f.calls.n = 0;
	for (uint16_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		call(&f, 10 + i, 1000, i, plain[i]);
	call(&f, 500, 1000, 50, "<module> (C:/a (b)/c d.py:3)");
	f.thread.v = f.calls.v;
	f.thread.n = f.calls.n;
	f.join = join_new(&(struct join_options){
		.slices = &f.slices, .names = f.names, .stacks = f.stacks });
	id = stack_of(&f, "aE");
	for (uint64_t t = 0; t < 400; t++)
		wrong += join_stack(f.join, id, t, 1, TID) != id;
	is_u64(wrong, 0, "what has no file and line is no Python function");
	expect(&f, "aE", 600, "a E <module>@c d.py:3", "brackets and blanks in a path");
	teardown(&f);
}

int main(void)
{
	test_one_to_one();
	test_many();
	test_times();
	test_names();
	join_free(NULL);
	return done_testing();
}
