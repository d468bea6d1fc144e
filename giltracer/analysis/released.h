/* SPDX-License-Identifier: MIT */
/* For the page: the threads that ended each part of a thread's waits for locks and stops. */
#ifndef GILTRACER_ANALYSIS_RELEASED_H
#define GILTRACER_ANALYSIS_RELEASED_H

#include "model/model.h"

/* The maximum number of stretches of a wait: the longest. Each release of the lock ends one, and
 * there may be as many in each wait as in the recording. */
#define RELEASED_ROWS 64

/* The stretches of the thread's waits, see model_blocked(), in order of time. Neighbours that are
 * charged to the same thread are one. work: as for model_blocked(), for all threads. Free v with
 * vec_done. */
void released_find(struct model_blocked_list *ret, const struct model *model, uint32_t thread,
                   uint64_t *work);

#endif
