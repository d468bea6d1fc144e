/* SPDX-License-Identifier: MIT */
/* The threads of a process, this one, that has more of them than we may open files. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "live/tasks.h"
#include "tap.h"

#define THREADS 60
#define FILES   40

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_mutex(void *data)
{
	(void)data;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void check(const struct tasks *tasks)
{
	size_t known = 0, named = 0;

	for (size_t i = 0; i < tasks->v.n; i++) {
		known += tasks->v.v[i].activity != SAMPLE_UNKNOWN;
		named += tasks->v.v[i].state != '?' && *tasks->v.v[i].name;
	}
	ok(tasks->v.n > THREADS, "all threads are there");
	is_u64(known, tasks->v.n, "what each does is known");
	is_u64(named, tasks->v.n, "and its state and name");
}

int main(void)
{
	struct rlimit limit;
	pthread_t threads[THREADS];
	struct tasks tasks = { .read_ns = 0 };
	struct error err = { 0 };

	pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, wait_for_mutex, NULL) != 0)
			return 99;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = FILES;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned look = 1; look <= 2; look++) {
		ok(tasks_look(&tasks, getpid(), true, &err) == 0, "look %u", look);
		check(&tasks);
	}
	tasks_done(&tasks);
	pthread_mutex_unlock(&mutex);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return done_testing();
}
