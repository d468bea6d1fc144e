/* SPDX-License-Identifier: MIT */
/*
 * The calls of libc by which CPython handles a GIL, ends, and changes what it may open.
 *
 *	take_gil	lock mutex; while it is held: timedwait cond; unlock mutex
 *	drop_gil	lock mutex; signal cond; unlock mutex; forced switch: wait switch_cond
 *
 * A thread that locks the mutex of a GIL that it does not hold requests the GIL. When it unlocks
 * the mutex, it has taken the GIL, or has given up if another thread holds it.
 */
#include "preload/count.h"
#include "preload/internal.h"
#include "preload/locks.h"
#include "preload/nogil.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* pthread_cond_* of x86-64 since glibc 2.3.2; earlier ones were different functions. */
#define COND_VERSION "GLIBC_2.3.2"

__thread struct self self;

/* A function that has not been looked up yet looks itself up: another library's constructor may
 * run before ours. */
#define FIRST(name, parameters, ...)                                               \
	static int first_##name parameters;                                        \
	static int(*real_##name) parameters = first_##name;                        \
	static __attribute__((noinline, cold)) int first_##name parameters         \
	{                                                                          \
		find_real();                                                       \
		return real_##name == first_##name ? 0 : real_##name(__VA_ARGS__); \
	}

static void find_real(void);

static void (*real_exit)(int);

FIRST(mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), m, a)
FIRST(mutex_destroy, (pthread_mutex_t * m), m)
FIRST(mutex_lock, (pthread_mutex_t * m), m)
FIRST(mutex_trylock, (pthread_mutex_t * m), m)
FIRST(mutex_unlock, (pthread_mutex_t * m), m)
FIRST(cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), c, a)
FIRST(cond_signal, (pthread_cond_t * c), c)
FIRST(cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), c, m)
FIRST(cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *t), c, m, t)
FIRST(cond_clockwait,
      (pthread_cond_t * c, pthread_mutex_t *m, clockid_t k, const struct timespec *t), c, m, k, t)

FIRST(setuid, (uid_t u), u)
FIRST(seteuid, (uid_t u), u)
FIRST(setreuid, (uid_t r, uid_t e), r, e)
FIRST(setresuid, (uid_t r, uid_t e, uid_t s), r, e, s)
FIRST(chroot, (const char *path), path)
FIRST(prctl, (int o, unsigned long a, unsigned long b, unsigned long c, unsigned long d), o, a, b,
      c, d)

static long first_syscall(long n, long a, long b, long c, long d, long e, long f);
static long (*real_syscall)(long, long, long, long, long, long, long) = first_syscall;

static __attribute__((noinline, cold)) long first_syscall(long n, long a, long b, long c, long d,
                                                          long e, long f)
{
	find_real();
	return real_syscall == first_syscall ? -1 : real_syscall(n, a, b, c, d, e, f);
}

void real_find(void *ret, const char *name, const char *version)
{
	void *function = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

	if (!function)
		function = dlsym(RTLD_NEXT, name);
	if (function)
		memcpy(ret, &function, sizeof(function));
}

/* The lookup may itself lock a mutex, by a function that has not been found yet. That call does
 * nothing, which is safe because there is only one thread then. */
static __attribute__((constructor, noinline, cold)) void find_real(void)
{
	static bool finding;

	if (finding)
		return;
	finding = true;
	real_find(&real_mutex_init, "pthread_mutex_init", NULL);
	real_find(&real_mutex_destroy, "pthread_mutex_destroy", NULL);
	real_find(&real_mutex_trylock, "pthread_mutex_trylock", NULL);
	real_find(&real_mutex_unlock, "pthread_mutex_unlock", NULL);
	real_find(&real_cond_init, "pthread_cond_init", COND_VERSION);
	real_find(&real_cond_signal, "pthread_cond_signal", COND_VERSION);
	real_find(&real_cond_wait, "pthread_cond_wait", COND_VERSION);
	real_find(&real_cond_timedwait, "pthread_cond_timedwait", COND_VERSION);
	real_find(&real_cond_clockwait, "pthread_cond_clockwait", NULL);
	real_find(&real_mutex_lock, "pthread_mutex_lock", NULL);
	real_find(&real_exit, "_exit", NULL);
	real_find(&real_setuid, "setuid", NULL);
	real_find(&real_seteuid, "seteuid", NULL);
	real_find(&real_setreuid, "setreuid", NULL);
	real_find(&real_setresuid, "setresuid", NULL);
	real_find(&real_chroot, "chroot", NULL);
	real_find(&real_prctl, "prctl", NULL);
	real_find(&real_syscall, "syscall", NULL);
}

/* Our own locking, which is not interposed. */
void real_lock(pthread_mutex_t *mutex)
{
	real_mutex_lock(mutex);
}

void real_unlock(pthread_mutex_t *mutex)
{
	real_mutex_unlock(mutex);
}

/* Records an event of the GIL, or only keeps it if uprobes record it. */
static inline bool records(struct self *me, enum preload_type type, uint64_t stamp, struct gil *g)
{
	const enum preload_use use = process_use();

	if (!process.on || UNLIKELY(use == PRELOAD_USE_HELD) ||
	    (UNLIKELY(nogil_on) && nogil_import(me, type, stamp, g)))
		return false;
	return LIKELY(use == PRELOAD_USE_RECORD && !me->last) || !handover_keep(me, type, stamp, g);
}

static inline void record(struct self *me, enum preload_type type, uint64_t stamp, struct gil *g)
{
	if (records(me, type, stamp, g))
		stream_put_gil(me, type, stamp, g);
}

/* ---- taking */

static void begin_wait(struct self *me, struct gil *g, uint64_t stamp)
{
	me->waits = true;
	me->requested_stamp = stamp;
	me->noticed = false;
	atomic_fetch_add_explicit(&g->waiters, 1, memory_order_relaxed);
	count_request(me, g, stamp);
	record(me, PRELOAD_REQUEST, stamp, g);
}

/* A thread that gets the GIL at once does not need to read the clock. */
static __attribute__((noinline)) int lock_gil(struct gil *g, pthread_mutex_t *mutex)
{
	struct self *me = join_self();
	int ret = 0;

	me->taking = g;
	me->waits = me->asks = false;
	if (LIKELY(real_mutex_trylock(mutex) == 0)) {
		if (LIKELY(!g->holder))
			return 0;
		begin_wait(me, g, clock_stamp());
	} else {
		begin_wait(me, g, clock_stamp());
		ret = real_mutex_lock(mutex);
	}
	waited_begin(me, g);
	return ret;
}

/* What is wrong with a mutex, the function that waits tells. */
static __attribute__((noinline)) int lock_other(pthread_mutex_t *mutex)
{
	int ret = real_mutex_trylock(mutex);

	if (ret == 0 || ret == EOWNERDEAD)
		return ret;
	return ret == EBUSY ? locks_take_mutex(mutex, real_mutex_trylock, real_mutex_lock)
	                    : real_mutex_lock(mutex);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	struct gil *g = gils_of_mutex(mutex);

	if (UNLIKELY(g != NULL) && g->holder != &self)
		return lock_gil(g, mutex);
	return UNLIKELY(process.mutexes) && !g ? lock_other(mutex) : real_mutex_lock(mutex);
}

/* If no other thread has held the GIL since, the stamp cannot precede another thread's release,
 * so the faster reading suffices. */
static uint64_t stamp_acquire(const struct self *me, const struct gil *g)
{
	return LIKELY(g->last == me && !me->waits) ? clock_stamp() : clock_stamp_after();
}

/* left: the thread did not take it, because it was turned off; otherwise, if another thread has it,
 * this one will not get it. */
static inline void acquired(struct self *me, struct gil *g, bool left)
{
	const struct count c = count_open(me, g);
	const bool compared = UNLIKELY(g->compared != 0);
	uint64_t stamp;

	if (compared)
		waited_open(g);
	stamp = stamp_acquire(me, g);
	if (compared)
		waited_acquired(me, g, &c, stamp);
	count_acquired(&c, LIKELY(!g->holder && !left) ? TOTALS_HOLD : TOTALS_FREE, stamp);
	me->taking = NULL;
	me->has_had_gil = true;
	me->released_in = NULL;
	if (me->waits)
		atomic_fetch_sub_explicit(&g->waiters, 1, memory_order_relaxed);
	if (UNLIKELY(g->holder != NULL || left)) {
		record(me, PRELOAD_LEFT, stamp, g);
		return;
	}
	if (UNLIKELY(process.watches) && me->waits)
		moments_waited(me, stamp, true);
	g->taken_stamp = stamp;
	g->noticed = g->told = false;
	g->group = me->group;
	g->holder = me;
	g->asked_stamp = g->asked_frame = g->asked_look = 0;
	if (g->last != me) {
		g->last = me;
		g->switches++;
	}
	if (records(me, PRELOAD_ACQUIRE, stamp, g))
		stream_put_acquire(me, stamp, g);
	if (process_counts())
		handover_turn(g);
}

/* Another thread may run before this one has left drop_gil, so the stamp is taken after the
 * unlock. */
static __attribute__((noinline, cold)) int unlock_released(struct gil *g, pthread_mutex_t *mutex)
{
	int ret = real_mutex_unlock(mutex);

	self.gave = false;
	record(&self, PRELOAD_SWITCHED, clock_stamp(), g);
	return ret;
}

static __attribute__((noinline)) int unlock_gil(struct gil *g, pthread_mutex_t *mutex)
{
	struct self *me = join_self();

	if (me->taking == g)
		acquired(me, g, false);
	/* The thread requested the GIL before the library was loaded. This is not the end of a
	 * drop_gil, which would have marked the GIL as free. */
	else if (UNLIKELY(process.joined) && !g->holder && join_is_locked(g))
		acquired(me, g, false);
	else if (UNLIKELY(me->gave))
		return unlock_released(g, mutex);
	return real_mutex_unlock(mutex);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	struct gil *g = gils_of_mutex(mutex);

	if (UNLIKELY(process.mutexes) && !g)
		locks_mutex_free(mutex);
	return g ? unlock_gil(g, mutex) : real_mutex_unlock(mutex);
}

/*
 * What the holder runs both before and after it is asked is what keeps the GIL, because Python code
 * releases it at its next check. One look is not enough: before the request, a function may be about
 * to end, and afterwards, the holder may have come to the check, in a function that it called next. If
 * they differ, two looks at later requests have to agree.
 */
static void look_at_frames(struct gil *g)
{
	uint32_t frame;

	if (g->asked_frame && g->asked_frame != FRAMES_TORN)
		return;
	frame = frames_of_holder(g);
	if (frame)
		g->asked_frame = frame == g->asked_look ? frame : FRAMES_TORN;
	g->asked_look = frame;
}

/* In ticks: about a second. */
#define HOLDS_LONG 2000000000

/* A flight recorder may have to report a hold that does not end, so that the holder records nothing. */
static void tell_holder(struct self *me, struct gil *g)
{
	bool is_long = g->noticed || me->noticed ||
	               (g->asked_stamp && clock_stamp() - g->asked_stamp > HOLDS_LONG);

	if (!is_long || g->told || !process_kept() || !g->asked_stamp || !g->asked_frame ||
	    g->asked_frame == FRAMES_TORN)
		return;
	g->told = true;
	stream_put(me, PRELOAD_OF_HOLDER, (uint64_t)g->holder->tid);
	stream_put_frame(me, g->asked_frame);
	stream_put_gil(me, PRELOAD_HOLDER_ASKED, g->asked_stamp, g);
}

/* The interval has ended: take_gil is about to ask the holder, which therefore cannot be waiting
 * for this mutex, to release the GIL, yet. */
static void before_request(struct self *me, struct gil *g)
{
	me->asks = true;
	if (!process.on)
		return;
	look_at_frames(g);
	if (!process_of_gil())
		return;
	if (UNLIKELY(process.watches)) {
		moments_waited(me, clock_stamp(), false);
		moments_held(g, g->holder->tid, clock_stamp(), false);
	}
	tell_holder(me, g);
	if (g->asked_stamp)
		holder_asked_again(&g->asked, g->holder->tid, g->mutex);
	else
		holder_asked(&g->asked, g->holder->tid, g->mutex);
}

/* The first request counts, because the holder can see it from then on. The stamp is taken after
 * any preemption of this thread, so the holder is not charged for that. */
static void after_request(struct self *me, struct gil *g)
{
	uint64_t stamp = clock_stamp();

	me->asks = false;
	record(me, PRELOAD_ASKED, stamp, g);
	if (process.on)
		look_at_frames(g);
	if (g->asked_stamp)
		return;
	g->asked_stamp = stamp;
	count_asked(g);
}

/* Only take_gil waits like this; the thread was already in it when the library was loaded. */
static void join_wait(struct self *me, struct gil *g)
{
	if (me->taking == g)
		return;
	me->taking = g;
	me->waits = me->asks = false;
	if (g->holder)
		begin_wait(me, g, clock_stamp());
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
	struct gil *g = gils_of_cond(cond);
	uint64_t switches;
	int ret;

	if (UNLIKELY(g && process.joined))
		join_wait(join_self(), g);
	if (UNLIKELY(process.mutexes) && !g)
		locks_mutex_free(mutex);
	if (LIKELY(!g) || self.taking != g)
		return real_cond_timedwait(cond, mutex, until);
	if (self.asks && g->holder)
		after_request(&self, g);
	switches = g->switches;
	ret = real_cond_timedwait(cond, mutex, until);
	if (ret == ETIMEDOUT && g->holder && g->switches == switches)
		before_request(&self, g);
	return ret;
}

/* ---- releasing */

/* frame: of the release, which is that of the request, too, if nobody had to look */
static __attribute__((noinline)) void answered(struct self *me, const struct gil *g, uint32_t frame)
{
	uint64_t delay;

	/* The stream begins with this record if it is the thread's first. */
	if (me->at >= me->end)
		stream_extend(me, g->asked_stamp);
	stream_put_frame(me, !g->asked_frame                 ? frame
	                     : g->asked_frame == FRAMES_TORN ? 0
	                                                     : g->asked_frame);
	stream_put_gil(me, PRELOAD_HELD, g->asked_stamp, g);
	delay = process_of_gil() ? holder_excused(&g->asked, me->tid) : 0;
	if (delay)
		stream_put(me, PRELOAD_OF_DELAY, delay);
}

static __attribute__((noinline)) void released(struct self *me, struct gil *g)
{
	const struct count c = count_open(me, g);
	const bool compared = UNLIKELY(g->compared != 0);
	uint64_t stamp;
	uint32_t frame;
	bool is_recorded;

	if (compared)
		waited_open(g);
	stamp = clock_stamp();
	if (compared)
		waited_released(g, stamp);
	count_released(&c, stamp, g->asked_stamp);
	if (UNLIKELY(process.watches))
		moments_held(g, me->tid, stamp, true);
	g->holder = NULL;
	if (!process.on) {
		if (UNLIKELY(process.joined) && counting.on)
			join_counted(me, g, stamp);
		return;
	}
	me->gave = atomic_load_explicit(&g->waiters, memory_order_relaxed) != 0;
	is_recorded = records(me, PRELOAD_RELEASE, stamp, g);
	me->released_in = frames_innermost(g);
	frame = is_recorded || g->asked_stamp ? frames_now(g, me->released_in) : 0;
	if (UNLIKELY(g->asked_stamp) && (is_recorded || !nogil_on))
		answered(me, g, frame);
	if (!is_recorded)
		return;
	stream_put_frame(me, frame);
	stream_put_release(me, stamp, g);
	if (UNLIKELY(process.joined))
		join_look(stamp);
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	struct gil *g = gils_of_cond(cond);

	if (UNLIKELY(g != NULL)) {
		struct self *me = join_self();

		/* A thread that finds it turned off wakes the next one that waits for it. */
		if (LIKELY(!nogil_on || g->holder == me))
			released(me, g);
		else if (me->taking == g)
			acquired(me, g, true);
	}
	return real_cond_signal(cond);
}

EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct gil *g;
	int ret;

	g = counting.on ? gils_search_cond(cond, true) : NULL;
	if (g)
		count_switch(join_self(), g);
	if (UNLIKELY(process.mutexes))
		locks_mutex_free(mutex);
	ret = real_cond_wait(cond, mutex);
	g = gils_search_cond(cond, true);
	if (!g)
		return ret;
	count_switched(join_self(), g);
	record(&self, PRELOAD_SWITCHED, clock_stamp_after(), g);
	return ret;
}

/* CPython does not wait for a GIL like this. */
EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
	if (UNLIKELY(process.mutexes))
		locks_mutex_free(mutex);
	return real_cond_clockwait(cond, mutex, clock, until);
}

/* ---- creation */

EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	gils_mutex_made(mutex, __builtin_return_address(0));
	return real_mutex_init(mutex, attr);
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	gils_mutex_gone(mutex);
	return real_mutex_destroy(mutex);
}

EXPORT int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	int ret;

	ret = real_cond_init(cond, attr);
	gils_cond_made(cond, __builtin_return_address(0));
	return ret;
}

/* ---- end of the process: exit(3) calls no other interposed function */

static _Noreturn void leave(int status)
{
	process_ended();
	if (real_exit)
		real_exit(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

#define ENDING(name)                 \
	EXPORT void name(int status) \
	{                            \
		leave(status);       \
	}

ENDING(_exit)
ENDING(_Exit)

/* ---- loss of the right to open our files */

#define LOSING(name, parameters, ...)            \
	EXPORT int name parameters               \
	{                                        \
		process_keep();                  \
		return real_##name(__VA_ARGS__); \
	}

LOSING(setuid, (uid_t u), u)
LOSING(seteuid, (uid_t u), u)
LOSING(setreuid, (uid_t r, uid_t e), r, e)
LOSING(setresuid, (uid_t r, uid_t e, uid_t s), r, e, s)
LOSING(chroot, (const char *path), path)

/* ---- restriction of system calls */

/* libseccomp asks what the kernel can do by a filter of NULL. */
EXPORT int prctl(int option, ...)
{
	va_list list;
	unsigned long v[4];
	bool filters, was_on;
	int ret;

	va_start(list, option);
	for (unsigned i = 0; i < 4; i++)
		v[i] = va_arg(list, unsigned long);
	va_end(list);
	filters = option == PR_SET_SECCOMP && (v[0] != SECCOMP_MODE_FILTER || v[1]);
	was_on = filters && process_before_filter();
	ret = real_prctl(option, v[0], v[1], v[2], v[3]);
	if (filters)
		process_filtered(was_on, ret != 0);
	return ret;
}

EXPORT long syscall(long number, ...)
{
	va_list list;
	long v[6], ret;
	bool filters, was_on;

	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		v[i] = va_arg(list, long);
	va_end(list);
	if (LIKELY(number != SYS_seccomp))
		return real_syscall(number, v[0], v[1], v[2], v[3], v[4], v[5]);
	filters = v[0] == SECCOMP_SET_MODE_STRICT || (v[0] == SECCOMP_SET_MODE_FILTER && v[2]);
	was_on = filters && process_before_filter();
	ret = real_syscall(number, v[0], v[1], v[2], v[3], v[4], v[5]);
	/* A descriptor of a listener is a success, too. */
	if (filters)
		process_filtered(was_on, ret < 0);
	return ret;
}

/* ---- for a program that was already running */

/* The linker binds these to the functions of this file (-Bsymbolic-functions); otherwise the
 * names would refer to libc's functions. */
/* clang-format off */
#define ENTRY(name, needed) { #name, (void *)(uintptr_t)name, needed, false }
#define NOGIL(name)         { #name, (void *)(uintptr_t)name, false, true }

const struct interposed interposed[] = {
	ENTRY(pthread_mutex_init, true),
	ENTRY(pthread_mutex_destroy, false),
	ENTRY(pthread_mutex_lock, true),
	ENTRY(pthread_mutex_unlock, true),
	ENTRY(pthread_cond_init, true),
	ENTRY(pthread_cond_signal, true),
	ENTRY(pthread_cond_wait, true),
	ENTRY(pthread_cond_timedwait, true),
	ENTRY(sem_wait, false),
	ENTRY(sem_timedwait, false),
	ENTRY(sem_clockwait, false),
	ENTRY(sem_trywait, false),
	ENTRY(sem_post, false),
	ENTRY(_exit, false),
	ENTRY(setuid, false),
	ENTRY(seteuid, false),
	ENTRY(setreuid, false),
	ENTRY(setresuid, false),
	ENTRY(chroot, false),
	ENTRY(prctl, false),
	ENTRY(syscall, false),
	NOGIL(pthread_create),
#if defined(__x86_64__)
	NOGIL(sched_yield),
#endif
	{ NULL, NULL, false, false },
};
/* clang-format on */
