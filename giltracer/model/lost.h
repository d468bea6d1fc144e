/* SPDX-License-Identifier: MIT */
/* Makes states unknown where records are missing. */
#ifndef GILTRACER_MODEL_LOST_H
#define GILTRACER_MODEL_LOST_H

#include "model/model.h"

void lost_records(struct model *m, const struct event *ev, uint64_t t);
/* An event at t contradicts earlier ones. It is counted at the end, when all losses are known,
 * unless records are missing there. */
void lost_or_anomaly(struct model *m, enum caveat_code code, uint64_t t);
/* The thread, which is new, was not seen to be born: its life so far is unknown if that record may
 * be lost. */
void lost_birth(struct model *m, uint32_t thread);
/* To be called before the threads end: applies the losses that are still pending. */
void lost_end(struct model *m);
void lost_finish(struct model *m);
/* The last span has been unknown since a loss, and what was assumed between this loss and earlier
 * ones turned out to be wrong: make that unknown, too. */
void lost_doubt(struct lane *lane);

#endif
