/* SPDX-License-Identifier: MIT */
/* Versions of CPython. */
#include "python/layout.h"

#include <string.h>

bool python_has_monitoring(unsigned minor)
{
	return minor >= 12;
}

void python_layout_init(struct python_layout *ret, unsigned major, unsigned minor,
                        bool free_threaded)
{
	const bool is_3 = major == 3;
	const uint32_t header = free_threaded ? 32 : 16;

	*ret = (struct python_layout){
		.major = major,
		.minor = minor,
		.free_threaded = free_threaded,
		.header = header,
		/* The same in all versions. */
		.type = { .name = header + 8,
		          .size = header + 16,
		          .vectorcall = header + 40,
		          .hash = header + 104,
		          .base = header + 240 },
		.function = { .definition = header,
		              .self = header + 8,
		              .module = header + 16,
		              .vectorcall = header + 32 },
		.method_definition = header + 24,
		.object_type = header - 8,
		.frame_inside = minor >= 11 ? header + 8 : PYTHON_NO_OFFSET,
		.unit = minor == 10 ? 2 : 1,
		.is_supported = is_3 && minor >= 6,
		.has_monitoring = python_has_monitoring(minor),
		.has_evaluator = minor <= 11,
		.has_qualname = minor >= 11,
		.has_task_names = minor >= 8,
		.has_c_current_task = minor >= 12,
		.has_eager_tasks = minor >= 12,
		.makes_task_inside = minor == 10 || minor == 11,
		.knows_holder = minor >= 7,
		.holder_is_current = minor >= 9,
		.asks_rarely = minor >= 10,
		.states_know_thread = minor >= 13,
	};
	for (unsigned i = 0; i < FRAME_KEYS; i++)
		ret->frame[i] = PYTHON_NO_OFFSET;
	for (unsigned i = 0; i < MEMORY_KEYS; i++)
		ret->memory[i] = PYTHON_NO_OFFSET;
	for (unsigned i = 0; i < CALL_KEYS; i++)
		ret->call[i] = PYTHON_NO_OFFSET;
}

/* The order is co_filename, co_name, co_qualname (from 3.11 on), and the table of lines. The characters of
 * an ASCII str follow its head; other strings have the members for UTF-8 and, up to 3.11, wchar_t in
 * between. */
void python_layout_of_frames(struct python_layout *layout)
{
	const uint32_t name = layout->frame[FRAME_NAME];

	layout->memory[MEMORY_FILE] = name - (layout->minor < 11 ? 8 : 16);
	layout->memory[MEMORY_TABLE] = name + 8;
	layout->memory[MEMORY_WIDE_TEXT] = layout->frame[FRAME_TEXT] +
	                                   (layout->minor < 12 ? 24 : 16);
}

/* ---- the table that the interpreter publishes */

#define COOKIE             "xdebugpy"
#define VERSION_WORD       1 /* PY_VERSION_HEX */
#define FREE_THREADED_WORD 2
#define STRUCT_MAX         (1u << 24) /* size of a struct */
#define OFFSET_MAX         0xffff

/* The versions whose tables differ. A later one is read as the last of these, and if it is not like that,
 * the checks of its offsets fail. */
enum { TABLE_13, TABLE_14, TABLE_15, TABLES };

enum { IN_FRAME, IN_MEMORY };

/* So much is read of an object at once. */
#define THREAD_END 512
#define FRAME_END  248
#define CODE_END   192
#define STR_END    64

/**
 * A member of the table. Its words are counted from 0; the test published.t shows that they lead to
 * the same stacks and calls as the definitions of the versions do.
 * @word: by version; 0: as in the version before, or there is none yet
 * @size: of the word with the size of its struct, likewise
 * @bytes: size of what is at the offset; @end: where that ends at the latest
 * @group, @key: where it goes
 */
static const struct published {
	uint8_t word[TABLES], size[TABLES];
	uint8_t bytes;
	uint16_t end;
	uint8_t group, key;
} published[] = {
	{ { 5 }, { 3 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_INTERPRETERS },
	{ { 7 }, { 6 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_INTERPRETER_ID },
	{ { 8 }, { 6 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_NEXT_INTERPRETER },
	{ { 9 }, { 6 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_THREADS },
	{ { 11, 12 }, { 6 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_MODULES },
	{ { 14, 15 }, { 6 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_GIL },
	{ { 21, 24 }, { 19, 22 }, 8, THREAD_END, IN_MEMORY, MEMORY_NEXT_THREAD },
	{ { 22, 25 }, { 19, 22 }, 8, THREAD_END, IN_MEMORY, MEMORY_INTERPRETER },
	{ { 23, 26 }, { 19, 22 }, 8, THREAD_END, IN_FRAME, FRAME_CURRENT },
	{ { 24, 27, 30 }, { 19, 22 }, 8, THREAD_END, IN_MEMORY, MEMORY_THREAD_ID },
	{ { 25, 28, 31 }, { 19, 22 }, 8, THREAD_END, IN_MEMORY, MEMORY_NATIVE_ID },
	{ { 0, 0, 35 }, { 19, 22 }, 4, THREAD_END, IN_MEMORY, MEMORY_REQUESTS_GIL },
	{ { 29, 32, 40 }, { 28, 31, 39 }, 8, FRAME_END, IN_FRAME, FRAME_PREVIOUS },
	{ { 30, 33, 41 }, { 28, 31, 39 }, 8, FRAME_END, IN_FRAME, FRAME_CODE },
	{ { 31, 34, 42 }, { 28, 31, 39 }, 8, FRAME_END, IN_FRAME, FRAME_INSTRUCTION },
	{ { 35, 40, 48 }, { 34, 39, 47 }, 8, CODE_END, IN_MEMORY, MEMORY_FILE },
	{ { 37, 42, 50 }, { 34, 39, 47 }, 8, CODE_END, IN_FRAME, FRAME_NAME },
	{ { 38, 43, 51 }, { 34, 39, 47 }, 8, CODE_END, IN_MEMORY, MEMORY_TABLE },
	{ { 39, 44, 52 }, { 34, 39, 47 }, 4, CODE_END, IN_FRAME, FRAME_LINE },
	{ { 43, 48, 56 }, { 34, 39, 47 }, 0, OFFSET_MAX, IN_MEMORY, MEMORY_INSTRUCTIONS },
	{ { 45, 51, 59 }, { 44, 50, 58 }, 8, STR_END, IN_FRAME, FRAME_TYPE },
	{ { 0, 0, 67 }, { 0, 0, 66 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_CACHED_KEYS },
	{ { 65, 75, 87 }, { 64, 74, 86 }, 8, OFFSET_MAX, IN_MEMORY, MEMORY_SIZE },
	{ { 66, 76, 88 }, { 64, 74, 86 }, 1, OFFSET_MAX, IN_MEMORY, MEMORY_BYTES },
	{ { 68, 78, 90 }, { 67, 77, 89 }, 4, STR_END, IN_FRAME, FRAME_STATE },
	{ { 69, 79, 91 }, { 67, 77, 89 }, 8, STR_END, IN_MEMORY, MEMORY_LENGTH },
	{ { 70, 80, 92 }, { 67, 77, 89 }, 0, STR_END, IN_FRAME, FRAME_TEXT },
	{ { 0, 0, 93 }, { 67, 77, 89 }, 0, STR_END, IN_MEMORY, MEMORY_WIDE_TEXT },
};

/* The table is in memory from its first word on, so the part about debuggers has an offset itself. */
static const uint8_t debugger_word[TABLES] = { 0, 89, 105 };

/* The offset of the GIL in an interpreter's state, and its members there. The word after the first one is the
 * offset in the GIL of the member that says whether it is on; 0, too, in builds that have none. */
static const uint8_t gil_word[TABLES] = { 15, 16 };
static const uint8_t locked_word[TABLES] = { 17, 18 };
static const uint8_t holder_word[TABLES] = { 18, 19 };

/* Up to 3.14, ht_cached_keys is not published: that far behind PyTypeObject, whose size is. */
#define CACHED_KEYS_BEHIND 464
static const uint8_t type_size[TABLES] = { 46, 52, 60 };

struct table {
	uint64_t word[PYTHON_TABLE_SIZE / 8];
	size_t words;
};

/* A table of an unknown version may be shorter than those that are known. */
static bool get(const struct table *t, unsigned word, uint64_t *ret)
{
	*ret = word < t->words ? t->word[word] : UINT64_MAX;
	return word < t->words;
}

/* A version has what it does not move where the version before has it. */
static unsigned of(const uint8_t words[TABLES], unsigned version)
{
	while (version && !words[version])
		version--;
	return words[version];
}

static bool take(struct python_layout *to, const struct table *t, const struct published *p,
                 unsigned version)
{
	const unsigned word = of(p->word, version);
	uint64_t offset, size;

	if (!word)
		return true;
	if (!get(t, word, &offset) || !get(t, of(p->size, version), &size) || size > STRUCT_MAX ||
	    offset > OFFSET_MAX || offset + p->bytes > p->end || offset + p->bytes > size ||
	    (p->bytes && offset % p->bytes))
		return false;
	(p->group == IN_FRAME ? to->frame : to->memory)[p->key] = (uint32_t)offset;
	return true;
}

static bool is_gil_known(const struct table *t, unsigned version, uint32_t before)
{
	uint64_t gil, on, locked, holder;

	return get(t, of(gil_word, version), &gil) && get(t, of(gil_word, version) + 1, &on) &&
	       get(t, of(locked_word, version), &locked) &&
	       get(t, of(holder_word, version), &holder) && (!before || !on) &&
	       locked - gil == before + PYTHON_GIL_LOCKED &&
	       holder - gil == before + PYTHON_GIL_HOLDER;
}

/* Whether the head of a str is in front of its characters. */
static bool is_str_known(const struct python_layout *l)
{
	const uint32_t text = l->frame[FRAME_TEXT];

	return l->frame[FRAME_TYPE] + 8 <= text && l->frame[FRAME_STATE] + 4 <= text &&
	       l->memory[MEMORY_LENGTH] + 8 <= text && l->memory[MEMORY_WIDE_TEXT] >= text;
}

static bool is_of(const struct table *t, const struct python_layout *layout)
{
	uint64_t version, free_threaded;

	return t->words && !memcmp(t->word, COOKIE, sizeof(t->word[0])) &&
	       get(t, VERSION_WORD, &version) && get(t, FREE_THREADED_WORD, &free_threaded) &&
	       version >> 24 == layout->major && (version >> 16 & 0xff) == layout->minor &&
	       free_threaded == layout->free_threaded;
}

bool python_layout_from_table(struct python_layout *layout, const void *table, size_t size)
{
	struct python_layout to = *layout;
	struct table t = { .words = (size < PYTHON_TABLE_SIZE ? size : PYTHON_TABLE_SIZE) / 8 };
	const uint32_t before = to.free_threaded ? PYTHON_GIL_AFTER_ON : 0;
	uint64_t size_of_type;
	unsigned version;

	if (to.major != 3 || to.minor < PYTHON_TABLE_FIRST)
		return false;
	memcpy(t.word, table, t.words * 8);
	if (!is_of(&t, layout))
		return false;
	version = to.minor < PYTHON_TABLE_FIRST + TABLES ? to.minor - PYTHON_TABLE_FIRST
	                                                 : TABLES - 1;
	to.frame[FRAME_CURRENT2] = PYTHON_NO_OFFSET;
	to.frame[FRAME_INSTRUCTION_SIZE] = 8;
	for (size_t i = 0; i < sizeof(published) / sizeof(*published); i++)
		if (!take(&to, &t, &published[i], version))
			return false;
	if (!is_gil_known(&t, version, before))
		return false;
	to.memory[MEMORY_HOLDER] = before + PYTHON_GIL_HOLDER;
	to.memory[MEMORY_LOCKED] = before + PYTHON_GIL_LOCKED;
	to.memory[MEMORY_GIL_SIZE] = before + PYTHON_GIL_SIZE;
	if (before)
		to.memory[MEMORY_GIL_ON] = 0;
	if (of(debugger_word, version))
		to.memory[MEMORY_DEBUGGER] = of(debugger_word, version) * 8;
	if (to.memory[MEMORY_CACHED_KEYS] == PYTHON_NO_OFFSET &&
	    get(&t, of(type_size, version), &size_of_type) && size_of_type <= OFFSET_MAX)
		to.memory[MEMORY_CACHED_KEYS] = (uint32_t)size_of_type + CACHED_KEYS_BEHIND;
	if (to.memory[MEMORY_WIDE_TEXT] == PYTHON_NO_OFFSET)
		to.memory[MEMORY_WIDE_TEXT] = to.frame[FRAME_TEXT] + 16;
	if (!is_str_known(&to))
		return false;
	*layout = to;
	return true;
}
