/* SPDX-License-Identifier: MIT */
/* sample_type -> the fields of records, and their places. */
#include "perf_sample.h"

#include <linux/perf_event.h>

#define BRANCH_COUNTERS (1U << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8 */

/* Identity fields of a trailer in the order of the ABI, 8 bytes each. */
static const uint64_t trailer_fields[] = {
	PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,  PERF_SAMPLE_IDENTIFIER,
};

static void layout_trailer(struct sample_layout *l)
{
	uint16_t back = 0;

	for (int i = (int)(sizeof(trailer_fields) / sizeof(trailer_fields[0])) - 1; i >= 0; i--) {
		if (!(l->sample_type & trailer_fields[i]))
			continue;
		back += 8;
		if (trailer_fields[i] == PERF_SAMPLE_TIME)
			l->trailer_time = back;
		if (trailer_fields[i] == PERF_SAMPLE_TID)
			l->trailer_tid = back;
		if (trailer_fields[i] == PERF_SAMPLE_CPU)
			l->trailer_cpu = back;
		if (trailer_fields[i] == PERF_SAMPLE_IDENTIFIER ||
		    (trailer_fields[i] == PERF_SAMPLE_ID && l->trailer_id == SAMPLE_NOWHERE))
			l->trailer_id = back;
	}
	l->trailer = back;
}

/* Fields of fixed size that come first, in the order of the ABI, 8 bytes each. */
static const uint64_t head_fields[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,       PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
};

static void layout_head(struct sample_layout *l)
{
	uint64_t all = PERF_SAMPLE_RAW;
	uint16_t pos = 0;

	for (size_t i = 0; i < sizeof(head_fields) / sizeof(head_fields[0]); i++) {
		uint64_t field = head_fields[i];

		all |= field;
		if (!(l->sample_type & field))
			continue;
		if (field == PERF_SAMPLE_TIME)
			l->time_pos = pos;
		if (field == PERF_SAMPLE_TID)
			l->tid_pos = pos;
		if (field == PERF_SAMPLE_CPU)
			l->cpu_pos = pos;
		if (field == PERF_SAMPLE_IDENTIFIER ||
		    (field == PERF_SAMPLE_ID && l->id_pos == SAMPLE_NOWHERE))
			l->id_pos = pos;
		pos += 8;
	}
	l->plain = l->sample_type & PERF_SAMPLE_RAW && !(l->sample_type & ~all);
	if (l->plain)
		l->raw_pos = pos;
}

void sample_layout_init(struct sample_layout *ret, const struct perf_event_attr *attr)
{
	*ret = (struct sample_layout){
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.branch_sample_type = attr->branch_sample_type,
		.regs_user = attr->sample_regs_user,
		.regs_intr = attr->sample_regs_intr,
		.id_pos = SAMPLE_NOWHERE,
		.time_pos = SAMPLE_NOWHERE,
		.tid_pos = SAMPLE_NOWHERE,
		.cpu_pos = SAMPLE_NOWHERE,
		.raw_pos = SAMPLE_NOWHERE,
		.trailer_id = SAMPLE_NOWHERE,
		.trailer_time = SAMPLE_NOWHERE,
		.trailer_tid = SAMPLE_NOWHERE,
		.trailer_cpu = SAMPLE_NOWHERE,
	};
	layout_head(ret);
	if (attr->sample_id_all)
		layout_trailer(ret);
}

static void decode_tid(struct sample *s, struct cursor *c)
{
	s->pid = sample_known_id(cursor_u32(c));
	s->tid = sample_known_id(cursor_u32(c));
}

static void decode_cpu(struct sample *s, struct cursor *c)
{
	s->cpu = (int32_t)cursor_u32(c);
	cursor_u32(c);
}

/* n elements of size bytes; n is from the file. */
static struct cursor sub_array(struct cursor *c, uint64_t n, uint64_t size)
{
	return cursor_sub(c, n > cursor_left(c) / size ? UINT64_MAX : n * size);
}

/* struct read_format; its length depends on its own nr if it is a group. */
static struct cursor decode_read(struct cursor *c, uint64_t format)
{
	uint64_t id = !!(format & PERF_FORMAT_ID), lost = !!(format & PERF_FORMAT_LOST);
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
	                 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	struct cursor start = *c;

	if (format & PERF_FORMAT_GROUP) {
		uint64_t nr = cursor_u64(c);

		cursor_skip(c, times * 8);
		sub_array(c, nr, (1 + id + lost) * 8);
	} else {
		cursor_skip(c, (1 + times + id + lost) * 8);
	}
	start.end = c->p;
	return start;
}

static void skip_branches(struct cursor *c, uint64_t branch_sample_type)
{
	uint64_t nr = cursor_u64(c);

	if (branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		cursor_skip(c, 8);
	sub_array(c, nr, 24);
	if (branch_sample_type & BRANCH_COUNTERS)
		sub_array(c, nr, 8);
}

static struct cursor decode_regs(struct cursor *c, uint64_t *ret_abi, uint64_t mask)
{
	uint64_t abi = cursor_u64(c);

	*ret_abi = abi;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return (struct cursor){ .p = c->p, .end = c->p };
	return cursor_sub(c, (uint64_t)__builtin_popcountll(mask) * 8);
}

static struct cursor decode_stack(struct cursor *c)
{
	uint64_t size = cursor_u64(c), copied;
	struct cursor stack = cursor_sub(c, size);

	/* Without user space there is neither a dump nor the length after it. */
	if (!size)
		return stack;
	copied = cursor_u64(c);
	if (copied < cursor_left(&stack))
		stack.end = stack.p + copied;
	return stack;
}

/* Skips the fields after the stack dump, which we do not use; they must be complete, though. */
static void skip_rest(struct cursor *c, const struct sample_layout *l)
{
	uint64_t abi;

	if (l->sample_type & PERF_SAMPLE_WEIGHT_TYPE)
		cursor_skip(c, 8);
	if (l->sample_type & PERF_SAMPLE_DATA_SRC)
		cursor_skip(c, 8);
	if (l->sample_type & PERF_SAMPLE_TRANSACTION)
		cursor_skip(c, 8);
	if (l->sample_type & PERF_SAMPLE_REGS_INTR)
		decode_regs(c, &abi, l->regs_intr);
	if (l->sample_type & PERF_SAMPLE_PHYS_ADDR)
		cursor_skip(c, 8);
	if (l->sample_type & PERF_SAMPLE_CGROUP)
		cursor_skip(c, 8);
	if (l->sample_type & PERF_SAMPLE_DATA_PAGE_SIZE)
		cursor_skip(c, 8);
	if (l->sample_type & PERF_SAMPLE_CODE_PAGE_SIZE)
		cursor_skip(c, 8);
	if (l->sample_type & PERF_SAMPLE_AUX)
		cursor_skip(c, cursor_u64(c));
}

static void decode_identity(struct sample *ret, uint64_t type, struct cursor *c)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = cursor_u64(c);
	if (type & PERF_SAMPLE_IP)
		ret->ip = cursor_u64(c);
	if (type & PERF_SAMPLE_TID)
		decode_tid(ret, c);
	if (type & PERF_SAMPLE_TIME)
		ret->time_ns = cursor_u64(c);
	if (type & PERF_SAMPLE_ADDR)
		ret->addr = cursor_u64(c);
	if (type & PERF_SAMPLE_ID)
		ret->id = cursor_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		ret->stream_id = cursor_u64(c);
	if (type & PERF_SAMPLE_CPU)
		decode_cpu(ret, c);
	if (type & PERF_SAMPLE_PERIOD)
		ret->period = cursor_u64(c);
}

bool sample_decode(struct sample *ret, const struct sample_layout *l, struct cursor body)
{
	uint64_t type = l->sample_type;
	struct cursor *c = &body;

	*ret = (struct sample){ .cpu = -1 };
	decode_identity(ret, type, c);
	if (type & PERF_SAMPLE_READ)
		ret->read = decode_read(c, l->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		ret->callchain = sub_array(c, cursor_u64(c), 8);
	if (type & PERF_SAMPLE_RAW)
		ret->raw = cursor_sub(c, cursor_u32(c));
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(c, l->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		ret->regs = decode_regs(c, &ret->regs_abi, l->regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		ret->stack = decode_stack(c);
	skip_rest(c, l);
	ret->leftover = (uint32_t)cursor_left(c);
	return !c->bad;
}

bool sample_decode_trailer(struct sample *ret, const struct sample_layout *l,
                           const struct cursor *body)
{
	struct cursor c;
	uint64_t type = l->sample_type;

	*ret = (struct sample){ .cpu = -1 };
	if (!l->trailer)
		return true;
	if (cursor_left(body) < l->trailer)
		return false;
	c.p = body->end - l->trailer;
	c.end = body->end;
	c.bad = false;
	if (type & PERF_SAMPLE_TID)
		decode_tid(ret, &c);
	if (type & PERF_SAMPLE_TIME)
		ret->time_ns = cursor_u64(&c);
	if (type & PERF_SAMPLE_ID)
		ret->id = cursor_u64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		ret->stream_id = cursor_u64(&c);
	if (type & PERF_SAMPLE_CPU)
		decode_cpu(ret, &c);
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = cursor_u64(&c);
	return true;
}
