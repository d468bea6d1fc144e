/* SPDX-License-Identifier: MIT */
/* A thread that shuts down overdue connections: the timeout of the HTTP server only applies to
 * connections without any traffic. */
#include "metrics/deadline.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

struct deadline {
	int socket;
	uint64_t at_ns;
	struct deadline *before, *next;
};

/**
 * @first: sorted by time, because all have the same timeout and renewed ones move to the end
 * @changed: the list is no longer empty, or the thread is to end
 */
struct deadlines {
	struct deadlines_limits limits;
	unsigned n;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool ending;
	struct deadline *first, *last;
};

static void put_last(struct deadlines *d, struct deadline *one)
{
	one->at_ns = clock_now_ns() + d->limits.after_ns;
	one->next = NULL;
	one->before = d->last;
	if (d->last)
		d->last->next = one;
	else
		d->first = one;
	d->last = one;
	d->n++;
}

static void take_out(struct deadlines *d, struct deadline *one)
{
	if (one->before)
		one->before->next = one->next;
	else
		d->first = one->next;
	if (one->next)
		one->next->before = one->before;
	else
		d->last = one->before;
	d->n--;
}

static uint64_t due_ns(const struct deadlines *d)
{
	bool full = d->n >= d->limits.most;

	return full ? d->first->at_ns - d->limits.after_ns + d->limits.full_ns : d->first->at_ns;
}

static void *watch(void *data)
{
	struct deadlines *d = data;

	pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		struct deadline *one = d->first;
		uint64_t until_ns = one ? due_ns(d) : 0;
		struct timespec until;

		if (!one) {
			pthread_cond_wait(&d->changed, &d->lock);
		} else if (until_ns > clock_now_ns()) {
			until = (struct timespec){ (time_t)(until_ns / NS_PER_SECOND),
				                   (long)(until_ns % NS_PER_SECOND) };
			pthread_cond_timedwait(&d->changed, &d->lock, &until);
		} else {
			shutdown(one->socket, SHUT_RDWR);
			take_out(d, one);
			put_last(d, one); /* until it is removed */
		}
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct deadlines *deadlines_new(const struct deadlines_limits *limits)
{
	struct deadlines *d = xcalloc(1, sizeof(*d));
	pthread_condattr_t monotonic;

	d->limits = *limits;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (thread_start(&d->thread, watch, d) == 0)
		return d;
	free(d);
	return NULL;
}

void deadlines_free(struct deadlines *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ending = true;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct deadline *deadline_add(struct deadlines *d, int socket)
{
	struct deadline *one = xcalloc(1, sizeof(*one));

	one->socket = socket;
	pthread_mutex_lock(&d->lock);
	put_last(d, one);
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	return one;
}

void deadline_renew(struct deadlines *d, struct deadline *one)
{
	pthread_mutex_lock(&d->lock);
	take_out(d, one);
	put_last(d, one);
	pthread_mutex_unlock(&d->lock);
}

void deadline_remove(struct deadlines *d, struct deadline *one)
{
	pthread_mutex_lock(&d->lock);
	take_out(d, one);
	pthread_mutex_unlock(&d->lock);
	free(one);
}
