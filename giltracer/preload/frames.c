/* SPDX-License-Identifier: MIT */
/*
 * Finds the Python functions that run in the thread that is about to release the GIL. drop_gil()
 * has just stored its PyThreadState in gil->last_holder; from there, offsets lead to the frames and
 * their code objects, each of which is written to the log when it is first seen.
 *
 * A code object is identified by its address and its contents, because its memory may be reused.
 * The result of an earlier walk is compared with the present frames, which is faster than a new
 * walk. The first walks check at each step that it leads to mapped memory and to an object of the
 * right type; if a check fails, the walk ends.
 */
#include "preload/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The number of walks to check; the maximum number of the interpreter's own frames in a walk. */
#define CHECKED   64
#define STEPS_MAX 32

/* Powers of two; at most three quarters are used. */
#define FUNCTIONS 16384
#define LISTS     65536

#define SKIP UINT32_MAX /* the number of a frame that is the interpreter's own */

#define NAME_MAX_BYTES  4096
#define TABLE_MAX_BYTES (512 << 10)

struct slot {
	_Atomic uint64_t key; /* 0: free */
	uint32_t number;
};

struct table {
	struct slot *slots;
	uint32_t mask;
	_Atomic uint32_t used;
};

static struct {
	struct preload_offsets at;
	const char *code_type, *str_type, *bytes_type, *none;
	/* Before 3.9: the thread's state, NULL once it is deleted. A thread that ends frees its state
	 * before it releases the GIL, whose last holder is then the freed state. */
	const char *(*tstate)(void);
	unsigned count;
	uint32_t first_instruction;
	atomic_uint checked;
	_Atomic bool on;
	atomic_flag lock;
	struct table functions, lists;
} frames = { .lock = ATOMIC_FLAG_INIT };

/* ---- memory */

/* Mapped memory is assumed to be readable: no offset leads to a guard page. */
static bool is_mapped(const char *p)
{
	unsigned char vec[2];
	uintptr_t page = (uintptr_t)p & ~(uintptr_t)4095;

	return (uintptr_t)p >= 4096 && !((uintptr_t)p & 3) &&
	       syscall(SYS_mincore, page, 4096, vec) == 0;
}

static bool can_read(const char *p)
{
	if (LIKELY(frames.checked >= CHECKED))
		return p != NULL;
	return is_mapped(p);
}

static const char *pointer_at(const char *p, uint32_t offset)
{
	return *(const char *const *)(const void *)(p + offset);
}

static uint32_t u32_at(const char *p, uint32_t offset)
{
	return *(const uint32_t *)(const void *)(p + offset);
}

static uint64_t u64_at(const char *p, uint32_t offset)
{
	return *(const uint64_t *)(const void *)(p + offset);
}

static bool is_a(const char *object, const char *type)
{
	return can_read(object) && pointer_at(object, frames.at.type) == type;
}

/* ---- tables */

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15;
	return h ^ h >> 29;
}

static uint32_t table_get(const struct table *t, uint64_t key)
{
	for (uint32_t i = (uint32_t)key;; i++) {
		const struct slot *s = &t->slots[i & t->mask];
		uint64_t have = atomic_load_explicit(&s->key, memory_order_acquire);

		if (have == key)
			return s->number;
		if (!have)
			return 0;
	}
}

static bool table_is_full(const struct table *t)
{
	return t->used > t->mask / 4 * 3;
}

/* Called with the lock held, for a table that is not full. */
static void table_set(struct table *t, uint64_t key, uint32_t number)
{
	uint32_t i = (uint32_t)key;

	t->used++;
	while (t->slots[i & t->mask].key)
		i++;
	t->slots[i & t->mask].number = number;
	atomic_store_explicit(&t->slots[i & t->mask].key, key, memory_order_release);
}

static bool table_make(struct table *t, uint32_t slots)
{
	void *map;

	if (t->slots)
		return true; /* left by an earlier recording */
	map = mmap(NULL, slots * sizeof(struct slot), PROT_READ | PROT_WRITE,
	           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return false;
	t->slots = map;
	t->mask = slots - 1;
	return true;
}

/* ---- functions seen for the first time */

/* Writes len characters of 1, 2 or 4 bytes as UTF-8, as many as there is room for. */
static size_t put_utf8(char *ret, size_t room, const char *text, size_t len, unsigned kind)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 4 <= room; i++) {
		uint32_t c = kind == 1   ? (uint8_t)text[i]
		             : kind == 2 ? ((const uint16_t *)(const void *)text)[i]
		                         : ((const uint32_t *)(const void *)text)[i];

		if (c < 0x80) {
			ret[n++] = (char)c;
		} else if (c < 0x800) {
			ret[n++] = (char)(0xc0 | c >> 6);
			ret[n++] = (char)(0x80 | (c & 63));
		} else if (c < 0x10000) {
			ret[n++] = (char)(0xe0 | c >> 12);
			ret[n++] = (char)(0x80 | (c >> 6 & 63));
			ret[n++] = (char)(0x80 | (c & 63));
		} else {
			ret[n++] = (char)(0xf0 | c >> 18);
			ret[n++] = (char)(0x80 | (c >> 12 & 63));
			ret[n++] = (char)(0x80 | (c >> 6 & 63));
			ret[n++] = (char)(0x80 | (c & 63));
		}
	}
	return n;
}

/* Writes a str. PyUnicodeObject.state: kind in bits 2 to 4, compact is bit 5, ascii bit 6. */
static size_t put_str(char *ret, size_t room, const char *str)
{
	uint32_t state;
	unsigned kind;
	size_t skip;

	if (!is_a(str, frames.str_type))
		return 0;
	state = u32_at(str, frames.at.state);
	kind = state >> 2 & 7;
	if (!(state & 0x20) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	/* The characters of an ASCII str follow its head; other strings have the members for
	 * UTF-8 and, until 3.11, wchar_t in between. */
	skip = state & 0x40 ? 0 : (frames.at.minor < 12 ? 3 : 2) * sizeof(void *);
	return put_utf8(ret, room, str + frames.at.text + skip,
	                (size_t)u64_at(str, 2 * sizeof(void *)), kind);
}

/* Up to 3.10, the order is co_filename, co_name, co_lnotab; then co_filename, co_name,
 * co_qualname, co_linetable. */
static const char *file_of(const char *code)
{
	return pointer_at(code, frames.at.name - (frames.at.minor < 11 ? 8 : 16));
}

static const char *table_of(const char *code)
{
	return pointer_at(code, frames.at.name + 8);
}

/* The interpreter has frames of its own code where C calls Python, and where a class creates an
 * object. */
static bool is_own(const char *name, size_t len, uint32_t line)
{
	static const char trampoline[] = "<interpreter trampoline>", init[] = "__init__";

	return (len == sizeof(trampoline) - 1 && !memcmp(name, trampoline, len)) ||
	       (!line && len == sizeof(init) - 1 && !memcmp(name, init, len));
}

struct described {
	struct preload_function head;
	char text[2 * NAME_MAX_BYTES];
};

/* The number of the function; 0: its description can be neither read nor written. */
static uint32_t describe(const char *code)
{
	static uint32_t next;
	struct described d = { .head.first_line = u32_at(code, frames.at.line) };
	const char *table = table_of(code);
	size_t name, file, size = 0;

	name = put_str(d.text, NAME_MAX_BYTES, pointer_at(code, frames.at.name));
	file = put_str(d.text + name, NAME_MAX_BYTES, file_of(code));
	if (!name)
		return 0;
	if (is_own(d.text, name, d.head.first_line))
		return SKIP;
	if (is_a(table, frames.bytes_type))
		size = (size_t)u64_at(table, 2 * sizeof(void *));
	if (size > TABLE_MAX_BYTES)
		size = 0;
	d.head.name_len = (uint32_t)name;
	d.head.file_len = (uint32_t)file;
	d.head.table_len = (uint32_t)size;
	return process_log2(&(struct preload_entry){ .type = PRELOAD_FUNCTION,
	                                             .number = next + 1,
	                                             .value = frames.at.minor },
	                    &d, sizeof(d.head) + name + file, table + 4 * sizeof(void *), size)
	               ? ++next
	               : 0;
}

static const char *name_of(const char *code)
{
	return pointer_at(code, frames.at.name);
}

/* The hash of a str, which names have, because they are looked up. */
static uint64_t hash_of(const char *name)
{
	return u64_at(name, 3 * sizeof(void *));
}

/* Hashes the fields that distinguish a code object from a later one at the same address. */
static uint64_t identity(const char *code)
{
	const char *name = name_of(code);
	uint64_t h = mix((uint64_t)(uintptr_t)code, (uint64_t)(uintptr_t)name);

	h = mix(h, (uint64_t)(uintptr_t)file_of(code));
	h = mix(h, (uint64_t)(uintptr_t)table_of(code));
	h = mix(h, u32_at(code, frames.at.line));
	h = mix(h, can_read(name) ? hash_of(name) : 0);
	return h ? h : 1;
}

static uint32_t number_of(const char *code)
{
	uint64_t key = identity(code);
	uint32_t number = table_get(&frames.functions, key);

	if (LIKELY(number))
		return number;
	if (table_is_full(&frames.functions) || atomic_flag_test_and_set(&frames.lock))
		return 0;
	number = table_get(&frames.functions, key);
	if (!number && (number = describe(code)))
		table_set(&frames.functions, key, number);
	atomic_flag_clear(&frames.lock);
	return number;
}

/* ---- frames */

static uint32_t list_number(const struct preload_frame *list, unsigned n)
{
	static uint32_t next;
	uint64_t key = n;
	uint32_t number;

	for (unsigned i = 0; i < n; i++)
		key = mix(key, (uint64_t)list[i].function << 32 | (uint32_t)list[i].offset);
	key = key ? key : 1;
	number = table_get(&frames.lists, key);
	if (LIKELY(number) || table_is_full(&frames.lists) ||
	    atomic_flag_test_and_set(&frames.lock))
		return number;
	number = table_get(&frames.lists, key);
	if (!number &&
	    process_log(&(struct preload_entry){ .type = PRELOAD_FRAMES, .number = next + 1 }, list,
	                n * sizeof(*list))) {
		number = ++next;
		table_set(&frames.lists, key, number);
	}
	atomic_flag_clear(&frames.lock);
	return number;
}

/* The value in the frame. */
static uint64_t instruction_of(const char *frame)
{
	return frames.at.instruction_size == 4 ? u32_at(frame, frames.at.instruction)
	                                       : u64_at(frame, frames.at.instruction);
}

static int32_t offset_in(const char *code, uint64_t instruction)
{
	int64_t offset;

	if (frames.at.instruction_size == 4) {
		offset = (int32_t)instruction;
		if (frames.at.minor == 10 && offset > 0)
			offset *= 2; /* counted in code units */
	} else {
		offset = (const char *)(uintptr_t)instruction - code - frames.first_instruction;
	}
	return offset < 0 || offset > INT32_MAX ? -1 : (int32_t)offset;
}

static const char *innermost(const struct gil *g)
{
	const char *tstate = frames.tstate ? frames.tstate() : NULL;
	const char *frame;

	if (frames.tstate && !tstate)
		return NULL;
	if (frames.at.minor >= 7)
		tstate = pointer_at((const char *)g->cond - GIL_LAST_HOLDER, 0);
	if (!can_read(tstate))
		return NULL;
	frame = pointer_at(tstate, frames.at.current);
	if (frames.at.current2 != PRELOAD_NO_OFFSET)
		frame = can_read(frame) ? pointer_at(frame, frames.at.current2) : NULL;
	return frame;
}

/* From 3.14 on, the lowest bit marks immortal objects, which only the interpreter's own code
 * objects are. */
static bool has_code(const char *code)
{
	return !((uintptr_t)code & 1) && code != frames.none;
}

/* The frame's function; 0 ends the walk; SKIP: the frame is the interpreter's own. */
static uint32_t function_of(const char *code)
{
	if (!has_code(code))
		return SKIP;
	return is_a(code, frames.code_type) ? number_of(code) : 0;
}

/* ---- walks that are remembered */

static struct walked *find_walk(struct gil *g, const char *frame)
{
	uint64_t instruction = instruction_of(frame);

	return &g->walks[(instruction >> 1 ^ instruction >> 4) % WALKS];
}

static void keep_step(struct walked *w, const char *code, uint64_t instruction)
{
	struct step *s = &w->steps[w->count++];
	const char *name;

	*s = (struct step){ .code = code, .has_code = has_code(code) };
	if (!s->has_code)
		return;
	name = name_of(code);
	s->instruction = instruction;
	s->name = name;
	s->file = file_of(code);
	s->table = table_of(code);
	s->line = u32_at(code, frames.at.line);
	s->name_hash = can_read(name) ? hash_of(name) : 0;
}

static bool is_same_code(const struct step *s)
{
	const char *code = s->code;

	return name_of(code) == s->name && file_of(code) == s->file && table_of(code) == s->table &&
	       u32_at(code, frames.at.line) == s->line &&
	       (!s->name || hash_of(s->name) == s->name_hash);
}

static bool is_same_walk(const struct walked *w, const char *frame)
{
	for (unsigned i = 0; i < w->count; i++) {
		const struct step *s = &w->steps[i];

		if (!frame || pointer_at(frame, frames.at.code) != s->code)
			return false;
		if (s->has_code && (instruction_of(frame) != s->instruction || !is_same_code(s)))
			return false;
		frame = pointer_at(frame, frames.at.previous);
	}
	return !w->whole || !frame;
}

/* Stores the frames in w if the walk is complete and there is room. */
static uint32_t walk(const char *frame, struct walked *w)
{
	struct preload_frame list[PRELOAD_FRAMES_MAX];
	uint32_t function = 1, number;
	unsigned n = 0;

	w->number = w->count = 0;
	for (unsigned i = 0; n < frames.count && i < STEPS_MAX && frame; i++) {
		const char *code;

		if (!can_read(frame))
			return 0;
		code = pointer_at(frame, frames.at.code);
		function = function_of(code);
		if (!function)
			break;
		if (i < WALK_STEPS)
			keep_step(w, code, instruction_of(frame));
		if (function != SKIP)
			list[n++] = (struct preload_frame){
				function, offset_in(code, instruction_of(frame))
			};
		frame = pointer_at(frame, frames.at.previous);
	}
	number = n ? list_number(list, n) : 0;
	w->whole = !frame;
	if (function && (n == frames.count || !frame) && w->count < WALK_STEPS)
		w->number = number;
	return number;
}

static __attribute__((noinline, cold)) uint32_t walk_checked(struct gil *g)
{
	int saved = errno;
	const char *frame = innermost(g);
	uint32_t number = can_read(frame) ? walk(frame, find_walk(g, frame)) : 0;

	if (number)
		frames.checked++;
	errno = saved;
	return number;
}

uint32_t frames_now(struct gil *g)
{
	struct walked *w;
	const char *frame;

	if (!frames.on)
		return 0;
	if (UNLIKELY(frames.checked < CHECKED))
		return walk_checked(g);
	frame = innermost(g);
	if (!frame)
		return 0;
	w = find_walk(g, frame);
	if (LIKELY(w->number && is_same_walk(w, frame)))
		return w->number;
	return walk(frame, w);
}

/* ---- the interpreter */

static bool read_offsets(unsigned major, unsigned minor)
{
	long fd = process_open_shared(PRELOAD_OFFSETS, O_RDONLY);
	bool found = false;

	if (fd < 0)
		return false;
	while (!found &&
	       syscall(SYS_read, fd, &frames.at, sizeof(frames.at)) == (long)sizeof(frames.at))
		found = frames.at.major == major && frames.at.minor == minor;
	syscall(SYS_close, fd);
	return found;
}

static bool find_version(const char *(*get_version)(void))
{
	const char *text = get_version ? get_version() : "";
	char *end;
	unsigned long major = strtoul(text, &end, 10);

	return *end == '.' && read_offsets((unsigned)major, (unsigned)strtoul(end + 1, NULL, 10));
}

void frames_begin(void *(*symbol)(const char *name))
{
	const char *(*get_version)(void);

	if (frames.on || !process.on || !process.control || !process.control->frames)
		return;
	*(void **)&get_version = symbol("Py_GetVersion");
	frames.code_type = symbol("PyCode_Type");
	frames.str_type = symbol("PyUnicode_Type");
	frames.bytes_type = symbol("PyBytes_Type");
	frames.none = symbol("_Py_NoneStruct");
	if (!find_version(get_version) || !frames.code_type || !frames.str_type ||
	    !frames.bytes_type)
		return;
	if (frames.at.minor < 9)
		*(void **)&frames.tstate = symbol("PyGILState_GetThisThreadState");
	/* PyTypeObject.tp_basicsize: from 3.11 on, the instructions follow the object. */
	frames.first_instruction = u32_at(frames.code_type, 4 * sizeof(void *));
	frames.count = process.control->frames < PRELOAD_FRAMES_MAX ? process.control->frames
	                                                            : PRELOAD_FRAMES_MAX;
	frames.on = (frames.at.minor >= 9 || frames.tstate) &&
	            table_make(&frames.functions, FUNCTIONS) && table_make(&frames.lists, LISTS);
}

/* A forked child, or another recording, has its own log, which must contain all functions again. */
void frames_again(void)
{
	atomic_flag_clear(&frames.lock);
	if (!frames.on)
		return;
	madvise(frames.functions.slots, FUNCTIONS * sizeof(struct slot), MADV_DONTNEED);
	madvise(frames.lists.slots, LISTS * sizeof(struct slot), MADV_DONTNEED);
	frames.functions.used = frames.lists.used = 0;
}
