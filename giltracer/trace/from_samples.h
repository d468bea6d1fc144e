/* SPDX-License-Identifier: MIT */
/* Samples as a source of events: which threads existed. Samples are not events of a GIL and are not
 * presented as such. */
#ifndef GILTRACER_TRACE_FROM_SAMPLES_H
#define GILTRACER_TRACE_FROM_SAMPLES_H

#include "trace/samples.h"
#include "trace/source.h"

/* samples is borrowed until source_close. */
struct source *from_samples(const struct samples *samples);

#endif
