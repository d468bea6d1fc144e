/* SPDX-License-Identifier: MIT */
/*
 * The contents of a PERF_RECORD_SAMPLE, and of the trailer of all other records, according to the
 * event's sample_type (include/uapi/linux/perf_event.h, enum perf_event_type).
 */
#ifndef GILTRACER_PERFDATA_PERF_SAMPLE_H
#define GILTRACER_PERFDATA_PERF_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

#define SAMPLE_NOWHERE UINT16_MAX

/**
 * Places of fields, computed once per event by sample_layout_init.
 * @id_pos, @time_pos, @tid_pos, @cpu_pos, @raw_pos: offset in the body of a sample, SAMPLE_NOWHERE
 *             if not recorded
 * @plain: raw data is the last field of a sample, and all fields before it have a fixed size
 * @trailer: size of the trailer of other records, 0 if they have none
 * @trailer_id, @trailer_time, @trailer_tid, @trailer_cpu: distance from the end of these records,
 *             SAMPLE_NOWHERE if not recorded
 */
struct sample_layout {
	uint64_t sample_type, read_format, branch_sample_type, regs_user, regs_intr;
	uint16_t id_pos, time_pos, tid_pos, cpu_pos, raw_pos;
	bool plain;
	uint16_t trailer, trailer_id, trailer_time, trailer_tid, trailer_cpu;
};

struct perf_event_attr;
void sample_layout_init(struct sample_layout *ret, const struct perf_event_attr *attr);

/**
 * Fields that were not recorded are 0 (cpu: -1). Cursors point into the record and are empty if
 * nothing was recorded.
 * @pid, @tid: 0 also if the kernel no longer knew them (-1: the thread has ended)
 * @callchain: u64 addresses and PERF_CONTEXT_* marks, innermost first
 * @read: struct read_format, not decoded
 * @regs_abi: enum perf_sample_regs_abi; 0: no user registers (a kernel thread)
 * @regs: one u64 for each bit of the event's regs_user
 * @stack: the dump from the stack pointer up; only the part that was copied
 * @leftover: number of bytes after the known fields
 */
struct sample {
	uint64_t time_ns, id, ip, addr, stream_id, period;
	uint32_t pid, tid;
	int32_t cpu;
	uint32_t leftover;
	struct cursor read, callchain, raw, regs, stack;
	uint64_t regs_abi;
};

/* The kernel writes -1 for threads that it no longer knows. */
static inline uint32_t sample_known_id(uint32_t id)
{
	return id == UINT32_MAX ? 0 : id;
}

/* Decodes the body of a PERF_RECORD_SAMPLE. Returns false if it is shorter than its fields require;
 * the fields before the truncation are set. */
bool sample_decode(struct sample *ret, const struct sample_layout *layout, struct cursor body);

/* Decodes the trailer of any other kernel record; only pid, tid, time_ns, id, stream_id and cpu are
 * set. Returns false if the body is too short to have a trailer. */
bool sample_decode_trailer(struct sample *ret, const struct sample_layout *layout,
                           const struct cursor *body);

#endif
