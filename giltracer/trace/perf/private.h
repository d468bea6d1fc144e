/* SPDX-License-Identifier: MIT */
/*
 * What the files of one source of events share: from_perf.c yields events, perf_samples.c and
 * perf_freethreaded.c make them of samples, perf_sideband.c of other records. Nobody else needs it.
 */
#ifndef GILTRACER_TRACE_PERF_PRIVATE_H
#define GILTRACER_TRACE_PERF_PRIVATE_H

#include <string.h>

#include "base/idmap.h"
#include "base/vec.h"
#include "perfdata/event_sort.h"
#include "perfdata/reader.h"
#include "trace/perf/from_perf_stacks.h"
#include "trace/perf/frames.h"
#include "trace/perf/freethreaded.h"
#include "trace/source.h"

enum handler_kind {
	HANDLE_SKIP, /* no event of ours */
	HANDLE_GIL,
	HANDLE_FREETHREADED,
	HANDLE_SCHED_SWITCH,
	HANDLE_SCHED_WAKING,
	HANDLE_SCHED_MIGRATE,
	HANDLE_COUNT,
	HANDLE_STACK,
};

/**
 * Samples of which all that is wanted stands at fixed places of the body.
 * @usable: they are so, and @type is their event; what follows is of use only then
 * @value: address of the GIL, or pid; of @value_size bytes from there in the raw data, 0: absent
 * @raw_end, @body_size: that much of the raw data, and of the body, is needed at least
 */
struct quick_sample {
	bool usable;
	uint8_t value_size;
	uint16_t type;
	uint32_t value, raw_end, body_size;
};

/**
 * What to do with the samples of one event, found out once. Fields are NULL that the format lacks.
 * @common_pid: of any tracepoint: who ran, see learn_tid
 * @quick: of GIL and SCHED_WAKING
 */
struct handler {
	enum handler_kind kind;
	const struct tracefmt_field *common_pid;
	struct quick_sample quick;
	union {
		struct {
			enum event_type type;
			const struct tracefmt_field *address;
			const struct tracefmt_field *on; /* NULL: it is never off */
			struct perf_frames_fields frames;
		} gil;
		struct freethreaded_probe freethreaded;
		struct {
			const struct tracefmt_field *prev_state, *next_pid, *next_comm;
		} sched_switch;
		struct {
			const struct tracefmt_field *pid, *target_cpu;
		} waking;
		struct {
			const struct tracefmt_field *pid, *orig_cpu, *dest_cpu;
		} migrate;
		uint32_t counter;
	};
};

/* @lost: what LOST records of the CPU said so far and no total of an event has accounted for */
struct cpu_seen {
	uint64_t last_ns, lost;
};

/**
 * @changes: how many of the header's changes handlers knows
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
	struct event_sort *order;
	VEC(struct handler) handlers;
	VEC(const char *) counters;
	size_t changes;
	VEC(struct cpu_seen) cpus;
	uint64_t unknown;
	uint64_t first_ns, last_ns;
	struct idmap tids;
	struct from_perf_stacks unwind;
	bool unwind_now; /* else only what source_stack_at asks for */
	struct perf_frames *frames;
	bool machine;
	uint32_t module;
};

/* Find out what to do with each event; called again when the header says more. */
void from_perf_update_handlers(struct from_perf *fp);

/* What is known of a CPU; -1: of those without a number. Valid until the next call. */
struct cpu_seen *from_perf_cpu(struct from_perf *fp, int32_t cpu);

/* The event of a PERF_RECORD_SAMPLE, and of any other record; false if there is none. The time is
 * not set. */
bool from_perf_sample(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev);
bool from_perf_other(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev);

/* Whether name is word or word_N: one of several probes for the same function. */
static inline bool from_perf_is_probe(const char *name, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(name, word, len) != 0)
		return false;
	name += len;
	return !*name || (*name == '_' && name[1] && !name[1 + strspn(name + 1, "0123456789")]);
}

static inline void from_perf_fill(struct event *ev, enum event_type type, const struct sample *s)
{
	*ev = (struct event){ .type = (uint16_t)type, .pid = s->pid, .tid = s->tid, .cpu = s->cpu };
}

/* perf counts each event separately on each CPU: if a record does not name its CPU, its id implies
 * it. */
static inline void from_perf_find_cpu(const struct from_perf *fp, struct sample *s)
{
	const struct header_id *id = s->cpu < 0 ? header_find_id(fp->header, s->id) : NULL;

	if (id)
		s->cpu = id->cpu;
}

#endif
