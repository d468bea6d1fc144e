/* SPDX-License-Identifier: MIT */
/* The threads and their lifetimes: births, names and ends. */
#ifndef GILTRACER_MODEL_THREAD_H
#define GILTRACER_MODEL_THREAD_H

#include "model/private.h"

/* The thread of an event, created if necessary; MODEL_NONE if the thread has ended, or if there is
 * none. */
uint32_t thread_of_other(struct model *m, const struct event *ev, uint64_t t);
static inline uint32_t thread_of(struct model *m, const struct event *ev, uint64_t t)
{
	const struct model_private *p = m->priv;

	if (ev->tid == p->last_tid && ev->tid &&
	    (thread_is_nobody(ev->pid) || ev->pid == p->last_pid))
		return p->last_thread;
	return thread_of_other(m, ev, t);
}
uint32_t process_of(struct model *m, uint32_t pid);
/* An EV_PYTHON at t. */
void process_maps(struct model *m, const struct event *ev, uint64_t t);
/* The process runs a CPython from then on of whose GIL there is no event yet; 0: there is one. */
void process_python(struct model *m, uint32_t pid, uint64_t python_ns);
uint32_t thread_find(const struct model *m, uint32_t tid);
uint32_t thread_new(struct model *m, uint32_t pid, uint32_t tid, uint64_t t, enum gil_state gil,
                    enum cpu_state cpu);
void thread_before_start(struct model *m, const struct event *ev);
void thread_start_all(struct model *m);
void thread_fork(struct model *m, const struct event *ev, uint64_t t);
void thread_comm(struct model *m, const struct event *ev, uint64_t t);
/* died: the thread ended; otherwise the recording ended. */
void thread_exit(struct model *m, uint32_t thread, uint64_t t, bool died);

#endif
