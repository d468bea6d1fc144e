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
 *
 * A thread that waits reads the frames of the thread that runs, from copies that the kernel makes,
 * because the memory may be freed meanwhile. They count if a second reading finds the same frames.
 */
#include "preload/count.h"
#include "preload/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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

/* Limits for copies of the beginning of a frame, a code object and a str. */
#define OBJECT_BYTES 256

/* The number of attempts to write what another thread may be writing. */
#define LOCK_TRIES 100

/* The number of times that the frames of a running thread are read. */
#define TRIES 4

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
	struct python_layout at;
	const char *code_type, *str_type, *bytes_type, *none;
	/* Before 3.9: the thread's state, NULL once it is deleted. A thread that ends frees its state
	 * before it releases the GIL, whose last holder is then the freed state. */
	const char *(*tstate)(void), *(*current)(void), *(*own)(void);
	int (*line)(const void *code, int offset), (*ends)(void);
	unsigned count;
	uint32_t head; /* size of the head of an object; its type is the last member */
	uint32_t first_instruction;
	size_t frame_size, code_size; /* up to the last member that is used */
	atomic_uint checked;
	bool found; /* the layout */
	_Atomic bool on;
	atomic_flag lock;
	struct table functions, lists;
	_Atomic uint32_t generation;
	_Atomic uint64_t renewed_stamp;
} frames = { .lock = ATOMIC_FLAG_INIT };

/* ---- memory */

/* Mapped memory is assumed to be readable: no offset leads to a guard page. */
static __attribute__((noinline, cold)) bool is_mapped(const char *p)
{
	unsigned char vec[2];
	uintptr_t page = (uintptr_t)p & ~(uintptr_t)4095;

	int saved = errno;
	bool mapped = (uintptr_t)p >= 4096 && !((uintptr_t)p & 3) &&
	              syscall(SYS_mincore, page, 4096, vec) == 0;

	errno = saved;
	return mapped;
}

static inline bool can_read(const char *p)
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
	return can_read(object) && pointer_at(object, frames.at.frame[FRAME_TYPE]) == type;
}

/* Copies n pieces of memory, size bytes in all, that may not be mapped. */
static bool copy_all(const struct iovec *to, const struct iovec *from, unsigned n, size_t size)
{
	return syscall(SYS_process_vm_readv, process.pid, to, (unsigned long)n, from,
	               (unsigned long)n, 0UL) == (long)size;
}

bool frames_copy(void *ret, const char *from, size_t size)
{
	struct iovec to = { ret, size }, of = { (void *)(uintptr_t)from, size };

	return (uintptr_t)from >= 4096 && copy_all(&to, &of, 1, size);
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

/* A thread waits a moment for another one, but not for itself, if it has been interrupted. */
static bool take_lock(void)
{
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (!atomic_flag_test_and_set(&frames.lock))
			return true;
		syscall(SYS_sched_yield);
	}
	return false;
}

/* ---- functions seen for the first time */

/* A table is full. A flight recorder begins a new log, with empty tables; but not before all records that
 * refer to the log before the last one have been dropped. */
static void renew(void)
{
	uint64_t stamp = clock_stamp();

	if (!process_kept() || stamp - frames.renewed_stamp < 2 * process_kept() ||
	    atomic_flag_test_and_set(&frames.lock))
		return;
	if (process_renew_log()) {
		gils_log();
		frames.generation++;
		madvise(frames.functions.slots, FUNCTIONS * sizeof(struct slot), MADV_DONTNEED);
		madvise(frames.lists.slots, LISTS * sizeof(struct slot), MADV_DONTNEED);
		frames.functions.used = frames.lists.used = 0;
	}
	frames.renewed_stamp = stamp;
	atomic_flag_clear(&frames.lock);
}

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

/* Copies of what is described, protected by the lock. */
static struct {
	char head[OBJECT_BYTES];
	char text[4 * NAME_MAX_BYTES], table[TABLE_MAX_BYTES];
} copied;

/* The memory itself or, of another thread, a copy of it in ret; NULL: it cannot be read. */
static const char *view(char *ret, const char *from, size_t size, bool foreign)
{
	if (foreign)
		return frames_copy(ret, from, size) ? ret : NULL;
	return can_read(from) ? from : NULL;
}

/* Writes a str. PyUnicodeObject.state: kind in bits 2 to 4, compact is bit 5, ascii bit 6. */
static size_t put_str(char *ret, size_t room, const char *str, bool foreign)
{
	const char *head = view(copied.head, str, frames.at.frame[FRAME_TEXT], foreign), *text;
	uint32_t state;
	unsigned kind;
	size_t skip, len;

	if (!head || pointer_at(head, frames.at.frame[FRAME_TYPE]) != frames.str_type)
		return 0;
	state = u32_at(head, frames.at.frame[FRAME_STATE]);
	kind = state >> 2 & 7;
	if (!(state & 0x20) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	skip = state & 0x40 ? 0 : frames.at.memory[MEMORY_WIDE_TEXT] - frames.at.frame[FRAME_TEXT];
	len = (size_t)u64_at(head, frames.head);
	len = len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES;
	text = view(copied.text, str + frames.at.frame[FRAME_TEXT] + skip, len * kind, foreign);
	return text ? put_utf8(ret, room, text, len, kind) : 0;
}

static const char *file_of(const char *code)
{
	return pointer_at(code, frames.at.memory[MEMORY_FILE]);
}

static const char *table_of(const char *code)
{
	return pointer_at(code, frames.at.memory[MEMORY_TABLE]);
}

/* The interpreter has frames of its own code where C calls Python, and where a class creates an
 * object. */
static bool is_own(const char *name, size_t len, uint32_t line)
{
	static const char trampoline[] = "<interpreter trampoline>", init[] = "__init__";

	return (len == sizeof(trampoline) - 1 && !memcmp(name, trampoline, len)) ||
	       (!line && len == sizeof(init) - 1 && !memcmp(name, init, len));
}

size_t frames_text(char *ret, size_t room, const char *str)
{
	size_t len;

	if (!frames.on || !take_lock())
		return 0;
	len = put_str(ret, room, str, true);
	atomic_flag_clear(&frames.lock);
	return len;
}

struct described {
	struct preload_function head;
	char text[2 * NAME_MAX_BYTES];
};

/* A line table and its size. */
static const char *table_text(const char *table, size_t *ret_size, bool foreign)
{
	const size_t text = frames.head + 2 * sizeof(void *);
	const char *head = view(copied.head, table, text, foreign);

	*ret_size = 0;
	if (!head || pointer_at(head, frames.at.frame[FRAME_TYPE]) != frames.bytes_type)
		return NULL;
	*ret_size = (size_t)u64_at(head, frames.head);
	if (*ret_size > TABLE_MAX_BYTES)
		*ret_size = 0;
	return view(copied.table, table + text, *ret_size, foreign);
}

struct foreign;
static bool is_unchanged(const struct foreign *f);

/* The number of the function; 0: its description can be neither read nor written. f: the frames
 * that it was found in, of another thread; NULL: of this one */
static uint32_t describe(const struct step *s, const struct foreign *f)
{
	static uint32_t next;
	struct described d = { .head.first_line = s->line };
	const char *table;
	size_t name, file, size;

	name = put_str(d.text, NAME_MAX_BYTES, s->name, f);
	file = put_str(d.text + name, NAME_MAX_BYTES, s->file, f);
	table = table_text(s->table, &size, f);
	if (!name || (f && !is_unchanged(f)))
		return 0;
	if (is_own(d.text, name, d.head.first_line))
		return SKIP;
	d.head.name_len = (uint32_t)name;
	d.head.file_len = (uint32_t)file;
	d.head.table_len = (uint32_t)(table ? size : 0);
	return process_log2(&(struct preload_entry){ .type = PRELOAD_FUNCTION,
	                                             .number = next + 1,
	                                             .value = frames.at.minor },
	                    &d, sizeof(d.head) + name + file, table, d.head.table_len)
	               ? ++next
	               : 0;
}

static const char *name_of(const char *code)
{
	return pointer_at(code, frames.at.frame[FRAME_NAME]);
}

/* The hash of a str, which names have, because they are looked up. */
static uint64_t hash_of(const char *name)
{
	return u64_at(name, frames.head + (uint32_t)sizeof(void *));
}

/* From 3.14 on, the lowest bit marks immortal objects, which only the interpreter's own code
 * objects are. */
static bool has_code(const char *code)
{
	return !((uintptr_t)code & 1) && code != frames.none;
}

/* at: the code object, or a copy of it */
static struct step step_of(const char *code, uint64_t instruction, const char *at)
{
	return (struct step){
		.code = code,
		.has_code = true,
		.instruction = instruction,
		.name = name_of(at),
		.file = file_of(at),
		.table = table_of(at),
		.line = u32_at(at, frames.at.frame[FRAME_LINE]),
	};
}

/* Hashes the fields that distinguish a code object from a later one at the same address. */
static uint64_t identity(const struct step *s)
{
	uint64_t h = mix((uint64_t)(uintptr_t)s->code, (uint64_t)(uintptr_t)s->name);

	h = mix(h, (uint64_t)(uintptr_t)s->file);
	h = mix(h, (uint64_t)(uintptr_t)s->table);
	h = mix(h, s->line);
	h = mix(h, s->name_hash);
	return h ? h : 1;
}

static uint32_t number_of(const struct step *s, const struct foreign *f)
{
	uint64_t key = identity(s);
	uint32_t number = table_get(&frames.functions, key);

	if (LIKELY(number))
		return number;
	if (table_is_full(&frames.functions)) {
		renew();
		return 0;
	}
	if (!take_lock())
		return 0;
	number = table_get(&frames.functions, key);
	if (!number && (number = describe(s, f)))
		table_set(&frames.functions, key, number);
	atomic_flag_clear(&frames.lock);
	return number;
}

/* ---- frames */

/* generation: when the numbers of its functions were found */
static uint32_t list_number(const struct preload_frame *list, unsigned n, uint32_t generation)
{
	static uint32_t next;
	uint64_t key = n;
	uint32_t number;

	for (unsigned i = 0; i < n; i++)
		key = mix(key, (uint64_t)list[i].function << 32 | (uint32_t)list[i].offset);
	key = key ? key : 1;
	number = table_get(&frames.lists, key);
	if (LIKELY(number))
		return number;
	if (table_is_full(&frames.lists))
		renew();
	if (frames.generation != generation || !take_lock())
		return 0;
	number = table_get(&frames.lists, key);
	if (!number && !table_is_full(&frames.lists) && frames.generation == generation &&
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
	return frames.at.frame[FRAME_INSTRUCTION_SIZE] == 4
	               ? u32_at(frame, frames.at.frame[FRAME_INSTRUCTION])
	               : u64_at(frame, frames.at.frame[FRAME_INSTRUCTION]);
}

static int32_t offset_in(const char *code, uint64_t instruction)
{
	int64_t offset;

	if (frames.at.frame[FRAME_INSTRUCTION_SIZE] == 4) {
		offset = (int32_t)instruction;
		if (offset > 0)
			offset *= frames.at.unit;
	} else {
		offset = (const char *)(uintptr_t)instruction - code - frames.first_instruction;
	}
	return offset < 0 || offset > INT32_MAX ? -1 : (int32_t)offset;
}

/* The innermost frame of a state that its thread uses. */
static const char *frame_in(const char *tstate)
{
	const char *frame;

	if (!can_read(tstate))
		return NULL;
	frame = pointer_at(tstate, frames.at.frame[FRAME_CURRENT]);
	if (frames.at.frame[FRAME_CURRENT2] != PYTHON_NO_OFFSET)
		frame = can_read(frame) ? pointer_at(frame, frames.at.frame[FRAME_CURRENT2]) : NULL;
	return frame;
}

bool frames_end(void)
{
	return frames.ends && frames.ends();
}

const char *frames_running(const struct self *me)
{
	if (!gils_held(me))
		return me->released_in;
	if (!frames.current || frames.at.frame[FRAME_CURRENT] == PYTHON_NO_OFFSET)
		return NULL;
	return frame_in(frames.current());
}

/* The interpreter's own frame is a part of the thread's state, which a thread that ends frees after it has
 * released the GIL. */
static bool is_of_state(const char *frame)
{
	return can_read(frame) && !pointer_at(frame, frames.at.frame[FRAME_PREVIOUS]) &&
	       !has_code(pointer_at(frame, frames.at.frame[FRAME_CODE]));
}

const char *frames_innermost(const struct gil *g)
{
	const char *tstate = frames.tstate ? frames.tstate() : NULL, *frame;

	/* Without a layout of this version, nothing is known but where the holder is. */
	if (!frames.on || (frames.tstate && !tstate) ||
	    frames.at.frame[FRAME_CURRENT] == PYTHON_NO_OFFSET)
		return NULL;
	if (frames.at.knows_holder)
		tstate = pointer_at((const char *)g->cond - GIL_LAST_HOLDER, 0);
	frame = frame_in(tstate);
	return is_of_state(frame) ? NULL : frame;
}

/* The function of a frame of this thread; has_code: false: the frame is the interpreter's own.
 * False: the walk ends here. */
static bool see(struct step *ret, const char *code, uint64_t instruction)
{
	*ret = (struct step){ .code = code };
	if (!has_code(code))
		return true;
	if (!is_a(code, frames.code_type))
		return false;
	*ret = step_of(code, instruction, code);
	ret->name_hash = can_read(ret->name) ? hash_of(ret->name) : 0;
	return true;
}

/* ---- walks that are remembered */

static struct walked *find_walk(struct gil *g, const char *frame)
{
	uint64_t instruction = instruction_of(frame);

	return &g->walks[(instruction >> 1 ^ instruction >> 4) % WALKS];
}

static bool is_same_code(const struct step *s)
{
	const char *code = s->code;

	return name_of(code) == s->name && file_of(code) == s->file && table_of(code) == s->table &&
	       u32_at(code, frames.at.frame[FRAME_LINE]) == s->line &&
	       (!s->name || hash_of(s->name) == s->name_hash);
}

static bool is_same_walk(const struct walked *w, const char *frame)
{
	for (unsigned i = 0; i < w->count; i++) {
		const struct step *s = &w->steps[i];

		if (!frame || pointer_at(frame, frames.at.frame[FRAME_CODE]) != s->code)
			return false;
		if (s->has_code && (instruction_of(frame) != s->instruction || !is_same_code(s)))
			return false;
		frame = pointer_at(frame, frames.at.frame[FRAME_PREVIOUS]);
	}
	return !w->whole || !frame;
}

/* Stores at most @most frames in w if the walk is complete and there is room. */
static uint32_t walk(const char *frame, struct walked *w, unsigned most)
{
	struct preload_frame list[PRELOAD_WAIT_FRAMES_MAX];
	uint32_t function = 1, number;
	unsigned n = 0;

	w->number = w->count = 0;
	w->generation = frames.generation;
	for (unsigned i = 0; n < most && i < STEPS_MAX && frame; i++) {
		struct step step;

		if (!can_read(frame))
			return 0;
		function = 0;
		if (see(&step, pointer_at(frame, frames.at.frame[FRAME_CODE]),
		        instruction_of(frame)))
			function = step.has_code ? number_of(&step, NULL) : SKIP;
		if (!function)
			break;
		if (i < WALK_STEPS)
			w->steps[w->count++] = step;
		if (function != SKIP)
			list[n++] = (struct preload_frame){ function, offset_in(step.code,
				                                                step.instruction) };
		frame = pointer_at(frame, frames.at.frame[FRAME_PREVIOUS]);
	}
	number = n ? list_number(list, n, w->generation) : 0;
	w->whole = !frame;
	if (function && (n == most || !frame) && w->count < WALK_STEPS)
		w->number = number;
	return number;
}

static __attribute__((noinline, cold)) uint32_t walk_checked(struct gil *g, const char *frame)
{
	int saved = errno;
	uint32_t number = can_read(frame) ? walk(frame, find_walk(g, frame), frames.count) : 0;

	if (number)
		frames.checked++;
	errno = saved;
	return number;
}

uint32_t frames_now(struct gil *g, const char *frame)
{
	struct walked *w;

	if (!frame)
		return 0;
	if (UNLIKELY(frames.checked < CHECKED))
		return walk_checked(g, frame);
	w = find_walk(g, frame);
	if (LIKELY(w->number && w->generation == frames.generation && is_same_walk(w, frame)))
		return w->number;
	return walk(frame, w, frames.count);
}

uint32_t frames_from(const char *frame)
{
	int saved = errno;
	struct walked w;
	uint32_t number = 0;

	if (frames.on && can_read(frame)) {
		number = walk(frame, &w, PRELOAD_WAIT_FRAMES_MAX);
		if (!number) /* there is no room for more lists: perhaps a shorter one is known */
			number = walk(frame, &w, frames.count);
	}
	errno = saved;
	return number;
}

/* ---- frames of the thread that runs */

#define FOREIGN_STEPS 24
#define CODES         8 /* of them whose code objects are read at once */
#define PAGE          4096

/* The innermost frames of a thread; at[i]: the address of frame i. */
struct foreign {
	const char *tstate;
	const char *at[FOREIGN_STEPS];
	struct step steps[FOREIGN_STEPS];
	unsigned count;
};

/* A copy of a page of memory, or of a part that begins there. */
struct window {
	const char *from, *end;
	char bytes[PAGE + OBJECT_BYTES];
};

/* A copy of size bytes. A frame is often in the page of the one that it called. */
static const char *look_through(struct window *w, const char *at, size_t size)
{
	if (at < w->from || at >= w->end || (size_t)(w->end - at) < size) {
		w->from = (const char *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
		w->end = at + size > w->from + PAGE ? at + size : w->from + PAGE;
		if (!frames_copy(w->bytes, w->from, (size_t)(w->end - w->from))) {
			w->end = w->from;
			return NULL;
		}
	}
	return w->bytes + (at - w->from);
}

/* Fills in what is known of the frames' code objects, some at a time. */
static bool read_codes(struct step *steps[], unsigned n)
{
	char bytes[CODES][OBJECT_BYTES];
	struct iovec to[CODES], of[CODES];

	for (unsigned i = 0; i < n; i++) {
		to[i] = (struct iovec){ bytes[i], frames.code_size };
		of[i] = (struct iovec){ (void *)(uintptr_t)steps[i]->code, frames.code_size };
	}
	if (!copy_all(to, of, n, n * frames.code_size))
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (pointer_at(bytes[i], frames.at.frame[FRAME_TYPE]) != frames.code_type)
			return false;
		*steps[i] = step_of(steps[i]->code, steps[i]->instruction, bytes[i]);
		to[i] = (struct iovec){ &steps[i]->name_hash, sizeof(uint64_t) };
		of[i] = (struct iovec){ (void *)(uintptr_t)(steps[i]->name + frames.head +
			                                    sizeof(void *)),
			                sizeof(uint64_t) };
	}
	return copy_all(to, of, n, n * sizeof(uint64_t));
}

static bool read_all_codes(struct foreign *f)
{
	struct step *steps[CODES];
	unsigned n = 0;

	for (unsigned i = 0; i < f->count; i++) {
		if (f->steps[i].has_code)
			steps[n++] = &f->steps[i];
		if (n == CODES || (n && i + 1 == f->count)) {
			if (!read_codes(steps, n))
				return false;
			n = 0;
		}
	}
	return true;
}

/* Reads the frames of the innermost functions, without what is known of their code. False: they
 * cannot be read. */
static bool read_frames(struct foreign *f)
{
	struct window w;
	const char *frame;
	unsigned functions = 0;

	f->count = 0;
	w.from = w.end = NULL;
	if (!frames_copy(&frame, f->tstate + frames.at.frame[FRAME_CURRENT], sizeof(frame)) ||
	    (frames.at.frame[FRAME_CURRENT2] != PYTHON_NO_OFFSET &&
	     !frames_copy(&frame, frame + frames.at.frame[FRAME_CURRENT2], sizeof(frame))))
		return false;
	while (frame && functions < PRELOAD_HELD_FRAMES_MAX && f->count < FOREIGN_STEPS) {
		const char *bytes = look_through(&w, frame, frames.frame_size);
		struct step *step = &f->steps[f->count];

		if (!bytes)
			return false;
		*step = (struct step){ .code = pointer_at(bytes, frames.at.frame[FRAME_CODE]),
			               .instruction = instruction_of(bytes) };
		step->has_code = has_code(step->code);
		functions += step->has_code;
		f->at[f->count++] = frame;
		frame = pointer_at(bytes, frames.at.frame[FRAME_PREVIOUS]);
	}
	return true;
}

/* Whether both are of the same calls; the innermost function may have gone on. */
static bool is_same_call(const struct foreign *a, const struct foreign *b)
{
	if (a->count != b->count)
		return false;
	for (unsigned i = 0; i < a->count; i++)
		if (a->at[i] != b->at[i] || a->steps[i].code != b->steps[i].code ||
		    (i && a->steps[i].instruction != b->steps[i].instruction))
			return false;
	return true;
}

/* Whether the thread still executes these calls, so that their code objects exist. */
static bool is_unchanged(const struct foreign *f)
{
	struct foreign now;

	now.tstate = f->tstate;
	return read_frames(&now) && is_same_call(f, &now);
}

static uint32_t number_foreign(const struct foreign *f)
{
	struct preload_frame list[PRELOAD_HELD_FRAMES_MAX];
	uint32_t generation = frames.generation;
	unsigned n = 0;

	for (unsigned i = 0; i < f->count; i++) {
		const struct step *s = &f->steps[i];
		uint32_t function = s->has_code ? number_of(s, f) : SKIP;

		if (!function)
			break;
		if (function != SKIP)
			list[n++] = (struct preload_frame){ function,
				                            offset_in(s->code, s->instruction) };
	}
	return n && is_unchanged(f) ? list_number(list, n, generation) : 0;
}

uint32_t frames_of_thread(const char *tstate)
{
	int saved = errno;
	struct foreign f = { .tstate = tstate };
	uint32_t number = 0;

	if (!frames.on)
		return 0;
	for (unsigned i = 0; !number && i < TRIES; i++)
		if (read_frames(&f) && read_all_codes(&f))
			number = number_foreign(&f);
	errno = saved;
	return number;
}

uint32_t frames_of_holder(const struct gil *g)
{
	uint32_t number;

	if (!frames.on || !frames.at.knows_holder)
		return 0;
	number = frames_of_thread(pointer_at((const char *)g->cond - GIL_LAST_HOLDER, 0));
	return number || !frames.at.asks_rarely ? number : FRAMES_TORN;
}

/* ---- the interpreter */

/* published: the table of the interpreter, NULL: it has none */
bool frames_layout(struct python_layout *layout, const void *published)
{
	long fd = process.on ? process_open_shared(PRELOAD_OFFSETS, O_RDONLY)
	                     : count_open_file(PRELOAD_OFFSETS);
	struct python_layout other;
	bool found = false;

	while (fd >= 0 && !found &&
	       syscall(SYS_read, fd, &other, sizeof(other)) == (long)sizeof(other))
		found = python_layout_is_of(layout, &other);
	if (fd >= 0)
		syscall(SYS_close, fd);
	if (found)
		*layout = other;
	return (published && python_layout_from_table(layout, published, PYTHON_TABLE_SIZE)) ||
	       found;
}

/* Whether there is room for a copy of all that is used of an object. */
static bool find_sizes(void)
{
	static const enum python_frame_key of_frame[] = { FRAME_CODE, FRAME_PREVIOUS,
		                                          FRAME_INSTRUCTION };
	const uint32_t *at = frames.at.frame, *memory = frames.at.memory;
	const uint32_t of_code[] = { at[FRAME_LINE], at[FRAME_NAME], memory[MEMORY_FILE],
		                     memory[MEMORY_TABLE] };
	uint32_t frame = 0, code = 0;

	for (unsigned i = 0; i < 3; i++)
		frame = at[of_frame[i]] > frame ? at[of_frame[i]] : frame;
	for (unsigned i = 0; i < 4; i++)
		code = of_code[i] > code ? of_code[i] : code;
	if (frame >= OBJECT_BYTES || code >= OBJECT_BYTES)
		return false;
	frames.frame_size = frame + sizeof(void *);
	frames.code_size = code + sizeof(void *);
	return frames.frame_size <= OBJECT_BYTES && frames.code_size <= OBJECT_BYTES &&
	       at[FRAME_TEXT] <= OBJECT_BYTES;
}

static bool find_version(const char *(*get_version)(void), bool free_threaded,
                         const void *published)
{
	const char *text = get_version ? get_version() : "";
	char *end;
	unsigned long major = strtoul(text, &end, 10);

	if (*end != '.')
		return false;
	python_layout_init(&frames.at, (unsigned)major, (unsigned)strtoul(end + 1, NULL, 10),
	                   free_threaded);
	return frames_layout(&frames.at, published);
}

/* False: it is not known. */
static bool find_layout(void *(*symbol)(const char *name))
{
	const char *(*get_version)(void);

	if (frames.found)
		return true;
	*(void **)&get_version = symbol("Py_GetVersion");
	frames.code_type = symbol("PyCode_Type");
	frames.str_type = symbol("PyUnicode_Type");
	frames.bytes_type = symbol("PyBytes_Type");
	frames.none = symbol("_Py_NoneStruct");
	if (!find_version(get_version, symbol("_Py_MergeZeroLocalRefcount"),
	                  symbol("_PyRuntime")) ||
	    !find_sizes() || !frames.code_type || !frames.str_type || !frames.bytes_type)
		return false;
	frames.head = frames.at.frame[FRAME_TYPE] + (uint32_t)sizeof(void *);
	if (!frames.at.holder_is_current)
		*(void **)&frames.tstate = symbol("PyGILState_GetThisThreadState");
	*(void **)&frames.current = symbol("PyThreadState_GetUnchecked");
	if (!frames.current)
		*(void **)&frames.current = symbol("_PyThreadState_UncheckedGet");
	*(void **)&frames.own = symbol("PyGILState_GetThisThreadState");
	*(void **)&frames.line = symbol("PyCode_Addr2Line");
	*(void **)&frames.ends = symbol("Py_IsFinalizing");
	if (!frames.ends)
		*(void **)&frames.ends = symbol("_Py_IsFinalizing");
	/* PyTypeObject.tp_basicsize: from 3.11 on, the instructions follow the object. */
	frames.first_instruction = u32_at(frames.code_type,
	                                  frames.head + 2 * (uint32_t)sizeof(void *));
	frames.found = frames.at.holder_is_current || frames.tstate;
	return frames.found;
}

void frames_begin(void *(*symbol)(const char *name))
{
	if (frames.on || !process.on || !process.control || !process.control->frames ||
	    !find_layout(symbol))
		return;
	frames.count = process.control->frames < PRELOAD_FRAMES_MAX ? process.control->frames
	                                                            : PRELOAD_FRAMES_MAX;
	frames.on = table_make(&frames.functions, FUNCTIONS) && table_make(&frames.lists, LISTS);
}

/* ---- where threads wait for locks, for the page of totals */

#define PLACES_BITS 8
#define PLACE_BITS  16 /* of an entry; the others are of its key */

/* What is known of an instruction of a code object, by hash. */
enum place {
	PLACE_LINE = 0xff, /* number of the line in the page of totals; all bits: it has none yet */
	PLACE_WAIT_AT = 8, /* enum python_wait, if it is the innermost frame */
	PLACE_TURN = 1 << 10,   /* python_calls_for_turn() */
	PLACE_BEHIND = 1 << 11, /* python_waits_behind() */
	PLACE_OWN = 1 << 12,    /* a frame of the interpreter itself */
};

static _Atomic uint64_t places[1 << PLACES_BITS];

void frames_forget_places(void)
{
	for (unsigned i = 0; i < 1 << PLACES_BITS; i++)
		places[i] = 0;
}

void frames_count_locks(void *(*symbol)(const char *name))
{
	find_layout(symbol);
}

/* CPython computes it from the code object alone, which exists as long as the frame. */
static uint32_t line_in(const struct python_code *code, int32_t offset)
{
	int line = frames.line ? frames.line(code->data, offset) : 0;

	return line > 0 ? (uint32_t)line : 0;
}

/* FUNCTION (FILE:LINE), without the folder. */
static void put_line(char at[static TOTALS_LOCK_TEXT], const struct python_code *code,
                     uint32_t line)
{
	const char *end = code->file + code->file_len, *file = end;
	size_t room = TOTALS_LOCK_TEXT - 16,
	       len = code->name_len < room / 2 ? code->name_len : room / 2;

	while (file > code->file && file[-1] != '/')
		file--;
	memcpy(at, code->name, len);
	at += len;
	*at++ = ' ';
	*at++ = '(';
	len = (size_t)(end - file) < room / 2 - 2 ? (size_t)(end - file) : room / 2 - 2;
	memcpy(at, file, len);
	at += len;
	*at++ = ':';
	at = process_put_number(at, line);
	*at++ = ')';
	*at = '\0';
}

struct place_texts {
	char name[256], file[1024];
};

static struct python_code code_of_step(const struct step *step, struct place_texts *texts)
{
	return (struct python_code){
		.name = texts->name,
		.file = texts->file,
		.name_len = put_str(texts->name, sizeof(texts->name), step->name, false),
		.file_len = put_str(texts->file, sizeof(texts->file), step->file, false),
		.line = line_in,
		.data = step->code,
	};
}

static uint64_t describe_place(const struct step *step)
{
	struct place_texts texts;
	const struct python_code code = code_of_step(step, &texts);

	if (is_own(texts.name, code.name_len, step->line))
		return PLACE_OWN;
	return PLACE_LINE |
	       (uint64_t)python_wait_in(&code, offset_in(step->code, step->instruction))
	               << PLACE_WAIT_AT |
	       (python_calls_for_turn(&code) ? PLACE_TURN : 0) |
	       (python_waits_behind(&code) ? PLACE_BEHIND : 0);
}

/* @entry: of the table, with its key */
struct placed {
	struct step step;
	_Atomic uint64_t *entry;
	uint64_t place;
};

static void find_place(struct placed *p)
{
	/* A thread that was preempted may still put a number of an earlier page there. */
	const uint64_t key = mix(mix(identity(&p->step), p->step.instruction), process.recording)
	                     << PLACE_BITS;

	p->entry = &places[(key >> PLACE_BITS) % (1 << PLACES_BITS)];
	p->place = atomic_load_explicit(p->entry, memory_order_relaxed);
	if (p->place && p->place >> PLACE_BITS << PLACE_BITS == key)
		return;
	p->place = describe_place(&p->step) | key;
	atomic_store_explicit(p->entry, p->place, memory_order_relaxed);
}

/* Goes from *frame outwards to a function of the program or its libraries. False: there is none. */
static bool next_place(struct placed *ret, const char **frame)
{
	for (unsigned i = 0; frames.found && i < STEPS_MAX && can_read(*frame); i++) {
		const char *code = pointer_at(*frame, frames.at.frame[FRAME_CODE]);
		bool seen = see(&ret->step, code, instruction_of(*frame));

		*frame = pointer_at(*frame, frames.at.frame[FRAME_PREVIOUS]);
		if (!seen)
			return false;
		if (!ret->step.has_code)
			continue;
		find_place(ret);
		if (!(ret->place & PLACE_OWN))
			return true;
	}
	return false;
}

const char *frames_without_gil(void)
{
	const char *tstate = frames.found && frames.own ? frames.own() : NULL;

	return tstate ? frame_in(tstate) : NULL;
}

enum python_wait frames_lock_wait(const char *frame)
{
	enum python_wait wait = PYTHON_WAIT_ANY;
	int saved = errno;
	struct placed p;

	if (next_place(&p, &frame)) {
		wait = (enum python_wait)(p.place >> PLACE_WAIT_AT & 3);
		if (next_place(&p, &frame) && p.place & PLACE_TURN)
			wait = PYTHON_WAIT_TURN;
	}
	errno = saved;
	return wait;
}

void frames_find_line(struct frames_line *ret, const char *frame)
{
	int saved = errno;
	struct placed p;
	bool found;

	while ((found = next_place(&p, &frame)) && p.place & PLACE_BEHIND)
		continue;
	*ret = (struct frames_line){ .number = found ? p.place & PLACE_LINE : TOTALS_LOCK_OTHER };
	if (found)
		frames.checked++;
	if (ret->number == PLACE_LINE) {
		struct place_texts texts;
		const struct python_code code = code_of_step(&p.step, &texts);

		put_line(ret->where, &code,
		         line_in(&code, offset_in(p.step.code, p.step.instruction)));
		ret->entry = p.entry;
		ret->place = p.place;
	}
	errno = saved;
}

uint32_t frames_number_line(struct frames_line *line)
{
	if (line->number == PLACE_LINE) {
		line->number = count_lock_line(line->where);
		atomic_store_explicit(line->entry,
		                      (line->place & ~(uint64_t)PLACE_LINE) | line->number,
		                      memory_order_relaxed);
	}
	return line->number;
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
