/* SPDX-License-Identifier: MIT */
/* Between from_perf.c, perf_samples.c and perf_others.c, which are one source of events. Nobody
 * else needs it. */
#ifndef GILTRACER_TRACE_FROM_PERF_INTERNAL_H
#define GILTRACER_TRACE_FROM_PERF_INTERNAL_H

#include "base/idmap.h"
#include "base/vec.h"
#include "perfdata/order.h"
#include "perfdata/reader.h"
#include "trace/from_perf_unwind.h"
#include "trace/perf_frames.h"
#include "trace/source.h"

enum handler_kind {
	HANDLE_SKIP, /* no event of ours */
	HANDLE_GIL,
	HANDLE_PARK,
	HANDLE_GIL_MODULE,
	HANDLE_GIL_ON,
	HANDLE_SCHED_SWITCH,
	HANDLE_SCHED_WAKING,
	HANDLE_SCHED_MIGRATE,
	HANDLE_COUNT,
	HANDLE_STACK,
};

/**
 * What to do with the samples of one event, found out once.
 * @type: GIL, SCHED_WAKING: which event
 * @field: GIL: gil; SCHED_SWITCH: prev_state; SCHED_WAKING, SCHED_MIGRATE: pid; PARK: lock;
 *         GIL_MODULE: name. NULL if the format has none
 * @field2: SCHED_SWITCH: next_pid; SCHED_WAKING: target_cpu; SCHED_MIGRATE: orig_cpu
 * @field3: SCHED_SWITCH: next_comm; SCHED_MIGRATE: dest_cpu
 * @on: GIL, GIL_ON: on; NULL for GIL: it is never off
 * @size, @expected, @of, @in: PARK
 * @common_pid: of any tracepoint: who ran, see learn_tid
 * @counter: HANDLE_COUNT
 * @quick: GIL, SCHED_WAKING: samples are plain and field is absent or of 4 or 8 bytes, so that
 *         all we want stands at fixed places of the sample's body, and
 * @field_end: of its raw data, @quick_size: of its body, is what is needed at least
 */
struct handler {
	enum handler_kind kind;
	enum event_type type;
	const struct tracefmt_field *field, *field2, *field3, *common_pid;
	const struct tracefmt_field *on, *size, *expected, *of, *in;
	struct perf_frames_fields frames;
	uint32_t counter;
	uint32_t field_end, quick_size;
	bool quick;
};

/* @lost: what LOST records of the CPU said so far and no total of an event has accounted for */
struct cpu_seen {
	uint64_t last_ns, lost;
};

/**
 * @generation: of the header, when handlers was made
 * @cpus: the first one is those of which we do not know the number
 * @unknown: records of the kernel that we do not know
 * @tids: thread ids of the host to those of perf's pid namespace, where they differ
 * @machine: see struct from_perf_options
 * @module: the last one that the import machinery looked at, id in names
 * @first_ns: time of the first record; @last_ns: of the last event yielded
 */
struct from_perf {
	struct source source;
	struct perfdata *pd;
	const struct perf_header *header;
	struct order *order;
	VEC(struct handler) handlers;
	VEC(const char *) counters;
	uint32_t generation;
	VEC(struct cpu_seen) cpus;
	uint64_t unknown;
	uint64_t first_ns, last_ns;
	struct idmap tids;
	struct from_perf_unwind unwind;
	bool unwind_now; /* else only what source_stack_at asks for */
	struct perf_frames *frames;
	bool machine;
	uint32_t module;
};

/* Find out what to do with each event; again by itself when the header has changed. */
void from_perf_make_handlers(struct from_perf *fp);

/* What is known of a CPU, -1: of those without a number. Until the next call. */
struct cpu_seen *from_perf_cpu(struct from_perf *fp, int32_t cpu);

/* An event of a PERF_RECORD_SAMPLE, of any other record; false if it gives none. The time is not
 * set. */
bool from_perf_sample(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev);
bool from_perf_other(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev);

/* Whether name is word or word_N: one of several probes for the same function. */
bool from_perf_is_probe(const char *name, const char *word);

/* perf_parks.c: samples of free-threaded interpreters. The handler of the event, false: it is none;
 * an event of a sample, false: it gives none. */
bool from_perf_park_handler(const struct tracefmt *fmt, struct handler *ret);
bool from_perf_park_sample(struct from_perf *fp, const struct handler *h, const struct sample *s,
                           struct event *ev);
/* Flags of an EV_REQUEST or EV_RELEASE. */
uint16_t from_perf_gil_flags(struct from_perf *fp, const struct handler *h,
                             const struct cursor *raw, uint32_t frame);

static inline void from_perf_fill(struct event *ev, enum event_type type, const struct sample *s)
{
	*ev = (struct event){ .type = (uint16_t)type, .pid = s->pid, .tid = s->tid, .cpu = s->cpu };
}

/* perf counts each event on each CPU by itself: where a record does not say the CPU, its id does.
 */
static inline void from_perf_find_cpu(const struct from_perf *fp, struct sample *s)
{
	const struct header_id *id = s->cpu < 0 ? header_find_id(fp->header, s->id) : NULL;

	if (id)
		s->cpu = id->cpu;
}

#endif
