/* SPDX-License-Identifier: MIT */
/* The time in which a process was stopped by a signal. */
#ifndef GILTRACER_MODEL_SUSPENDED_H
#define GILTRACER_MODEL_SUSPENDED_H

#include "model/model.h"

/* Cuts it out of the lanes of the process's threads. Call it before owners_finish. */
void suspended_finish(struct model *m);

#endif
