/* SPDX-License-Identifier: MIT */
/* The events that are opened to ask the kernel whether it permits them. */
#ifndef GILTRACER_SYSTEM_PERF_ATTR_H
#define GILTRACER_SYSTEM_PERF_ATTR_H

#include <linux/perf_event.h>
#include <stdint.h>

/* An event that counts nothing, in user space only: any user may open it for an own process. */
static inline struct perf_event_attr perf_attr_self(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(struct perf_event_attr),
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

/* The same, inherited and read with samples, like perf's "dummy:uS". */
static inline struct perf_event_attr perf_attr_inherited(void)
{
	struct perf_event_attr attr = perf_attr_self();

	attr.sample_period = 4000;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_ID;
	attr.inherit = 1;
	return attr;
}

/* A tracepoint with its data; uprobes are recorded in this form, too. */
static inline struct perf_event_attr perf_attr_tracepoint(uint64_t id)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.config = id,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME,
		.disabled = 1,
	};
}

#endif
