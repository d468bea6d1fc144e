/* SPDX-License-Identifier: MIT */
/* Shared by the files of this source: from_perf.c yields events, samples.c
 * makes them from samples, sideband.c from other records. Private to these. */
#ifndef GILTRACER_TRACE_PERF_PRIVATE_H
#define GILTRACER_TRACE_PERF_PRIVATE_H

#include <string.h>

#include "base/idmap.h"
#include "base/vec.h"
#include "perfdata/event_sort.h"
#include "perfdata/reader.h"
#include "trace/perf/from_perf_stacks.h"
#include "trace/perf/frames.h"
#include "trace/source.h"

enum handler_kind {
	HANDLE_SKIP, /* no event of ours */
	HANDLE_GIL,
	HANDLE_SCHED_SWITCH,
	HANDLE_SCHED_WAKING,
	HANDLE_SCHED_MIGRATE,
	HANDLE_COUNT,
	HANDLE_STACK,
};

/**
 * Samples in which all needed fields are at fixed offsets of the body.
 * @usable: this is true for the samples of an event; the other members are valid only then
 * @type: the type of their struct event
 * @value: offset of the GIL's address, or of a pid, in the raw data; its size is @value_size bytes,
 * 0: absent
 * @raw_end, @body_size: required size of the raw data, and of the body
 */
struct quick_sample {
	bool usable;
	uint8_t value_size;
	uint16_t type;
	uint32_t value, raw_end, body_size;
};

/**
 * How to handle the samples of one event, determined once. Fields that the format lacks are NULL.
 * @common_pid: of any tracepoint: the running thread, see learn_tid
 * @quick: for GIL and SCHED_WAKING
 */
struct handler {
	enum handler_kind kind;
	const struct tracefmt_field *common_pid;
	struct quick_sample quick;
	union {
		struct {
			enum event_type type;
			const struct tracefmt_field *address;
			struct perf_frames_fields frames;
		} gil;
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

/* @lost: losses from LOST records of the CPU that no total of an event has accounted for yet */
struct cpu_seen {
	uint64_t last_ns, lost;
};

/**
 * @changes: how many of the header's changes are in handlers
 * @cpus: the first one is for records without a CPU number
 * @unknown: records of the kernel of unknown types
 * @tids: thread ids of the host to those of perf's pid namespace, if they differ
 * @machine: see struct from_perf_options; @borrows: its names, stacks and frames
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
	bool unwind_now; /* false: only if source_stack_at asks for them */
	struct perf_frames *frames;
	bool machine, borrows;
};

/* Determine how to handle each event; called again when the header grows. */
void from_perf_update_handlers(struct from_perf *fp);

/* The state of a CPU; -1: for records without a CPU number. Valid until the next call. */
struct cpu_seen *from_perf_cpu(struct from_perf *fp, int32_t cpu);

/* Make the event of a PERF_RECORD_SAMPLE, or of any other record; false if there is none. The
 * time is not set. */
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

/* If a record does not name its CPU, the event's id implies it, because perf counts each event
 * separately on each CPU. */
static inline void from_perf_find_cpu(const struct from_perf *fp, struct sample *s)
{
	const struct header_id *id = s->cpu < 0 ? header_find_id(fp->header, s->id) : NULL;

	if (id)
		s->cpu = id->cpu;
}

#endif
