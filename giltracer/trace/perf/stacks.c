/* SPDX-License-Identifier: MIT */
/* Names and interns unwound locations. */
#include "trace/perf/stacks.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/str.h"
#include "binary/clone.h"
#include "base/vec.h"
#include "perfdata/kallsyms.h"
#include "perfdata/maps.h"
#include "binary/module.h"
#include "perfdata/reader.h"
#include "binary/symbolize.h"
#include "perfdata/unwind.h"
#include "preload/format.h"
#include "session/session.h"
#include "trace/perf/from_perf.h"
#include "trace/names.h"
#include "trace/perf/other_python.h"
#include "trace/source.h"
#include "trace/stacks.h"

#define MAX_INLINED   16
#define ENDBR64_BYTES 4
#define NAME_BYTES    1024 /* longer names are cut */
#define EVAL          "_PyEval_EvalFrameDefault"

/* The names of a location: frames[first … first + n], outermost first. */
struct naming {
	uint32_t first, n;
};

/* The start of the part of a module's evaluation loop that has no symbol; 0: none, or not
 * searched yet. */
struct eval_part {
	bool tried;
	uint64_t start;
};

struct perf_stacks {
	const struct perf_header *header;
	struct names *names;
	struct stacks *stacks;
	struct modules *modules;
	struct maps *maps;
	struct unwinder *unwinder; /* NULL until the first sample */
	struct kallsyms *kallsyms; /* NULL: another kernel's, or not readable */
	bool kernel_tried;
	uint64_t kernel_text; /* address of _text in the recording; 0: not recorded */
	const struct gil_function *functions; /* of the file with this build_id */
	size_t function_count;
	const char *build_id;
	bool library, late_gil;           /* see struct from_perf_options */
	VEC(struct eval_part) eval_parts; /* by module */
	VEC(struct naming) namings;       /* by location */
	VEC(struct stack_frame) frames;   /* parent is not used */
	struct idmap build_ids;           /* hash of a path -> build-id of the header */
	uint32_t build_ids_known;
	struct idmap edges; /* caller's stack id, location -> stack id */
};

static bool same_kernel(const struct perf_header *header)
{
	struct utsname us;

	return header->osrelease && uname(&us) == 0 && !strcmp(us.release, header->osrelease);
}

static uint64_t path_key(const char *path)
{
	return hash_text(hash_seed(), path, strlen(path));
}

/* The last build-id that the header has for a file, for records without one. */
static struct build_id header_build_id_of(struct perf_stacks *ps, const char *path)
{
	const struct perf_header *header = ps->header;
	const struct header_build_id *b;
	struct build_id ret = { 0 };
	uint32_t at;

	/* In the pipe layout, more build-ids appear as records are read. */
	for (; ps->build_ids_known < header->build_ids.n; ps->build_ids_known++) {
		b = &header->build_ids.v[ps->build_ids_known];
		if (b->size <= BUILD_ID_MAX)
			idmap_set(&ps->build_ids, path_key(b->path), ps->build_ids_known);
	}
	at = idmap_get(&ps->build_ids, path_key(path));
	b = at == IDMAP_NONE ? NULL : &header->build_ids.v[at];
	if (b && !strcmp(b->path, path)) {
		ret.size = b->size;
		memcpy(ret.bytes, b->id, b->size);
	}
	return ret;
}

struct mapping {
	uint32_t pid;
	uint64_t start, length, offset;
	struct build_id id;
	const char *path;
};

/* PERF_RECORD_MMAP2's device and inode, or its build-id. */
static void decode_mmap2(struct cursor *c, uint16_t misc, struct build_id *id)
{
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		uint8_t size = cursor_u8(c);
		const uint8_t *bytes;

		cursor_skip(c, 3);
		bytes = cursor_bytes(c, BUILD_ID_MAX);
		if (bytes && size <= BUILD_ID_MAX) {
			id->size = size;
			memcpy(id->bytes, bytes, BUILD_ID_MAX);
		}
	} else {
		cursor_skip(c, 24); /* major, minor, inode, inode generation */
	}
	cursor_skip(c, 8); /* protection, flags */
}

static bool decode_mmap(const struct perfdata_record *rec, struct mapping *ret)
{
	struct cursor c = rec->body;

	*ret = (struct mapping){ .pid = cursor_u32(&c) };
	cursor_skip(&c, 4);
	ret->start = cursor_u64(&c);
	ret->length = cursor_u64(&c);
	ret->offset = cursor_u64(&c);
	if (rec->type == PERF_RECORD_MMAP2)
		decode_mmap2(&c, rec->misc, &ret->id);
	ret->path = cursor_text(&c, NULL);
	return !c.bad;
}

/* In which kind of recording a mapping matters: uprobes are in the files of one build only, the
 * library is in processes that have inherited its variable. */
static enum mapped is_mapped(const struct perf_stacks *ps, const struct mapping *m)
{
	if (ps->library && ps->late_gil && str_has_suffix(m->path, "/" PRELOAD_LIBRARY))
		return MAPPED_RECORDER;
	if (!ps->library && !ps->function_count)
		return MAPPED_OTHER;
	return is_other_python(m->path, m->length, &m->id, ps->library ? NULL : ps->build_id)
	               ? MAPPED_PYTHON
	               : MAPPED_OTHER;
}

static enum mapped take_mmap(struct perf_stacks *ps, const struct perfdata_record *rec)
{
	struct mapping m;

	if (!decode_mmap(rec, &m))
		return MAPPED_OTHER;
	if ((rec->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
		/* perf's name for the map of the kernel contains the symbol to which its offset
		 * refers. */
		if (!strcmp(m.path, "[kernel.kallsyms]_text"))
			ps->kernel_text = m.offset;
		return MAPPED_OTHER;
	}
	if (!m.id.size)
		m.id = header_build_id_of(ps, m.path);
	maps_mmap(ps->maps, m.pid, m.start, m.length, m.offset,
	          modules_get(ps->modules, m.path, &m.id));
	return is_mapped(ps, &m);
}

static enum mapped take_record(void *ctx, const struct perfdata_record *rec,
                               const struct sample *trailer)
{
	struct perf_stacks *ps = ctx;
	struct cursor c = rec->body;
	uint32_t pid, parent;

	(void)trailer;
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return take_mmap(ps, rec);
	case PERF_RECORD_FORK:
		pid = cursor_u32(&c);
		parent = cursor_u32(&c);
		if (!c.bad)
			maps_fork(ps->maps, pid, parent);
		break;
	case PERF_RECORD_COMM:
		pid = cursor_u32(&c);
		if (!c.bad && rec->misc & PERF_RECORD_MISC_COMM_EXEC)
			maps_exec(ps->maps, pid);
		break;
	}
	return MAPPED_OTHER;
}

/* The running kernel's symbols are valid only if the recording was made since its boot. */
static void open_kernel(struct perf_stacks *ps)
{
	ps->kernel_tried = true;
	if (!same_kernel(ps->header))
		return;
	ps->kallsyms = kallsyms_read("/proc/kallsyms");
	if (!ps->kallsyms || !ps->kernel_text ||
	    ps->kernel_text == kallsyms_address(ps->kallsyms, "_text"))
		return;
	kallsyms_free(ps->kallsyms);
	ps->kallsyms = NULL;
}

static void add_frame(struct perf_stacks *ps, const char *name, const char *module, uint32_t flags)
{
	*vec_push(&ps->frames) = (struct stack_frame){
		.name = names_id(ps->names, name, strlen(name)),
		.module = names_id(ps->names, module, strlen(module)),
		.flags = flags,
	};
}

static void name_kernel(struct perf_stacks *ps, const struct location *l)
{
	const char *name = NULL, *module = "[kernel.kallsyms]";
	char text[NAME_BYTES];
	uint64_t start;

	if (!ps->kernel_tried)
		open_kernel(ps);
	if (ps->kallsyms)
		name = kallsyms_find(ps->kallsyms, l->address, &module, &start);
	if (name) {
		add_frame(ps, name, module, STACK_KERNEL);
		return;
	}
	snprintf(text, sizeof(text), "[kernel]+%#" PRIx64, l->address);
	add_frame(ps, text, module, STACK_KERNEL | STACK_UNKNOWN);
}

static uint32_t flags_of(const char *symbol)
{
	if (clone_of(symbol, EVAL))
		return STACK_EVAL;
	if (clone_of(symbol, "take_gil"))
		return STACK_TAKE_GIL;
	return 0;
}

static bool is_hex_of(const char *hex, const struct build_id *id)
{
	char text[2 * BUILD_ID_MAX + 1] = "";

	for (uint8_t i = 0; i < id->size; i++)
		snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
	return id->size && !strcmp(hex, text);
}

/* The session's name for the function at start, or NULL. Probes in the middle of functions,
 * where another one was inlined, name no function. */
static const char *function_at(const struct perf_stacks *ps, struct module *module, uint64_t start)
{
	struct build_id id = build_id_of_elf(module->elf);

	if (!ps->function_count || !is_hex_of(ps->build_id, &id))
		return NULL;
	for (size_t i = 0; i < ps->function_count; i++) {
		const struct gil_function *f = &ps->functions[i];
		uint64_t vaddr;

		if (module_vaddr(module, f->offset, &vaddr) && vaddr >= start &&
		    vaddr - start <= ENDBR64_BYTES)
			return f->name;
	}
	return NULL;
}

static bool is_eval_part(struct perf_stacks *ps, struct module *module, uint64_t start)
{
	struct eval_part *part;

	while (ps->eval_parts.n <= module->id)
		*vec_push(&ps->eval_parts) = (struct eval_part){ .start = 0 };
	part = &ps->eval_parts.v[module->id];
	if (!part->tried && !symbolize_part(module, EVAL, &part->start))
		part->start = 0;
	part->tried = true;
	return part->start && part->start == start;
}

/* Functions without a symbol are distinguished by their start, if that is known. */
static void name_unknown(struct perf_stacks *ps, const struct location *l)
{
	const char *module = l->module ? l->module->base : "unknown", *name = NULL;
	uint64_t offset = l->module ? l->offset : l->address, start;
	char text[NAME_BYTES];

	if (l->usable && symbolize_start(l->module, l->address, &start)) {
		offset -= l->address - start;
		name = function_at(ps, l->module, start);
		if (!name && is_eval_part(ps, l->module, start))
			name = EVAL ".cold";
	}
	if (name) {
		add_frame(ps, name, module, flags_of(name));
		return;
	}
	snprintf(text, sizeof(text), "[%s+%#" PRIx64 "]", module, offset);
	add_frame(ps, text, l->module ? module : "", STACK_UNKNOWN);
}

/* Adds a symbol without the version in glibc's .symtab (sem_post@@GLIBC_2.34), and without the
 * suffix that link-time optimisation adds to names that are not unique (builtin_pow.lto_priv.0). */
static void add_symbol(struct perf_stacks *ps, const char *symbol, const char *module,
                       uint32_t flags)
{
	static const char private[] = ".lto_priv.";
	char name[NAME_BYTES], *at;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(symbol, "@"), symbol);
	while ((at = strstr(name, private))) {
		const char *rest = at + strlen(private);

		rest += strspn(rest, "0123456789");
		memmove(at, rest, strlen(rest) + 1);
	}
	add_frame(ps, name, module, flags | flags_of(name));
}

static void name_user(struct perf_stacks *ps, const struct location *l)
{
	CLEANUP(str_done) struct str path = { 0 };
	const char *inlined[MAX_INLINED];
	const struct function_symbol *s = l->usable ? symbolize(l->module, l->address) : NULL;
	size_t n;

	if (!s) {
		name_unknown(ps, l);
		return;
	}
	add_symbol(ps, function_path(&path, s->name) ? str_get(&path) : s->name, l->module->base,
	           0);
	n = symbolize_inlined(l->module, l->address, inlined, MAX_INLINED);
	while (n--)
		add_symbol(ps, inlined[n], l->module->base, STACK_INLINED);
}

static const struct naming *naming_of(struct perf_stacks *ps, uint32_t id)
{
	const struct location *l = unwinder_location(ps->unwinder, id);
	struct naming *naming;

	while (ps->namings.n <= id)
		*vec_push(&ps->namings) = (struct naming){ 0 };
	naming = &ps->namings.v[id];
	if (naming->n)
		return naming;
	naming->first = ps->frames.n;
	if (l->kernel)
		name_kernel(ps, l);
	else
		name_user(ps, l);
	naming->n = ps->frames.n - naming->first;
	return naming;
}

/* flags: for the outermost frame of the stack. */
static uint32_t push_location(struct perf_stacks *ps, uint32_t parent, uint32_t id, uint32_t flags)
{
	const struct naming *naming = naming_of(ps, id);

	for (uint32_t i = 0; i < naming->n; i++) {
		struct stack_frame frame = ps->frames.v[naming->first + i];

		frame.parent = parent;
		frame.flags |= i == 0 ? flags : 0;
		parent = stacks_id(ps->stacks, &frame);
	}
	return parent;
}

static uint32_t intern(struct perf_stacks *ps, const struct unwind_stack *stack)
{
	static const uint32_t flags[] = {
		[UNWIND_COMPLETE] = 0,
		[UNWIND_TRUNCATED] = STACK_TRUNCATED,
		[UNWIND_BROKEN] = STACK_BROKEN,
		[UNWIND_NO_USER] = 0,
	};
	uint32_t id = 0;

	for (size_t i = stack->n; i-- > 0;) {
		uint32_t location = stack->locations[i];
		/* Stack ids never come near UINT32_MAX, so the outermost frame can have keys of
		 * its own. */
		uint64_t parent = i + 1 == stack->n ? UINT32_MAX - stack->end : id;
		uint64_t key = parent << 32 | location;
		uint32_t known = idmap_get(&ps->edges, key);

		if (known == IDMAP_NONE) {
			known = push_location(ps, id, location,
			                      i + 1 == stack->n ? flags[stack->end] : 0);
			idmap_set(&ps->edges, key, known);
		}
		id = known;
	}
	return id;
}

static uint32_t stack_of_sample(void *ctx, const struct header_event *event,
                                const struct sample *sample)
{
	struct perf_stacks *ps = ctx;
	struct unwind_sample in = {
		.pid = sample->pid,
		.abi = sample->regs_abi,
		.regs_mask = event->layout.regs_user,
		.regs = sample->regs,
		.stack = sample->stack,
		.chain = sample->callchain,
	};
	struct unwind_stack stack;

	if (!cursor_left(&in.regs) && !cursor_left(&in.chain))
		return 0;
	if (!ps->unwinder)
		ps->unwinder = unwinder_new(ps->header->arch ? unwind_machine(ps->header->arch) : 0,
		                            ps->maps);
	unwind_stack(ps->unwinder, &in, &stack);
	return intern(ps, &stack);
}

static void perf_stacks_free(void *ctx)
{
	struct perf_stacks *ps = ctx;

	vec_done(&ps->eval_parts);
	vec_done(&ps->namings);
	vec_done(&ps->frames);
	idmap_done(&ps->edges);
	idmap_done(&ps->build_ids);
	unwinder_free(ps->unwinder);
	maps_free(ps->maps);
	modules_free(ps->modules);
	kallsyms_free(ps->kallsyms);
	free(ps);
}

void perf_stacks_open(struct from_perf_stacks *ret, const struct perf_header *header,
                      struct source *source, const struct from_perf_options *options)
{
	struct perf_stacks *ps = xcalloc(1, sizeof(*ps));

	*ret = (struct from_perf_stacks){ ps, take_record, stack_of_sample, perf_stacks_free };
	ps->header = header;
	ps->names = source->names;
	ps->stacks = source->stacks;
	ps->modules = modules_new(same_kernel(header));
	ps->maps = maps_new();
	if (!options)
		return;
	ps->library = options->library;
	ps->late_gil = options->late_gil;
	if (!options->build_id)
		return;
	ps->functions = options->functions;
	ps->function_count = options->function_count;
	ps->build_id = options->build_id;
}
