/* SPDX-License-Identifier: MIT */
#include "python/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/idmap.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "binary/symbols.h"
#include "python/target.h"
#include "python/memory.h"
#include "python/pycode.h"

/* Longer texts are truncated: names and paths are only shown to people. */
#define TEXT_MAX  4096
#define TABLE_MAX (1u << 20)

/* PyASCIIObject.state, Include/cpython/unicodeobject.h; tests/system/frame-offsets.t. */
#define STATE_KIND(state) ((state) >> 2 & 7)
#define STATE_COMPACT     0x20
#define STATE_ASCII       0x40

/* More than any program has: what is kept of its code objects, in number and bytes, and the bytes of
 * line tables that are decoded for a snapshot. */
#define CODES_MAX      262144
#define CODE_BYTES_MAX (256u << 20)
#define LINE_BYTES_MAX (256u << 20)

/* All code objects that were seen; by_address has the newest at each address. */
struct codes {
	VEC(struct live_code *) all;
	struct idmap by_address;
	size_t bytes;            /* of their texts and tables */
	struct live_code others; /* in place of those for which there is no room */
};

static uint32_t frame_offset(const struct target *target, enum python_frame_key key)
{
	return target->def->layout.frame[key];
}

static uint32_t memory_offset(const struct target *target, enum python_memory_key key)
{
	return target->def->layout.memory[key];
}

/* Decode the characters of a str, size bytes each. */
static char *decode(const uint8_t *bytes, size_t count, unsigned size)
{
	struct str out = { 0 };

	for (size_t i = 0; i < count; i++) {
		uint32_t c = 0;

		memcpy(&c, bytes + i * size, size); /* little-endian, as on all our machines */
		utf8_add(&out, c && c < 0x110000 && (c & ~0x7ffu) != 0xd800 ? c : UTF8_BAD);
	}
	return str_take(&out);
}

bool target_is_ascii(const struct target *target, const uint8_t *raw)
{
	const uint32_t both = STATE_COMPACT | STATE_ASCII;

	return (bytes_u32(raw, frame_offset(target, FRAME_STATE)) & both) == both;
}

char *target_text(const struct target *target, uint64_t object)
{
	uint8_t buf[TEXT_MAX];
	uint64_t length, text;
	uint32_t state;
	unsigned size;

	if (!memory_u64(target->pid, object + memory_offset(target, MEMORY_LENGTH), &length) ||
	    !memory_u32(target->pid, object + frame_offset(target, FRAME_STATE), &state) ||
	    !(state & STATE_COMPACT))
		return xstrdup("?");
	size = state & STATE_ASCII ? 1 : STATE_KIND(state);
	text = object + (state & STATE_ASCII ? frame_offset(target, FRAME_TEXT)
	                                     : memory_offset(target, MEMORY_WIDE_TEXT));
	if (size != 1 && size != 2 && size != 4)
		return xstrdup("?");
	if (length > sizeof(buf) / size)
		length = sizeof(buf) / size;
	if (!memory_read(target->pid, text, buf, length * size))
		return xstrdup("?");
	return decode(buf, length, size);
}

static void read_table(const struct target *target, uint64_t object, struct live_code *code)
{
	uint64_t size;

	if (!memory_u64(target->pid, object + memory_offset(target, MEMORY_SIZE), &size) ||
	    size > TABLE_MAX)
		return;
	code->table = xcalloc(size + 1, 1);
	if (memory_read(target->pid, object + memory_offset(target, MEMORY_BYTES), code->table,
	                size))
		code->table_len = size;
}

static void code_free(struct live_code *code)
{
	free(code->name);
	free(code->file);
	free(code->table);
	free(code);
}

/* ---- known code objects */

/* The size of the part of the header by which code objects are distinguished. */
static size_t raw_size(const struct target *target)
{
	const uint32_t ends[] = {
		frame_offset(target, FRAME_LINE) + 4,   frame_offset(target, FRAME_NAME) + 8,
		memory_offset(target, MEMORY_FILE) + 8, memory_offset(target, MEMORY_TABLE) + 8,
		frame_offset(target, FRAME_TYPE) + 8,
	};
	uint32_t size = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		size = ends[i] > size ? ends[i] : size;
	return size;
}

/* Compares only fields that the interpreter never changes; the header also contains counters and
 * caches. */
static bool is_same(const struct target *target, const uint8_t *a, const uint8_t *b)
{
	const uint32_t words[] = {
		frame_offset(target, FRAME_NAME),
		memory_offset(target, MEMORY_FILE),
		memory_offset(target, MEMORY_TABLE),
	};

	for (size_t i = 0; i < 3; i++)
		if (bytes_u64(a, words[i]) != bytes_u64(b, words[i]))
			return false;
	return bytes_u32(a, frame_offset(target, FRAME_LINE)) ==
	       bytes_u32(b, frame_offset(target, FRAME_LINE));
}

static struct live_code *read_code(const struct target *target, uint64_t address,
                                   const uint8_t *raw)
{
	struct live_code *code = xcalloc(1, sizeof(*code));

	code->address = address;
	code->checked = target->look;
	code->first_line = bytes_u32(raw, frame_offset(target, FRAME_LINE));
	code->name = target_text(target, bytes_u64(raw, frame_offset(target, FRAME_NAME)));
	code->file = target_text(target, bytes_u64(raw, memory_offset(target, MEMORY_FILE)));
	read_table(target, bytes_u64(raw, memory_offset(target, MEMORY_TABLE)), code);
	memcpy(code->raw, raw, sizeof(code->raw));
	target->codes->bytes += strlen(code->name) + strlen(code->file) + code->table_len;
	return code;
}

const struct live_code *target_code(struct target *target, uint64_t address)
{
	struct codes *codes = target->codes;
	uint8_t raw[sizeof(((struct live_code *)NULL)->raw)] = { 0 };
	uint32_t index = idmap_get(&codes->by_address, address);

	if (index != IDMAP_NONE && codes->all.v[index]->checked == target->look)
		return codes->all.v[index];
	if (!memory_read(target->pid, address, raw, raw_size(target)) ||
	    bytes_u64(raw, frame_offset(target, FRAME_TYPE)) != target->code_type)
		return NULL;
	if (index != IDMAP_NONE && is_same(target, codes->all.v[index]->raw, raw)) {
		codes->all.v[index]->checked = target->look;
		return codes->all.v[index];
	}
	if (codes->all.n >= CODES_MAX || codes->bytes >= CODE_BYTES_MAX)
		return &codes->others;
	/* If the memory of a code object was reused, the old one stays in all, because others
	 * may still refer to it. */
	idmap_set(&codes->by_address, address, (uint32_t)codes->all.n);
	*vec_push(&codes->all) = read_code(target, address, raw);
	return codes->all.v[codes->all.n - 1];
}

const struct live_code *target_code_at(const struct target *target, size_t index)
{
	return index < target->codes->all.n ? target->codes->all.v[index] : NULL;
}

uint32_t target_line(struct target *target, const struct live_code *code, uint64_t instruction)
{
	uint32_t first = memory_offset(target, MEMORY_INSTRUCTIONS);
	int64_t offset = first ? (int64_t)(instruction - code->address - first)
	                       : (int32_t)(uint32_t)instruction;

	if (offset > INT32_MAX || target->line_bytes > LINE_BYTES_MAX)
		return 0;
	target->line_bytes += code->table_len;
	if (!first && offset > 0)
		offset *= target->def->layout.unit;
	return pycode_table_line(target->def->layout.minor, code->first_line, code->table,
	                         code->table_len, offset);
}

/* ---- the process */

static int find_symbols(struct target *target, struct error *err)
{
	const struct python *py = target->process.python;
	CLEANUP(symbols_free) struct symbols *symbols = NULL;

	if (symbols_open(&symbols, py->library, err) < 0)
		return -1;
	if (!symbols_address(symbols, target->def->root, &target->root) ||
	    !symbols_address(symbols, "PyCode_Type", &target->code_type))
		return error_set(err, ENOTSUP,
		                 "%s: has no symbol %s: install the debug symbols of this Python",
		                 py->library, target->def->root);
	if (symbols_check(symbols, err) < 0)
		return -1;
	target->root += target->process.bias;
	target->code_type += target->process.bias;
	return 0;
}

static int check_readable(const struct target *target, struct error *err)
{
	uint64_t word;

	if (memory_u64(target->pid, target->root, &word))
		return 0;
	if (errno == EPERM)
		return error_set(err, EPERM,
		                 "process %d: its memory may not be read: run giltracer as its "
		                 "user, as root, or set kernel.yama.ptrace_scope to 0",
		                 (int)target->pid);
	if (errno == ESRCH)
		return error_set(err, ESRCH, "process %d has ended", (int)target->pid);
	return error_errno(err, "process %d: cannot read its memory", (int)target->pid);
}

#define CHECKED_THREADS 64
#define CHECK_ATTEMPTS  16 /* threads may come and go meanwhile */

/* Whether the offsets from an interpreter to its threads and back lead where they should. */
static bool check_threads(const struct target *target, uint64_t interpreter)
{
	uint64_t thread, owner;
	uint32_t tid;

	if (!memory_u64(target->pid, interpreter + memory_offset(target, MEMORY_THREADS), &thread))
		return false;
	for (unsigned i = 0; thread && i < CHECKED_THREADS; i++)
		if (!memory_u64(target->pid, thread + memory_offset(target, MEMORY_INTERPRETER),
		                &owner) ||
		    owner != interpreter ||
		    !memory_u32(target->pid, thread + memory_offset(target, MEMORY_NATIVE_ID),
		                &tid) ||
		    !memory_u64(target->pid, thread + memory_offset(target, MEMORY_NEXT_THREAD),
		                &thread))
			return false;
	return true;
}

/* The interpreter's own offsets come from a file that anybody can make. Of a known version they are
 * those of its definition; memory that contradicts them has been changed, which its readers notice. */
static int check_published(const struct target *target, struct error *err)
{
	const struct python *py = target->process.python;
	uint64_t interpreter, text;
	char name[5] = "";

	if (!target->def->is_published)
		return 0;
	if (!memory_u64(target->pid, target->code_type + target->def->layout.type.name, &text) ||
	    !memory_read(target->pid, text, name, sizeof(name)) || memcmp(name, "code", 5) != 0)
		return error_set(err, ENOTSUP, "%s: its types are not those of CPython",
		                 py->library);
	for (unsigned i = 0; i < CHECK_ATTEMPTS; i++) {
		if (!memory_u64(target->pid,
		                target->root + memory_offset(target, MEMORY_INTERPRETERS),
		                &interpreter))
			continue;
		if (!interpreter || check_threads(target, interpreter))
			return 0;
	}
	return error_set(
		err, ENOTSUP,
		"%s: the offsets that it publishes (_Py_DebugOffsets) are not those of its "
		"memory",
		py->library);
}

/* The offsets in the definition must be within the bytes that are read at once. */
static int check_definition(const struct target *target, struct error *err)
{
	const struct python *py = target->process.python;

	if (target->def->has_frame && target->def->root &&
	    raw_size(target) <= sizeof(((struct live_code *)NULL)->raw))
		return 0;
	return error_set(err, ENOTSUP, "%s: stacks of Python %s%s cannot be read", py->library,
	                 py->version, py->free_threaded ? " without a GIL" : "");
}

static struct target *target_new(pid_t pid)
{
	struct target *target = xcalloc(1, sizeof(*target));

	target->pid = pid;
	target->codes = xcalloc(1, sizeof(*target->codes));
	target->codes->others.name = xstrdup("?");
	target->codes->others.file = xstrdup("?");
	return target;
}

void target_begin(struct target *target)
{
	target->look++;
	target->line_bytes = 0;
}

int target_open(struct target **ret, pid_t pid, struct error *err)
{
	CLEANUP(target_close) struct target *target = target_new(pid);

	if (process_python_find(&target->process, pid, err) < 0 ||
	    probedef_find(&target->def, target->process.python, err) < 0 ||
	    check_definition(target, err) < 0 || find_symbols(target, err) < 0 ||
	    check_readable(target, err) < 0 || check_published(target, err) < 0)
		return -1;
	*ret = take(target);
	return 0;
}

int target_open_at(struct target **ret, pid_t pid, struct probedef *def, uint64_t root,
                   uint64_t code_type, struct error *err)
{
	CLEANUP(target_close) struct target *target = target_new(pid);

	target->def = def;
	target->process.python = xcalloc(1, sizeof(*target->process.python));
	target->process.python->free_threaded = def->layout.free_threaded;
	target->root = root;
	target->code_type = code_type;
	if (check_definition(target, err) < 0 || check_published(target, err) < 0)
		return -1;
	*ret = take(target);
	return 0;
}

void target_close(struct target *target)
{
	if (!target)
		return;
	for (size_t i = 0; i < target->codes->all.n; i++)
		code_free(target->codes->all.v[i]);
	vec_done(&target->codes->all);
	free(target->codes->others.name);
	free(target->codes->others.file);
	idmap_done(&target->codes->by_address);
	free(target->codes);
	probedef_free(target->def);
	process_python_done(&target->process);
	free(target);
}

static void put_u32(FILE *out, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put_u64(FILE *out, uint64_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put_bytes(FILE *out, const void *bytes, size_t len)
{
	put_u32(out, (uint32_t)len);
	fwrite(bytes, 1, len, out);
}

static void put_code(FILE *out, const struct live_code *code)
{
	put_u64(out, code->address);
	put_u32(out, code->first_line);
	put_bytes(out, code->name, strlen(code->name));
	put_bytes(out, code->file, strlen(code->file));
	put_bytes(out, code->table, code->table_len);
}

static bool is_same_version(const struct target *a, const struct target *b)
{
	return a->def->layout.major == b->def->layout.major &&
	       a->def->layout.minor == b->def->layout.minor;
}

#define CODES_HEAD 24 /* of the file's bytes */

/* The list that is in the file already: its bytes behind the head, and their number. It is left out if it is
 * of another version. */
static char *read_codes(const char *path, const struct target *target, size_t *ret_size,
                        uint64_t *ret_count)
{
	CLEANUP(pycode_close) struct pycode *pycode = NULL;
	CLEANUP(free) char *all = NULL;
	struct error ignored;
	size_t size;

	if (file_read(&all, &size, path, CODE_BYTES_MAX, &ignored) < 0 ||
	    pycode_open_memory(&pycode, all, size, &ignored) < 0 ||
	    (uint8_t)all[8] != target->def->layout.major ||
	    (uint8_t)all[9] != target->def->layout.minor)
		return NULL;
	*ret_count = pycode_count(pycode);
	*ret_size = size - CODES_HEAD;
	memmove(all, all + CODES_HEAD, *ret_size);
	return take(all);
}

int codes_write(struct target *const *targets, size_t n, const char *path, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	const struct target *target = targets[0];
	const struct live_code *code;
	uint64_t count = 0;
	size_t size = 0;
	CLEANUP(free) char *before = read_codes(path, target, &size, &count);

	if (filewriter_open(&w, path, err) < 0)
		return -1;
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0;
		     is_same_version(target, targets[t]) && target_code_at(targets[t], i); i++)
			count++;
	fwrite("GTCODES1", 1, 8, w.out);
	fputc((int)target->def->layout.major, w.out);
	fputc((int)target->def->layout.minor, w.out);
	fputc(0, w.out);
	fputc(0, w.out);
	put_u32(w.out, target->def->layout.memory[MEMORY_INSTRUCTIONS]);
	put_u64(w.out, count);
	if (before)
		fwrite(before, 1, size, w.out);
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0;
		     is_same_version(target, targets[t]) && (code = target_code_at(targets[t], i));
		     i++)
			put_code(w.out, code);
	return filewriter_commit(&w, err);
}
