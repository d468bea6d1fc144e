/* SPDX-License-Identifier: MIT */
/* Decodes Python frames from the arguments of a probe. */
#include "trace/perf/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "trace/names.h"
#include "python/pycode.h"
#include "trace/stacks.h"

/*
 * PyASCIIObject.state, Include/unicodeobject.h 3.6 to 3.11, Include/cpython/unicodeobject.h 3.12 to
 * 3.15: interned in bits 0 and 1, kind in 2 to 4 (1: one byte per character), compact is bit 5,
 * ascii bit 6.
 */
#define STATE_MASK          0x7c
#define STATE_COMPACT_ASCII 0x64

/*
 * The kernel has one page for all arguments of an event and cuts off the rest. A fetched name is
 * uncertain if the page is nearly full; so is a listed name of this length, which may have been
 * cut.
 */
#define PAGE_NEARLY_FULL 4000
#define MAY_BE_CUT       512

#define RECENT       64  /* a power of two */
#define RECENT_BYTES 488 /* for eight frames, if names are not long */

/* One frame as fetched by the probe. name_hash: another function may be at the address later;
 * index: its number among the fetched frames. */
struct raw_frame {
	uint64_t code, instruction, name_hash;
	uint32_t line, state;
	uint64_t index;
};

/* The result for a chain of frames. Chains recur, and each is decoded once. */
struct known {
	struct raw_frame frame[PERF_FRAMES_MAX];
	unsigned count;
	uint32_t stack;
	uint32_t next; /* with the same hash; IDMAP_NONE: none */
};

/* The last fetch with this hash, byte for byte, and its result: few different fetches make up
 * nearly all of them. size 0: none yet. */
struct recent {
	const struct tracefmt_field *probe;
	uint64_t probe_ip;
	uint32_t stack, size;
	uint8_t bytes[RECENT_BYTES];
};

struct perf_frames {
	struct names *names;
	struct stacks *stacks;
	const struct pycode *code;
	struct hash_seed seed;
	struct idmap hashes; /* index of the first of known */
	VEC(struct known) known;
	struct recent recent[RECENT];
};

struct perf_frames *perf_frames_new(struct names *names, struct stacks *stacks,
                                    const struct pycode *code)
{
	struct perf_frames *pf = xcalloc(1, sizeof(*pf));

	pf->names = names;
	pf->stacks = stacks;
	pf->code = code;
	pf->seed = hash_seed();
	return pf;
}

void perf_frames_free(struct perf_frames *pf)
{
	if (!pf)
		return;
	idmap_done(&pf->hashes);
	vec_done(&pf->known);
	free(pf);
}

static const struct tracefmt_field *field(const struct tracefmt *format, char letter, unsigned k)
{
	const char name[] = { letter, (char)('0' + k), '\0' };

	return tracefmt_find(format, name);
}

/* The lowest offset of frame k's fields and of f->from. */
static uint32_t lowest(const struct perf_frames_fields *f, unsigned k)
{
	const struct tracefmt_field *const fields[] = {
		f->frame[k].type, f->frame[k].code,  f->frame[k].instruction,
		f->frame[k].line, f->frame[k].state, f->frame[k].name,
	};
	uint32_t low = f->from;

	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i]->offset < low)
			low = fields[i]->offset;
	return low;
}

struct perf_frames_fields perf_frames_find(const struct tracefmt *format)
{
	struct perf_frames_fields f = {
		.probe_ip = tracefmt_find(format, "__probe_ip"),
		.code_type = tracefmt_find(format, "ct"),
		.none = tracefmt_find(format, "cn"),
	};

	if (!f.probe_ip || !f.code_type)
		return f;
	f.from = f.code_type->offset;
	if (f.none && f.none->offset < f.from)
		f.from = f.none->offset;
	for (unsigned k = 0; k < PERF_FRAMES_MAX; k++) {
		f.frame[k].type = field(format, 't', k);
		f.frame[k].code = field(format, 'c', k);
		f.frame[k].instruction = field(format, 'i', k);
		f.frame[k].line = field(format, 'l', k);
		f.frame[k].state = field(format, 's', k);
		f.frame[k].name = field(format, 'q', k);
		if (!f.frame[k].type || !f.frame[k].code || !f.frame[k].instruction ||
		    !f.frame[k].line || !f.frame[k].state || !f.frame[k].name)
			break;
		f.from = lowest(&f, k);
		f.count++;
	}
	return f;
}

/* Whether the text of a type pointer is that of type, with the pointer's first byte omitted if
 * it is zero. */
static bool is_type(const struct tracefmt_field *type_field, const struct cursor *raw,
                    uint64_t type)
{
	size_t len = 0, want;
	const char *text = tracefmt_text(type_field, raw, &len);
	char bytes[sizeof(type) + 1] = "";

	if (!(type & 0xff))
		type >>= 8;
	for (want = 0; type & 0xff; type >>= 8)
		bytes[want++] = (char)(type & 0xff);
	return text && want && len == want && !memcmp(text, bytes, want);
}

/*
 * The interpreter has frames of its own between those of functions. From 3.12 on, if C calls
 * Python, there is one whose code has this name, or is None; from 3.13 on, if a class creates an
 * object, one for the result of __init__, whose code has no line. From 3.14 on, both are immortal,
 * marked by the lowest bit, and nothing else is.
 */
static bool is_own_code(const char *name, size_t len, uint32_t line)
{
	static const char trampoline[] = "<interpreter trampoline>", init[] = "__init__";

	return name && ((len == strlen(trampoline) && !memcmp(name, trampoline, len)) ||
	                (!line && len == strlen(init) && !memcmp(name, init, len)));
}

/* Whether frame k is the interpreter's own, judged by its code object. If that could not be
 * fetched, nor could any later frames, so a wrong answer adds no frame. */
static bool is_own_object(const struct perf_frames_fields *f, unsigned k, const struct cursor *raw)
{
	uint64_t code = tracefmt_number(f->frame[k].code, raw);

	return code & 1 || (f->none && code == tracefmt_number(f->probe_ip, raw) +
	                                               tracefmt_number(f->none, raw));
}

static bool read_frame(const struct perf_frames_fields *f, unsigned k, const struct cursor *raw,
                       struct hash_seed seed, struct raw_frame *ret)
{
	size_t len = 0;
	const char *name = tracefmt_text(f->frame[k].name, raw, &len);

	*ret = (struct raw_frame){
		.code = tracefmt_number(f->frame[k].code, raw),
		.instruction = tracefmt_number(f->frame[k].instruction, raw),
		.name_hash = name ? hash_text(seed, name, len) : 0,
		.line = (uint32_t)tracefmt_number(f->frame[k].line, raw),
		.state = (uint32_t)tracefmt_number(f->frame[k].state, raw),
		.index = k,
	};
	return !is_own_code(name, len, ret->line);
}

/* Reads the frames of functions, up to the first frame that is neither a function's nor the
 * interpreter's own. */
static unsigned read_frames(const struct perf_frames_fields *f, const struct cursor *raw,
                            struct hash_seed seed, struct raw_frame *ret)
{
	uint64_t code_type = tracefmt_number(f->probe_ip, raw) + tracefmt_number(f->code_type, raw);
	unsigned n = 0;

	for (unsigned k = 0; k < f->count; k++) {
		if (is_type(f->frame[k].type, raw, code_type))
			n += read_frame(f, k, raw, seed, &ret[n]);
		else if (!is_own_object(f, k, raw))
			break;
	}
	return n;
}

static bool is_known(const struct known *known, const struct raw_frame *frames, unsigned n)
{
	return known->count == n && !memcmp(known->frame, frames, n * sizeof(*frames));
}

/* The fetched name; only a compact ASCII str has its characters at the fetched address. */
static const char *fetched_name(const struct perf_frames_fields *f, const struct raw_frame *frame,
                                const struct cursor *raw, size_t *ret_len)
{
	const char *text = tracefmt_text(f->frame[frame->index].name, raw, ret_len);

	return (frame->state & STATE_MASK) == STATE_COMPACT_ASCII && text && *ret_len ? text : NULL;
}

static bool is_cut(const struct pycode_entry *e, const char *name, size_t len)
{
	return e->name_len > MAY_BE_CUT && len < e->name_len && !memcmp(e->name, name, len);
}

/* The listed code object, unless the fetched name contradicts it; giltracer's own code has no
 * name in the list. Before 3.11, co_name is fetched, which the list contains, too. */
static const struct pycode_entry *
listed(const struct perf_frames *pf, const struct raw_frame *frame, const char *name, size_t len)
{
	const struct pycode_entry *e = pf->code ? pycode_find(pf->code, frame->code, frame->line)
	                                        : NULL;

	if (!e || !name || !e->name_len)
		return e;
	if (e->name_len == len && !memcmp(e->name, name, len))
		return e;
	return is_cut(e, name, len) ? e : NULL;
}

/* Returns 0 if the frame has no certain name. */
static uint32_t add_frame(struct perf_frames *pf, const struct perf_frames_fields *f,
                          const struct raw_frame *frame, const struct cursor *raw, uint32_t parent)
{
	size_t len = 0;
	const char *name = fetched_name(f, frame, raw, &len);
	const struct pycode_entry *e = listed(pf, frame, name, len);
	struct stack_frame sf = { .parent = parent, .flags = STACK_PYTHON };

	if (e && !e->name_len) {
		return 0;
	} else if (e) {
		sf.name = names_id(pf->names, e->name, e->name_len);
		sf.module = names_id(pf->names, e->file, e->file_len);
		sf.line = pycode_line(pf->code, e, frame->instruction);
		if (sf.line == frame->line)
			sf.flags |= STACK_FIRST_LINE;
	} else if (name && cursor_left(raw) < PAGE_NEARLY_FULL) {
		sf.name = names_id(pf->names, name, len);
	} else {
		return 0;
	}
	return stacks_id(pf->stacks, &sf);
}

/* Starts at the outermost frame, so that a frame without a name drops its callers. */
static uint32_t add_frames(struct perf_frames *pf, const struct perf_frames_fields *f,
                           const struct raw_frame *frames, unsigned n, const struct cursor *raw)
{
	uint32_t stack = 0;

	for (unsigned k = n; k-- > 0;)
		stack = add_frame(pf, f, &frames[k], raw, stack);
	return stack;
}

static uint32_t work_out(struct perf_frames *pf, const struct perf_frames_fields *f,
                         const struct cursor *raw)
{
	struct raw_frame frames[PERF_FRAMES_MAX];
	unsigned n = read_frames(f, raw, pf->seed, frames);
	uint64_t hash;
	uint32_t first;
	struct known *known;

	if (!n)
		return 0;
	hash = hash_text(pf->seed, frames, n * sizeof(*frames));
	first = idmap_get(&pf->hashes, hash);
	for (uint32_t i = first; i != IDMAP_NONE; i = pf->known.v[i].next)
		if (is_known(&pf->known.v[i], frames, n))
			return pf->known.v[i].stack;
	known = vec_push(&pf->known);
	*known = (struct known){ .count = n, .next = first };
	memcpy(known->frame, frames, n * sizeof(*frames));
	known->stack = add_frames(pf, f, frames, n, raw);
	idmap_set(&pf->hashes, hash, (uint32_t)pf->known.n - 1);
	return known->stack;
}

/* Whether the characters of a field, if any, are after from. */
static bool is_behind(const struct tracefmt_field *text, const struct cursor *raw, uint32_t from)
{
	size_t len;
	const char *at = tracefmt_text(text, raw, &len);

	return !at || (const uint8_t *)at >= raw->p + from;
}

/* Whether the result depends only on probe_ip and the bytes from f->from on. */
static bool is_compact(const struct perf_frames_fields *f, const struct cursor *raw)
{
	for (unsigned k = 0; k < f->count; k++)
		if (!is_behind(f->frame[k].type, raw, f->from) ||
		    !is_behind(f->frame[k].name, raw, f->from))
			return false;
	return true;
}

static struct recent *recent_of(struct perf_frames *pf, const struct perf_frames_fields *f,
                                const struct cursor *raw)
{
	uint32_t at = cursor_u32_at(raw, f->frame[0].instruction->offset) ^
	              cursor_u32_at(raw, f->frame[f->count - 1].instruction->offset) << 8 ^
	              cursor_u32_at(raw, f->frame[0].code->offset) >> 4;

	return &pf->recent[at * 0x9e3779b1 >> 16 & (RECENT - 1)];
}

uint32_t perf_frames_get(struct perf_frames *pf, const struct perf_frames_fields *f,
                         const struct cursor *raw)
{
	size_t left = cursor_left(raw), size = left > f->from ? left - f->from : 0;
	uint64_t ip;
	struct recent *r;

	if (!f->count || !size)
		return 0;
	ip = cursor_u64_at(raw, f->probe_ip->offset);
	r = recent_of(pf, f, raw);
	if (r->size == size && r->probe == f->probe_ip && r->probe_ip == ip &&
	    !memcmp(r->bytes, raw->p + f->from, size))
		return r->stack;
	if (size > sizeof(r->bytes) || !is_compact(f, raw))
		return work_out(pf, f, raw);
	r->stack = work_out(pf, f, raw);
	r->probe = f->probe_ip;
	r->probe_ip = ip;
	r->size = (uint32_t)size;
	memcpy(r->bytes, raw->p + f->from, size);
	return r->stack;
}
