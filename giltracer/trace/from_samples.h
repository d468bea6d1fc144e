/* SPDX-License-Identifier: MIT */
/* Samples as a source of events: which threads there were. Samples are no events of a GIL: what
 * they tell is told as what it is. */
#ifndef GILTRACER_TRACE_FROM_SAMPLES_H
#define GILTRACER_TRACE_FROM_SAMPLES_H

#include "trace/samples.h"
#include "trace/source.h"

/* samples is borrowed until source_close. */
struct source *from_samples(const struct samples *samples);

#endif
