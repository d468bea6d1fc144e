/* SPDX-License-Identifier: MIT */
/*
 * The locks of the program. Every lock that Python code can wait for ends in a semaphore of libc:
 *
 *	semaphores	are the locks of older CPythons; a wait follows a sem_trywait that failed,
 *			without the GIL
 *	PyMutexes	are those of newer ones, as are events: a thread that waits for one is in
 *			the parking lot (Python/parking_lot.c). It has a struct wait_entry on its
 *			stack, in which the semaphore follows the argument of the park and the
 *			address of the lock
 *
 * A wait is recorded if an attempt without waiting fails, so that nothing is recorded where nobody
 * waits. Whoever posts a semaphore that a thread waits for releases the lock: the table of waits
 * below tells which lock that is.
 */
#include "preload/locks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "preload/calls_python.h"
#include "preload/count.h"
#include "preload/internal.h"
#include "preload/nogil.h"

/* The wait_entry is in the frame of _PyParkingLot_Park(), one or two calls above ours. */
#define STACK_NEAR 4096

static struct {
	int (*wait)(sem_t *sem);
	int (*trywait)(sem_t *sem);
	int (*timedwait)(sem_t *sem, const struct timespec *until);
	int (*clockwait)(sem_t *sem, clockid_t clock, const struct timespec *until);
	int (*post)(sem_t *sem);
	int (*init)(sem_t *sem, int shared, unsigned value);
	int (*destroy)(sem_t *sem);
	int (*rdlock)(pthread_rwlock_t *lock);
	int (*wrlock)(pthread_rwlock_t *lock);
	int (*tryrdlock)(pthread_rwlock_t *lock);
	int (*trywrlock)(pthread_rwlock_t *lock);
	int (*timedrdlock)(pthread_rwlock_t *lock, const struct timespec *until);
	int (*timedwrlock)(pthread_rwlock_t *lock, const struct timespec *until);
	int (*clockrdlock)(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until);
	int (*clockwrlock)(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until);
	int (*unlock)(pthread_rwlock_t *lock);
} real;

static __attribute__((constructor, noinline, cold)) void find_real(void)
{
	real_find(&real.wait, "sem_wait", NULL);
	real_find(&real.timedwait, "sem_timedwait", NULL);
	real_find(&real.clockwait, "sem_clockwait", NULL);
	real_find(&real.post, "sem_post", NULL);
	real_find(&real.init, "sem_init", NULL);
	real_find(&real.destroy, "sem_destroy", NULL);
	real_find(&real.rdlock, "pthread_rwlock_rdlock", NULL);
	real_find(&real.wrlock, "pthread_rwlock_wrlock", NULL);
	real_find(&real.tryrdlock, "pthread_rwlock_tryrdlock", NULL);
	real_find(&real.trywrlock, "pthread_rwlock_trywrlock", NULL);
	real_find(&real.timedrdlock, "pthread_rwlock_timedrdlock", NULL);
	real_find(&real.timedwrlock, "pthread_rwlock_timedwrlock", NULL);
	real_find(&real.clockrdlock, "pthread_rwlock_clockrdlock", NULL);
	real_find(&real.clockwrlock, "pthread_rwlock_clockwrlock", NULL);
	real_find(&real.unlock, "pthread_rwlock_unlock", NULL);
	real_find(&real.trywait, "sem_trywait", NULL);
}

static inline void need_real(void)
{
	if (UNLIKELY(!real.trywait))
		find_real();
}

/* ---- waits, by semaphore */

#define WAITS_BUCKETS 512 /* a power of two */
#define WAITS_PLACES  7

/* A mark of a lock that is the state of a stopped thread. */
#define IS_WORLD (UINT64_C(1) << 63)

/* @waiting: number of waits that have a place; @sem: the semaphore, and the number of threads that wait
 * for it; @lock: of a parked thread, 0: the semaphore is the lock */
struct waits {
	atomic_uintptr_t waiting;
	_Atomic uint64_t sem[WAITS_PLACES];
	_Atomic uint64_t lock[WAITS_PLACES];
} __attribute__((aligned(64)));

static struct waits waits[WAITS_BUCKETS];

/* The stacks of threads, and their parts of the heap, are whole megabytes apart: all bits count. */
static inline uint32_t mix(uint64_t address)
{
	return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline struct waits *waits_of(const void *sem)
{
	return &waits[mix((uintptr_t)sem) % WAITS_BUCKETS];
}

/* Addresses have 48 bits, unless a program asks for others. */
#define WAITS_COUNT_BITS 16
#define WAITS_COUNT_MAX  ((1u << WAITS_COUNT_BITS) - 1)

static inline uint64_t place_of(const void *sem)
{
	return (uint64_t)(uintptr_t)sem << WAITS_COUNT_BITS;
}

static inline bool is_place_of(uint64_t place, const void *sem)
{
	return place && place >> WAITS_COUNT_BITS << WAITS_COUNT_BITS == place_of(sem);
}

/* Joins the threads that wait for the semaphore. The number of their place, or WAITS_PLACES. */
static unsigned share_place(struct waits *w, const void *sem)
{
	for (unsigned i = 0; i < WAITS_PLACES; i++) {
		uint64_t place = w->sem[i];

		while (is_place_of(place, sem) &&
		       place % (1u << WAITS_COUNT_BITS) < WAITS_COUNT_MAX)
			if (atomic_compare_exchange_weak(&w->sem[i], &place, place + 1))
				return i;
	}
	return WAITS_PLACES;
}

/* The thread is about to wait. The number of its place, or WAITS_PLACES if there is none: then the
 * post that ends the wait may not be recorded. All threads that wait for one semaphore share a place,
 * so that one lock does not fill a bucket. */
static unsigned publish(struct waits *w, const void *sem, uint64_t lock)
{
	unsigned shared = w->waiting ? share_place(w, sem) : WAITS_PLACES;

	if (shared != WAITS_PLACES) {
		atomic_fetch_add(&w->waiting, 1);
		return shared;
	}
	for (unsigned i = 0; i < WAITS_PLACES; i++) {
		uint64_t none = 0;

		if (!atomic_compare_exchange_strong(&w->sem[i], &none, place_of(sem) + 1))
			continue;
		if (lock != (uintptr_t)sem)
			w->lock[i] = lock;
		atomic_fetch_add(&w->waiting, 1);
		return i;
	}
	return WAITS_PLACES;
}

static void retract(struct waits *w, unsigned place)
{
	if (place == WAITS_PLACES)
		return;
	atomic_fetch_sub(&w->waiting, 1);
	if (w->lock[place]) /* of a thread that is parked, which shares its semaphore with none */
		w->lock[place] = 0;
	for (uint64_t was = w->sem[place];;) {
		uint64_t left = was % (1u << WAITS_COUNT_BITS) > 1 ? was - 1 : 0;

		if (atomic_compare_exchange_weak(&w->sem[place], &was, left))
			return;
	}
}

/* The lock for which a thread waits by this semaphore; 0: none does. */
static uint64_t awaited(const struct waits *w, const sem_t *sem)
{
	for (unsigned i = 0; i < WAITS_PLACES; i++)
		if (is_place_of(w->sem[i], sem)) {
			uint64_t lock = w->lock[i];

			return lock ? lock : (uint64_t)(uintptr_t)sem;
		}
	return 0;
}

/* ---- which thread has taken a semaphore */

/*
 * A thread that waits for a lock that it has taken last waits for a signal and not for its turn:
 * this is how threading.Condition and the like wait. So does any thread that waits for a lock that
 * is posted by another thread than has taken it: in queue.SimpleQueue, several threads may wait for
 * the lock that one of them has taken. If another thread has taken it last, and nobody has released it
 * since, that thread has it. An entry has bits of the semaphore's address and stream_self() of the
 * thread; a release removes it, and another semaphore may overwrite it, so each thread knows the last
 * two that it took.
 */
#define TAKEN_BITS    14
#define TAKEN_AT      4 /* alignment of a semaphore that malloc returned */
#define TAKEN_ADDRESS 31

static _Atomic uint64_t taken[1 << TAKEN_BITS];

/* Semaphores that are known to be signals. An entry may be overwritten by that of another one. */
#define SIGNALS_BITS 10
static _Atomic(const sem_t *) signals[1 << SIGNALS_BITS];

static inline _Atomic(const sem_t *) *signal_entry(const sem_t *sem)
{
	return &signals[mix((uintptr_t)sem >> TAKEN_AT) % (1 << SIGNALS_BITS)];
}

static inline bool is_signal(const sem_t *sem)
{
	return atomic_load_explicit(signal_entry(sem), memory_order_relaxed) == sem;
}

/* Another semaphore may be made at the address. */
static inline void forget_signal(const sem_t *sem)
{
	if (UNLIKELY(is_signal(sem)))
		atomic_store_explicit(signal_entry(sem), NULL, memory_order_relaxed);
}

/* The bits of the address that are not in the entry are known from its place. */
static inline _Atomic uint64_t *taken_entry(const sem_t *sem)
{
	uintptr_t a = (uintptr_t)sem >> TAKEN_AT;

	return &taken[(a ^ mix(a >> TAKEN_BITS)) % (1 << TAKEN_BITS)];
}

static inline uint64_t taken_by(const sem_t *sem, const struct self *me)
{
	return (uint64_t)((uintptr_t)sem >> (TAKEN_AT + TAKEN_BITS)) | (uint64_t)stream_self(me)
	                                                                       << TAKEN_ADDRESS;
}

static inline bool is_of(uint64_t entry, const sem_t *sem)
{
	return entry % (UINT64_C(1) << TAKEN_ADDRESS) == (uintptr_t)sem >> (TAKEN_AT + TAKEN_BITS);
}

static void note_order(const sem_t *outer, const sem_t *inner);

static inline void note_taken(const sem_t *sem)
{
	self.took[1] = self.took[0];
	self.took[0] = sem;
	atomic_store_explicit(taken_entry(sem), taken_by(sem, &self), memory_order_relaxed);
	/* Before 3.13, each thread but the main one has a lock for as long as it lives. */
	if (self.took[1] && (self.took[1] != self.ordered[0] || sem != self.ordered[1]))
		note_order(self.took[1], sem);
}

/* Whether another thread than this one is known to have taken the semaphore. */
static inline bool is_taken_by_other(const sem_t *sem, const struct self *me)
{
	uint64_t differs = *taken_entry(sem) ^ taken_by(sem, me);

	return differs && !(differs % (UINT64_C(1) << TAKEN_ADDRESS));
}

static inline bool is_taken_by_me(const sem_t *sem, const struct self *me)
{
	return me->took[0] == sem || me->took[1] == sem || *taken_entry(sem) == taken_by(sem, me);
}

/* The thread that has the semaphore; 0: unknown. */
static pid_t holder_of(const sem_t *sem)
{
	uint64_t entry = *taken_entry(sem);

	return is_of(entry, sem) ? stream_thread(entry >> TAKEN_ADDRESS) : 0;
}

static inline void note_released(const sem_t *sem)
{
	_Atomic uint64_t *entry = taken_entry(sem);

	if (self.took[0] == sem) {
		self.took[0] = self.took[1];
		self.took[1] = NULL;
	} else if (self.took[1] == sem) {
		self.took[1] = NULL;
	}
	if (is_of(atomic_load_explicit(entry, memory_order_relaxed), sem))
		atomic_store_explicit(entry, 0, memory_order_relaxed);
}

/* ---- the parking lot */

/* Whether the words before a semaphore on the stack are known to be those of a wait_entry. */
static bool has_lot;

struct lot_trial {
	const void *lock, *argument;
	bool seen;
};

static __thread struct lot_trial *trial __attribute__((tls_model("initial-exec")));

static inline void *const *words_before(const sem_t *sem)
{
	return (void *const *)(const void *)sem - 2;
}

static inline bool is_on_stack(const void *address)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return (uintptr_t)address - here < STACK_NEAR;
}

/* Parks the calling thread for a moment, to see what it finds before the semaphore; no table of
 * versions is needed. */
static void begin_lot(void *(*symbol)(const char *name))
{
	typedef int park(const void *address, const void *expected, size_t size, int64_t timeout_ns,
	                 void *argument, int detach);
	void *function = symbol("_PyParkingLot_Park");
	const uint8_t lock = 1, expected = 1;
	uint8_t argument;
	struct lot_trial t = { &lock, &argument, false };

	if (!function)
		return;
	trial = &t;
	((park *)function)(&lock, &expected, sizeof(lock), 1, &argument, 0);
	trial = NULL;
	has_lot = t.seen;
}

/* ---- RLocks that are PyMutexes: which thread has one follows the mutex */

#define OWNER_AT (PYTHON_RLOCK_OWNER - PYTHON_LOCK_MUTEX) /* after the mutex */
#define PAGE     4096

static const char rlock_name[] = PYTHON_RLOCK_NAME;

/* @type: of RLocks; @other: a type that is not */
static struct {
	_Atomic(const char *) type, other;
} rlocks;

static bool is_rlock_type(const char *type)
{
	char text[sizeof(rlock_name)];
	const char *name;

	if (type == rlocks.type || type == rlocks.other)
		return type && type == rlocks.type;
	if (frames_copy(&name, type + PYTHON_TYPE_NAME, sizeof(name)) &&
	    frames_copy(text, name, sizeof(text)) && !memcmp(text, rlock_name, sizeof(text)))
		rlocks.type = type;
	else
		rlocks.other = type;
	return type == rlocks.type;
}

/* The thread that has the lock, if it is an RLock; 0: unknown. Not every PyMutex is part of an
 * object. */
static pid_t rlock_holder(uint64_t lock)
{
	const char *mutex = (const char *)(uintptr_t)lock;
	uintptr_t owner;

	if (nogil_on || lock % PAGE < PYTHON_LOCK_MUTEX ||
	    PAGE - lock % PAGE < OWNER_AT + sizeof(owner) ||
	    /* The type is the last member of the header of an object. */
	    !is_rlock_type(*((const char *const *)(const void *)mutex - 1)))
		return 0;
	owner = __atomic_load_n((const uintptr_t *)(const void *)(mutex + OWNER_AT),
	                        __ATOMIC_RELAXED);
	/* Each thread has its own variables of the library at the same distance from its pthread_t. */
	return owner ? stream_thread(stream_self(
			       (const struct self *)(owner + ((uintptr_t)&self -
	                                                      (uintptr_t)pthread_self()))))
	             : 0;
}

/* The thread that has a PyMutex; 0: unknown. */
static pid_t mutex_holder(uint64_t lock)
{
	pid_t holder = rlock_holder(lock);

	return holder || !process.mutexes ? holder : holder_of((const sem_t *)(uintptr_t)lock);
}

/* ---- threads that spin */

/*
 * A thread that does not get a PyMutex of a free-threaded CPython yields its CPU and tries again, a
 * number of times, before it parks. That is the only call of sched_yield() at this place, and the mutex
 * is in a register that functions preserve.
 */
#if defined(__x86_64__)
#define PRESERVED 6
#else
#define PRESERVED 0
#endif

/* Longer than a thread needs from one try to the next, in ticks. */
#define SPIN_APART 3000

/* @at: number of the register; @caller: the return address of sched_yield() */
static struct {
	uintptr_t caller;
	unsigned at;
} spins;

struct spin_trial {
	uint8_t mutex;
	bool over;
	void (*unlock)(uint8_t *mutex);
};

static __thread struct spin_trial *spin_trial __attribute__((tls_model("initial-exec")));

/* Waits for a mutex of our own, which is unlocked by the first thing that the thread does. */
static void begin_spins(void *(*symbol)(const char *name))
{
	struct spin_trial t = { .mutex = 1 };
	void (*lock)(uint8_t * mutex);

	*(void **)&lock = symbol("PyMutex_Lock");
	*(void **)&t.unlock = symbol("PyMutex_Unlock");
	if (!PRESERVED || !nogil_on || !has_lot || !lock || !t.unlock)
		return;
	spin_trial = &t;
	lock(&t.mutex);
	spin_trial = NULL;
}

static void end_trial(struct spin_trial *t)
{
	if (!t->over)
		t->unlock(&t->mutex);
	t->over = true;
}

static void try_spin(struct spin_trial *t, const uintptr_t registers[PRESERVED + 1])
{
	for (unsigned i = 0; i < PRESERVED && !spins.caller; i++)
		if (registers[i] == (uintptr_t)&t->mutex) {
			spins.at = i;
			spins.caller = registers[PRESERVED];
		}
	end_trial(t);
}

void locks_begin(void *(*symbol)(const char *name))
{
	begin_lot(symbol);
	begin_spins(symbol);
}

static void try_lot(struct lot_trial *t, const sem_t *sem)
{
	void *const *words = words_before(sem);

	t->seen = is_on_stack(sem) && words[0] == t->argument && words[1] == t->lock;
}

/* ---- recording */

/* A signal handler that interrupts this does not record its own. */
void locks_put(struct self *me, enum preload_lock_event event, uint64_t lock, pid_t holder,
               uint64_t stamp)
{
	if (me->putting_lock)
		return;
	me->putting_lock = true;
	if (holder)
		stream_put(me, PRELOAD_OF_HOLDER, (uint64_t)holder);
	stream_put(me, PRELOAD_OF_LOCK, lock << PRELOAD_LOCK_BITS | event);
	stream_put(me, PRELOAD_LOCK, stamp);
	me->putting_lock = false;
}

/* Threads that never had a GIL are not the program's Python threads. */
static inline bool is_recorded(struct self *me)
{
	if (UNLIKELY(nogil_on)) {
		if (!me->has_had_gil)
			me->has_had_gil = nogil_frame() != NULL;
		if (process.joined)
			join_look(clock_stamp());
	}
	return process.on && me->has_had_gil;
}

/* Whether its waits are added to the page of totals. */
static inline bool is_counted(const struct self *me)
{
	return UNLIKELY(counting.on) && me->slot;
}

/* ---- the order in which a thread takes two locks */

#define PAIRS_BITS 10

/*
 * Pairs that have been recorded, by hash, for the first two threads that took them: whatever thread
 * takes a pair the other way round, one of these is another one. A pair may take the place of
 * another one, which is then recorded again.
 * @first: tid of the first thread; 0: two are recorded
 */
static struct {
	_Atomic uint64_t pair;
	_Atomic pid_t first;
} pairs[1 << PAIRS_BITS];

/* A bit for the locks of these pairs, by hash. */
static _Atomic uint64_t paired[1 << (PAIRS_BITS - 6)];

static inline uint64_t pair_bit(const sem_t *sem, _Atomic uint64_t **ret_word)
{
	uint32_t at = mix((uintptr_t)sem >> TAKEN_AT) % (1 << PAIRS_BITS);

	*ret_word = &paired[at / 64];
	return UINT64_C(1) << at % 64;
}

static void add_paired(const sem_t *sem)
{
	_Atomic uint64_t *word;
	uint64_t bit = pair_bit(sem, &word);

	if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
		atomic_fetch_or(word, bit);
}

static __attribute__((noinline, cold)) void put_order(struct self *me, const sem_t *outer,
                                                      const sem_t *inner)
{
	uint64_t stamp = clock_stamp();
	int saved = errno;

	stream_put_frame(me, frames_from(frames_running(me)));
	locks_put(me, PRELOAD_LOCK_OUTER, (uintptr_t)outer, 0, stamp);
	locks_put(me, PRELOAD_LOCK_INNER, (uintptr_t)inner, 0, stamp);
	add_paired(outer);
	add_paired(inner);
	errno = saved;
}

/* The thread has taken both, unless one of them is a signal or another thread has released it since. */
static __attribute__((noinline)) void note_order(const sem_t *outer, const sem_t *inner)
{
	uint64_t pair = (uintptr_t)outer * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)inner;
	const unsigned i = mix(pair) % (1 << PAIRS_BITS);
	struct self *me = join_self();
	bool known;
	pid_t first;

	if (*taken_entry(outer) != taken_by(outer, me) || is_signal(outer) || is_signal(inner) ||
	    !is_recorded(me))
		return;
	me->ordered[0] = outer;
	me->ordered[1] = inner;
	known = atomic_load_explicit(&pairs[i].pair, memory_order_acquire) == pair;
	first = known ? atomic_load_explicit(&pairs[i].first, memory_order_relaxed) : 0;
	if (known && (!first || first == me->tid))
		return;
	put_order(me, outer, inner);
	/* The thread has an id since then. */
	atomic_store_explicit(&pairs[i].first, known ? 0 : me->tid, memory_order_relaxed);
	atomic_store_explicit(&pairs[i].pair, pair, memory_order_release);
}

static void note_gone(const sem_t *sem)
{
	_Atomic uint64_t *word;
	uint64_t bit = pair_bit(sem, &word);

	if (UNLIKELY(atomic_load_explicit(word, memory_order_relaxed) & bit) &&
	    is_recorded(join_self()))
		locks_put(&self, PRELOAD_LOCK_GONE, (uintptr_t)sem, 0, clock_stamp());
}

void locks_end_spin(struct self *me)
{
	struct spin spin = me->spin;

	if (!spin.lock || !process.on)
		return;
	me->spin.lock = 0;
	stream_put_frame(me, spin.frame);
	locks_put(me, PRELOAD_LOCK_SPINS, spin.lock, 0, spin.from);
	locks_put(me, PRELOAD_LOCK_SPUN, spin.lock, 0, spin.to);
}

#if defined(__x86_64__)

/* registers: in the order in which sched_yield() pushes them, backwards, and its return address */
__attribute__((used, visibility("hidden"))) int
locks_yield(const uintptr_t registers[PRESERVED + 1]);

int locks_yield(const uintptr_t registers[PRESERVED + 1])
{
	struct self *me;
	uint64_t lock, stamp;
	long ret;

	if (UNLIKELY(spin_trial != NULL)) {
		try_spin(spin_trial, registers);
		return 0;
	}
	if (!spins.caller || registers[PRESERVED] != spins.caller || !is_recorded(me = join_self()))
		return (int)syscall(SYS_sched_yield);
	lock = registers[spins.at];
	stamp = clock_stamp();
	if (lock != me->spin.lock || stamp - me->spin.to > SPIN_APART) {
		locks_end_spin(me);
		nogil_describe(lock, stamp);
		me->spin = (struct spin){ lock, stamp, stamp, frames_from(nogil_frame()) };
	}
	ret = syscall(SYS_sched_yield);
	me->spin.to = clock_stamp_after();
	return (int)ret;
}

__asm__(".text\n"
        ".globl sched_yield\n"
        ".type sched_yield, @function\n"
        "sched_yield:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rbp\n"
        "push %rbx\n"
        "push %r12\n"
        "push %r13\n"
        "push %r14\n"
        "push %r15\n"
        ".cfi_adjust_cfa_offset 48\n"
        "mov %rsp, %rdi\n"
        "sub $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "call locks_yield\n"
        "add $56, %rsp\n"
        ".cfi_adjust_cfa_offset -56\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size sched_yield, .-sched_yield\n");

#endif

/* A wait for the lock at an address. @bucket: NULL: it is neither recorded nor counted;
 * @counted_from: if it is counted: its beginning; 0: it is not; @may_be_signal: that is known at
 * its end; @line: where it is counted */
struct wait {
	struct self *me;
	struct waits *bucket;
	unsigned place;
	uint64_t lock;
	bool records, stops; /* for other threads to stop */
	bool may_be_signal;
	uint64_t counted_from;
	struct frames_line line;
};

/* Whether a parked thread waits for a PyMutex: that has an argument for the thread that unlocks it,
 * on the stack, and _Py_HAS_PARKED set. An event has no argument, and a SimpleQueue no such bit; nor
 * has the next thread that waits for a _PyRawMutex, whose first word is a pointer. */
static inline bool is_mutex(void *const *words)
{
	return is_on_stack(words[0]) &&
	       __atomic_load_n((const uint8_t *)words[1], __ATOMIC_RELAXED) & 2;
}

/* The lock is 0 if the thread waits for a _PyRawMutex, which the interpreter holds for some
 * instructions: the first such thread has NULL where a parked one has the lock. */
static enum preload_lock_event examine(struct wait *w, const sem_t *sem)
{
	if (has_lot && is_on_stack(sem)) {
		void *const *words = words_before(sem);
		enum preload_lock_event event;

		w->lock = (uint64_t)(uintptr_t)words[1];
		if (w->lock && is_mutex(words))
			return PRELOAD_LOCK_PARKS;
		event = nogil_on && w->lock ? nogil_event(w->lock) : 0;
		return event ? event : PRELOAD_LOCK_IDLES;
	}
	w->lock = (uint64_t)(uintptr_t)sem;
	if (is_signal(sem) || is_taken_by_me(sem, w->me))
		return PRELOAD_LOCK_IDLES;
	return process.joined && !is_taken_by_other(sem, w->me) ? PRELOAD_LOCK_DOUBTS
	                                                        : PRELOAD_LOCK_WAITS;
}

/* The innermost frame of this thread, which waits; NULL: unknown. */
static inline const char *innermost(const struct self *me)
{
	if (frames_end())
		return NULL;
	if (nogil_on)
		return nogil_frame();
	return me->released_in || process.on ? me->released_in : frames_without_gil();
}

/* The same rules as those of the reader, trace/preload/stream.c. */
static void begin_count(struct wait *w, enum preload_lock_event event, uint64_t stamp)
{
	const char *frame = innermost(w->me);
	const enum python_wait wait = frames_lock_wait(frame);
	bool turn = wait == PYTHON_WAIT_TURN;

	switch (event) {
	case PRELOAD_LOCK_IDLES:
		if (!turn)
			return;
		break;
	case PRELOAD_LOCK_PARKS:
		if (wait == PYTHON_WAIT_SIGNAL || wait == PYTHON_WAIT_NOTICE)
			return;
		break;
	case PRELOAD_LOCK_WAITS:
		if (wait == PYTHON_WAIT_SIGNAL)
			return;
		w->may_be_signal = !turn;
		break;
	default:
		return;
	}
	frames_find_line(&w->line, frame);
	w->counted_from = stamp;
}

/* Whether the semaphore was taken without waiting. */
static inline bool was_free(sem_t *sem)
{
	int saved = errno;

	need_real();
	if (real.trywait(sem) == 0) {
		note_taken(sem);
		return true;
	}
	errno = saved;
	return false;
}

/* Returns true if the wait is over. */
static __attribute__((noinline)) bool begin_wait(struct wait *w, sem_t *sem)
{
	enum preload_lock_event event;
	uint64_t stamp;

	w->me = join_self();
	w->bucket = NULL;
	if (UNLIKELY(trial != NULL)) {
		try_lot(trial, sem);
		return false;
	}
	if (UNLIKELY(spin_trial != NULL)) {
		end_trial(spin_trial);
		return false;
	}
	w->records = is_recorded(w->me);
	w->counted_from = 0;
	w->stops = false;
	if (!w->records && !is_counted(w->me))
		return false;
	locks_end_spin(w->me);
	event = examine(w, sem);
	if (!w->lock)
		return false;
	if (w->records)
		stream_put_frame(w->me, frames_from(innermost(w->me)));
	w->bucket = waits_of(sem);
	w->place = publish(w->bucket, sem,
	                   event == PRELOAD_LOCK_STOPPED ? w->lock | IS_WORLD : w->lock);
	/* A post that came before this place was published has not been recorded. */
	if (was_free(sem)) {
		retract(w->bucket, w->place);
		return true;
	}
	stamp = clock_stamp();
	if (is_counted(w->me))
		begin_count(w, event, stamp);
	if (!w->records)
		return false;
	locks_put(w->me, event, w->lock,
	          event == PRELOAD_LOCK_WAITS   ? holder_of(sem)
	          : event == PRELOAD_LOCK_PARKS ? mutex_holder(w->lock)
	                                        : 0,
	          stamp);
	if (event == PRELOAD_LOCK_PARKS && nogil_on)
		nogil_describe(w->lock, stamp);
	w->stops = event == PRELOAD_LOCK_STOPS || event == PRELOAD_LOCK_COLLECTS;
	w->me->stops = w->stops;
	return false;
}

static void look_at_late(struct self *me)
{
	pid_t tid;
	const char *tstate = nogil_late(&tid);
	uint32_t frame = tstate ? frames_of_thread(tstate) : 0;

	if (!tstate)
		return;
	stream_put_frame(me, frame);
	locks_put(me, PRELOAD_LOCK_LATE, (uint64_t)tid, 0, clock_stamp());
}

static __attribute__((noinline)) int end_wait(struct wait *w, const sem_t *sem, int ret)
{
	enum preload_lock_event event = ret ? PRELOAD_LOCK_LEFT : PRELOAD_LOCK_GOT;
	uint64_t stamp;

	if (ret == 0)
		note_taken(sem);
	if (!w->bucket)
		return ret;
	if (ret == 0 && w->place == WAITS_PLACES)
		event = PRELOAD_LOCK_MISSED;
	stamp = clock_stamp_after();
	if (w->records)
		locks_put(w->me, event, w->lock, 0, stamp);
	if (w->counted_from && !(w->may_be_signal && is_signal(sem)) && stamp > w->counted_from)
		count_lock_wait(w->me, frames_number_line(&w->line), stamp - w->counted_from);
	retract(w->bucket, w->place);
	if (w->stops && ret)
		look_at_late(w->me);
	return ret;
}

EXPORT int sem_wait(sem_t *sem)
{
	struct wait w;

	if (was_free(sem) || begin_wait(&w, sem))
		return 0;
	return end_wait(&w, sem, real.wait(sem));
}

EXPORT int sem_timedwait(sem_t *sem, const struct timespec *until)
{
	struct wait w;

	if (was_free(sem) || begin_wait(&w, sem))
		return 0;
	return end_wait(&w, sem, real.timedwait(sem, until));
}

EXPORT int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
	struct wait w;

	if (was_free(sem) || begin_wait(&w, sem))
		return 0;
	return end_wait(&w, sem, real.clockwait(sem, clock, until));
}

EXPORT int sem_trywait(sem_t *sem)
{
	int ret;

	need_real();
	ret = real.trywait(sem);
	if (ret == 0)
		note_taken(sem);
	return ret;
}

/* @is_noted: whenever a thread took it, that was noted. Then another semaphore has overwritten the entry if the
 * thread is not known to have taken it, and it is not accused of having kept it. */
static __attribute__((noinline)) void posted(const struct waits *w, const sem_t *sem, bool is_noted)
{
	struct self *me = join_self();
	const bool records = is_recorded(me);
	uint64_t lock = records || is_counted(me) ? awaited(w, sem) : 0, stamp;
	bool of_other = lock == (uintptr_t)sem && is_taken_by_other(sem, me);
	bool signal = of_other || (lock == (uintptr_t)sem && is_noted && !is_taken_by_me(sem, me));
	int saved = errno;

	if (!lock)
		return;
	if (of_other)
		atomic_store_explicit(signal_entry(sem), sem, memory_order_relaxed);
	if (!records)
		return;
	locks_end_spin(me);
	/* The hold goes on after the lock is released, and may end in another function. */
	stamp = clock_stamp();
	stream_put_frame(me, frames_from(nogil_on ? nogil_frame() : frames_running(me)));
	if (me->stops && lock & IS_WORLD) {
		locks_put(me, PRELOAD_LOCK_STARTS, 0, 0, stamp);
		me->stops = false;
	}
	locks_put(me, signal ? PRELOAD_LOCK_SIGNALS : PRELOAD_LOCK_POSTS, lock & ~IS_WORLD, 0,
	          stamp);
	errno = saved;
}

EXPORT int sem_post(sem_t *sem)
{
	const struct waits *w = waits_of(sem);

	need_real();
	if (UNLIKELY(w->waiting))
		posted(w, sem, !process.joined);
	note_released(sem);
	return real.post(sem);
}

/* ---- takes of Locks that are PyMutexes */

/*
 * Taking a free PyMutex calls no function of libc. With --locks all, the methods of Lock are ours:
 * functions that call CPython's, and note which thread has the lock. CPython calls a method by its
 * PyMethodDef, which is not constant, so all descriptors and bound methods change at once.
 */
struct method_def {
	const char *name;
	void *(*function)(void *self, void *args, long count, void *names);
};

#define DEF_AT       40 /* of the PyMethodDef in a descriptor */
#define BASICSIZE_AT 32 /* in a type */
#define LOCK_SIZE    24 /* of a Lock that is a PyMutex */
#define METHODS      6

static struct {
	const void *true_object;
	void *(*real[METHODS])(void *self, void *args, long count, void *names);
} takes;

static const sem_t *mutex_in(const void *lock)
{
	return (const sem_t *)(const void *)((const char *)lock + PYTHON_LOCK_MUTEX);
}

/* Whatever the calling convention of the method is, it has at most these arguments. */
static void *take(unsigned method, void *lock, void *args, long count, void *names)
{
	void *ret = takes.real[method](lock, args, count, names);
	const sem_t *mutex = mutex_in(lock);

	if (ret == takes.true_object)
		atomic_store_explicit(taken_entry(mutex), taken_by(mutex, &self),
		                      memory_order_relaxed);
	return ret;
}

static void *give(unsigned method, void *lock, void *args, long count, void *names)
{
	const sem_t *mutex = mutex_in(lock);
	_Atomic uint64_t *entry = taken_entry(mutex);

	if (is_of(atomic_load_explicit(entry, memory_order_relaxed), mutex))
		atomic_store_explicit(entry, 0, memory_order_relaxed);
	return takes.real[method](lock, args, count, names);
}

#define METHOD(what, number)                                                          \
	static void *what##_##number(void *lock, void *args, long count, void *names) \
	{                                                                             \
		return what(number, lock, args, count, names);                        \
	}
METHOD(take, 0)
METHOD(take, 1)
METHOD(take, 2)
METHOD(give, 3)
METHOD(give, 4)
METHOD(give, 5)

static const struct method_def methods[METHODS] = {
	{ "acquire", take_0 }, { "acquire_lock", take_1 }, { "__enter__", take_2 },
	{ "release", give_3 }, { "release_lock", give_4 }, { "__exit__", give_5 },
};

static void watch(PyObject *type, unsigned i)
{
	PyObject *descriptor = python.PyObject_GetAttrString(type, methods[i].name);
	struct method_def *def, found;
	struct iovec from = { (void *)(uintptr_t)&methods[i].function, sizeof(found.function) }, to;
	char name[16];

	if (descriptor && frames_copy(&def, (const char *)descriptor + DEF_AT, sizeof(def)) &&
	    frames_copy(&found, (const char *)def, sizeof(found)) &&
	    frames_copy(name, found.name, strlen(methods[i].name) + 1) &&
	    !strcmp(name, methods[i].name) && found.function != methods[i].function) {
		takes.real[i] = found.function;
		to = (struct iovec){ &def->function, sizeof(found.function) };
		/* Fails where that memory cannot be written. */
		syscall(SYS_process_vm_writev, process.pid, &from, 1UL, &to, 1UL, 0UL);
	}
	if (descriptor)
		python.Py_DecRef(descriptor);
	else
		python.PyErr_Clear();
}

void locks_watch_takes(void *modules)
{
	PyObject *module = python.PyDict_GetItemString(modules, "_thread");
	PyObject *type = module ? python.PyObject_GetAttrString(module, "LockType") : NULL;

	takes.true_object = dlsym(RTLD_DEFAULT, "_Py_TrueStruct");
	if (type && takes.true_object && has_lot && !nogil_on &&
	    *(const int64_t *)(const void *)((const char *)type + BASICSIZE_AT) == LOCK_SIZE)
		for (unsigned i = 0; i < METHODS; i++)
			watch(type, i);
	if (type)
		python.Py_DecRef(type);
	else
		python.PyErr_Clear();
}

/* ---- mutexes of C code */

#ifdef __GLIBC__
static pid_t owner_of(const pthread_mutex_t *mutex)
{
	return mutex->__data.__owner;
}
#else
static pid_t owner_of(const pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}
#endif

/* A lock of C code that another thread has. @place: of the wait */
struct wanted {
	struct self *me;
	struct waits *bucket;
	unsigned place;
	uint64_t lock;
};

/* False: the wait is not recorded. Afterwards, a release is seen; one that came before has not been
 * recorded, so the lock has to be tried again. */
static bool want(struct wanted *ret, const void *lock)
{
	struct self *me = join_self();

	if (!is_recorded(me) || gils_held(me) || me->taking)
		return false;
	*ret = (struct wanted){ .me = me, .bucket = waits_of(lock), .lock = (uintptr_t)lock };
	locks_end_spin(me);
	stream_put_frame(me, frames_from(innermost(me)));
	ret->place = publish(ret->bucket, lock, ret->lock);
	return true;
}

static void begin_wanting(const struct wanted *w, pid_t holder)
{
	locks_put(w->me, PRELOAD_LOCK_WAITS, w->lock, holder, clock_stamp());
}

static int end_wanting(const struct wanted *w, int ret)
{
	locks_put(w->me,
	          ret && ret != EOWNERDEAD   ? PRELOAD_LOCK_LEFT
	          : w->place == WAITS_PLACES ? PRELOAD_LOCK_MISSED
	                                     : PRELOAD_LOCK_GOT,
	          w->lock, 0, clock_stamp_after());
	return ret;
}

int locks_take_mutex(pthread_mutex_t *mutex, int (*try)(pthread_mutex_t *),
                     int (*lock)(pthread_mutex_t *))
{
	struct wanted w;
	int ret;

	if (!want(&w, mutex))
		return lock(mutex);
	ret = try(mutex);
	if (ret == EBUSY) {
		begin_wanting(&w, owner_of(mutex));
		ret = end_wanting(&w, lock(mutex));
	}
	retract(w.bucket, w.place);
	return ret;
}

void locks_mutex_free(const void *mutex)
{
	const struct waits *w = waits_of(mutex);

	if (UNLIKELY(w->waiting))
		posted(w, mutex, false);
}

/* ---- locks for readers and writers */

/* The thread that writes; 0: threads read, or it is unknown. */
#ifdef __GLIBC__
static pid_t writer_of(const pthread_rwlock_t *lock)
{
	return __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}
#else
static pid_t writer_of(const pthread_rwlock_t *lock)
{
	(void)lock;
	return 0;
}
#endif

/* glibc refuses a wrong time or clock, whether the lock is free or not. */
static inline bool is_time(const struct timespec *until)
{
	return until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

static inline bool is_clock(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME;
}

#define RWLOCK(name, kind, may_try, parameters, ...)                     \
	EXPORT int pthread_rwlock_##name parameters                      \
	{                                                                \
		struct wanted w;                                         \
		bool tries = UNLIKELY(process.mutexes) && (may_try);     \
		int ret;                                                 \
                                                                         \
		need_real();                                             \
		ret = tries ? real.try##kind(lock) : EBUSY;              \
		if (LIKELY(!tries) || (ret == EBUSY && !want(&w, lock))) \
			return real.name(__VA_ARGS__);                   \
		if (ret != EBUSY)                                        \
			return ret;                                      \
		ret = real.try##kind(lock);                              \
		if (ret == EBUSY) {                                      \
			begin_wanting(&w, writer_of(lock));              \
			ret = end_wanting(&w, real.name(__VA_ARGS__));   \
		}                                                        \
		retract(w.bucket, w.place);                              \
		return ret;                                              \
	}

RWLOCK(rdlock, rdlock, true, (pthread_rwlock_t * lock), lock)
RWLOCK(wrlock, wrlock, true, (pthread_rwlock_t * lock), lock)
RWLOCK(timedrdlock, rdlock, is_time(until), (pthread_rwlock_t * lock, const struct timespec *until),
       lock, until)
RWLOCK(timedwrlock, wrlock, is_time(until), (pthread_rwlock_t * lock, const struct timespec *until),
       lock, until)
RWLOCK(clockrdlock, rdlock, is_time(until) && is_clock(clock),
       (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), lock, clock, until)
RWLOCK(clockwrlock, wrlock, is_time(until) && is_clock(clock),
       (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), lock, clock, until)

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	need_real();
	if (UNLIKELY(process.mutexes))
		locks_mutex_free(lock);
	return real.unlock(lock);
}

EXPORT int sem_init(sem_t *sem, int shared, unsigned value)
{
	need_real();
	forget_signal(sem);
	return real.init(sem, shared, value);
}

EXPORT int sem_destroy(sem_t *sem)
{
	need_real();
	forget_signal(sem);
	note_gone(sem);
	return real.destroy(sem);
}

/* Threads that wait, or have a lock, do not exist in the child, except for the one that forked. */
void locks_in_child(void)
{
	for (unsigned i = 0; i < 1 << PAIRS_BITS; i++)
		if (pairs[i].pair)
			pairs[i].pair = 0;
	self.ordered[0] = NULL;
	for (unsigned i = 0; i < 1 << TAKEN_BITS; i++)
		if (taken[i] >> TAKEN_ADDRESS != stream_self(&self))
			taken[i] = 0;
	for (unsigned i = 0; i < WAITS_BUCKETS; i++)
		if (waits[i].waiting)
			waits[i] = (struct waits){ 0 };
}
