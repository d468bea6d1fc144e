/* SPDX-License-Identifier: MIT */
/* Totals of threads and GILs, from the finished lanes. */
#ifndef GILTRACER_MODEL_STATS_H
#define GILTRACER_MODEL_STATS_H

#include "model/model.h"

void stats_finish(struct model *m);

#endif
