/* SPDX-License-Identifier: MIT */
/*
 * Recognizes the mutexes and condition variables of GILs. CPython's create_gil() initializes two
 * mutexes and then two condition variables, with no others in between: the GIL's own and those of
 * the forced switch. In memory, the two pairs look alike.
 */
#include "preload/calls_record.h"
#include "preload/count.h"
#include "preload/internal.h"
#include "preload/locks.h"
#include "preload/nogil.h"

#include <dlfcn.h>
#include <string.h>

/* Maximum distances: of the code of the two calls of a pair, and of a condition variable and its
 * mutex in memory. */
#define CALLS_APART 96
#define PAIR_APART  256

uint8_t gils_mutex_filter[FILTER_SIZE], gils_cond_filter[FILTER_SIZE];

struct gil gils[GILS_MAX];
static atomic_uint gil_count;
static uint32_t next_number;
static atomic_flag lock = ATOMIC_FLAG_INIT;

/* Held only while a GIL is created or destroyed. */
static void take_lock(void)
{
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		continue;
}

static void free_lock(void)
{
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

struct gil *gils_search_mutex(const pthread_mutex_t *mutex)
{
	unsigned n = atomic_load_explicit(&gil_count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (atomic_load_explicit(&gils[i].mutex, memory_order_acquire) == mutex)
			return &gils[i];
	return NULL;
}

struct gil *gils_search_cond(const pthread_cond_t *cond, bool is_switch)
{
	unsigned n = atomic_load_explicit(&gil_count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (atomic_load_explicit(&gils[i].mutex, memory_order_acquire) &&
		    (is_switch ? gils[i].switch_cond : gils[i].cond) == cond)
			return &gils[i];
	return NULL;
}

const struct gil *gils_held(const struct self *me)
{
	unsigned n = atomic_load_explicit(&gil_count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (gils[i].holder == me &&
		    atomic_load_explicit(&gils[i].mutex, memory_order_acquire))
			return &gils[i];
	return NULL;
}

static void count_in_filters(const struct gil *g, int by)
{
	uint8_t *mutex = &gils_mutex_filter[gils_hash(g->mutex)];
	uint8_t *cond = &gils_cond_filter[gils_hash(g->cond)];

	*mutex = (uint8_t)(*mutex + by);
	*cond = (uint8_t)(*cond + by);
}

static void forget(pthread_mutex_t *mutex)
{
	struct gil *g = gils_search_mutex(mutex);

	if (!g)
		return;
	count_gil_gone(g);
	count_in_filters(g, -1);
	atomic_store_explicit(&g->mutex, NULL, memory_order_release);
}

void gils_mutex_gone(pthread_mutex_t *mutex)
{
	if (!gils_of_mutex(mutex))
		return;
	take_lock();
	forget(mutex);
	free_lock();
}

void gils_forget(void)
{
	unsigned n = atomic_load_explicit(&gil_count, memory_order_acquire);

	take_lock();
	for (unsigned i = 0; i < n; i++)
		if (gils[i].mutex)
			forget(gils[i].mutex);
	free_lock();
}

static struct gil *find_place(void)
{
	unsigned n = atomic_load_explicit(&gil_count, memory_order_relaxed);

	for (unsigned i = 0; i < n; i++)
		if (!gils[i].mutex)
			return &gils[i];
	return n < GILS_MAX ? &gils[n] : NULL;
}

static bool log_gil(const struct gil *g)
{
	return process_log(
		&(struct preload_entry){ .type = PRELOAD_GIL,
	                                 .number = g->number,
	                                 .value = (uint64_t)(uintptr_t)(void *)g->mutex },
		NULL, 0);
}

void gils_log(void)
{
	unsigned n = atomic_load_explicit(&gil_count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (atomic_load_explicit(&gils[i].mutex, memory_order_acquire))
			log_gil(&gils[i]);
}

static void add(pthread_mutex_t *mutex, pthread_cond_t *cond, pthread_cond_t *switch_cond)
{
	struct gil *g;

	take_lock();
	forget(mutex);
	g = next_number < PRELOAD_GILS_MAX ? find_place() : NULL;
	if (g) {
		g->cond = cond;
		g->switch_cond = switch_cond;
		g->number = next_number++;
		g->holder = NULL;
		g->last = NULL;
		g->switches = 0;
		g->waiters = 0;
		g->compared = 0;
		atomic_store_explicit(&g->mutex, mutex, memory_order_release);
		if (g == &gils[gil_count])
			atomic_fetch_add_explicit(&gil_count, 1, memory_order_release);
		count_in_filters(g, 1);
		count_gil_made(g);
	}
	if (process.on && !(g && log_gil(g)))
		process_unwritten(clock_stamp());
	free_lock();
}

static void *library = RTLD_DEFAULT;

void *gils_symbol(const char *name)
{
	return dlsym(library, name);
}

void gils_found(pthread_mutex_t *mutex, pthread_cond_t *cond, pthread_cond_t *switch_cond,
                bool held)
{
	struct self *me = &self;
	struct gil *g;

	frames_begin(gils_symbol);
	if (counting.on)
		frames_count_locks(gils_symbol);
	nogil_begin(gils_symbol);
	add(mutex, cond, switch_cond);
	g = gils_search_mutex(mutex);
	if (!g || !held)
		return;
	memset(g->walks, 0, sizeof(g->walks));
	g->asked_stamp = g->asked_frame = g->asked_look = 0;
	g->taken_stamp = clock_stamp();
	g->noticed = g->told = false;
	g->holder = me;
	g->last = me;
	if (counting.on)
		count_held(me, g);
	/* Another thread may just import a module. */
	if (!nogil_on || !nogil_import(me, PRELOAD_ACQUIRE, g->taken_stamp, g))
		stream_put_gil(me, PRELOAD_ACQUIRE, g->taken_stamp, g);
}

/* Whether the calls came from CPython's code. */
static bool is_in_python(const char *caller)
{
	Dl_info ours, theirs;
	void *handle, *function;

	if (!dladdr(caller, &ours) || !ours.dli_fname)
		return false;
	function = gils_symbol("PyEval_SaveThread");
	/* A library that the program has loaded privately stays loaded. */
	if (!function && (handle = dlopen(ours.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) &&
	    (function = dlsym(handle, "PyEval_SaveThread")))
		library = handle;
	return function && dladdr(function, &theirs) && ours.dli_fbase == theirs.dli_fbase;
}

static ptrdiff_t apart(const void *a, const void *b)
{
	return (const char *)a - (const char *)b;
}

static bool is_near(const char *a, const char *b)
{
	return apart(a, b) <= CALLS_APART && apart(b, a) <= CALLS_APART;
}

void gils_mutex_made(pthread_mutex_t *mutex, const char *caller)
{
	struct self *me = &self;

	gils_mutex_gone(mutex);
	me->mutex[0] = me->mutex[1];
	me->mutex[1] = (struct init_call){ mutex, caller };
	me->conds = 0;
}

void gils_cond_made(pthread_cond_t *cond, const char *caller)
{
	struct self *me = &self;
	ptrdiff_t pair;

	if (++me->conds != 2) {
		me->cond = (struct init_call){ cond, caller };
		return;
	}
	pair = apart(me->mutex[0].object, me->cond.object);
	if (!me->mutex[0].object || pair != apart(me->mutex[1].object, cond) || pair > PAIR_APART ||
	    pair < -PAIR_APART || !is_near(me->mutex[0].caller, me->mutex[1].caller) ||
	    !is_near(me->cond.caller, caller) || !is_in_python(me->mutex[0].caller))
		return;
	process_begin();
	frames_begin(gils_symbol);
	nogil_begin(gils_symbol);
	locks_begin(gils_symbol);
	if (process_use() != PRELOAD_USE_HELD && count_begin())
		frames_count_locks(gils_symbol);
	add(me->mutex[0].object, me->cond.object, cond);
	if (nogil_on && counting.on)
		count_nogil_thread(me);
	calls_watch_start(gils_symbol);
}

/* The thread that forked may hold a GIL; other threads do not exist in the child. The walks
 * refer to the parent's log. */
void gils_in_child(void)
{
	free_lock();
	for (unsigned i = 0; i < gil_count; i++) {
		if (gils[i].holder != &self)
			gils[i].holder = NULL;
		memset(gils[i].walks, 0, sizeof(gils[i].walks));
	}
}
