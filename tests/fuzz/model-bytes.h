/* SPDX-License-Identifier: MIT */
/*
 * Turns bytes into events: any bytes are a sequence, four bytes for an event, so that a fuzzer and
 * a random test reach every order of events with few threads, processes, CPUs and GILs. The first
 * two bytes choose the options, and whether time passes by nanoseconds or by tens of microseconds.
 */
#ifndef GILTRACER_TESTS_MODEL_BYTES_H
#define GILTRACER_TESTS_MODEL_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "trace/names.h"

/* Bytes: type and flags, thread, argument, time since the last event (top bit: back). */
static struct event event_from_bytes(const uint8_t *b, uint64_t *now, unsigned shift)
{
	static const uint32_t states[] = { 0, 1, 2, 4, 0x100, 0x402 };
	uint32_t tid = b[1] & 15, arg = b[2];
	struct event ev = { .pid = tid < 8 ? 2 : 10,
		            .tid = tid,
		            .cpu = (int32_t)(b[1] >> 4 & 3) - 1,
		            .type = (uint16_t)(b[0] % (EV_MOVE + 1)),
		            .flags = b[1] >> 6 };

	if (b[1] >> 7 && b[2] >> 7)
		ev.pid = arg & 15;
	*now += (uint64_t)(b[3] & 0x7f) << shift;
	ev.time_ns = b[3] & 0x80 && *now > 60 ? *now - 60 : *now;
	switch (ev.type) {
	case EV_REQUEST:
	case EV_RELEASE:
		ev.gil.address = arg & 3 ? 0x1000 * (arg & 3) : 0;
		ev.gil.overdue_us = 2000;
		break;
	case EV_PARK:
	case EV_UNPARK:
		ev.park.address = 0x2000 + (arg & 3);
		ev.park.kind = arg >> 2 & 3 ? arg >> 2 & 1 : PARK_WORLD;
		break;
	case EV_HOLDER:
		ev.holder.tid = arg & 15;
		break;
	case EV_SCHED_OUT:
		ev.sched.prev_state = states[arg % 6];
		ev.sched.next_tid = arg & 0x80 ? arg & 15 : 0;
		break;
	case EV_PICK:
		ev.sched.next_tid = arg & 15;
		ev.sched.next_name = arg >> 4;
		break;
	case EV_MOVE:
		ev.move.tid = arg & 15;
		ev.move.from = (int32_t)(arg >> 4 & 3) - 1;
		ev.move.to = (int32_t)(arg >> 6) - 1;
		break;
	case EV_WAKING:
		ev.waking.tid = arg & 15;
		break;
	case EV_FORK:
		ev.fork.parent_tid = arg & 15;
		ev.fork.parent_pid = arg & 16 ? ev.pid : 2;
		break;
	case EV_PYTHON:
		ev.flags = arg & 1 ? EVF_RECORDED : 0;
		break;
	case EV_LOST:
		ev.lost.count = arg;
		ev.lost.since_ns = ev.time_ns > arg ? ev.time_ns - arg : 0;
		break;
	}
	return ev;
}

/* A finished model; caller frees it. names is borrowed. */
static struct model *model_from_bytes(const uint8_t *data, size_t size, const struct names *names)
{
	uint64_t now = 1000;
	uint8_t how = size ? data[0] : 0, end = size > 1 ? data[1] : 0;
	unsigned shift = how & 8 ? 14 : 0;
	struct model_options options = {
		.start_ns = how & 1 ? 1000 + (how >> 4) : 0,
		.end_ns = end ? 1000 + ((uint64_t)end * 64 << shift) : 0,
		.start_tid = how & 2 ? 2 : 0,
		.start_pid = how & 4 ? 2 : 0,
		.all_releases = how & 16,
		.gil_off = how & 32,
		.requests_known = how & 64,
		.names = names,
	};
	struct model *m = model_new(&options);

	for (size_t i = 2; i + 4 <= size; i += 4) {
		struct event ev = event_from_bytes(data + i, &now, shift);

		model_feed(m, &ev);
	}
	model_finish(m);
	return m;
}

#endif
