/* SPDX-License-Identifier: MIT */
/* Turns samples of a free-threaded interpreter into events: threads that sleep for a lock, and
 * those that stop the world. */
#include "trace/perf/freethreaded.h"

#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "trace/perf/private.h"
#include "trace/names.h"
#include "trace/stacks.h"

/* Offsets of locks in their objects (Include/object.h, Modules/_threadmodule.c); objects are
 * aligned. */
#define ALIGNMENT   16
#define OB_MUTEX_AT 10

/* _Py_LOCKED | _Py_HAS_PARKED of Include/cpython/lock.h: the value that the first thread to sleep
 * stores. */
#define LOCKED_AND_PARKED 3

static const struct {
	const char *name;
	enum freethreaded_kind kind;
	enum event_type type;
} probes[] = {
	{ "park", FREETHREADED_PARK, EV_PARK },
	{ "park_ret", FREETHREADED_PARK, EV_PARKED },
	{ "unpark", FREETHREADED_PARK, EV_UNPARK },
	{ "stop_world", FREETHREADED_PARK, EV_STOP_WORLD },
	{ "start_world", FREETHREADED_PARK, EV_START_WORLD },
	{ "start_world_ret", FREETHREADED_PARK, EV_STARTED_WORLD },
	{ "gil_module", FREETHREADED_MODULE, 0 },
	{ "enable_gil", FREETHREADED_GIL_ON, EV_NEEDS_GIL },
};

bool freethreaded_find(struct freethreaded_probe *ret, const struct tracefmt *fmt)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		if (!from_perf_is_probe(fmt->name, probes[i].name))
			continue;
		*ret = (struct freethreaded_probe){
			.kind = probes[i].kind,
			.type = probes[i].type,
			.lock = tracefmt_find(fmt, "lock"),
			.size = tracefmt_find(fmt, "size"),
			.expected = tracefmt_find(fmt, "expected"),
			.of = tracefmt_find(fmt, "of"),
			.in = tracefmt_find(fmt, "in"),
			.name = tracefmt_find(fmt, "name"),
			.on = tracefmt_find(fmt, "on"),
			.frames = perf_frames_find(fmt),
		};
		return true;
	}
	return false;
}

static uint64_t number(const struct tracefmt_field *field, const struct cursor *raw)
{
	return field ? tracefmt_number(field, raw) : 0;
}

/* Whether the text can be the tp_name of a type; otherwise the object is not a type. */
static bool is_type_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' &&
		    (!i || ((c < '0' || c > '9') && c != '.')))
			return false;
	}
	return len > 0;
}

/* The type of the object that the lock belongs to; "" if that is unknown. */
static uint32_t lock_of(struct from_perf *fp, const struct freethreaded_probe *probe,
                        const struct cursor *raw, uint64_t address)
{
	uint64_t at = address % ALIGNMENT;
	const struct tracefmt_field *field = at == OB_MUTEX_AT ? probe->of
	                                     : at == 0         ? probe->in
	                                                       : NULL;
	size_t len = 0;
	const char *text = field ? tracefmt_text(field, raw, &len) : NULL;

	if (!text || !is_type_name(text, len))
		return 0;
	/* At other offsets, the lock is known to belong to the object only if that has one of
	 * these two types. */
	if (at == 0 && (len != 12 || memcmp(text, "_thread.lock", len) != 0) &&
	    (len != 13 || memcmp(text, "_thread.RLock", len) != 0))
		return 0;
	return names_id(fp->source.names, text, len);
}

static enum park_kind kind_of(const struct freethreaded_probe *probe, const struct cursor *raw)
{
	uint64_t size = number(probe->size, raw);

	if (size == 4)
		return PARK_WORLD;
	if (size == 1 && number(probe->expected, raw) == LOCKED_AND_PARKED)
		return PARK_LOCK;
	return size == 8 ? PARK_LOCK : PARK_EVENT;
}

static bool gil_on(struct from_perf *fp, const struct freethreaded_probe *probe,
                   const struct sample *s, struct event *ev)
{
	uint64_t on = number(probe->on, &s->raw);

	/* 0: an option keeps it off; INT_MAX: it is already on for good */
	if (on == 0 || on == INT_MAX)
		return false;
	from_perf_fill(ev, probe->type, s);
	ev->import.name = fp->module;
	ev->import.frame = 0;
	return true;
}

bool freethreaded_sample(struct from_perf *fp, const struct freethreaded_probe *probe,
                         const struct sample *s, struct event *ev)
{
	size_t len = 0;
	const char *text;

	if (probe->kind == FREETHREADED_GIL_ON)
		return gil_on(fp, probe, s, ev);
	if (probe->kind == FREETHREADED_MODULE) {
		text = probe->name ? tracefmt_text(probe->name, &s->raw, &len) : NULL;
		fp->module = text ? names_id(fp->source.names, text, len) : 0;
		return false;
	}
	from_perf_fill(ev, probe->type, s);
	ev->park.address = number(probe->lock, &s->raw);
	if (probe->type == EV_PARK) {
		ev->park.kind = kind_of(probe, &s->raw);
		if (ev->park.kind == PARK_LOCK)
			ev->park.of = lock_of(fp, probe, &s->raw, ev->park.address);
	} else if (probe->type == EV_START_WORLD && probe->frames.count) {
		ev->gil.frame = perf_frames_get(fp->frames, &probe->frames, &s->raw);
	}
	return true;
}

/* In threading.Condition.wait, a thread waits for a lock that it has taken itself and that the
 * notifying thread will release, so no other thread holds that lock. */
static bool waits_for_notice(const struct from_perf *fp, uint32_t frame)
{
	const struct stack_frame *f = frame ? stacks_get(fp->source.frames, frame) : NULL;
	const char *file;

	if (!f || strcmp(names_get(fp->source.names, f->name), "Condition.wait") != 0)
		return false;
	file = names_get(fp->source.names, f->module);
	return !*file || str_has_suffix(file, "/threading.py");
}

uint16_t freethreaded_gil_flags(struct from_perf *fp, const struct tracefmt_field *on,
                                const struct cursor *raw, uint32_t frame)
{
	uint16_t flags = 0;

	if (!on)
		return 0;
	if (!tracefmt_number(on, raw))
		flags |= EVF_GIL_OFF;
	if (waits_for_notice(fp, frame))
		flags |= EVF_NOTIFIED;
	return flags;
}
