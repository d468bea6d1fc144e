/* SPDX-License-Identifier: MIT */
/* Turns records other than samples into events: switches, lives of threads, losses. */
#include "trace/perf/private.h"
#include "trace/names.h"

/* More CPUs than Linux supports: a larger number is corrupt. */
#define MAX_CPUS 8192

__attribute__((noinline)) static void add_cpu(struct from_perf *fp, int32_t cpu)
{
	while ((size_t)(cpu + 1) >= fp->cpus.n)
		*vec_push(&fp->cpus) = (struct cpu_seen){ 0 };
}

struct cpu_seen *from_perf_cpu(struct from_perf *fp, int32_t cpu)
{
	if (cpu < 0 || cpu >= MAX_CPUS)
		cpu = -1;
	if ((size_t)(cpu + 1) >= fp->cpus.n)
		add_cpu(fp, cpu);
	return &fp->cpus.v[cpu + 1];
}

/* The sample fields at the end of another record; *ret_body is what precedes them. */
static bool decode_identity(struct from_perf *fp, const struct perfdata_record *rec,
                            struct sample *ret, struct cursor *ret_body)
{
	const struct perf_header *header = fp->header;
	const struct sample_layout *layout;

	if (!header->events.n)
		return false;
	layout = header_trailer_layout(header, &rec->body);
	*ret_body = rec->body;
	if (!sample_decode_trailer(ret, layout, &rec->body))
		return false;
	ret_body->end -= layout->trailer;
	from_perf_find_cpu(fp, ret);
	return true;
}

static bool finish(struct from_perf *fp, const struct cursor *body)
{
	fp->source.stats.leftover_bytes += cursor_left(body);
	return !body->bad;
}

static bool from_switch(struct from_perf *fp, const struct perfdata_record *rec,
                        const struct sample *s, struct cursor *body, struct event *ev)
{
	/* The other thread of the switch is not used, because sched_switch contains it, too. */
	if (rec->type == PERF_RECORD_SWITCH_CPU_WIDE)
		cursor_skip(body, 8);
	from_perf_fill(ev, rec->misc & PERF_RECORD_MISC_SWITCH_OUT ? EV_SWITCH_OUT : EV_SWITCH_IN,
	               s);
	if (ev->type == EV_SWITCH_OUT && rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
		ev->flags = EVF_PREEMPT;
	/* Thread 0 is the idle loop, or a thread that has already ended. */
	return finish(fp, body) && ev->tid;
}

/* The fast path for nearly all switches: fixed offsets. False: from_switch has to decode the
 * record. */
static bool quick_switch(struct from_perf *fp, const struct perfdata_record *rec,
                         const struct sample_layout *l, struct event *ev)
{
	size_t left = cursor_left(&rec->body);
	bool out = rec->misc & PERF_RECORD_MISC_SWITCH_OUT;

	if (l->trailer_tid == SAMPLE_NOWHERE || l->trailer_cpu == SAMPLE_NOWHERE ||
	    left < l->trailer)
		return false;
	ev->tid = sample_known_id(cursor_u32_in(&rec->body, left - l->trailer_tid + 4));
	ev->cpu = (int32_t)cursor_u32_in(&rec->body, left - l->trailer_cpu);
	if (!ev->tid || ev->cpu < 0)
		return false;
	ev->pid = sample_known_id(cursor_u32_in(&rec->body, left - l->trailer_tid));
	ev->type = out ? EV_SWITCH_OUT : EV_SWITCH_IN;
	ev->flags = out && rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? EVF_PREEMPT : 0;
	fp->source.stats.leftover_bytes += left - l->trailer;
	return true;
}

static bool from_fork_exit(struct from_perf *fp, const struct perfdata_record *rec,
                           const struct sample *s, struct cursor *body, struct event *ev)
{
	uint32_t ppid, ptid;

	from_perf_fill(ev, rec->type == PERF_RECORD_FORK ? EV_FORK : EV_EXIT, s);
	ev->pid = cursor_u32(body);
	ppid = cursor_u32(body);
	ev->tid = cursor_u32(body);
	ptid = cursor_u32(body);
	cursor_skip(body, 8);
	if (rec->type == PERF_RECORD_FORK) {
		ev->fork.parent_pid = ppid;
		ev->fork.parent_tid = ptid;
	}
	return finish(fp, body);
}

static bool from_comm(struct from_perf *fp, const struct perfdata_record *rec,
                      const struct sample *s, struct cursor *body, struct event *ev)
{
	const char *text;
	size_t len;

	from_perf_fill(ev, EV_COMM, s);
	ev->pid = cursor_u32(body);
	ev->tid = cursor_u32(body);
	if (rec->misc & PERF_RECORD_MISC_COMM_EXEC)
		ev->flags = EVF_EXEC;
	text = cursor_text_field(body, cursor_left(body), &len);
	if (body->bad || !text)
		return false;
	ev->comm.name = names_id(fp->source.names, text, len);
	return true;
}

static uint64_t last_of_cpu(struct from_perf *fp, int32_t cpu)
{
	uint64_t ns = cpu >= 0 ? from_perf_cpu(fp, cpu)->last_ns : 0;

	return ns ? ns : fp->first_ns;
}

/* How many of count losses were already reported by LOST records, of this CPU or of an unknown
 * one. */
static uint64_t account_for(struct from_perf *fp, int32_t cpu, uint64_t count)
{
	uint64_t left = count;

	for (size_t i = 0; i < fp->cpus.n; i++) {
		uint64_t *lost = &fp->cpus.v[i].lost, known = left < *lost ? left : *lost;

		if (cpu >= 0 && i && i != (size_t)cpu + 1)
			continue;
		*lost -= known;
		left -= known;
	}
	return count - left;
}

/*
 * LOST: the ring buffer of a CPU was full, until now. LOST_SAMPLES with a time: the same, reported
 * by the hardware. LOST_SAMPLES without a time: the kernel's count for one event over the whole
 * recording, which perf reads at the end. LOST records have reported most or all of these; the rest
 * was lost after the last record of that CPU, because otherwise another LOST record would report
 * it.
 */
static bool from_lost(struct from_perf *fp, const struct perfdata_record *rec,
                      const struct sample *s, struct cursor *body, struct event *ev)
{
	const struct header_id *id = header_find_id(fp->header, s->id);
	bool total = rec->type == PERF_RECORD_LOST_SAMPLES && !s->time_ns;
	uint64_t count;

	if (rec->type == PERF_RECORD_LOST)
		cursor_skip(body, 8);
	count = cursor_u64(body);
	if (!finish(fp, body))
		return false;
	from_perf_fill(ev, EV_LOST, s);
	if (fp->machine)
		ev->flags = EVF_WAKEUPS;
	if (total) {
		ev->cpu = id ? id->cpu : -1;
		count -= account_for(fp, ev->cpu, count);
	} else {
		from_perf_cpu(fp, ev->cpu)->lost += count;
	}
	ev->lost.since_ns = last_of_cpu(fp, ev->cpu);
	fp->source.stats.lost += count;
	ev->lost.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	return count != 0;
}

static bool is_mapping(uint32_t type)
{
	return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM ||
	       type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT;
}

static bool from_mmap(enum mapped what, const struct sample *s, struct cursor *body,
                      struct event *ev)
{
	if (what == MAPPED_OTHER)
		return false;
	from_perf_fill(ev, EV_PYTHON, s);
	ev->flags = what == MAPPED_RECORDER ? EVF_RECORDED : 0;
	ev->pid = cursor_u32(body);
	ev->tid = cursor_u32(body);
	return !body->bad;
}

bool from_perf_other(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev)
{
	enum mapped mapped = MAPPED_OTHER;
	struct cursor body;
	struct sample s;

	if (rec->type == PERF_RECORD_SWITCH && fp->header->events.n &&
	    quick_switch(fp, rec, header_trailer_layout(fp->header, &rec->body), ev))
		return true;
	if (!perfdata_type_name(rec->type)) {
		fp->unknown++;
		return false;
	}
	if (!decode_identity(fp, rec, &s, &body))
		return false;
	if (fp->unwind.record && is_mapping(rec->type))
		mapped = fp->unwind.record(fp->unwind.ctx, rec, &s);
	switch (rec->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return from_switch(fp, rec, &s, &body, ev);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return from_fork_exit(fp, rec, &s, &body, ev);
	case PERF_RECORD_COMM:
		return from_comm(fp, rec, &s, &body, ev);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return from_mmap(mapped, &s, &body, ev);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return from_lost(fp, rec, &s, &body, ev);
	default:
		return false;
	}
}
