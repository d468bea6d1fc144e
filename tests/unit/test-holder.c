/* SPDX-License-Identifier: MIT */
/* What counts against a thread that was asked to release the GIL: of sleep, what is its own. */
#include "preload/internal.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

#define ENOUGH_NS 5000000

/* What the library has for it. */
uint64_t clock_ns(void)
{
	return clock_now_ns();
}

char *process_put_number(char *ret, uint64_t value)
{
	return ret + snprintf(ret, 24, "%llu", (unsigned long long)value);
}

struct sleeper {
	pthread_mutex_t mutex;
	pid_t tid;
};

static void *sleep_for_mutex(void *data)
{
	struct sleeper *s = data;

	__atomic_store_n(&s->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	pthread_mutex_lock(&s->mutex);
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

/* How long a thread that waits for a mutex is said to have slept, in ns, if the GIL's mutex is this one. */
static uint64_t slept(const struct sleeper *s, const pthread_mutex_t *mutex, uint64_t least_ns)
{
	uint64_t start_ns = clock_ns();
	struct holder h;

	holder_asked(&h, s->tid, mutex);
	do
		holder_asked_again(&h, s->tid, mutex);
	while (h.slept_ns < least_ns || clock_ns() - start_ns < 2 * ENOUGH_NS);
	return h.slept_ns;
}

static void compute(void)
{
	for (uint64_t start_ns = clock_ns(); clock_ns() - start_ns < ENOUGH_NS;)
		;
}

/* A thread without a stream has no number yet, and to the kernel 0 is whoever asks. */
static void test_unknown(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct holder h;

	holder_asked(&h, 0, &mutex);
	compute();
	holder_asked_again(&h, 0, &mutex);
	ok(holder_excused(&h, 0) >= ENOUGH_NS, "an unknown holder is excused while others compute");
	ok(holder_excused(&h, (pid_t)syscall(SYS_gettid)) >= ENOUGH_NS,
	   "also if it is known when it releases the GIL");
	is_u64(h.slept_ns, 0, "and does not count as asleep");
}

int main(void)
{
	struct sleeper s = { .mutex = PTHREAD_MUTEX_INITIALIZER };
	pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
	struct holder h;
	pthread_t thread;

	pthread_mutex_lock(&s.mutex);
	pthread_create(&thread, NULL, sleep_for_mutex, &s);
	while (!__atomic_load_n(&s.tid, __ATOMIC_ACQUIRE))
		;
	ok(slept(&s, &other, ENOUGH_NS) >= ENOUGH_NS, "who waits for something sleeps");
	is_u64(slept(&s, &s.mutex, 0), 0,
	       "who waits for the GIL's mutex is about to release the GIL");
	pthread_mutex_unlock(&s.mutex);
	pthread_join(thread, NULL);

	holder_asked(&h, (pid_t)syscall(SYS_gettid), &other);
	compute();
	ok(holder_excused(&h, (pid_t)syscall(SYS_gettid)) < clock_ns() - h.asked_ns,
	   "who computes is not excused for all of it");
	test_unknown();
	return done_testing();
}
