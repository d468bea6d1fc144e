/* SPDX-License-Identifier: MIT */
/* Turns samples of perf into events: the GIL's probes, the scheduler's tracepoints, counters. */
#include <string.h>

#include "base/str.h"
#include "trace/perf/private.h"
#include "trace/names.h"

static const struct {
	const char *name;
	enum event_type type;
} gil_probes[] = {
	{ "take_gil", EV_REQUEST },      { "take_gil_ret", EV_ACQUIRE }, { "drop_gil", EV_RELEASE },
	{ "drop_gil_ret", EV_RELEASED }, { "save_thread", EV_SAVE },
};

static bool gil_handler(struct handler *ret, const struct tracefmt *fmt)
{
	for (size_t i = 0; i < sizeof(gil_probes) / sizeof(gil_probes[0]); i++) {
		if (!from_perf_is_probe(fmt->name, gil_probes[i].name))
			continue;
		ret->kind = HANDLE_GIL;
		ret->gil.type = gil_probes[i].type;
		ret->gil.address = tracefmt_find(fmt, "gil");
		ret->gil.frames = perf_frames_find(fmt);
		return true;
	}
	return false;
}

static void sched_handler(struct handler *ret, const struct tracefmt *fmt)
{
	if (!strcmp(fmt->name, "sched_switch")) {
		ret->kind = HANDLE_SCHED_SWITCH;
		ret->sched_switch.prev_state = tracefmt_find(fmt, "prev_state");
		ret->sched_switch.next_pid = tracefmt_find(fmt, "next_pid");
		ret->sched_switch.next_comm = tracefmt_find(fmt, "next_comm");
	} else if (!strcmp(fmt->name, "sched_waking")) {
		ret->kind = HANDLE_SCHED_WAKING;
		ret->waking.pid = tracefmt_find(fmt, "pid");
		ret->waking.target_cpu = tracefmt_find(fmt, "target_cpu");
	} else if (!strcmp(fmt->name, "sched_migrate_task")) {
		ret->kind = HANDLE_SCHED_MIGRATE;
		ret->migrate.pid = tracefmt_find(fmt, "pid");
		ret->migrate.orig_cpu = tracefmt_find(fmt, "orig_cpu");
		ret->migrate.dest_cpu = tracefmt_find(fmt, "dest_cpu");
	}
}

static struct handler tracepoint_handler(const struct tracefmt *fmt)
{
	struct handler h = { .kind = HANDLE_SKIP };

	if (!fmt)
		return h;
	h.common_pid = tracefmt_find(fmt, "common_pid");
	if (h.common_pid && h.common_pid->size != 4)
		h.common_pid = NULL;
	if (!strcmp(fmt->group, "sched"))
		sched_handler(&h, fmt);
	else if (str_has_prefix(fmt->group, "giltracer_"))
		gil_handler(&h, fmt);
	return h;
}

static bool is_number(const struct tracefmt_field *field, unsigned size)
{
	return field->kind == TRACEFMT_NUMBER && field->size == size;
}

static bool is_quick(const struct handler *h, const struct tracefmt_field *value,
                     const struct sample_layout *l)
{
	return l->plain && l->tid_pos != SAMPLE_NOWHERE && l->cpu_pos != SAMPLE_NOWHERE &&
	       (!value || is_number(value, 4) || is_number(value, 8)) &&
	       (h->kind != HANDLE_SCHED_WAKING || !h->waking.target_cpu ||
	        is_number(h->waking.target_cpu, 4));
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void prepare_quick(struct handler *h, const struct sample_layout *l)
{
	bool gil = h->kind == HANDLE_GIL;
	const struct tracefmt_field *value = gil ? h->gil.address : NULL;
	struct quick_sample *q = &h->quick;

	if (h->kind == HANDLE_SCHED_WAKING)
		value = h->waking.pid;
	else if (!gil)
		return;
	q->usable = is_quick(h, value, l);
	q->type = (uint16_t)(gil ? h->gil.type : EV_WAKING);
	if (value) {
		q->value = value->offset;
		q->value_size = (uint8_t)value->size;
		q->raw_end = value->offset + value->size;
	}
	if (h->common_pid)
		q->raw_end = max_u32(q->raw_end, h->common_pid->offset + 4U);
	q->body_size = max_u32(l->tid_pos + 8U, l->cpu_pos + 4U);
	q->body_size = max_u32(q->body_size, l->raw_pos + 4U + q->raw_end);
}

/* Whether the event is a clock that is recorded for its stacks only. */
static bool is_stack_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
	        attr->config == PERF_COUNT_SW_TASK_CLOCK) &&
	       attr->sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER);
}

/* An event that is a counter already keeps its number. */
static struct handler counter_handler(struct from_perf *fp, const struct header_event *e,
                                      const struct handler *before)
{
	struct handler h = { .kind = HANDLE_COUNT, .counter = before->counter };

	if (before->kind != HANDLE_COUNT) {
		h.counter = (uint32_t)fp->counters.n;
		*vec_push(&fp->counters) = NULL;
	}
	fp->counters.v[h.counter] = names_get(fp->source.names,
	                                      names_id(fp->source.names, e->name, strlen(e->name)));
	fp->source.counters = fp->counters.v;
	fp->source.counter_count = (uint32_t)fp->counters.n;
	return h;
}

static struct handler make_handler(struct from_perf *fp, const struct header_event *e,
                                   const struct handler *before)
{
	struct handler h = { .kind = HANDLE_SKIP };

	if (e->attr.type == PERF_TYPE_TRACEPOINT) {
		h = tracepoint_handler(e->format);
		prepare_quick(&h, &e->layout);
		return h;
	}
	if (is_stack_clock(&e->attr)) {
		h.kind = HANDLE_STACK;
		return h;
	}
	if (e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config == PERF_COUNT_SW_DUMMY)
		return h;
	return counter_handler(fp, e, before);
}

/* Handles only events that the header changed: in the pipe layout, a change may precede each
 * sample. */
void from_perf_update_handlers(struct from_perf *fp)
{
	const struct perf_header *header = fp->header;

	while (fp->handlers.n < header->events.n)
		*vec_push(&fp->handlers) = (struct handler){ .kind = HANDLE_SKIP };
	for (; fp->changes < header->changed.n; fp->changes++) {
		uint32_t event = header->changed.v[fp->changes];

		fp->handlers.v[event] = make_handler(fp, &header->events.v[event],
		                                     &fp->handlers.v[event]);
	}
}

/*
 * prev_state of sched_switch: since Linux 4.14 one bit of eight, and 0x100 for "preempted"; before,
 * the task's raw state, where 0x80 and higher bits only modify it (TASK_WAKEKILL, TASK_NOLOAD) and
 * the flag for "preempted" was 0x200 to 0x1000. The low bits mean the same in both. 0x80 alone is
 * an idle kernel thread, in an uninterruptible state that does not count as load.
 */
static uint32_t task_state(uint64_t prev_state)
{
	uint32_t low = (uint32_t)prev_state & 0x7f;

	return low || !(prev_state & 0x80) ? low : EV_STATE_UNINTERRUPTIBLE;
}

static uint64_t number(const struct tracefmt_field *field, const struct sample *s)
{
	return field ? tracefmt_number(field, &s->raw) : 0;
}

static int32_t cpu_number(const struct tracefmt_field *field, const struct sample *s)
{
	return field ? (int32_t)tracefmt_number(field, &s->raw) : -1;
}

/* In a pid namespace (a container), perf uses the namespace's thread ids, but tracepoints use
 * the host's. Each sample of a tracepoint has both for the running thread: tid and common_pid. */
static inline void learn_tid(struct from_perf *fp, uint32_t host, uint32_t tid)
{
	if (__builtin_expect(host != tid, 0) && host && tid && idmap_get(&fp->tids, host) != tid)
		idmap_set(&fp->tids, host, tid);
}

/* The id of a thread that a tracepoint names; 0 if the thread has not run yet, so that its id is
 * unknown, or is outside of the pid namespace, where it has none. */
static uint32_t known_tid(const struct from_perf *fp, uint32_t host)
{
	uint32_t tid;

	if (!fp->tids.n)
		return host;
	tid = idmap_get(&fp->tids, host);
	return tid == IDMAP_NONE ? 0 : tid;
}

static inline uint32_t get_frame(struct from_perf *fp, const struct handler *h,
                                 const struct cursor *raw)
{
	return h->gil.frames.count ? perf_frames_get(fp->frames, &h->gil.frames, raw) : 0;
}

/* The fast path for nearly all samples of a large recording: fixed offsets, one bounds check.
 * False: sample_decode has to decode the sample. */
static bool quick_sample(struct from_perf *fp, const struct handler *h,
                         const struct sample_layout *l, const struct cursor *body, struct event *ev)
{
	uint64_t value = 0, left = cursor_left(body), end;
	uint32_t raw_size;
	struct cursor raw;

	if (left < h->quick.body_size)
		return false;
	raw_size = cursor_u32_in(body, l->raw_pos);
	end = (uint64_t)l->raw_pos + 4 + raw_size;
	if (end > left || h->quick.raw_end > raw_size)
		return false;
	/* The members are assigned one by one, here and below: a temporary would be copied while
	 * it is still being stored, which stalls. */
	raw.p = body->p + l->raw_pos + 4;
	raw.end = raw.p + raw_size;
	raw.bad = false;
	if (h->quick.value_size == 8)
		value = cursor_u64_in(&raw, h->quick.value);
	else if (h->quick.value_size)
		value = cursor_u32_in(&raw, h->quick.value);
	ev->pid = sample_known_id(cursor_u32_in(body, l->tid_pos));
	ev->tid = sample_known_id(cursor_u32_in(body, l->tid_pos + 4U));
	ev->cpu = (int32_t)cursor_u32_in(body, l->cpu_pos);
	ev->type = h->quick.type;
	ev->flags = 0;
	if (h->common_pid)
		learn_tid(fp, cursor_u32_in(&raw, h->common_pid->offset), ev->tid);
	if (h->kind == HANDLE_GIL) {
		ev->gil.address = value;
		ev->gil.frame = get_frame(fp, h, &raw);
	} else {
		ev->waking.tid = known_tid(fp, (uint32_t)value);
		ev->waking.cpu = h->waking.target_cpu ? (int32_t)cursor_u32_at(
								&raw, h->waking.target_cpu->offset)
		                                      : -1;
	}
	fp->source.stats.leftover_bytes += left - end;
	return true;
}

static uint32_t unwind_stack(struct from_perf *fp, const struct header_event *e,
                             const struct sample *s)
{
	return fp->unwind_now ? fp->unwind.stack(fp->unwind.ctx, e, s) : 0;
}

static uint32_t next_name(struct from_perf *fp, const struct handler *h, const struct sample *s)
{
	size_t len = 0;
	const struct tracefmt_field *field = h->sched_switch.next_comm;
	const char *text = field ? tracefmt_text(field, &s->raw, &len) : NULL;

	return text ? names_id(fp->source.names, text, len) : 0;
}

static void from_sched_switch(struct from_perf *fp, const struct handler *h,
                              const struct header_event *e, const struct sample *s,
                              struct event *ev)
{
	uint32_t next = (uint32_t)number(h->sched_switch.next_pid, s);

	from_perf_fill(ev, EV_SCHED_OUT, s);
	ev->sched.prev_state = task_state(number(h->sched_switch.prev_state, s));
	ev->sched.next_tid = known_tid(fp, next);
	if (ev->sched.prev_state == EV_STATE_RUNNING)
		ev->flags = EVF_PREEMPT;
	if (fp->machine) {
		ev->type = EV_PICK;
		/* A thread outside of the pid namespace has a name, but no id. */
		ev->sched.next_name = next ? next_name(fp, h, s) : 0;
		return;
	}
	ev->sched.stack = unwind_stack(fp, e, s);
}

/* Decodes any sample, field by field. */
__attribute__((noinline)) static bool full_sample(struct from_perf *fp, const struct handler *h,
                                                  const struct header_event *e,
                                                  const struct perfdata_record *rec,
                                                  struct event *ev)
{
	struct sample s;

	if (!sample_decode(&s, &e->layout, rec->body))
		return false;
	from_perf_find_cpu(fp, &s);
	if (h->common_pid)
		learn_tid(fp, cursor_u32_at(&s.raw, h->common_pid->offset), s.tid);
	fp->source.stats.leftover_bytes += s.leftover;
	switch (h->kind) {
	case HANDLE_GIL:
		from_perf_fill(ev, h->gil.type, &s);
		ev->gil.address = number(h->gil.address, &s);
		ev->gil.frame = get_frame(fp, h, &s.raw);
		return true;
	case HANDLE_SCHED_SWITCH:
		from_sched_switch(fp, h, e, &s, ev);
		return true;
	case HANDLE_SCHED_WAKING:
		from_perf_fill(ev, EV_WAKING, &s);
		ev->waking.tid = known_tid(fp, (uint32_t)number(h->waking.pid, &s));
		ev->waking.cpu = cpu_number(h->waking.target_cpu, &s);
		return true;
	case HANDLE_SCHED_MIGRATE:
		from_perf_fill(ev, EV_MOVE, &s);
		ev->move.tid = known_tid(fp, (uint32_t)number(h->migrate.pid, &s));
		ev->move.from = cpu_number(h->migrate.orig_cpu, &s);
		ev->move.to = cpu_number(h->migrate.dest_cpu, &s);
		return true;
	case HANDLE_COUNT:
		from_perf_fill(ev, EV_COUNT, &s);
		ev->count.counter = h->counter;
		ev->count.value = s.period ? s.period : e->attr.freq ? 0 : e->attr.sample_period;
		return true;
	case HANDLE_STACK:
		from_perf_fill(ev, EV_STACK, &s);
		ev->stack.record = rec->offset;
		ev->stack.stack = unwind_stack(fp, e, &s);
		return true;
	default:
		return false;
	}
}

bool from_perf_sample(struct from_perf *fp, const struct perfdata_record *rec, struct event *ev)
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
	if (fp->changes != header->changed.n)
		from_perf_update_handlers(fp);
	e = &header->events.v[index];
	h = &fp->handlers.v[index];
	if (h->kind == HANDLE_SKIP)
		return false;
	return (h->quick.usable && quick_sample(fp, h, &e->layout, &rec->body, ev)) ||
	       full_sample(fp, h, e, rec, ev);
}
