/* SPDX-License-Identifier: MIT */
/* Frames as a probe fetches them: only what is certain becomes one. */
#include <unistd.h>

#include "base/str.h"
#include "trace/names.h"
#include "trace/perf/frames.h"
#include "python/pycode.h"
#include "trace/stacks.h"

#include "tap.h"

#define PROBE_IP  UINT64_C(0x7f0000001000)
#define CODE_TYPE UINT64_C(0x7f0000345620)
#define NONE      UINT64_C(0x7f0000347c80)
#define LONG_NAME 600  /* may be cut */
#define ASCII     0xe4 /* interned, one byte a character, compact, ascii */

static const char format_text[] =
	"name: take_gil\nID: 7\nformat:\n"
	"\tfield:unsigned long __probe_ip;\toffset:0;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 ct;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc char[] t0;\toffset:16;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 c0;\toffset:20;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 i0;\toffset:28;\tsize:8;\tsigned:0;\n"
	"\tfield:u32 l0;\toffset:36;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 s0;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc char[] q0;\toffset:44;\tsize:4;\tsigned:1;\n"
	"\tfield:__data_loc char[] t1;\toffset:48;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 c1;\toffset:52;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 i1;\toffset:60;\tsize:8;\tsigned:0;\n"
	"\tfield:u32 l1;\toffset:68;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 s1;\toffset:72;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc char[] q1;\toffset:76;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 cn;\toffset:80;\tsize:8;\tsigned:0;\n\n"
	"print fmt: \"\"\n";

struct frame {
	uint64_t type, code, instruction;
	uint32_t line, state;
	const char *name;
};

static struct names *names;
static struct stacks *stacks;
static struct perf_frames *frames;
static struct perf_frames_fields fields;
static uint8_t raw[8192];
static uint32_t used;

static void put_text(uint32_t at, const void *text, size_t len)
{
	uint32_t loc = used | (uint32_t)(len ? len + 1 : 0) << 16;

	memcpy(raw + at, &loc, 4);
	memcpy(raw + used, text, len);
	raw[used + len] = '\0';
	used += (uint32_t)len + 1;
}

/* The type's bytes up to the first zero, as strncpy_from_user has them. */
static void put_frame(uint32_t at, const struct frame *f, unsigned skip)
{
	const char *type = (const char *)&f->type + skip;

	put_text(at, type, f->type ? strlen(type) : 0);
	memcpy(raw + at + 4, &f->code, 8);
	memcpy(raw + at + 12, &f->instruction, 8);
	memcpy(raw + at + 20, &f->line, 4);
	memcpy(raw + at + 24, &f->state, 4);
	put_text(at + 28, f->name, strlen(f->name));
}

static uint32_t get(const struct frame *f0, const struct frame *f1, uint64_t code_type,
                    unsigned skip)
{
	static const struct frame none = { .name = "" };
	const uint64_t ip = PROBE_IP, ct = code_type - PROBE_IP, cn = NONE - PROBE_IP;
	struct cursor c;

	used = 88;
	memcpy(raw, &ip, 8);
	memcpy(raw + 8, &ct, 8);
	memcpy(raw + 80, &cn, 8);
	put_frame(16, f0, skip);
	put_frame(48, f1 ? f1 : &none, skip);
	c = cursor_make(raw, used);
	return perf_frames_get(frames, &fields, &c);
}

static const char *name_of(uint32_t id)
{
	return id ? names_get(names, stacks_get(stacks, id)->name) : "(none)";
}

static void test_certain(void)
{
	const struct frame f = { CODE_TYPE, 0x1000, 0x1100, 7, ASCII, "Worker.run" };
	const struct frame caller = { CODE_TYPE, 0x2000, 0x2100, 9, ASCII, "main" };
	const struct frame other = { CODE_TYPE, 0x1000, 0x1100, 7, ASCII, "Other.run" };
	uint32_t id = get(&f, NULL, CODE_TYPE, 0), both;

	is_str(name_of(id), "Worker.run", "the running frame has its name");
	ok(id && stacks_get(stacks, id)->flags == STACK_PYTHON, "it is Python");
	ok(id && !stacks_get(stacks, id)->parent, "callers that were not fetched are not made up");
	is_u64(get(&f, NULL, CODE_TYPE, 0), id, "the same again is the same");
	both = get(&f, &caller, CODE_TYPE, 0);
	is_str(name_of(both ? stacks_get(stacks, both)->parent : 0), "main", "its caller is above");
	is_str(name_of(get(&other, NULL, CODE_TYPE, 0)), "Other.run",
	       "another function at a reused address is another");
}

static void test_uncertain(void)
{
	struct frame f = { CODE_TYPE + 8, 0x1000, 0x1100, 7, ASCII, "str" };

	is_u64(get(&f, NULL, CODE_TYPE, 0), 0, "an object of another type is no code");
	f.type = 0;
	is_u64(get(&f, NULL, CODE_TYPE, 0), 0, "memory that could not be read is no frame");
	f = (struct frame){ CODE_TYPE, 0x3000, 0x1100, 7, 0xa4, "\xe9t\xe9" };
	is_u64(get(&f, NULL, CODE_TYPE, 0), 0, "a name that is not ASCII is not where it was read");
	f = (struct frame){ CODE_TYPE, 0x3000, 0x1100, 7, ASCII, "" };
	is_u64(get(&f, NULL, CODE_TYPE, 0), 0, "no name, no frame");
	f = (struct frame){ 0x7f0000345600, 0x3000, 0x1100, 7, ASCII, "f" };
	is_str(name_of(get(&f, NULL, 0x7f0000345600, 1)), "f", "a type whose first byte is zero");
}

/* What stands between the frames of functions. */
static void test_own(void)
{
	const struct frame f = { CODE_TYPE, 0x1000, 0x1100, 7, ASCII, "Worker.run" };
	const struct frame none = { CODE_TYPE + 0x80, NONE, 0, 0, 0, "" };
	const struct frame immortal = { CODE_TYPE >> 8, 0x5001, 0, 0, 0, "" };
	const struct frame shim = { CODE_TYPE, 0x6000, 0, 1, ASCII, "<interpreter trampoline>" };
	const struct frame init = { CODE_TYPE, 0x7000, 0, 0, ASCII, "__init__" };
	const struct frame function = { CODE_TYPE, 0x7000, 0, 4, ASCII, "__init__" };
	const struct frame other = { CODE_TYPE + 0x80, 0x8000, 0, 0, 0, "" };
	const struct frame *const own[] = { &none, &immortal, &shim, &init };
	const uint32_t id = get(&f, NULL, CODE_TYPE, 0);

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		is_u64(get(own[i], &f, CODE_TYPE, 0), id,
		       "a frame of the interpreter's is left out");
		is_u64(get(&f, own[i], CODE_TYPE, 0), id, "also where it is the caller");
		is_u64(get(own[i], NULL, CODE_TYPE, 0), 0, "and is none itself");
	}
	is_u64(get(&other, &f, CODE_TYPE, 0), 0, "behind what is neither, there is nothing");
	is_str(name_of(get(&function, &f, CODE_TYPE, 0)), "__init__",
	       "a function's name may be so");
}

static void put(struct str *out, uint64_t value, size_t size)
{
	str_addn(out, (const char *)&value, size);
}

static void put_code(struct str *out, uint64_t address, const char *name)
{
	put(out, address, 8);
	put(out, 7, 4);
	put(out, strlen(name), 4);
	str_adds(out, name);
	put(out, 0, 8);
}

/* The kernel has a page for an event, and cuts off what does not fit: the list has it. */
static void test_listed(void)
{
	static char long_name[LONG_NAME + 1], page[4001];
	struct frame f = { CODE_TYPE, 0x9000, 0, 7, ASCII, page };
	const struct frame caller = { CODE_TYPE, 0x2000, 0x2100, 9, ASCII, "main" };
	struct perf_frames *const without = frames;
	CLEANUP(str_done) struct str list = { 0 };
	CLEANUP(pycode_close) struct pycode *code = NULL;
	struct error err = { .text = "" };

	memset(long_name, 'n', LONG_NAME);
	memset(page, 'p', sizeof(page) - 1);
	is_u64(get(&f, NULL, CODE_TYPE, 0), 0, "no name is certain in a page that is full");
	str_adds(&list, "GTCODES1\3\16");
	put(&list, 0, 6);
	put(&list, 3, 8);
	put_code(&list, 0x9000, long_name);
	put_code(&list, 0xa000, "short");
	put_code(&list, 0xb000, "");
	if (!ok(pycode_open_memory(&code, list.s, list.len, &err) == 0, "the list is read %s",
	        err.text))
		return;
	frames = perf_frames_new(names, stacks, code);
	f.name = "nnnnn";
	is_str(name_of(get(&f, NULL, CODE_TYPE, 0)), long_name, "the list has the whole name");
	f.code = 0xa000;
	f.name = "shor";
	is_str(name_of(get(&f, NULL, CODE_TYPE, 0)), "shor", "a short one is not cut");
	f.code = 0xb000;
	is_u64(get(&f, NULL, CODE_TYPE, 0), 0, "giltracer's own function is none");
	is_str(name_of(stacks_get(stacks, get(&caller, &f, CODE_TYPE, 0))->parent), "(none)",
	       "nor is it a caller");
	perf_frames_free(frames);
	frames = without;
}

int main(void)
{
	struct tracefmt *format = NULL;
	struct error err = { .text = "" };

	if (!ok(tracefmt_parse(&format, "giltracer_x", format_text, strlen(format_text), &err) == 0,
	        "the format is read %s", err.text))
		return done_testing();
	names = names_new();
	stacks = stacks_new(names);
	frames = perf_frames_new(names, stacks, NULL);
	fields = perf_frames_find(format);
	is_u64(fields.count, 2, "it has two frames");
	test_certain();
	test_uncertain();
	test_own();
	test_listed();
	perf_frames_free(frames);
	stacks_free(stacks);
	names_free(names);
	tracefmt_free(format);
	return done_testing();
}
