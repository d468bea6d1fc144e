/* SPDX-License-Identifier: MIT */
/* What is not known because records are missing. */
#ifndef GILTRACER_MODEL_LOST_H
#define GILTRACER_MODEL_LOST_H

#include "model/model.h"

void lost_records(struct model *m, const struct event *ev, uint64_t t);
/* An event at t contradicts those before it, unless records are missing there; counted at the end,
 * when all losses are known. */
void lost_or_anomaly(struct model *m, enum caveat_code code, uint64_t t);
/* Before the threads end: what is still pending. */
void lost_end(struct model *m);
void lost_finish(struct model *m);
/* The last span is unknown since a loss. What was assumed between this loss and earlier ones turned
 * out to be wrong: make it unknown, too. */
void lost_doubt(struct lane *lane);

#endif
