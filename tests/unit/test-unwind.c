/* SPDX-License-Identifier: MIT */
/* Stacks of this program itself, whose call chains are known: it is built with -O2
 * -fomit-frame-pointer. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "perfdata/maps.h"
#include "binary/module.h"
#include "binary/symbolize.h"
#include "perfdata/unwind.h"

#include "../self-maps.h"
#include "tap.h"

#ifdef __x86_64__

#define DUMP_BYTES 65536
#define REGS_MASK  0xff01ff /* ax … ip, r8 … r15 */
#define REG_N      17

static uint64_t regs[REG_N];
static uint8_t dump[DUMP_BYTES];
static size_t dump_size;
static volatile int sink;
static jmp_buf back;

/* Stores what perf would record at this place. The kernel reads the stack, because ASan would
 * report gaps in it. */
static __attribute__((noinline)) void capture(void)
{
	static const int order[REG_N] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
		                          REG_RBP, REG_RSP, REG_RIP, REG_R8,  REG_R9,  REG_R10,
		                          REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	ucontext_t uc;
	struct iovec to = { dump, sizeof(dump) }, from;
	ssize_t n;

	getcontext(&uc);
	for (int i = 0; i < REG_N; i++)
		regs[i] = (uint64_t)uc.uc_mcontext.gregs[order[i]];
	from = (struct iovec){ (void *)(uintptr_t)regs[7], 0 };
	/* One page at a time, because the stack may end before the dump does. */
	for (dump_size = 0; dump_size < sizeof(dump); dump_size += n) {
		to = (struct iovec){ dump + dump_size, 4096 };
		from = (struct iovec){ (void *)(uintptr_t)(regs[7] + dump_size), 4096 };
		n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
		if (n <= 0)
			break;
	}
	sink++;
}

#ifdef __clang__
#define CHAIN __attribute__((noinline))
#else
#define CHAIN __attribute__((noinline, noclone))
#endif

static CHAIN void chain_c(void)
{
	capture();
	sink++;
}

/* Its frame is larger than 16 bytes: it uses stack space and saves registers. */
static CHAIN int chain_b(int a, int b)
{
	volatile char room[3000];

	room[a] = (char)b;
	chain_c();
	return room[a] + a * b;
}

static CHAIN int chain_a(int a)
{
	int v = chain_b(a, a + 1);

	return v + chain_b(a + 2, v);
}

/* Called through a pointer, because GCC inlines some levels of plain recursion. */
static int recurse(int n);
static int (*volatile again)(int) = recurse;

static CHAIN int recurse(int n)
{
	if (n == 0)
		return chain_a(1) + sink; /* prevents a tail call */
	return again(n - 1) + sink + n;
}

static inline __attribute__((always_inline)) void inlined_inner(void)
{
	sink += 3;
	capture();
	sink += 4;
}

static inline __attribute__((always_inline)) void inlined_outer(void)
{
	sink += 5;
	inlined_inner();
	sink += 6;
}

static CHAIN void inlines(void)
{
	inlined_outer();
	sink++;
}

static CHAIN __attribute__((noreturn)) void leave(void)
{
	capture();
	longjmp(back, 1);
}

/* Ends in a call, so the return address is after the function. */
static CHAIN __attribute__((noreturn)) void ends_in_call(void)
{
	sink++;
	leave();
}

static CHAIN void calls_noreturn(void)
{
	if (!setjmp(back))
		ends_in_call();
	sink++;
}

static CHAIN int compare(const void *a, const void *b)
{
	capture();
	sink++;
	return *(const int *)a - *(const int *)b;
}

static CHAIN void sorts(void)
{
	int v[] = { 2, 1 };

	qsort(v, 2, sizeof(*v), compare);
	sink += v[0];
}

static void handler(int sig)
{
	capture();
	sink += sig;
}

static CHAIN void interrupted(void)
{
	raise(SIGUSR1);
	sink++;
}

/* The distance of rsp from the frame is not constant, because of alloca. */
static CHAIN void allocates(size_t n)
{
	volatile char *p = __builtin_alloca(n);

	p[0] = 1;
	capture();
	sink += p[0];
}

/* The stack is realigned; GCC describes such frames by an expression. */
static CHAIN void aligned(int n)
{
	volatile char room[128] __attribute__((aligned(64)));

	room[n] = 1;
	capture();
	sink += room[n];
}

struct world {
	struct modules *modules;
	struct maps *maps;
	struct unwinder *unwinder;
};

static struct world world_new(const struct build_id *id)
{
	struct world w = { .modules = modules_new(true), .maps = maps_new() };

	map_self(w.maps, w.modules, 1, id);
	w.unwinder = unwinder_new(unwind_machine("x86_64"), w.maps);
	return w;
}

static void world_done(struct world *w)
{
	unwinder_free(w->unwinder);
	maps_free(w->maps);
	modules_free(w->modules);
}

static struct unwind_stack unwind(struct world *w, size_t size)
{
	struct unwind_stack ret;
	struct unwind_sample s = {
		.pid = 1,
		.abi = UNWIND_ABI_64,
		.regs_mask = REGS_MASK,
		.regs = cursor_make(regs, sizeof(regs)),
		.stack = cursor_make(dump, size < dump_size ? size : dump_size),
	};

	unwind_stack(w->unwinder, &s, &ret);
	return ret;
}

static const char *name_at(struct world *w, const struct unwind_stack *stack, size_t i)
{
	const struct location *l;
	const struct function_symbol *s;

	if (i >= stack->n)
		return "(no frame)";
	l = unwinder_location(w->unwinder, stack->locations[i]);
	s = l->usable ? symbolize(l->module, l->address) : NULL;
	return s ? s->name : "(no symbol)";
}

/* Checks that the first frames have these names, innermost first, and that the stack is
 * complete. */
static void expect(struct world *w, const char *what, const char *const *names)
{
	struct unwind_stack stack = unwind(w, DUMP_BYTES);
	bool good = true;

	for (size_t i = 0; names[i]; i++)
		if (strcmp(name_at(w, &stack, i), names[i])) {
			printf("# frame %zu: got %s, want %s\n", i, name_at(w, &stack, i),
			       names[i]);
			good = false;
		}
	ok(good, "%s", what);
	ok(stack.end == UNWIND_COMPLETE, "%s: the stack is complete", what);
	is_str(name_at(w, &stack, stack.n - 1), "_start", "%s: the outermost frame is _start",
	       what);
}

#define EXPECT(w, what, ...) expect((w), (what), (const char *const[]){ __VA_ARGS__, NULL })

static CHAIN void test_chains(struct world *w)
{
	chain_a(3);
	EXPECT(w, "a chain is unwound", "capture", "chain_c", "chain_b", "chain_a", "test_chains");
	recurse(4);
	EXPECT(w, "recursion is unwound", "capture", "chain_c", "chain_b", "chain_a", "recurse",
	       "recurse", "recurse", "recurse", "recurse", "test_chains");
	calls_noreturn();
	EXPECT(w, "a call that does not return is unwound", "capture", "leave", "ends_in_call",
	       "calls_noreturn", "test_chains");
	allocates((size_t)(sink & 1) + 5000);
	EXPECT(w, "a frame of variable size is unwound", "capture", "allocates", "test_chains");
	aligned(3);
	EXPECT(w, "a realigned frame is unwound", "capture", "aligned", "test_chains");
}

/* The number of frames between compare and sorts, or handler and interrupted, depends on libc. */
static void expect_through(struct world *w, const char *inner, const char *outer)
{
	struct unwind_stack stack = unwind(w, DUMP_BYTES);
	size_t i = 1;

	is_str(name_at(w, &stack, 1), inner, "%s is called", inner);
	while (i < stack.n && strcmp(name_at(w, &stack, i), outer))
		i++;
	ok(i > 2 && i + 1 < stack.n, "%s is found after libc's frames", outer);
	is_str(name_at(w, &stack, i + 1), "test_libc", "its caller is found");
	ok(stack.end == UNWIND_COMPLETE, "the stack is complete");
}

static CHAIN void test_libc(struct world *w)
{
	sorts();
	expect_through(w, "compare", "sorts");
	interrupted();
	expect_through(w, "handler", "interrupted");
	sink++;
}

static void test_inlined(struct world *w)
{
	struct unwind_stack stack;
	const char *names[4] = { "", "" };
	const struct location *l;

	inlines();
	stack = unwind(w, DUMP_BYTES);
	is_str(name_at(w, &stack, 1), "inlines", "the compiled function has its name");
	l = unwinder_location(w->unwinder, stack.locations[1]);
	is_u64(symbolize_inlined(l->module, l->address, names, 4), 2,
	       "two functions are inlined in it");
	is_str(names[0], "inlined_inner", "the innermost inlined function comes first");
	is_str(names[1], "inlined_outer", "the outer inlined function follows");
	is_u64(symbolize_inlined(l->module, l->address, names, 1), 1,
	       "no more names are returned than requested");
}

/* Every shorter dump gives the same frames as far as it reaches, and is marked as truncated. */
static void test_truncated(struct world *w)
{
	uint32_t whole[UNWIND_MAX_FRAMES], wrong = 0, silent = 0, n;
	struct unwind_stack stack;
	size_t shortest = SIZE_MAX;

	recurse(4);
	stack = unwind(w, DUMP_BYTES);
	n = stack.n;
	memcpy(whole, stack.locations, n * sizeof(*whole));
	for (size_t size = 0; size < 12000; size += 8) {
		stack = unwind(w, size);
		wrong += stack.n > n || memcmp(whole, stack.locations, stack.n * sizeof(*whole));
		silent += stack.n < n && stack.end != UNWIND_TRUNCATED;
		shortest = stack.n < shortest ? stack.n : shortest;
	}
	is_u64(wrong, 0, "no dump gives a wrong frame");
	is_u64(silent, 0, "a truncated stack is marked as such");
	is_u64(shortest, 1, "the innermost frame needs no dump");
}

/* Corrupt stacks must not cause a crash or an endless walk. */
static void test_corrupt(struct world *w)
{
	static uint8_t good[DUMP_BYTES];
	uint64_t seed = 1, too_long = 0;

	recurse(4);
	memcpy(good, dump, sizeof(good));
	for (int round = 0; round < 2000; round++) {
		memcpy(dump, good, sizeof(good));
		for (int i = 0; i < 50; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			dump[(seed >> 33) % 8192] = seed >> 56;
		}
		too_long += unwind(w, DUMP_BYTES).n > UNWIND_MAX_FRAMES;
	}
	memcpy(dump, good, sizeof(good));
	is_u64(too_long, 0, "unwinding ends for 2,000 corrupt dumps");
}

/* A file of another build-id is never used. */
static void test_other_build(void)
{
	struct build_id other = { .size = BUILD_ID_MAX, .bytes = { 1, 2, 3 } };
	struct world w = world_new(&other);
	struct unwind_stack stack = unwind(&w, DUMP_BYTES);
	const struct location *l = unwinder_location(w.unwinder, stack.locations[0]);

	is_u64(stack.n, 1, "a file of another build: unwinding stops at the first frame");
	ok(stack.end == UNWIND_BROKEN, "a file of another build has no rules");
	ok(!l->usable && l->module, "a file of another build is known but not used");
	ok(!symbolize(l->module, l->offset), "a file of another build gives no names");
	is_str(l->module->why, "not the build that was recorded", "the reason is given");
	world_done(&w);
}

static void test_no_user(struct world *w)
{
	struct unwind_sample s = { .pid = 1, .regs_mask = REGS_MASK };
	struct unwind_stack stack;

	unwind_stack(w->unwinder, &s, &stack);
	ok(stack.n == 0 && stack.end == UNWIND_NO_USER, "a sample without registers has no frames");
	s.abi = UNWIND_ABI_64;
	s.regs = cursor_make(regs, 8);
	unwind_stack(w->unwinder, &s, &stack);
	ok(stack.n == 0 && stack.end == UNWIND_NO_USER,
	   "a sample with too few registers has no frames");
	s.regs = cursor_make(regs, sizeof(regs));
	s.abi = UNWIND_ABI_32;
	unwind_stack(w->unwinder, &s, &stack);
	ok(stack.n == 0 && stack.end == UNWIND_NO_USER,
	   "a sample of a 32-bit program has no frames");
}

static void test_kernel(struct world *w)
{
	uint64_t chain[] = { (uint64_t)-128, 0xffffffff81000010, 0xffffffff81000020, (uint64_t)-512,
		             0x1234 };
	struct unwind_sample s = { .pid = 1, .chain = cursor_make(chain, sizeof(chain)) };
	struct unwind_stack stack;

	unwind_stack(w->unwinder, &s, &stack);
	is_u64(stack.kernel_n, 2,
	       "kernel frames are those before the mark of user space, without marks");
	is_u64(unwinder_location(w->unwinder, stack.locations[0])->address, 0xffffffff81000010,
	       "the innermost kernel frame has its exact address");
	is_u64(unwinder_location(w->unwinder, stack.locations[1])->address, 0xffffffff8100001f,
	       "a caller in the kernel has an address within the call");
	ok(unwinder_location(w->unwinder, stack.locations[1])->kernel, "kernel frames are marked");
}

int main(void)
{
	struct world w = world_new(NULL);

	signal(SIGUSR1, handler);
	test_chains(&w);
	test_libc(&w);
	test_inlined(&w);
	test_truncated(&w);
	test_corrupt(&w);
	test_no_user(&w);
	test_kernel(&w);
	world_done(&w);
	chain_a(1);
	test_other_build();
	return done_testing();
}

#else

int main(void)
{
	puts("1..0 # SKIP unwinding is tested on x86-64 only");
	return 0;
}

#endif
