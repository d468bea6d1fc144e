/* SPDX-License-Identifier: MIT */
/* Waits of threads in a free-threaded interpreter: for locks, and while the world is stopped. */
#ifndef GILTRACER_MODEL_LOCKS_H
#define GILTRACER_MODEL_LOCKS_H

#include "model/private.h"

/* Whether locks_feed has to see this event of the GIL or of parking. Never if the GIL is on. */
static inline bool locks_concern(const struct model *m, const struct event *ev, uint32_t thread)
{
	const struct parking *p = &m->priv->threads.v[thread].parking;

	return ev->type >= EV_PARK || p->lock != MODEL_NONE;
}

/* Returns true if the event is about parking; it is then fully handled. */
bool locks_feed(struct model *m, const struct event *ev, uint32_t thread, uint64_t t);

/* The wait of the thread, if there is one, is about to end. If it is not known which thread took the
 * lock, only a release shows that it is a lock, and not a signal. */
void locks_judge(struct model *m, uint32_t thread);

/* The thread is no longer parked: it has ended, or (is_known false) nobody knows why. */
void locks_forget(struct model *m, uint32_t thread, bool is_known);

/* The span from t on of a thread without the GIL. */
struct span locks_span(struct model *m, uint32_t thread, uint64_t t);

void locks_finish(struct model *m);
void locks_done(struct model *m);

#endif
