/* SPDX-License-Identifier: MIT */
/* The stacks that waited, and those that others executed meanwhile, for the flame graph of both. */
#include "report/html/meta.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/functions.h"
#include "analysis/meeting.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/str.h"
#include "report/phrases.h"
#include "report/words.h"
#include "trace/names.h"
#include "trace/source.h"

#define NAME_COLUMNS 200

/* The pairs with most time, as long as their frames are not more than these; the others keep their
 * outermost frames only. */
#define PAIRS 4000

/* A frame; the root's index is 0, and its members are, too. */
struct node {
	uint32_t parent, name;
};

/* Its callees are left out. */
#define CUT (1u << 31)

/* Two trees in one, and the pairs of their nodes. @places: frames have their folders and lines; @most:
 * with so many nodes it grows no more, apart from outermost frames; @nodes: callers first; @used: names of
 * nodes have lower ids; @index: by parent and name; @of: by stack of a meeting, with CUT */
struct tree {
	bool places;
	size_t most;
	uint32_t used;
	struct names *names;
	VEC(struct node) nodes;
	VEC(struct meeting_pair) pairs;
	struct idmap index, of, pair_index;
};

/* Times by node. */
struct node_times {
	VEC(uint64_t) v;
};

static void tree_init(struct tree *t, bool places, size_t most)
{
	*t = (struct tree){ .places = places, .most = most, .names = names_new() };
	*vec_push(&t->nodes) = (struct node){ 0 };
}

static void tree_done(struct tree *t)
{
	names_free(t->names);
	vec_done(&t->nodes);
	vec_done(&t->pairs);
	idmap_done(&t->index);
	idmap_done(&t->of);
	idmap_done(&t->pair_index);
}

/* IDMAP_NONE: it is left out. */
static uint32_t node_at(struct tree *t, uint32_t parent, const char *text)
{
	uint32_t name = names_id(t->names, text, strlen(text)), at;

	if (t->nodes.n > t->most && parent)
		return idmap_get(&t->index, idmap_pair(parent, name));
	if (idmap_add(&t->index, idmap_pair(parent, name), (uint32_t)t->nodes.n, &at))
		*vec_push(&t->nodes) = (struct node){ parent, name };
	t->used = name < t->used ? t->used : name + 1;
	return at;
}

/* Whether the frame is one of those that start every thread. */
static bool is_start(const char *text)
{
	return (str_has_prefix(text, "Thread._bootstrap") || str_has_prefix(text, "Thread.run ")) &&
	       strstr(text, "threading.py:");
}

static void add_text(struct str *out, const struct analysis *a, const struct stack_frame *f)
{
	const struct thread_group *group;

	switch (f->flags) {
	case MEETING_NOBODY:
		str_adds(out, phrase(PHRASE_nobody_handoff));
		return;
	case MEETING_UNKNOWN:
		str_adds(out, phrase(PHRASE_holder_unknown));
		return;
	case MEETING_GROUP:
		group = &a->rows.v.v[f->name];
		if (group->threads > 1)
			str_addf(out, "%s ×%" PRIu32, str_get(&group->name), group->threads);
		else
			wording_add_thread(out, a->pass, group->first);
		return;
	case MEETING_CALL:
		str_adds(out, names_get(a->pass->slices->names, f->name));
		return;
	default:
		str_addf(out, "%s (%s:%" PRIu32 ")", names_get(a->pass->source->names, f->name),
		         names_get(a->pass->source->names, f->module), f->line);
	}
}

/* "f (/a/b.py:12)" -> "f (b.py)", and in a library "f (/lib/python/b.py)": other folders and lines are no
 * change. */
static void shorten(struct str *text)
{
	CLEANUP(free) char *whole = str_take(text);
	char *open = strstr(whole, " ("), *slash = strrchr(whole, '/'),
	     *colon = strrchr(whole, ':');

	if (open && colon && colon > open && colon[1 + strspn(colon + 1, "0123456789")] == ')') {
		bool library = function_in_library(open);

		*open = *colon = 0;
		str_addf(text, "%s (%s%s)", whole, library ? "/lib/python/" : "",
		         slash && slash > open ? slash + 1 : open + 2);
	} else {
		str_adds(text, whole);
	}
}

/* The outermost frame of each stack. Caller frees. */
static uint32_t *find_roots(const struct stacks *stacks)
{
	uint32_t n = stacks_count(stacks), *roots = xcalloc(n, sizeof(*roots));

	for (uint32_t i = 1; i < n; i++) {
		uint32_t parent = stacks_get(stacks, i)->parent;

		roots[i] = parent ? roots[parent] : i;
	}
	return roots;
}

/* The node of a stack; with CUT, that of its innermost frame in the tree. */
static uint32_t node_of(struct tree *t, const struct analysis *a, const struct stacks *stacks,
                        uint32_t stack)
{
	VEC(uint32_t) path = { 0 };
	uint32_t node = 0;

	for (; stack && (node = idmap_get(&t->of, stack)) == IDMAP_NONE;
	     stack = stacks_get(stacks, stack)->parent)
		*vec_push(&path) = stack;
	if (!stack)
		node = 0;
	while (path.n) {
		CLEANUP(str_done) struct str text = { 0 };
		uint32_t callee;

		stack = path.v[--path.n];
		if (node & CUT) {
			idmap_set(&t->of, stack, node);
			continue;
		}
		add_text(&text, a, stacks_get(stacks, stack));
		if (node && !t->nodes.v[node].parent && is_start(str_get(&text))) {
			idmap_set(&t->of, stack, node);
			continue;
		}
		if (!t->places && node)
			shorten(&text);
		callee = node_at(t, node, str_get(&text));
		node = callee == IDMAP_NONE ? node | CUT : callee;
		idmap_set(&t->of, stack, node);
	}
	vec_done(&path);
	return node;
}

static void add_pair(struct tree *t, uint32_t waits, uint32_t holds, uint64_t ns)
{
	uint32_t at;

	if (idmap_add(&t->pair_index, idmap_pair(waits, holds), (uint32_t)t->pairs.n, &at))
		*vec_push(&t->pairs) = (struct meeting_pair){ waits, holds, 0 };
	t->pairs.v[at].ns += ns;
}

static void put_tree(struct jsonw *w, const struct tree *t)
{
	jsonw_array(w, "names");
	for (uint32_t i = 0; i < t->used; i++)
		jsonw_string(w, NULL, names_get(t->names, i));
	jsonw_end(w);
	jsonw_array(w, "nodes");
	for (size_t i = 1; i < t->nodes.n; i++) {
		jsonw_u64(w, NULL, t->nodes.v[i].parent);
		jsonw_u64(w, NULL, t->nodes.v[i].name);
	}
	jsonw_end(w);
}

/* Writes the trees, and the pairs [waited, held, ns]; nothing without pairs. cut_ns: see FORMAT.md */
static void put(struct jsonw *w, const char *key, const struct tree *t, uint64_t cut_ns)
{
	uint64_t ns = 0;

	if (!t->pairs.n)
		return;
	jsonw_object(w, key);
	put_tree(w, t);
	jsonw_array(w, "pairs");
	for (size_t i = 0; i < t->pairs.n; i++) {
		jsonw_u64(w, NULL, t->pairs.v[i].waits);
		jsonw_u64(w, NULL, t->pairs.v[i].holds);
		jsonw_u64(w, NULL, t->pairs.v[i].ns);
		ns += t->pairs.v[i].ns;
	}
	jsonw_end(w);
	jsonw_u64(w, "ns", ns);
	jsonw_u64(w, "cut_ns", cut_ns);
	jsonw_end(w);
}

static void put_gil(struct jsonw *w, const struct analysis *a)
{
	struct meeting m;
	struct tree t;
	CLEANUP(free) uint32_t *roots = NULL;
	uint64_t cut_ns;

	meeting_find(&m, a->pass, &a->rows, MEETING_WORK);
	roots = find_roots(m.stacks);
	cut_ns = m.undivided_ns;
	tree_init(&t, true, SIZE_MAX);
	for (size_t i = 0; i < m.pairs.n; i++) {
		const struct meeting_pair *pair = &m.pairs.v[i];
		bool outermost = i >= PAIRS || t.nodes.n >= MEETING_NODES;

		add_pair(&t, node_of(&t, a, m.stacks, outermost ? roots[pair->waits] : pair->waits),
		         node_of(&t, a, m.stacks, outermost ? roots[pair->holds] : pair->holds),
		         pair->ns);
		cut_ns += outermost ? pair->ns : 0;
	}
	put(w, "gil", &t, cut_ns);
	tree_done(&t);
	meeting_done(&m);
}

/* A lock with the line that waited, and what the last thread of the chain did, with its line. */
static void put_locks(struct jsonw *w, const struct analysis *a)
{
	struct tree t;

	tree_init(&t, true, SIZE_MAX);
	for (size_t i = 0; i < a->chains.v.n; i++) {
		const struct chain *chain = &a->chains.v.v[i];
		struct lock_name lock = lock_name_of(a->recording, a->pass, chain->waits_in);
		struct function at = function_at(a->pass, chain->at);
		CLEANUP(str_done) struct str waits = { 0 }, in = { 0 };
		uint32_t holds = node_at(&t, 0, wording_chain(chain));

		wording_add_lock_in(&waits, &lock, NAME_COLUMNS);
		if (at.name) {
			wording_add_function(&in, &at, NAME_COLUMNS);
			holds = node_at(&t, holds, str_get(&in));
		}
		add_pair(&t, node_at(&t, 0, str_get(&waits)), holds, chain->ns);
	}
	put(w, "locks", &t, 0);
	tree_done(&t);
}

void meeting_write(struct jsonw *w, const struct analysis *a)
{
	jsonw_object(w, "meeting");
	put_gil(w, a);
	put_locks(w, a);
	jsonw_end(w);
}

/* Adds the waiting that each stack of holders caused to times, by node. Returns the part of it that callees
 * caused that are left out. */
static uint64_t add_caused(struct tree *t, const struct analysis *a, struct node_times *times)
{
	uint64_t cut_ns = 0;
	struct meeting m;

	meeting_find(&m, a->pass, &a->rows, MEETING_WORK);
	idmap_done(&t->of);
	t->of = (struct idmap){ 0 };
	for (size_t i = 0; i < m.pairs.n; i++) {
		uint32_t node = node_of(t, a, m.stacks, m.pairs.v[i].holds);

		cut_ns += node & CUT ? m.pairs.v[i].ns : 0;
		node &= ~CUT;
		while (times->v.n <= node)
			*vec_push(&times->v) = 0;
		times->v.v[node] += m.pairs.v[i].ns;
	}
	meeting_done(&m);
	return cut_ns;
}

static void put_times(struct jsonw *w, const char *key, const struct tree *t,
                      const struct node_times *times)
{
	jsonw_array(w, key);
	for (size_t i = 1; i < t->nodes.n; i++)
		jsonw_u64(w, NULL, i < times->v.n ? times->v.v[i] : 0);
	jsonw_end(w);
}

void caused_diff_write(struct jsonw *w, const struct analysis *a, const struct analysis *b,
                       size_t most)
{
	struct node_times of_a = { 0 }, of_b = { 0 };
	uint64_t cut_ns;
	struct tree t;

	/* A tree that grows no more has the same place for a stack of either recording. */
	tree_init(&t, false, most);
	cut_ns = add_caused(&t, a, &of_a);
	cut_ns += add_caused(&t, b, &of_b);
	jsonw_object(w, "diff");
	put_tree(w, &t);
	put_times(w, "a", &t, &of_a);
	put_times(w, "b", &t, &of_b);
	jsonw_u64(w, "a_dur_ns", a->model->end_ns - a->model->start_ns);
	jsonw_u64(w, "b_dur_ns", b->model->end_ns - b->model->start_ns);
	jsonw_u64(w, "cut_ns", cut_ns);
	jsonw_end(w);
	vec_done(&of_a.v);
	vec_done(&of_b.v);
	tree_done(&t);
}
