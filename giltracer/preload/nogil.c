/* SPDX-License-Identifier: MIT */
/*
 * Free-threaded CPythons. Nothing takes a GIL there, unless it was switched on, so that the library
 * learns of threads when they are started, and finds a thread's Python frames by its thread state.
 *
 * The layout is that which CPython publishes at the beginning of _PyRuntime (struct _Py_DebugOffsets),
 * for each version that is known here. Other facts have been the same in all versions so far:
 *
 *	ob_mutex	the lock of each object, is before the second half of the reference count
 *	state		of a thread, which the thread parks on while it is stopped
 *	stop_event	in struct _stoptheworld_state, which the thread that stops the world parks on;
 *			whether it is one is seen by the other members, among them that thread
 *
 * The name of an object is that of a variable in the waiting thread that refers to it.
 */
#include "preload/nogil.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/count.h"
#include "preload/locks.h"

bool nogil_on;

/* Members of struct _Py_DebugOffsets, all of which are uint64_t. */
enum published {
	RUNTIME_SIZE,
	INTERP_SIZE,
	INTERP_GC,
	INTERP_THREADS,
	THREAD_NEXT,
	THREAD_INTERP,
	THREAD_FRAME,
	THREAD_NATIVE_ID,
	THREAD_STATUS,
	CALLER,
	EXECUTABLE,
	FRAME_LOCALS,
	CODE_LOCAL_NAMES,
	OBJECT_TYPE,
	TYPE_NAME,
	TUPLE_ITEM,
	TUPLE_SIZE,
	DICT_KEYS,
	GC_COLLECTING,
	PUBLISHED,
};

#define COOKIE        "xdebugpy"
#define VERSION_AT    1 /* PY_VERSION_HEX */
#define VERSION_SHIFT 16
#define IS_FREE_AT    2

/* The numbers of the members, by version: 3.13. */
static const struct {
	uint64_t version;
	uint8_t at[PUBLISHED];
} members[] = {
	{ 0x030d, { 3, 6, 10, 9, 21, 22, 23, 25, 27, 29, 30, 32, 41, 45, 47, 51, 52, 57, 72 } },
};

/* A thread's state (an int) is in the first members of its PyThreadState. */
#define THREAD_STATE_END 256

/* It follows _whence, which follows _status. _Py_THREAD_ATTACHED: */
#define AFTER_STATUS 8
#define ATTACHED     1

/* More than any program has. */
#define THREADS_MAX 65536

/* struct _stoptheworld_state, from stop_event. */
#define STOP_MUTEX     (-4)
#define STOP_REQUESTED (-3)
#define STOP_REQUESTER 12

/* f_globals follows f_funcobj, which follows previous. */
#define FRAME_GLOBALS 16

#define MUTEX_ALIGNMENT 16
#define MUTEX_IN_OBJECT 10

/**
 * @at: the published offsets
 * @tstate: PyGILState_GetThisThreadState(), which works without the GIL and while detached
 */
static struct {
	uint64_t at[PUBLISHED];
	const char *runtime, *type_type, *dict_type, *cell_type, *code_type;
	const char *(*tstate)(void);
} nogil;

/* ---- memory that other threads may change or free */

static const char *pointer_from(const char *p, uint64_t offset)
{
	const char *ret;

	return frames_copy(&ret, p + offset, sizeof(ret)) ? ret : NULL;
}

static const char *type_of(const char *object)
{
	return pointer_from(object, nogil.at[OBJECT_TYPE]);
}

/* Whether the object is a class: its metaclass is type, or one that was derived from it. */
static bool is_class(const char *object)
{
	const char *meta = type_of(object);

	return meta && (meta == nogil.type_type || type_of(meta) == nogil.type_type);
}

static const char *code_of(const char *frame)
{
	uintptr_t code = (uintptr_t)pointer_from(frame, nogil.at[EXECUTABLE]);

	return (const char *)(code & ~(uintptr_t)3);
}

static bool is_function(const char *frame)
{
	const char *code = code_of(frame);

	return code && type_of(code) == nogil.code_type;
}

/* ---- threads */

const char *nogil_frame(void)
{
	const char *tstate = nogil.tstate();

	return tstate ? *(const char *const *)(const void *)(tstate + nogil.at[THREAD_FRAME])
	              : NULL;
}

static bool is_collecting(const char *tstate)
{
	const char *interp = pointer_from(tstate, nogil.at[THREAD_INTERP]);
	int collecting;

	return interp &&
	       frames_copy(&collecting, interp + nogil.at[INTERP_GC] + nogil.at[GC_COLLECTING],
	                   sizeof(collecting)) &&
	       collecting;
}

static bool is_stop_event(const char *address, const char *tstate)
{
	return (uintptr_t)address % 8 == 4 &&
	       __atomic_load_n(address + STOP_REQUESTED, __ATOMIC_RELAXED) == 1 &&
	       __atomic_load_n(address + STOP_MUTEX, __ATOMIC_RELAXED) & 1 &&
	       *(const char *const *)(const void *)(address + STOP_REQUESTER) == tstate;
}

enum preload_lock_event nogil_event(uint64_t address)
{
	const char *tstate = nogil.tstate(), *at = (const char *)(uintptr_t)address;

	if (!tstate)
		return 0;
	if (address - (uintptr_t)tstate < THREAD_STATE_END)
		return PRELOAD_LOCK_STOPPED;
	if (!is_stop_event(at, tstate))
		return 0;
	return is_collecting(tstate) ? PRELOAD_LOCK_COLLECTS : PRELOAD_LOCK_STOPS;
}

bool nogil_is_python(const char *caller)
{
	Dl_info theirs, pythons;

	return nogil_on && dladdr(caller, &theirs) && dladdr(nogil.runtime, &pythons) &&
	       theirs.dli_fbase == pythons.dli_fbase;
}

static int state_of(const char *tstate)
{
	int state = 0;

	frames_copy(&state, tstate + nogil.at[THREAD_STATUS] + AFTER_STATUS, sizeof(state));
	return state;
}

const char *nogil_late(pid_t *ret_tid)
{
	const char *me = nogil.tstate(), *late = NULL, *t;
	uint64_t tid = 0;
	int saved = errno;

	/* The thread that waits has not released its own state. */
	t = me && state_of(me) == ATTACHED ? pointer_from(me, nogil.at[THREAD_INTERP]) : NULL;
	t = t ? pointer_from(t, nogil.at[INTERP_THREADS]) : NULL;
	for (unsigned i = 0; t && i < THREADS_MAX;
	     i++, t = pointer_from(t, nogil.at[THREAD_NEXT])) {
		if (t == me || state_of(t) != ATTACHED)
			continue;
		if (late) {
			late = NULL;
			break;
		}
		late = t;
	}
	if (late && !frames_copy(&tid, late + nogil.at[THREAD_NATIVE_ID], sizeof(tid)))
		late = NULL;
	*ret_tid = (pid_t)tid;
	errno = saved;
	return late;
}

void nogil_thread_begins(void)
{
	struct self *me = join_self();

	me->has_had_gil = true;
	if (process.on && me->at >= me->end)
		stream_extend(me, 0);
	if (counting.on)
		count_nogil_thread(me);
}

/* ---- what a lock belongs to */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define TEXT_MAX      128
#define VARIABLES_MAX 256
#define FRAMES_MAX    6
#define ENTRIES_MAX   65536
#define ENTRIES_READ  64

/* The locks of the interpreter itself, in its struct or that of the process, if those are this large: their
 * layout is not published. */
struct part {
	uint32_t at, size;
	const char *name;
};

static const struct {
	uint64_t interp_size, runtime_size;
	struct part interp[13], runtime[6];
} parts = {
	.interp_size = 0x34a40,
	.runtime_size = 0x50280,
	/* clang-format off */
	.interp = {
		{ 0x28, 0x1, "pending calls" },
		{ 0x1e20, 0x1, "imports" },
		{ 0x1f40, 0x1, "codecs" },
		{ 0x29c8, 0x1, "warnings" },
		{ 0x29f8, 0x1, "stops of the world" },
		{ 0x2a30, 0x1, "memory that threads may still read" },
		{ 0x2b80, 0x1818, "reference counts to merge" },
		{ 0x4398, 0x7f, "weak references" },
		{ 0x4e78, 0x1, "versions of functions" },
		{ 0x14e80, 0x1, "constants of code" },
		{ 0x14ef4, 0x1, "memory errors" },
		{ 0x14f04, 0x1, "memory to free later" },
		{ 0x2fe38, 0x1, "classes" },
	},
	.runtime = {
		{ 0x270, 0x1, "lists of threads" },
		{ 0x2b8, 0x1, "allocators" },
		{ 0x9e8, 0x1, "extension modules" },
		{ 0xa58, 0x1, "pending calls of the main thread" },
		{ 0x2690, 0x1, "profile functions" },
		{ 0x2860, 0x1, "stops of all interpreters" },
	},
	/* clang-format on */
};

static const char *part_at(const struct part *v, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		if (at - v[i].at < v[i].size)
			return v[i].name;
	return "";
}

/* The name of a lock of the interpreter itself; "": unknown; NULL: it is none. */
static const char *find_part(uint64_t lock)
{
	const char *tstate = nogil.tstate();
	uint64_t runtime = (uintptr_t)nogil.runtime;
	uint64_t interp = tstate ? (uintptr_t)pointer_from(tstate, nogil.at[THREAD_INTERP])
	                         : runtime;
	bool known = nogil.at[INTERP_SIZE] == parts.interp_size &&
	             nogil.at[RUNTIME_SIZE] == parts.runtime_size;

	if (gils_of_mutex((const void *)(uintptr_t)lock))
		return "the GIL, which is on during an import";
	if (lock - interp < nogil.at[INTERP_SIZE])
		return known ? part_at(parts.interp, COUNT(parts.interp), lock - interp) : "";
	if (lock - runtime < nogil.at[RUNTIME_SIZE])
		return known ? part_at(parts.runtime, COUNT(parts.runtime), lock - runtime) : "";
	return NULL;
}

/* @name: of a variable that refers to the object; @where: the place of the reference, if that exists as
 * long as the variable */
struct description {
	const char *object, *type;
	const char *where;
	char type_name[TEXT_MAX], name[TEXT_MAX];
	size_t name_len;
};

/* The number of the reference to the object among n; n: none. The lowest bits are marks. */
static size_t find_reference(const char *const *items, size_t n, const char *object)
{
	size_t i = 0;

	while (i < n && ((uintptr_t)items[i] & ~(uintptr_t)3) != (uintptr_t)object)
		i++;
	return i;
}

/* The same for variables that a function shares with an inner one, which are in cells. */
static size_t find_in_cells(const char *const *items, size_t n, const char *object)
{
	size_t i = 0;

	while (i < n && !(type_of(items[i]) == nogil.cell_type &&
	                  pointer_from(items[i], nogil.at[OBJECT_TYPE] + sizeof(void *)) == object))
		i++;
	return i;
}

static bool find_local(struct description *d, const char *frame)
{
	const char *names = pointer_from(code_of(frame), nogil.at[CODE_LOCAL_NAMES]);
	const char *locals[VARIABLES_MAX];
	uint64_t n;
	size_t i;

	if (!names || !frames_copy(&n, names + nogil.at[TUPLE_SIZE], sizeof(n)) ||
	    n > VARIABLES_MAX ||
	    !frames_copy(locals, frame + nogil.at[FRAME_LOCALS], n * sizeof(*locals)))
		return false;
	i = find_reference(locals, n, d->object);
	if (i == n)
		i = find_in_cells(locals, n, d->object);
	if (i == n)
		return false;
	d->name_len = frames_text(d->name, TEXT_MAX,
	                          pointer_from(names, nogil.at[TUPLE_ITEM] + i * sizeof(void *)));
	return d->name_len != 0;
}

/* struct _dictkeysobject. Another kind of keys than these has no names. */
struct keys {
	uint64_t references;
	uint8_t log2_size, log2_index_bytes, kind, mutex;
	uint32_t version;
	int64_t usable, entries;
};

#define KEYS_UNICODE 1

struct entry {
	const char *key, *value;
};

/* Of the module of the frame's function. */
static bool find_global(struct description *d, const char *frame)
{
	const char *globals = pointer_from(frame, nogil.at[CALLER] + FRAME_GLOBALS);
	const char *at = globals && type_of(globals) == nogil.dict_type
	                         ? pointer_from(globals, nogil.at[DICT_KEYS])
	                         : NULL;
	struct entry entries[ENTRIES_READ];
	struct keys keys;

	if (!at || !frames_copy(&keys, at, sizeof(keys)) || keys.kind != KEYS_UNICODE ||
	    keys.log2_index_bytes > 24 || keys.entries > ENTRIES_MAX)
		return false;
	at += sizeof(keys) + ((size_t)1 << keys.log2_index_bytes);
	for (int64_t i = 0; i < keys.entries; i++) {
		int64_t n = keys.entries - i < ENTRIES_READ ? keys.entries - i : ENTRIES_READ;
		const struct entry *e = &entries[i % ENTRIES_READ];

		if (i % ENTRIES_READ == 0 &&
		    !frames_copy(entries, at + (size_t)i * sizeof(*entries),
		                 (size_t)n * sizeof(*entries)))
			return false;
		if (e->value != d->object)
			continue;
		d->name_len = frames_text(d->name, TEXT_MAX, e->key);
		d->where = at + (size_t)i * sizeof(*entries) + offsetof(struct entry, value);
		return d->name_len != 0;
	}
	return false;
}

static void find_name(struct description *d)
{
	const char *frame = nogil_frame();

	d->name_len = 0;
	d->where = NULL;
	for (unsigned i = 0; frame && i < FRAMES_MAX; i++) {
		if (is_function(frame) && (find_local(d, frame) || find_global(d, frame)))
			return;
		frame = pointer_from(frame, nogil.at[CALLER]);
	}
}

/* The object's own lock, or the lock that an object of these types is. False: it is none of them. */
static bool find_object(struct description *d, uint64_t lock)
{
	uint64_t in = lock % MUTEX_ALIGNMENT, head = nogil.at[OBJECT_TYPE] + sizeof(void *);

	if (in != 0 && in != MUTEX_IN_OBJECT)
		return false;
	d->object = (const char *)(uintptr_t)(lock - (in ? in : head));
	d->type = type_of(d->object);
	if (!d->type || !is_class(d->type))
		return false;
	memset(d->type_name, 0, TEXT_MAX);
	for (const char *from = pointer_from(d->type, nogil.at[TYPE_NAME]), *p = from;
	     p && p < from + TEXT_MAX - 1 && frames_copy(&d->type_name[p - from], p, 1) &&
	     d->type_name[p - from];
	     p++)
		continue;
	return in ? *d->type_name
	          : !strcmp(d->type_name, "_thread.lock") || !strcmp(d->type_name, "_thread.RLock");
}

/* ---- locks that have been described */

#define DESCRIBED 4096 /* a power of two */

/**
 * @lock: 0: none
 * @type: of the object; @where: see struct description; @named: it has a name
 */
static struct described {
	uint64_t lock;
	const char *type, *where;
	uint64_t next_stamp;
	bool named;
} described[DESCRIBED];

static atomic_flag describing = ATOMIC_FLAG_INIT;

/* Ticks between two looks at one lock: some tenths of a second. */
#define LOOK_EVERY 500000000

static struct described *entry_of(uint64_t lock)
{
	return &described[(uint32_t)(lock * UINT64_C(0x9e3779b97f4a7c15) >> 32) % DESCRIBED];
}

/* Whether the entry is of the object that is now at the address. If it is not known to be, but has the
 * type, it is taken for the same one, unless it is not what the variable refers to. */
static bool is_same(const struct described *e, const struct description *d, uint64_t lock)
{
	return e->lock == lock && e->type == d->type &&
	       (!e->where || pointer_from(e->where, 0) == d->object);
}

static void describe(struct described *e, uint64_t lock, uint64_t stamp)
{
	struct description d = { 0 };
	const char *part = find_part(lock);
	bool same;

	if (part) {
		if (e->lock == lock ||
		    process_log(&(struct preload_entry){ .type = PRELOAD_OBJECT,
		                                         .stamp = stamp,
		                                         .number = lock,
		                                         .value = PRELOAD_OF_RUNTIME },
		                part, strlen(part) + 1))
			*e = (struct described){ lock, NULL, NULL, UINT64_MAX, true };
		return;
	}
	if (!find_object(&d, lock))
		return;
	same = is_same(e, &d, lock);
	if (!same || !e->named)
		find_name(&d);
	if (!same || (!e->named && d.name_len)) {
		size_t len = strlen(d.type_name) + 1;

		if (!process_log2(&(struct preload_entry){ .type = PRELOAD_OBJECT,
		                                           .stamp = stamp,
		                                           .number = lock },
		                  d.type_name, len, d.name, d.name_len))
			return;
		*e = (struct described){ lock, d.type, d.where, 0, d.name_len != 0 };
	}
	e->next_stamp = stamp + LOOK_EVERY;
}

void nogil_describe(uint64_t lock, uint64_t stamp)
{
	struct described *e = entry_of(lock);
	int saved = errno;

	if (e->lock == lock && __atomic_load_n(&e->next_stamp, __ATOMIC_RELAXED) > stamp)
		return;
	/* Another thread that waits for it will do the same. */
	if (atomic_flag_test_and_set(&describing))
		return;
	if (e->lock != lock || e->next_stamp <= stamp)
		describe(e, lock, stamp);
	atomic_flag_clear(&describing);
	errno = saved;
}

void nogil_again(void)
{
	memset(described, 0, sizeof(described));
	atomic_flag_clear(&describing);
}

/* ---- a GIL that is on for an import */

/* The value of the GIL's first member while it is on for good; otherwise it is the number of imports. */
#define ON_FOR_GOOD INT_MAX

static bool is_on_for_good(const struct gil *g)
{
	const int *on = (const void *)((const char *)g->cond - GIL_ON);

	return __atomic_load_n(on, __ATOMIC_RELAXED) == ON_FOR_GOOD;
}

static void hold_from(struct self *me, struct gil *g, uint64_t stamp)
{
	if (g->taken_for_import)
		stream_put_gil(me, PRELOAD_ACQUIRE, stamp, g);
	g->taken_for_import = false;
}

void nogil_imported(struct self *me)
{
	const struct gil *held = gils_held(me);

	if (held && process_of_gil() && is_on_for_good(held))
		hold_from(me, &gils[held - gils], clock_stamp());
}

bool nogil_import(struct self *me, enum preload_type type, uint64_t stamp, struct gil *g)
{
	const bool for_good = is_on_for_good(g);
	const uint64_t lock = (uintptr_t)(void *)g->mutex;
	const bool ends = type == PRELOAD_ACQUIRE || type == PRELOAD_LEFT;

	if (ends && me->waits_for_import) {
		me->waits_for_import = false;
		locks_put(me, type == PRELOAD_LEFT ? PRELOAD_LOCK_LEFT : PRELOAD_LOCK_GOT, lock, 0,
		          stamp);
	}
	if (for_good) {
		if (type == PRELOAD_RELEASE)
			hold_from(me, g, stamp);
		g->taken_for_import = false;
		return false;
	}
	switch (type) {
	case PRELOAD_REQUEST:
		me->waits_for_import = true;
		stream_put_frame(me, frames_from(nogil_frame()));
		locks_put(me, PRELOAD_LOCK_PARKS, lock, 0, stamp);
		nogil_describe(lock, stamp);
		break;
	case PRELOAD_ACQUIRE:
		g->taken_for_import = true;
		break;
	case PRELOAD_RELEASE:
		g->taken_for_import = false;
		if (!me->gave)
			break;
		stream_put_frame(me, frames_from(nogil_frame()));
		locks_put(me, PRELOAD_LOCK_POSTS, lock, 0, stamp);
		break;
	default:
		break;
	}
	return true;
}

/* ---- the interpreter */

void nogil_begin(void *(*symbol)(const char *name))
{
	const uint64_t *published = symbol("_PyRuntime");
	size_t row = 0;

	if (nogil_on || !published || memcmp(published, COOKIE, strlen(COOKIE)) != 0 ||
	    !published[IS_FREE_AT])
		return;
	while (row < sizeof(members) / sizeof(*members) &&
	       members[row].version != published[VERSION_AT] >> VERSION_SHIFT)
		row++;
	if (row == sizeof(members) / sizeof(*members))
		return;
	for (unsigned i = 0; i < PUBLISHED; i++)
		nogil.at[i] = published[members[row].at[i]];
	nogil.runtime = (const char *)published;
	nogil.type_type = symbol("PyType_Type");
	nogil.dict_type = symbol("PyDict_Type");
	nogil.cell_type = symbol("PyCell_Type");
	nogil.code_type = symbol("PyCode_Type");
	*(void **)&nogil.tstate = symbol("PyGILState_GetThisThreadState");
	nogil_on = nogil.tstate != NULL;
	if (nogil_on)
		nogil_thread_begins();
}
