/* SPDX-License-Identifier: MIT */
/* Walks libyaml's document once and checks it against the schema; every node knows its line. */
#include "python/probedef.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/datadir.h"
#include "base/file.h"
#include "base/str.h"
#include "binary/symbols.h"
#include "python/python.h"

#define FILE_MAX      (1u << 20)
#define NESTING_MAX   8
#define FUNCTIONS_MAX 64

/* No structure of CPython on the way to a frame is larger. */
#define OFFSET_MAX 0xffff

/* The document and its name, for messages. */
struct reader {
	yaml_document_t doc;
	const char *name;
	struct error *err;
};

static int fail(const struct reader *r, const yaml_node_t *node, const char *what, const char *text)
{
	return error_set(r->err, EINVAL, "%s:%zu: %s%s%s%s", r->name, node->start_mark.line + 1,
	                 what, text ? " '" : "", text ? text : "", text ? "'" : "");
}

static const char *scalar(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* Whether s is a word that a tracefs command accepts. */
static bool is_name(const char *s)
{
	if (!s || !*s || isdigit((unsigned char)*s) || strlen(s) > 60)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

static int read_name(struct reader *r, yaml_node_t *node, char **ret)
{
	const char *text = scalar(node);

	if (!is_name(text))
		return fail(r, node, "not a name:", text ? text : "(not a string)");
	*ret = xstrdup(text);
	return 0;
}

static int read_bool(struct reader *r, yaml_node_t *node, bool *ret)
{
	const char *text = scalar(node);

	if (!text || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0))
		return fail(r, node, "not true or false", text);
	*ret = !strcmp(text, "true");
	return 0;
}

/* An expression with numbers in place of the names of offsets; NULL: the layout does not have them. */
static char *expand(const char *text, const struct python_layout *layout)
{
	static const struct {
		const char *name;
		enum python_memory_key key;
	} names[] = { { "+gil(", MEMORY_GIL }, { "+interpreter(", MEMORY_INTERPRETER } };
	CLEANUP(str_done) struct str out = { 0 };

	while (*text) {
		size_t i = 0;

		while (i < 2 && !str_has_prefix(text, names[i].name))
			i++;
		if (i == 2) {
			str_addc(&out, *text++);
			continue;
		}
		if (layout->memory[names[i].key] == PYTHON_NO_OFFSET)
			return NULL;
		str_addf(&out, "+0x%x(", layout->memory[names[i].key]);
		text += strlen(names[i].name);
	}
	return str_take(&out);
}

static int read_gil(struct reader *r, yaml_node_t *node, char **ret)
{
	static const struct python_layout any;
	const char *text = scalar(node);
	CLEANUP(free) char *numbers = text ? expand(text, &any) : NULL;
	CLEANUP(free) char *fetch = numbers ? probedef_fetch(numbers) : NULL;

	if (!fetch)
		return fail(r, node, "not OFFSET(EXPRESSION) or argN:", text);
	*ret = xstrdup(text);
	return 0;
}

/* Calls fn with the key and the value of each pair of a mapping. */
static int each_pair(struct reader *r, yaml_node_t *node,
                     int (*fn)(struct reader *r, yaml_node_t *key, yaml_node_t *value, void *data),
                     void *data)
{
	yaml_node_pair_t *pair;

	if (node->type != YAML_MAPPING_NODE)
		return fail(r, node, "expected KEY: VALUE pairs", NULL);
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		yaml_node_t *key = yaml_document_get_node(&r->doc, pair->key);
		yaml_node_t *value = yaml_document_get_node(&r->doc, pair->value);

		if (!scalar(key))
			return fail(r, key, "expected a key", NULL);
		if (fn(r, key, value, data) < 0)
			return -1;
	}
	return 0;
}

static int once(struct reader *r, const yaml_node_t *key, const void *seen)
{
	return seen ? fail(r, key, "given twice:", scalar(key)) : 0;
}

static int function_pair(struct reader *r, yaml_node_t *key, yaml_node_t *value, void *data)
{
	struct probedef_function *f = data;
	const char *k = scalar(key);

	if (!strcmp(k, "name"))
		return once(r, key, f->name) < 0 ? -1 : read_name(r, value, &f->name);
	if (!strcmp(k, "entry"))
		return once(r, key, f->entry) < 0 ? -1 : read_name(r, value, &f->entry);
	if (!strcmp(k, "return"))
		return once(r, key, f->ret) < 0 ? -1 : read_name(r, value, &f->ret);
	if (!strcmp(k, "gil"))
		return once(r, key, f->gil) < 0 ? -1 : read_gil(r, value, &f->gil);
	if (!strcmp(k, "tstate"))
		return once(r, key, f->tstate) < 0 ? -1 : read_gil(r, value, &f->tstate);
	if (!strcmp(k, "clone-tstate"))
		return once(r, key, f->clone_tstate) < 0 ? -1
		                                         : read_gil(r, value, &f->clone_tstate);
	if (!strcmp(k, "fallback"))
		return read_bool(r, value, &f->fallback);
	return fail(r, key, "unknown key", k);
}

static void function_done(struct probedef_function *f)
{
	free(f->name);
	free(f->entry);
	free(f->ret);
	free(f->gil);
	free(f->tstate);
	free(f->clone_tstate);
}

static int check_function(struct reader *r, const yaml_node_t *node,
                          const struct probedef_function *f)
{
	if (!f->name)
		return fail(r, node, "missing key 'name'", NULL);
	if (!f->entry && !f->ret)
		return fail(r, node, "missing key 'entry' or 'return'", NULL);
	if ((f->gil || f->tstate || f->clone_tstate) && !f->entry)
		return fail(r, node, "arguments are read at the entry: missing key 'entry'", NULL);
	return 0;
}

static int read_functions(struct reader *r, yaml_node_t *node, struct probedef *def)
{
	yaml_node_item_t *item;

	if (node->type != YAML_SEQUENCE_NODE)
		return fail(r, node, "expected a list of functions", NULL);
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		yaml_node_t *child = yaml_document_get_node(&r->doc, *item);
		struct probedef_function *f;

		if (def->functions.n == FUNCTIONS_MAX)
			return fail(r, child, "too many functions", NULL);
		f = vec_push(&def->functions);
		*f = (struct probedef_function){ .line = (unsigned)child->start_mark.line + 1 };
		if (each_pair(r, child, function_pair, f) < 0 || check_function(r, child, f) < 0)
			return -1;
	}
	return 0;
}

static int read_identity(struct reader *r, yaml_node_t *node, struct probedef *def)
{
	yaml_node_item_t *item;

	if (node->type != YAML_SEQUENCE_NODE)
		return fail(r, node, "expected a list of symbols", NULL);
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		char *name;

		if (read_name(r, yaml_document_get_node(&r->doc, *item), &name) < 0)
			return -1;
		*vec_push(&def->identity) = name;
	}
	return 0;
}

static int read_schema(struct reader *r, yaml_node_t *node)
{
	const char *text = scalar(node);

	return text && !strcmp(text, "1") ? 0 : fail(r, node, "unknown schema", text);
}

static int read_python(struct reader *r, yaml_node_t *node, struct probedef *def)
{
	const char *text = scalar(node);
	struct python_layout layout;
	unsigned minor;
	char *end;

	def->is_newer = text && !strcmp(text, "newer");
	if (def->is_newer)
		return 0;
	if (!text || text[0] != '3' || text[1] != '.' || !isdigit((unsigned char)text[2]) ||
	    strlen(text) > 4)
		return fail(r, node, "not a CPython version, 3.N:", text);
	minor = (unsigned)strtoul(text + 2, &end, 10);
	python_layout_init(&layout, 3, minor, false);
	memcpy(layout.frame, def->layout.frame, sizeof(layout.frame));
	memcpy(layout.memory, def->layout.memory, sizeof(layout.memory));
	memcpy(layout.call, def->layout.call, sizeof(layout.call));
	def->layout = layout;
	return *end ? fail(r, node, "not a CPython version, 3.N:", text) : 0;
}

static int read_lock(struct reader *r, yaml_node_t *node, struct probedef *def)
{
	const char *text = scalar(node);

	if (!text || (strcmp(text, "shared") != 0 && strcmp(text, "per-interpreter") != 0))
		return fail(r, node, "neither shared nor per-interpreter:", text);
	def->shared = !strcmp(text, "shared");
	return 0;
}

/* In the order of enum python_frame_key. */
static const char *const frame_keys[FRAME_KEYS] = {
	"current", "current2", "previous", "code",  "instruction", "instruction-size",
	"type",    "line",     "name",     "state", "text",
};

static const char *const memory_keys[MEMORY_DEFINED] = {
	"interpreters", "next-interpreter", "interpreter-id", "threads",
	"next-thread",  "thread-id",        "native-id",      "gil",
	"gil-holder",   "gil-locked",       "gil-size",       "file",
	"table",        "instructions",     "size",           "bytes",
	"length",       "wide-text",        "modules",        "cached-keys",
	"debugger",
};

static const char *const call_keys[CALL_KEYS] = {
	"globals",   "stack-top", "state", "evaluator",       "owner",
	"generator", "locals",    "flags", "first-traceable",
};

/* A mapping of names to offsets; seen has a bit for each name that was given. */
struct offsets_reader {
	const char *const *keys;
	unsigned count;
	uint32_t *values;
	unsigned seen;
	char **root; /* receives the symbol of the key "root"; NULL: there is no such key */
};

static int offset_pair(struct reader *r, yaml_node_t *key, yaml_node_t *value, void *data)
{
	struct offsets_reader *offsets = data;
	const char *text = scalar(value);
	unsigned long n;
	char *end;

	if (offsets->root && !strcmp(scalar(key), "root"))
		return once(r, key, *offsets->root) < 0 ? -1 : read_name(r, value, offsets->root);
	for (unsigned i = 0; i < offsets->count; i++) {
		if (strcmp(scalar(key), offsets->keys[i]) != 0)
			continue;
		if (offsets->seen & 1u << i)
			return fail(r, key, "given twice:", scalar(key));
		if (!text || !isdigit((unsigned char)*text))
			return fail(r, value, "not an offset:", text);
		n = strtoul(text, &end, 0);
		if (*end || n > OFFSET_MAX)
			return fail(r, value, "not an offset:", text);
		offsets->values[i] = (uint32_t)n;
		offsets->seen |= 1u << i;
		return 0;
	}
	return fail(r, key, "unknown key", scalar(key));
}

/* optional: a bit for each key that may be missing; its value is then PYTHON_NO_OFFSET. */
static int read_offsets(struct reader *r, yaml_node_t *node, struct offsets_reader *offsets,
                        unsigned optional)
{
	for (unsigned i = 0; i < offsets->count; i++)
		offsets->values[i] = PYTHON_NO_OFFSET;
	if (each_pair(r, node, offset_pair, offsets) < 0)
		return -1;
	for (unsigned i = 0; i < offsets->count; i++)
		if (!((offsets->seen | optional) & 1u << i))
			return fail(r, node, "missing key", offsets->keys[i]);
	return 0;
}

static int read_frame(struct reader *r, yaml_node_t *node, struct probedef *def)
{
	struct offsets_reader offsets = { frame_keys, FRAME_KEYS, def->layout.frame, 0, NULL };

	if (read_offsets(r, node, &offsets, 1u << FRAME_CURRENT2) < 0)
		return -1;
	if (def->layout.frame[FRAME_INSTRUCTION_SIZE] != 4 &&
	    def->layout.frame[FRAME_INSTRUCTION_SIZE] != 8)
		return fail(r, node, "instruction-size is neither 4 nor 8", NULL);
	def->has_frame = true;
	return 0;
}

#define MEMORY_NEWER_KEYS \
	(1u << MEMORY_INTERPRETER_ID | 1u << MEMORY_NATIVE_ID | 1u << MEMORY_DEBUGGER)
#define MEMORY_GIL_KEYS \
	(1u << MEMORY_GIL | 1u << MEMORY_HOLDER | 1u << MEMORY_LOCKED | 1u << MEMORY_GIL_SIZE)

static int read_memory(struct reader *r, yaml_node_t *node, struct probedef *def)
{
	struct offsets_reader offsets = { memory_keys, MEMORY_DEFINED, def->layout.memory, 0,
		                          &def->root };

	if (read_offsets(r, node, &offsets, MEMORY_NEWER_KEYS | MEMORY_GIL_KEYS) < 0)
		return -1;
	if (!def->root)
		return fail(r, node, "missing key", "root");
	if ((offsets.seen & MEMORY_GIL_KEYS) && ~offsets.seen & MEMORY_GIL_KEYS)
		return fail(r, node, "give all keys of the GIL or none", NULL);
	return 0;
}

static int read_calls(struct reader *r, yaml_node_t *node, struct probedef *def)
{
	struct offsets_reader offsets = { call_keys, CALL_KEYS, def->layout.call, 0, NULL };

	return read_offsets(r, node, &offsets, (1u << CALL_KEYS) - 1);
}

/* The top-level keys that were given. */
enum top_keys {
	TOP_SCHEMA = 1,
	TOP_PYTHON = 2,
	TOP_GIL = 4,
	TOP_FUNCTIONS = 8,
	TOP_IDENTITY = 16,
	TOP_FRAME = 32,
	TOP_MEMORY = 64,
	TOP_CALLS = 128,
};

struct top {
	struct probedef *def;
	unsigned seen;
};

static int mark(struct reader *r, const yaml_node_t *key, struct top *top, unsigned bit)
{
	if (top->seen & bit)
		return fail(r, key, "given twice:", scalar(key));
	top->seen |= bit;
	return 0;
}

static int top_pair(struct reader *r, yaml_node_t *key, yaml_node_t *value, void *data)
{
	struct top *top = data;
	const char *k = scalar(key);

	if (!strcmp(k, "schema"))
		return mark(r, key, top, TOP_SCHEMA) < 0 ? -1 : read_schema(r, value);
	if (!strcmp(k, "python"))
		return mark(r, key, top, TOP_PYTHON) < 0 ? -1 : read_python(r, value, top->def);
	if (!strcmp(k, "gil"))
		return mark(r, key, top, TOP_GIL) < 0 ? -1 : read_lock(r, value, top->def);
	if (!strcmp(k, "identity"))
		return mark(r, key, top, TOP_IDENTITY) < 0 ? -1 : read_identity(r, value, top->def);
	if (!strcmp(k, "functions"))
		return mark(r, key, top, TOP_FUNCTIONS) < 0 ? -1
		                                            : read_functions(r, value, top->def);
	if (!strcmp(k, "frame"))
		return mark(r, key, top, TOP_FRAME) < 0 ? -1 : read_frame(r, value, top->def);
	if (!strcmp(k, "memory"))
		return mark(r, key, top, TOP_MEMORY) < 0 ? -1 : read_memory(r, value, top->def);
	if (!strcmp(k, "calls"))
		return mark(r, key, top, TOP_CALLS) < 0 ? -1 : read_calls(r, value, top->def);
	return fail(r, key, "unknown key", k);
}

static int check_top(struct reader *r, const yaml_node_t *root, const struct top *top)
{
	static const char *const names[] = { "schema", "python", "gil", "functions" };

	for (unsigned i = 0; i < 4; i++)
		if (!(top->seen & 1u << i))
			return fail(r, root, "missing key", names[i]);
	if (!top->def->functions.n)
		return fail(r, root, "no functions", NULL);
	if (top->def->has_frame && !top->def->root)
		python_layout_of_frames(&top->def->layout);
	if (top->def->shared && !top->def->identity.n)
		return fail(r, root, "a shared GIL needs the key", "identity");
	return 0;
}

static int read_document(struct reader *r, struct probedef *def)
{
	yaml_node_t *root = yaml_document_get_root_node(&r->doc);
	struct top top = { .def = def };

	if (!root)
		return error_set(r->err, EINVAL, "%s:1: empty", r->name);
	if (each_pair(r, root, top_pair, &top) < 0)
		return -1;
	return check_top(r, root, &top);
}

int probedef_parse(struct probedef **ret, const char *name, const char *text, size_t len,
                   struct error *err)
{
	CLEANUP(probedef_free) struct probedef *def = xcalloc(1, sizeof(*def));
	struct reader r = { .name = name, .err = err };
	yaml_parser_t parser;
	int status = 0;

	python_layout_init(&def->layout, 0, 0, false);
	if (!yaml_parser_initialize(&parser))
		return error_set(err, ENOMEM, "%s: cannot start the YAML parser", name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &r.doc)) {
		status = error_set(err, EINVAL, "%s:%zu: %s", name, parser.problem_mark.line + 1,
		                   parser.problem ? parser.problem : "not YAML");
	} else {
		status = read_document(&r, def);
		yaml_document_delete(&r.doc);
	}
	yaml_parser_delete(&parser);
	if (status == 0)
		*ret = take(def);
	return status;
}

int probedef_load(struct probedef **ret, const char *path, struct error *err)
{
	CLEANUP(free) char *text = NULL;
	size_t len;

	if (file_read(&text, &len, path, FILE_MAX, err) < 0)
		return -1;
	return probedef_parse(ret, path, text, len, err);
}

/* The interpreter's own offsets, if it publishes any. */
static bool read_table(struct python_layout *layout, const struct python *python)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	struct error ignored;
	const uint8_t *table;
	uint64_t address;
	size_t len = 0;

	if (layout->minor < PYTHON_TABLE_FIRST ||
	    symbols_open_bare(&symbols, python->library, &ignored) < 0 ||
	    !symbols_address(symbols, "_PyRuntime", &address))
		return false;
	table = symbols_bytes(symbols, address, PYTHON_TABLE_SIZE, &len);
	return table && python_layout_from_table(layout, table, len) &&
	       symbols_check(symbols, &ignored) == 0;
}

static int expand_all(struct probedef *def, const char *name, struct error *err)
{
	for (size_t i = 0; i < def->functions.n; i++) {
		struct probedef_function *f = &def->functions.v[i];
		char *gil = f->gil ? expand(f->gil, &def->layout) : NULL;

		if (f->gil && !gil)
			return error_set(err, ENOTSUP, "%s: the interpreter does not publish %s",
			                 name, f->gil);
		free(f->gil);
		f->gil = gil;
	}
	return 0;
}

/* The definition of all versions that have no file of their own. */
#define NEWER "probes/newer.yaml"

static int find_newer(struct probedef **ret, const struct python *python, const char *name,
                      struct error *err)
{
	CLEANUP(probedef_free) struct probedef *def = NULL;
	CLEANUP(free) char *path = NULL;
	struct error ignored;

	if (python->major != 3 || python->minor < PYTHON_TABLE_FIRST ||
	    datadir_find(&path, NEWER, &ignored) < 0)
		return error_set(err, ENOTSUP, "%s is CPython %s, which has no %s", python->command,
		                 python->version, name);
	if (probedef_load(&def, path, err) < 0)
		return -1;
	python_layout_init(&def->layout, python->major, python->minor, python->free_threaded);
	if (!read_table(&def->layout, python))
		return error_set(
			err, ENOTSUP,
			"%s is CPython %s, which has no %s, and the offsets that it publishes "
			"(_Py_DebugOffsets) are not of a known form",
			python->command, python->version, name);
	def->has_frame = def->is_published = true;
	def->root = xstrdup("_PyRuntime");
	if (expand_all(def, path, err) < 0)
		return -1;
	*ret = take(def);
	return 0;
}

int probedef_find(struct probedef **ret, const struct python *python, struct error *err)
{
	CLEANUP(free) char *name = xasprintf("probes/%u.%u.yaml", python->major, python->minor);
	CLEANUP(probedef_free) struct probedef *def = NULL;
	CLEANUP(free) char *path = NULL;
	struct error ignored;

	if (python->free_threaded || datadir_find(&path, name, &ignored) < 0)
		return find_newer(ret, python, name, err);
	if (probedef_load(&def, path, err) < 0)
		return -1;
	if (def->is_newer || def->layout.major != python->major ||
	    def->layout.minor != python->minor)
		return error_set(err, EINVAL, "%s: is for Python %u.%u", path, def->layout.major,
		                 def->layout.minor);
	read_table(&def->layout, python);
	if (expand_all(def, path, err) < 0)
		return -1;
	*ret = take(def);
	return 0;
}

void probedef_free(struct probedef *def)
{
	if (!def)
		return;
	for (size_t i = 0; i < def->identity.n; i++)
		free(def->identity.v[i]);
	for (size_t i = 0; i < def->functions.n; i++)
		function_done(&def->functions.v[i]);
	vec_done(&def->identity);
	vec_done(&def->functions);
	free(def->root);
	free(def);
}

/* tracefs' names of the registers of the first four integer arguments. */
static const char *argument_register(char digit)
{
#ifdef __aarch64__
	static const char *const registers[] = { "%x0", "%x1", "%x2", "%x3" };
#else
	static const char *const registers[] = { "%di", "%si", "%dx", "%cx" };
#endif
	return digit >= '1' && digit <= '4' ? registers[digit - '1'] : NULL;
}

/* Skips OFFSET and the parenthesis after it. Returns what follows, or NULL. */
static const char *skip_offset(const char *s)
{
	char *end;

	if (*s != '+' && *s != '-')
		return NULL;
	if (!isdigit((unsigned char)s[1]))
		return NULL;
	errno = 0;
	if (strtoul(s + 1, &end, 0) > INT32_MAX || errno)
		return NULL;
	return *end == '(' ? end + 1 : NULL;
}

char *probedef_fetch(const char *expression)
{
	CLEANUP(str_done) struct str out = { 0 };
	const char *s = expression, *reg;
	unsigned depth = 0;

	while (*s == '+' || *s == '-') {
		const char *inner = skip_offset(s);

		if (!inner || ++depth > NESTING_MAX)
			return NULL;
		str_addn(&out, s, (size_t)(inner - s));
		s = inner;
	}
	if (strncmp(s, "arg", 3) != 0 || !(reg = argument_register(s[3])))
		return NULL;
	str_adds(&out, reg);
	s += 4;
	for (; depth && *s == ')'; depth--, s++)
		str_addc(&out, ')');
	return depth || *s ? NULL : str_take(&out);
}
