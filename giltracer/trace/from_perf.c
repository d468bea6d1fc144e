/* SPDX-License-Identifier: MIT */
/* perf record -> event. */
#include "from_perf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/str.h"
#include "base/vec.h"
#include "perfdata/order.h"
#include "perfdata/reader.h"
#include "trace/from_perf_unwind.h"
#include "trace/names.h"
#include "trace/perf_frames.h"
#include "trace/perf_stacks.h"
#include "trace/stacks.h"

enum handler_kind {
	HANDLE_SKIP, /* no event of ours */
	HANDLE_GIL,
	HANDLE_SCHED_SWITCH,
	HANDLE_SCHED_WAKING,
	HANDLE_COUNT,
	HANDLE_STACK,
};

/**
 * What to do with the samples of one event, found out once.
 * @type: GIL, SCHED_WAKING: which event
 * @field: GIL: gil; SCHED_SWITCH: prev_state; SCHED_WAKING: pid. NULL if the format has none
 * @field2: SCHED_SWITCH: next_pid
 * @common_pid: of any tracepoint: who ran, see learn_tid
 * @counter: HANDLE_COUNT
 * @quick: GIL, SCHED_WAKING: samples are plain and field is absent or of 4 or 8 bytes, so that
 *         all we want stands at fixed places of the sample's body
 */
struct handler {
	enum handler_kind kind;
	enum event_type type;
	const struct tracefmt_field *field, *field2, *common_pid;
	struct perf_frames_fields frames;
	uint32_t counter;
	bool quick;
};

/**
 * @generation: of the header, when handlers was made
 * @cpu_ns: time of the last record seen from each CPU
 * @lost_said: what LOST records said so far and no total of an event has accounted for
 * @unknown: records of the kernel that we do not know
 * @tids: thread ids of the host to those of perf's pid namespace, where they differ
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
	VEC(uint64_t) cpu_ns;
	uint64_t lost_said, unknown;
	uint64_t first_ns, last_ns;
	struct idmap tids;
	struct from_perf_unwind unwind;
	struct perf_frames *frames;
};

/* More CPUs than any Linux has: a larger number is a lie. */
#define MAX_CPUS 8192

static const struct {
	const char *name;
	enum event_type type;
} gil_probes[] = {
	{ "take_gil", EV_REQUEST },      { "take_gil_ret", EV_ACQUIRE }, { "drop_gil", EV_RELEASE },
	{ "drop_gil_ret", EV_RELEASED }, { "save_thread", EV_SAVE },
};

/* Whether name is word or word_N: one of several probes for the same function. */
static bool is_probe(const char *name, const char *word)
{
	if (!str_has_prefix(name, word))
		return false;
	name += strlen(word);
	if (!*name)
		return true;
	return *name == '_' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
}

static struct handler tracepoint_handler(const struct tracefmt *fmt)
{
	struct handler h = { .kind = HANDLE_SKIP };

	if (!fmt)
		return h;
	h.common_pid = tracefmt_find(fmt, "common_pid");
	if (h.common_pid && h.common_pid->size != 4)
		h.common_pid = NULL;
	if (!strcmp(fmt->group, "sched") && !strcmp(fmt->name, "sched_switch")) {
		h.kind = HANDLE_SCHED_SWITCH;
		h.field = tracefmt_find(fmt, "prev_state");
		h.field2 = tracefmt_find(fmt, "next_pid");
	} else if (!strcmp(fmt->group, "sched") && !strcmp(fmt->name, "sched_waking")) {
		h.kind = HANDLE_SCHED_WAKING;
		h.type = EV_WAKING;
		h.field = tracefmt_find(fmt, "pid");
	} else if (str_has_prefix(fmt->group, "giltracer_")) {
		for (size_t i = 0; i < sizeof(gil_probes) / sizeof(gil_probes[0]); i++) {
			if (!is_probe(fmt->name, gil_probes[i].name))
				continue;
			h.kind = HANDLE_GIL;
			h.type = gil_probes[i].type;
			h.field = tracefmt_find(fmt, "gil");
			h.frames = perf_frames_find(fmt);
		}
	}
	return h;
}

static bool is_quick(const struct handler *h, const struct sample_layout *l)
{
	return (h->kind == HANDLE_GIL || h->kind == HANDLE_SCHED_WAKING) && l->plain &&
	       l->tid_pos != SAMPLE_NOWHERE && l->cpu_pos != SAMPLE_NOWHERE &&
	       (!h->field || (h->field->kind == TRACEFMT_NUMBER &&
	                      (h->field->size == 4 || h->field->size == 8)));
}

/* A clock with a stack is there for its stacks. */
static bool is_stack_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
	        attr->config == PERF_COUNT_SW_TASK_CLOCK) &&
	       attr->sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER);
}

static struct handler make_handler(struct from_perf *fp, const struct header_event *e)
{
	struct handler h = { .kind = HANDLE_SKIP };

	if (e->attr.type == PERF_TYPE_TRACEPOINT) {
		h = tracepoint_handler(e->format);
		h.quick = is_quick(&h, &e->layout);
		return h;
	}
	if (is_stack_clock(&e->attr)) {
		h.kind = HANDLE_STACK;
		return h;
	}
	if (e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config == PERF_COUNT_SW_DUMMY)
		return h;
	h.kind = HANDLE_COUNT;
	h.counter = (uint32_t)fp->counters.n;
	*vec_push(&fp->counters) = names_get(fp->source.names,
	                                     names_id(fp->source.names, e->name, strlen(e->name)));
	return h;
}

/* Again whenever the pipe layout has told us of more events, names or formats. */
static void make_handlers(struct from_perf *fp)
{
	const struct perf_header *header = fp->header;

	fp->handlers.n = 0;
	fp->counters.n = 0;
	for (size_t i = 0; i < header->events.n; i++)
		*vec_push(&fp->handlers) = make_handler(fp, &header->events.v[i]);
	fp->source.counters = fp->counters.v;
	fp->source.counter_count = (uint32_t)fp->counters.n;
	fp->generation = header->generation;
}

/*
 * prev_state of sched_switch: since Linux 4.14 one bit of eight, and 0x100 for "preempted"; before,
 * the task's raw state, where 0x80 and above only refine (TASK_WAKEKILL, TASK_NOLOAD) and the
 * flag for "preempted" was 0x200 to 0x1000. The low bits mean the same in both. 0x80 alone is an
 * idle kernel thread, uninterruptible that does not count as load.
 */
static uint32_t task_state(uint64_t prev_state)
{
	uint32_t low = (uint32_t)prev_state & 0x7f;

	return low || !(prev_state & 0x80) ? low : EV_STATE_UNINTERRUPTIBLE;
}

static void fill(struct event *ev, enum event_type type, const struct sample *s)
{
	*ev = (struct event){ .type = (uint16_t)type, .pid = s->pid, .tid = s->tid, .cpu = s->cpu };
}

static uint64_t number(const struct tracefmt_field *field, const struct sample *s)
{
	return field ? tracefmt_number(field, &s->raw) : 0;
}

/*
 * In a pid namespace (a container), perf names threads as the namespace does, but tracepoints as
 * the host does. Each sample of a tracepoint has both for the thread that ran: tid and
 * common_pid.
 */
static void learn_tid(struct from_perf *fp, const struct handler *h, const struct cursor *raw,
                      uint32_t tid)
{
	uint32_t host = h->common_pid ? cursor_u32_at(raw, h->common_pid->offset) : tid;

	if (host != tid && host && tid && idmap_get(&fp->tids, host) != tid)
		idmap_set(&fp->tids, host, tid);
}

/* The thread that a tracepoint names, 0 if it has not run yet and its name is not known. */
static uint32_t known_tid(const struct from_perf *fp, uint32_t host)
{
	uint32_t tid;

	if (!fp->tids.n)
		return host;
	tid = idmap_get(&fp->tids, host);
	return tid == IDMAP_NONE ? 0 : tid;
}

static uint32_t get_frame(struct from_perf *fp, const struct handler *h, const struct cursor *raw)
{
	return h->frames.count ? perf_frames_get(fp->frames, &h->frames, raw) : 0;
}

/*
 * Nearly all samples of a large recording come through here: fixed places, one check that they
 * are all there. False: it is not that simple, sample_decode must say.
 */
static bool quick_sample(struct from_perf *fp, const struct handler *h,
                         const struct sample_layout *l, const struct cursor *body, struct event *ev)
{
	uint32_t raw_size = cursor_u32_at(body, l->raw_pos);
	uint32_t field_end = h->field ? h->field->offset + h->field->size : 0;
	uint64_t value = 0, end = (uint64_t)l->raw_pos + 4 + raw_size;
	struct cursor raw;

	if (end > cursor_left(body) || field_end > raw_size)
		return false;
	raw = cursor_make(body->p + l->raw_pos + 4, raw_size);
	if (h->field && h->field->size == 8)
		value = cursor_u64_at(&raw, h->field->offset);
	else if (h->field)
		value = cursor_u32_at(&raw, h->field->offset);
	/* Field by field: a temporary one would be copied while it is still being stored. */
	ev->pid = sample_known_id(cursor_u32_at(body, l->tid_pos));
	ev->tid = sample_known_id(cursor_u32_at(body, l->tid_pos + 4U));
	ev->cpu = (int32_t)cursor_u32_at(body, l->cpu_pos);
	ev->type = (uint16_t)h->type;
	ev->flags = 0;
	learn_tid(fp, h, &raw, ev->tid);
	if (h->kind == HANDLE_GIL) {
		ev->gil.address = value;
		ev->gil.frame = get_frame(fp, h, &raw);
	} else {
		ev->waking.tid = known_tid(fp, (uint32_t)value);
	}
	fp->source.stats.leftover_bytes += cursor_left(body) - end;
	return true;
}

static uint32_t unwind_stack(struct from_perf *fp, const struct header_event *e,
                             const struct sample *s)
{
	return fp->unwind.stack ? fp->unwind.stack(fp->unwind.ctx, e, s) : 0;
}

static void from_sched_switch(struct from_perf *fp, const struct handler *h,
                              const struct header_event *e, const struct sample *s,
                              struct event *ev)
{
	fill(ev, EV_SCHED_OUT, s);
	ev->sched.prev_state = task_state(number(h->field, s));
	ev->sched.next_tid = known_tid(fp, (uint32_t)number(h->field2, s));
	if (ev->sched.prev_state == EV_STATE_RUNNING)
		ev->flags = EVF_PREEMPT;
	ev->sched.stack = unwind_stack(fp, e, s);
}

/* perf counts each event on each CPU by itself: where a record does not say the CPU, its id does.
 */
static void find_cpu(const struct from_perf *fp, struct sample *s)
{
	const struct header_id *id = s->cpu < 0 ? header_find_id(fp->header, s->id) : NULL;

	if (id)
		s->cpu = id->cpu;
}

/* Any sample, field by field. */
__attribute__((noinline)) static bool full_sample(struct from_perf *fp, const struct handler *h,
                                                  const struct header_event *e,
                                                  const struct cursor *body, struct event *ev)
{
	struct sample s;

	if (!sample_decode(&s, &e->layout, *body))
		return false;
	find_cpu(fp, &s);
	learn_tid(fp, h, &s.raw, s.tid);
	fp->source.stats.leftover_bytes += s.leftover;
	switch (h->kind) {
	case HANDLE_GIL:
		fill(ev, h->type, &s);
		ev->gil.address = number(h->field, &s);
		ev->gil.frame = get_frame(fp, h, &s.raw);
		return true;
	case HANDLE_SCHED_SWITCH:
		from_sched_switch(fp, h, e, &s, ev);
		return true;
	case HANDLE_SCHED_WAKING:
		fill(ev, EV_WAKING, &s);
		ev->waking.tid = known_tid(fp, (uint32_t)number(h->field, &s));
		return true;
	case HANDLE_COUNT:
		fill(ev, EV_COUNT, &s);
		ev->count.counter = h->counter;
		ev->count.value = s.period ? s.period : e->attr.freq ? 0 : e->attr.sample_period;
		return true;
	case HANDLE_STACK:
		fill(ev, EV_STACK, &s);
		ev->stack.stack = unwind_stack(fp, e, &s);
		return true;
	default:
		return false;
	}
}

static bool from_sample(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev)
{
	const struct perf_header *header = fp->header;
	uint32_t index = header_event_of(header, true, &rec->body);
	const struct header_event *e;
	const struct handler *h;

	fp->source.stats.samples++;
	if (index == UINT32_MAX) {
		fp->unknown++;
		return false;
	}
	if (fp->generation != header->generation)
		make_handlers(fp);
	e = &header->events.v[index];
	h = &fp->handlers.v[index];
	if (h->kind == HANDLE_SKIP)
		return false;
	return (h->quick && quick_sample(fp, h, &e->layout, &rec->body, ev)) ||
	       full_sample(fp, h, e, &rec->body, ev);
}

/* What identifies a record that is no sample; *ret_body is what comes before. */
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
	find_cpu(fp, ret);
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
	/* Who had the cpu before, or gets it: sched_switch says that better. */
	if (rec->type == PERF_RECORD_SWITCH_CPU_WIDE)
		cursor_skip(body, 8);
	fill(ev, rec->misc & PERF_RECORD_MISC_SWITCH_OUT ? EV_SWITCH_OUT : EV_SWITCH_IN, s);
	if (ev->type == EV_SWITCH_OUT && rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
		ev->flags = EVF_PREEMPT;
	/* Thread 0 is the idle loop, or one past its end. */
	return finish(fp, body) && ev->tid;
}

static bool from_fork_exit(struct from_perf *fp, const struct perfdata_record *rec,
                           const struct sample *s, struct cursor *body, struct event *ev)
{
	uint32_t ppid, ptid;

	fill(ev, rec->type == PERF_RECORD_FORK ? EV_FORK : EV_EXIT, s);
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

	fill(ev, EV_COMM, s);
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

static uint64_t last_of_cpu(const struct from_perf *fp, int32_t cpu)
{
	uint64_t ns = cpu >= 0 && (size_t)cpu < fp->cpu_ns.n ? fp->cpu_ns.v[cpu] : 0;

	return ns ? ns : fp->first_ns;
}

/*
 * LOST: the ring buffer of a CPU was full, until now. LOST_SAMPLES with a time: the same, by the
 * hardware. LOST_SAMPLES without: what the kernel counted for one event over the whole
 * recording, which perf asks for at the end; most of it, or all, the LOST records have said.
 */
static bool from_lost(struct from_perf *fp, const struct perfdata_record *rec,
                      const struct sample *s, struct cursor *body, struct event *ev)
{
	const struct header_id *id = header_find_id(fp->header, s->id);
	bool total = rec->type == PERF_RECORD_LOST_SAMPLES && !s->time_ns;
	uint64_t count, known;

	if (rec->type == PERF_RECORD_LOST)
		cursor_skip(body, 8);
	count = cursor_u64(body);
	if (!finish(fp, body))
		return false;
	fill(ev, EV_LOST, s);
	ev->lost.since_ns = last_of_cpu(fp, s->cpu);
	if (total) {
		known = count < fp->lost_said ? count : fp->lost_said;
		fp->lost_said -= known;
		count -= known;
		ev->cpu = id ? id->cpu : -1;
		ev->lost.since_ns = fp->first_ns;
	} else {
		fp->lost_said += count;
	}
	fp->source.stats.lost += count;
	ev->lost.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	return count != 0;
}

static bool is_mapping(uint32_t type)
{
	return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM ||
	       type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT;
}

__attribute__((noinline)) static bool
from_other(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev)
{
	struct cursor body;
	struct sample s;

	if (!perfdata_type_name(rec->type)) {
		fp->unknown++;
		return false;
	}
	if (!decode_identity(fp, rec, &s, &body))
		return false;
	if (fp->unwind.record && is_mapping(rec->type))
		fp->unwind.record(fp->unwind.ctx, rec, &s);
	switch (rec->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return from_switch(fp, rec, &s, &body, ev);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return from_fork_exit(fp, rec, &s, &body, ev);
	case PERF_RECORD_COMM:
		return from_comm(fp, rec, &s, &body, ev);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return from_lost(fp, rec, &s, &body, ev);
	default:
		return false;
	}
}

static void remember_cpu(struct from_perf *fp, int32_t cpu, uint64_t time_ns)
{
	if (cpu < 0 || cpu >= MAX_CPUS)
		return;
	while ((size_t)cpu >= fp->cpu_ns.n)
		*vec_push(&fp->cpu_ns) = 0;
	fp->cpu_ns.v[cpu] = time_ns;
}

/* Events come in the order of time whatever the file says; what had to be moved is counted. */
static void stamp(struct from_perf *fp, struct event *ev, uint64_t time_ns)
{
	if (time_ns < fp->last_ns) {
		fp->source.stats.unordered++;
		time_ns = fp->last_ns;
	}
	fp->last_ns = time_ns;
	ev->time_ns = time_ns;
	if (ev->type == EV_LOST && ev->lost.since_ns > time_ns)
		ev->lost.since_ns = time_ns;
	remember_cpu(fp, ev->cpu, time_ns);
	fp->source.stats.events++;
}

static void update_stats(struct from_perf *fp)
{
	const struct perf_header_note *cut = perfdata_cut(fp->pd);
	struct source_stats *stats = &fp->source.stats;

	stats->records = order_records(fp->order);
	stats->unknown_records = fp->unknown + order_unknown(fp->order);
	if (cut) {
		stats->truncated_at = cut->offset;
		memcpy(stats->truncated_text, cut->text, sizeof(stats->truncated_text));
	}
}

static int from_perf_next(struct source *source, struct event *ret, struct error *err)
{
	struct from_perf *fp = (struct from_perf *)source;
	struct perfdata_record rec;
	uint64_t time_ns;

	(void)err;
	while (order_next(fp->order, &rec, &time_ns)) {
		bool is_sample = rec.type == PERF_RECORD_SAMPLE;

		if (!fp->first_ns)
			fp->first_ns = time_ns;
		if (!(is_sample ? from_sample(fp, &rec, ret) : from_other(fp, &rec, ret)))
			continue;
		stamp(fp, ret, time_ns);
		/* Not for each event: it is of interest to a progress line. */
		if (!(fp->source.stats.events % 4096))
			update_stats(fp);
		return 1;
	}
	update_stats(fp);
	return 0;
}

static void from_perf_close(struct source *source)
{
	struct from_perf *fp = (struct from_perf *)source;

	if (fp->unwind.close)
		fp->unwind.close(fp->unwind.ctx);
	vec_done(&fp->handlers);
	vec_done(&fp->counters);
	vec_done(&fp->cpu_ns);
	idmap_done(&fp->tids);
	order_free(fp->order);
	perfdata_close(fp->pd);
	perf_frames_free(fp->frames);
	stacks_free(source->frames);
	stacks_free(source->stacks);
	names_free(source->names);
	free(fp);
}

static void open_stacks(struct from_perf *fp, const struct from_perf_options *options)
{
	struct source *source = &fp->source;

	source->stacks = stacks_new(source->names);
	perf_stacks_open(&fp->unwind, perfdata_header(fp->pd), source->names, source->stacks,
	                 options->functions, options->function_count);
}

static int start(struct source **ret, struct perfdata *pd, const struct from_perf_options *options,
                 struct error *err)
{
	static const struct source_ops ops = { .next = from_perf_next, .close = from_perf_close };
	struct from_perf *fp = xcalloc(1, sizeof(*fp));

	(void)err;
	fp->source.ops = &ops;
	fp->source.names = names_new();
	fp->source.stats.bytes = perfdata_size(pd);
	fp->source.frames = stacks_new(fp->source.names);
	fp->frames = perf_frames_new(fp->source.names, fp->source.frames,
	                             options ? options->code : NULL);
	fp->pd = pd;
	fp->header = perfdata_header(pd);
	fp->order = order_new(pd);
	make_handlers(fp);
	if (options && options->unwind)
		open_stacks(fp, options);
	*ret = &fp->source;
	return 0;
}

int from_perf_open(struct source **ret, const char *path, const struct from_perf_options *options,
                   struct error *err)
{
	struct perfdata *pd;

	if (perfdata_open(&pd, path, err) < 0)
		return -1;
	return start(ret, pd, options, err);
}

int from_perf_open_memory(struct source **ret, const void *data, size_t size,
                          const struct from_perf_options *options, struct error *err)
{
	struct perfdata *pd;

	if (perfdata_open_memory(&pd, data, size, err) < 0)
		return -1;
	return start(ret, pd, options, err);
}
