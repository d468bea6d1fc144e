/* SPDX-License-Identifier: MIT */
/* Helper threads. */
#ifndef GILTRACER_BASE_THREAD_H
#define GILTRACER_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts run(data) with all signals blocked, because signals are handled by other threads, except
 * SIGBUS: base/filemap.h handles it in the thread that causes it. Returns 0, or -1 if no thread can
 * be created. Join it with pthread_join. */
static inline int thread_start(pthread_t *ret, void *(*run)(void *), void *data)
{
	sigset_t all, old;
	int failed;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	failed = pthread_create(ret, NULL, run, data);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return failed ? -1 : 0;
}

#endif
