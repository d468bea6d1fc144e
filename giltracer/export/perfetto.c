/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's TrackEvent protobuf. A thread has its calls on its own track, and its GIL and CPU
 * states on tracks below; a GIL has a track of its owners and one with the number of waiting
 * threads. An arrow leads from a wait to the thread that held the GIL when the wait began, where it
 * ends in an instant event. Another one leads from the release of a lock, or the sending of a signal, to
 * the end of the wait. Everything is one packet sequence; each name is written once, before
 * its first use.
 */
#include "export/export.h"

#ifdef HAVE_PROTOBUF_C
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "base/str.h"
#include "export/walk.h"
#include "proto/perfetto.pb-c.h"
#include "trace/names.h"
#include "trace/stacks.h"

#define SEQUENCE      1
#define CLOCK         3 /* BUILTIN_CLOCK_MONOTONIC */
#define STATE_CLEARED 1 /* SEQ_INCREMENTAL_STATE_CLEARED */
#define NEEDS_STATE   2 /* SEQ_NEEDS_INCREMENTAL_STATE */
#define BUFFER_BYTES  (256 << 10)
#define PACKET_BYTES  256 /* of a packet without text: its eight numbers need less */

/* Ids of names: states, the ends of flows, waits for signals, "records lost", then calls, then threads. */
#define NAME_STATES   1
#define NAME_RELEASES 26
#define NAME_GETS     27
#define NAME_WAKES    28
#define NAME_SIGNAL   29
#define NAME_ASKED    30
#define NAME_LOST     31
#define NAME_CALLS    32

_Static_assert(NAME_STATES + GIL_STATES + CPU_STATES <= NAME_RELEASES, "states have names");

/* Tracks. */
#define TRACK_LOST      1
#define TRACK_THREADS   16 /* the first; four for each thread */
#define TRACK_GILS      (UINT64_C(1) << 36)
#define TRACK_PROCESSES (UINT64_C(1) << 40)
enum { TRACK_CALLS, TRACK_GIL, TRACK_CPU };

/**
 * @packet, @event: reused for all packets without text
 * @names, @places: whether a name or a source location has been written, by number
 * @processes: by pid
 */
struct perfetto {
	FILE *out;
	const struct analysis *a;
	Perfetto__TracePacket packet;
	Perfetto__TrackEvent event;
	uint64_t flow;
	uint64_t threads_from;
	bool *names, *places;
	struct idmap processes;
	size_t used;
	uint8_t buffer[BUFFER_BYTES];
};

static void flush(struct perfetto *p)
{
	fwrite_unlocked(p->buffer, 1, p->used, p->out);
	p->used = 0;
}

/* For packets of less than PACKET_BYTES. */
static void put_small(struct perfetto *p, Perfetto__TracePacket *packet)
{
	Perfetto__Trace trace = PERFETTO__TRACE__INIT;

	trace.n_packet = 1;
	trace.packet = &packet;
	if (p->used + PACKET_BYTES > BUFFER_BYTES)
		flush(p);
	p->used += perfetto__trace__pack(&trace, p->buffer + p->used);
}

static void put_large(struct perfetto *p, Perfetto__TracePacket *packet)
{
	Perfetto__Trace trace = PERFETTO__TRACE__INIT;
	CLEANUP(free) uint8_t *bytes = NULL;
	size_t size;

	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	trace.n_packet = 1;
	trace.packet = &packet;
	flush(p);
	bytes = xcalloc(perfetto__trace__get_packed_size(&trace), 1);
	size = perfetto__trace__pack(&trace, bytes);
	fwrite_unlocked(bytes, 1, size, p->out);
}

static void put_interned(struct perfetto *p, Perfetto__InternedData *data)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.interned_data = data;
	packet.has_sequence_flags = true;
	packet.sequence_flags = NEEDS_STATE;
	put_large(p, &packet);
}

static void intern_name(struct perfetto *p, uint64_t iid, const char *name)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__EventName event = PERFETTO__EVENT_NAME__INIT, *events = &event;
	CLEANUP(free) char *text = NULL;

	if (p->names[iid])
		return;
	p->names[iid] = true;
	text = place_text(name);
	event.has_iid = true;
	event.iid = iid;
	event.name = text;
	data.n_event_names = 1;
	data.event_names = &events;
	put_interned(p, &data);
}

static void intern_place(struct perfetto *p, uint32_t frame)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__SourceLocation place = PERFETTO__SOURCE_LOCATION__INIT, *places = &place;
	struct function f = function_at(p->a->pass, frame);
	CLEANUP(free) char *name = NULL;
	CLEANUP(free) char *file = NULL;

	if (p->places[frame])
		return;
	p->places[frame] = true;
	name = place_text(f.name ? f.name : "");
	file = place_text(f.file);
	place.has_iid = true;
	place.iid = frame;
	place.function_name = name;
	place.file_name = file;
	place.has_line_number = f.line != 0;
	place.line_number = f.line;
	data.n_source_locations = 1;
	data.source_locations = &places;
	put_interned(p, &data);
}

static void put_begin(struct perfetto *p, uint64_t track, uint64_t start_ns, uint64_t name)
{
	p->packet.timestamp = start_ns;
	p->event.type = PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN;
	p->event.track_uuid = track;
	p->event.has_name_iid = true;
	p->event.name_iid = name;
	put_small(p, &p->packet);
}

static void put_end(struct perfetto *p, uint64_t end_ns)
{
	p->packet.timestamp = end_ns;
	p->event.type = PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	p->event.has_name_iid = false;
	p->event.has_source_location_iid = false;
	p->event.n_flow_ids = 0;
	put_small(p, &p->packet);
}

static uint64_t thread_track(uint32_t thread, unsigned which)
{
	return TRACK_THREADS + 4 * (uint64_t)thread + which;
}

static void put_track(struct perfetto *p, Perfetto__TrackDescriptor *track, uint64_t uuid,
                      uint64_t parent)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	track->has_uuid = true;
	track->uuid = uuid;
	track->has_parent_uuid = parent != 0;
	track->parent_uuid = parent;
	packet.track_descriptor = track;
	put_large(p, &packet);
}

static void put_child_track(struct perfetto *p, uint64_t uuid, uint64_t parent, const char *name)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	CLEANUP(free) char *text = place_text(name);

	track.name = text;
	put_track(p, &track, uuid, parent);
}

/* The first process has the name of the recorded program. */
static uint64_t process_track(struct perfetto *p, uint32_t pid)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	const char *const *command = p->a->recording->command;
	CLEANUP(free) char *name = NULL;

	if (idmap_get(&p->processes, pid) != IDMAP_NONE)
		return TRACK_PROCESSES + pid;
	name = place_text(command && *command && !p->processes.n ? *command : "python");
	idmap_set(&p->processes, pid, 0);
	process.has_pid = true;
	process.pid = (int32_t)pid;
	process.process_name = name;
	track.process = &process;
	put_track(p, &track, TRACK_PROCESSES + pid, 0);
	return TRACK_PROCESSES + pid;
}

static void put_thread(void *data, uint32_t index)
{
	struct perfetto *p = data;
	const struct model_thread *t = &p->a->model->threads.v[index];
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
	CLEANUP(free) char *name = place_text(facts_thread_name(p->a->pass, index));
	uint64_t uuid = thread_track(index, TRACK_CALLS);

	thread.has_pid = true;
	thread.pid = (int32_t)t->pid;
	thread.has_tid = true;
	thread.tid = t->tid;
	thread.thread_name = name;
	track.thread = &thread;
	put_track(p, &track, uuid, process_track(p, t->pid));
	put_child_track(p, thread_track(index, TRACK_GIL), uuid, "GIL");
	if (t->cpu_ns[CPU_UNKNOWN] != t->end_ns - t->start_ns)
		put_child_track(p, thread_track(index, TRACK_CPU), uuid, "CPU");
}

static void put_call(void *data, uint32_t thread, const struct slice *call)
{
	struct perfetto *p = data;
	uint64_t name = NAME_CALLS + (uint64_t)call->name;

	intern_name(p, name, names_get(p->a->pass->slices->names, call->name));
	put_begin(p, thread_track(thread, TRACK_CALLS), call->start_ns, name);
	put_end(p, call->start_ns + call->dur_ns);
}

/* An end of the arrow that was begun last. */
static void put_instant(struct perfetto *p, uint32_t thread, uint64_t at_ns, uint64_t iid,
                        const char *name)
{
	intern_name(p, iid, name);
	p->packet.timestamp = at_ns;
	p->event.type = PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT;
	p->event.track_uuid = thread_track(thread, TRACK_GIL);
	p->event.has_name_iid = true;
	p->event.name_iid = iid;
	p->event.has_source_location_iid = false;
	put_small(p, &p->packet);
}

static void put_wake(void *data, const struct walk_wake *wake)
{
	struct perfetto *p = data;

	if (wake->signal) {
		intern_name(p, NAME_SIGNAL, "waits for a signal");
		put_begin(p, thread_track(wake->thread, TRACK_GIL), wake->start_ns, NAME_SIGNAL);
		put_end(p, wake->end_ns);
	}
	if (wake->by == MODEL_NONE)
		return;
	p->flow++;
	p->event.n_flow_ids = 1;
	if (wake->signal)
		put_instant(p, wake->by, wake->sent_ns, NAME_WAKES, "wakes a thread");
	else
		put_instant(p, wake->by, wake->sent_ns, NAME_RELEASES, "releases a lock");
	put_instant(p, wake->thread, wake->end_ns, NAME_GETS, "ends its wait");
	p->event.n_flow_ids = 0;
}

static void put_span(void *data, const struct walk_span *span)
{
	struct perfetto *p = data;
	bool gil = span->lane == WALK_GIL;
	uint64_t track = thread_track(span->thread, gil ? TRACK_GIL : TRACK_CPU);
	uint64_t name = NAME_STATES + (gil ? 0 : (uint64_t)GIL_STATES) + span->state;

	intern_name(p, name, walk_state_name(span->lane, span->state));
	if (gil && span->span->gil.frame) {
		intern_place(p, span->span->gil.frame);
		p->event.has_source_location_iid = true;
		p->event.source_location_iid = span->span->gil.frame;
	}
	if (span->holder != MODEL_NONE) {
		p->flow++;
		p->event.n_flow_ids = 1;
	}
	put_begin(p, track, span->start_ns, name);
	if (span->holder != MODEL_NONE)
		put_instant(p, span->holder, span->start_ns, NAME_ASKED,
		            "another thread starts to wait");
	p->event.track_uuid = track;
	put_end(p, span->end_ns);
}

static uint64_t gil_track(uint32_t gil)
{
	return TRACK_GILS + 2 * (uint64_t)gil;
}

static void put_gil(void *data, uint32_t gil)
{
	struct perfetto *p = data;
	const struct model_gil *g = &p->a->model->gils.v[gil];
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	uint64_t process = process_track(p, g->pid);
	CLEANUP(str_done) struct str name = { 0 };

	str_addf(&name, "GIL %#" PRIx64, g->address);
	put_child_track(p, gil_track(gil), process, str_get(&name));
	str_addf(&name, ": waiting threads");
	track.name = name.s;
	track.counter = &counter;
	put_track(p, &track, gil_track(gil) + 1, process);
}

static void put_count(struct perfetto *p, const struct walk_owner *owner)
{
	p->packet.timestamp = owner->start_ns;
	p->event.type = PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER;
	p->event.track_uuid = gil_track(owner->gil) + 1;
	p->event.has_counter_value = true;
	p->event.counter_value = owner->waiters;
	put_small(p, &p->packet);
	p->event.has_counter_value = false;
}

static void put_owner(void *data, const struct walk_owner *owner)
{
	struct perfetto *p = data;
	uint64_t name = p->threads_from + owner->thread;

	if (owner->thread < p->a->model->threads.n) {
		intern_name(p, name, facts_thread_name(p->a->pass, owner->thread));
		put_begin(p, gil_track(owner->gil), owner->start_ns, name);
		put_end(p, owner->end_ns);
	}
	put_count(p, owner);
}

static void put_lost(void *data, const struct model_lost *lost)
{
	struct perfetto *p = data;

	if (!p->names[NAME_LOST])
		put_child_track(p, TRACK_LOST, 0, "records lost");
	intern_name(p, NAME_LOST, "records lost");
	put_begin(p, TRACK_LOST, lost->start_ns, NAME_LOST);
	put_end(p, lost->end_ns);
}

/* The clock of all times in the sequence. */
static void put_start(struct perfetto *p)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__ClockSnapshot__Clock clock = PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT;
	Perfetto__ClockSnapshot__Clock *clocks = &clock;
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;

	clock.has_clock_id = true;
	clock.clock_id = CLOCK;
	clock.has_timestamp = true;
	clock.timestamp = p->a->model->start_ns;
	snapshot.n_clocks = 1;
	snapshot.clocks = &clocks;
	snapshot.has_primary_trace_clock = true;
	snapshot.primary_trace_clock = CLOCK;
	packet.clock_snapshot = &snapshot;
	put_large(p, &packet);
	packet.clock_snapshot = NULL;
	defaults.has_timestamp_clock_id = true;
	defaults.timestamp_clock_id = CLOCK;
	packet.trace_packet_defaults = &defaults;
	packet.has_sequence_flags = true;
	packet.sequence_flags = STATE_CLEARED | NEEDS_STATE;
	put_large(p, &packet);
}

static void init(struct perfetto *p, const struct analysis *a, FILE *out)
{
	const struct stacks *frames = functions_frames(a->pass);

	p->out = out;
	p->a = a;
	p->threads_from = NAME_CALLS +
	                  (uint64_t)(a->pass->slices ? names_count(a->pass->slices->names) : 0);
	p->names = xcalloc(p->threads_from + a->model->threads.n, sizeof(*p->names));
	p->places = xcalloc(frames ? stacks_count(frames) : 1, sizeof(*p->places));
	perfetto__trace_packet__init(&p->packet);
	perfetto__track_event__init(&p->event);
	p->packet.has_timestamp = p->packet.has_trusted_packet_sequence_id = true;
	p->packet.trusted_packet_sequence_id = SEQUENCE;
	p->packet.has_sequence_flags = true;
	p->packet.sequence_flags = NEEDS_STATE;
	p->packet.track_event = &p->event;
	p->event.has_type = p->event.has_track_uuid = true;
	p->event.flow_ids = &p->flow;
}

int export_perfetto(const struct analysis *a, FILE *out, struct error *err)
{
	static const struct walk_ops ops = {
		.thread = put_thread,
		.call = put_call,
		.span = put_span,
		.wake = put_wake,
		.gil = put_gil,
		.owner = put_owner,
		.lost = put_lost,
	};
	CLEANUP(free) struct perfetto *p = xcalloc(1, sizeof(*p));

	(void)err;
	init(p, a, out);
	put_start(p);
	walk(a, &ops, p);
	flush(p);
	free(p->names);
	free(p->places);
	idmap_done(&p->processes);
	return 0;
}

#else
#include <errno.h>

int export_perfetto(const struct analysis *a, FILE *out, struct error *err)
{
	(void)a;
	(void)out;
	return error_set(err, ENOTSUP,
	                 "giltracer was built without protobuf-c, which the perfetto format needs "
	                 "(the chrome format shows much the same)");
}
#endif
