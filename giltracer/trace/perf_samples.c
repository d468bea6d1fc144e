/* SPDX-License-Identifier: MIT */
/* A sample of a perf event -> event: the GIL's probes, the scheduler's tracepoints, counters. */
#include <string.h>

#include "base/str.h"
#include "trace/from_perf_internal.h"
#include "trace/names.h"

static const struct {
	const char *name;
	enum event_type type;
} gil_probes[] = {
	{ "take_gil", EV_REQUEST },      { "take_gil_ret", EV_ACQUIRE }, { "drop_gil", EV_RELEASE },
	{ "drop_gil_ret", EV_RELEASED }, { "save_thread", EV_SAVE },
};

/* Whether name is word or word_N: one of several probes for the same function. */
bool from_perf_is_probe(const char *name, const char *word)
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
		h.field3 = tracefmt_find(fmt, "next_comm");
	} else if (!strcmp(fmt->group, "sched") && !strcmp(fmt->name, "sched_waking")) {
		h.kind = HANDLE_SCHED_WAKING;
		h.type = EV_WAKING;
		h.field = tracefmt_find(fmt, "pid");
		h.field2 = tracefmt_find(fmt, "target_cpu");
	} else if (!strcmp(fmt->group, "sched") && !strcmp(fmt->name, "sched_migrate_task")) {
		h.kind = HANDLE_SCHED_MIGRATE;
		h.field = tracefmt_find(fmt, "pid");
		h.field2 = tracefmt_find(fmt, "orig_cpu");
		h.field3 = tracefmt_find(fmt, "dest_cpu");
	} else if (str_has_prefix(fmt->group, "giltracer_")) {
		for (size_t i = 0; i < sizeof(gil_probes) / sizeof(gil_probes[0]); i++) {
			if (!from_perf_is_probe(fmt->name, gil_probes[i].name))
				continue;
			h.kind = HANDLE_GIL;
			h.type = gil_probes[i].type;
			h.field = tracefmt_find(fmt, "gil");
			h.on = tracefmt_find(fmt, "on");
			h.frames = perf_frames_find(fmt);
		}
		if (h.kind == HANDLE_SKIP)
			from_perf_park_handler(fmt, &h);
	}
	return h;
}

static bool is_quick(const struct handler *h, const struct sample_layout *l)
{
	return ((h->kind == HANDLE_GIL && !h->on) || h->kind == HANDLE_SCHED_WAKING) && l->plain &&
	       l->tid_pos != SAMPLE_NOWHERE && l->cpu_pos != SAMPLE_NOWHERE &&
	       (!h->field || (h->field->kind == TRACEFMT_NUMBER &&
	                      (h->field->size == 4 || h->field->size == 8))) &&
	       (!h->field2 || (h->field2->kind == TRACEFMT_NUMBER && h->field2->size == 4));
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void prepare_quick(struct handler *h, const struct sample_layout *l)
{
	uint32_t size;

	h->quick = is_quick(h, l);
	if (!h->quick)
		return;
	if (h->field)
		h->field_end = h->field->offset + h->field->size;
	if (h->common_pid)
		h->field_end = max_u32(h->field_end, h->common_pid->offset + 4U);
	size = max_u32(l->tid_pos + 8U, l->cpu_pos + 4U);
	h->quick_size = max_u32(size, l->raw_pos + 4U + h->field_end);
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
		prepare_quick(&h, &e->layout);
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
void from_perf_make_handlers(struct from_perf *fp)
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

static uint64_t number(const struct tracefmt_field *field, const struct sample *s)
{
	return field ? tracefmt_number(field, &s->raw) : 0;
}

static int32_t cpu_number(const struct tracefmt_field *field, const struct sample *s)
{
	return field ? (int32_t)tracefmt_number(field, &s->raw) : -1;
}

/*
 * In a pid namespace (a container), perf names threads as the namespace does, but tracepoints as
 * the host does. Each sample of a tracepoint has both for the thread that ran: tid and
 * common_pid.
 */
static inline void learn_tid(struct from_perf *fp, uint32_t host, uint32_t tid)
{
	if (__builtin_expect(host != tid, 0) && host && tid && idmap_get(&fp->tids, host) != tid)
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

static inline uint32_t get_frame(struct from_perf *fp, const struct handler *h,
                                 const struct cursor *raw)
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
	uint64_t value = 0, left = cursor_left(body), end;
	uint32_t raw_size;
	struct cursor raw;

	if (left < h->quick_size)
		return false;
	raw_size = cursor_u32_in(body, l->raw_pos);
	end = (uint64_t)l->raw_pos + 4 + raw_size;
	if (end > left || h->field_end > raw_size)
		return false;
	/* Field by field, here and below: a temporary would be copied while it is being stored. */
	raw.p = body->p + l->raw_pos + 4;
	raw.end = raw.p + raw_size;
	raw.bad = false;
	if (h->field && h->field->size == 8)
		value = cursor_u64_in(&raw, h->field->offset);
	else if (h->field)
		value = cursor_u32_in(&raw, h->field->offset);
	ev->pid = sample_known_id(cursor_u32_in(body, l->tid_pos));
	ev->tid = sample_known_id(cursor_u32_in(body, l->tid_pos + 4U));
	ev->cpu = (int32_t)cursor_u32_in(body, l->cpu_pos);
	ev->type = (uint16_t)h->type;
	ev->flags = 0;
	if (h->common_pid)
		learn_tid(fp, cursor_u32_in(&raw, h->common_pid->offset), ev->tid);
	if (h->kind == HANDLE_GIL) {
		ev->gil.address = value;
		ev->gil.frame = get_frame(fp, h, &raw);
	} else {
		ev->waking.tid = known_tid(fp, (uint32_t)value);
		ev->waking.cpu = h->field2 ? (int32_t)cursor_u32_at(&raw, h->field2->offset) : -1;
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
	const char *text = h->field3 ? tracefmt_text(h->field3, &s->raw, &len) : NULL;

	return text ? names_id(fp->source.names, text, len) : 0;
}

static void from_sched_switch(struct from_perf *fp, const struct handler *h,
                              const struct header_event *e, const struct sample *s,
                              struct event *ev)
{
	from_perf_fill(ev, EV_SCHED_OUT, s);
	ev->sched.prev_state = task_state(number(h->field, s));
	ev->sched.next_tid = known_tid(fp, (uint32_t)number(h->field2, s));
	if (ev->sched.prev_state == EV_STATE_RUNNING)
		ev->flags = EVF_PREEMPT;
	if (fp->machine) {
		ev->type = EV_PICK;
		ev->sched.next_name = ev->sched.next_tid ? next_name(fp, h, s) : 0;
		return;
	}
	ev->sched.stack = unwind_stack(fp, e, s);
}

/* Any sample, field by field. */
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
		from_perf_fill(ev, h->type, &s);
		ev->gil.address = number(h->field, &s);
		ev->gil.frame = get_frame(fp, h, &s.raw);
		ev->flags = from_perf_gil_flags(fp, h, &s.raw, ev->gil.frame);
		return true;
	case HANDLE_PARK:
	case HANDLE_GIL_MODULE:
	case HANDLE_GIL_ON:
		return from_perf_park_sample(fp, h, &s, ev);
	case HANDLE_SCHED_SWITCH:
		from_sched_switch(fp, h, e, &s, ev);
		return true;
	case HANDLE_SCHED_WAKING:
		from_perf_fill(ev, EV_WAKING, &s);
		ev->waking.tid = known_tid(fp, (uint32_t)number(h->field, &s));
		ev->waking.cpu = cpu_number(h->field2, &s);
		return true;
	case HANDLE_SCHED_MIGRATE:
		from_perf_fill(ev, EV_MOVE, &s);
		ev->move.tid = known_tid(fp, (uint32_t)number(h->field, &s));
		ev->move.from = cpu_number(h->field2, &s);
		ev->move.to = cpu_number(h->field3, &s);
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
	if (fp->generation != header->generation)
		from_perf_make_handlers(fp);
	e = &header->events.v[index];
	h = &fp->handlers.v[index];
	if (h->kind == HANDLE_SKIP)
		return false;
	return (h->quick && quick_sample(fp, h, &e->layout, &rec->body, ev)) ||
	       full_sample(fp, h, e, rec, ev);
}
