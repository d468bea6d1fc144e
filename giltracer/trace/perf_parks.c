/* SPDX-License-Identifier: MIT */
/* Samples of a free-threaded interpreter -> events: who sleeps for a lock, who stops the world. */
#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "trace/from_perf_internal.h"
#include "trace/names.h"
#include "trace/stacks.h"

/* Where in its object a lock is (Include/object.h, Modules/_threadmodule.c): objects are aligned.
 */
#define ALIGNMENT   16
#define OB_MUTEX_AT 10

/* _Py_LOCKED | _Py_HAS_PARKED of Include/cpython/lock.h: what the first to sleep makes of it. */
#define LOCKED_AND_PARKED 3

static const struct {
	const char *name;
	enum handler_kind kind;
	enum event_type type;
} probes[] = {
	{ "park", HANDLE_PARK, EV_PARK },
	{ "park_ret", HANDLE_PARK, EV_PARKED },
	{ "unpark", HANDLE_PARK, EV_UNPARK },
	{ "stop_world", HANDLE_PARK, EV_STOP_WORLD },
	{ "start_world", HANDLE_PARK, EV_START_WORLD },
	{ "start_world_ret", HANDLE_PARK, EV_STARTED_WORLD },
	{ "gil_module", HANDLE_GIL_MODULE, 0 },
	{ "enable_gil", HANDLE_GIL_ON, EV_GIL_ON },
};

bool from_perf_park_handler(const struct tracefmt *fmt, struct handler *ret)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		if (!from_perf_is_probe(fmt->name, probes[i].name))
			continue;
		ret->kind = probes[i].kind;
		ret->type = probes[i].type;
		ret->field = tracefmt_find(fmt, ret->kind == HANDLE_GIL_MODULE ? "name" : "lock");
		ret->on = tracefmt_find(fmt, "on");
		ret->size = tracefmt_find(fmt, "size");
		ret->expected = tracefmt_find(fmt, "expected");
		ret->of = tracefmt_find(fmt, "of");
		ret->in = tracefmt_find(fmt, "in");
		ret->frames = perf_frames_find(fmt);
		return true;
	}
	return false;
}

static uint64_t number(const struct tracefmt_field *field, const struct cursor *raw)
{
	return field ? tracefmt_number(field, raw) : 0;
}

/* A name of a type, as it is in tp_name: what is none was no type. */
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

/* The type of the object whose lock it is; "" if it is not known to be any's. */
static uint32_t lock_of(struct from_perf *fp, const struct handler *h, const struct cursor *raw,
                        uint64_t address)
{
	uint64_t at = address % ALIGNMENT;
	const struct tracefmt_field *field = at == OB_MUTEX_AT ? h->of : at == 0 ? h->in : NULL;
	size_t len = 0;
	const char *text = field ? tracefmt_text(field, raw, &len) : NULL;

	if (!text || !is_type_name(text, len))
		return 0;
	/* Of what is not at its place in an object, only these can be told from anything else. */
	if (at == 0 && (len != 12 || memcmp(text, "_thread.lock", len) != 0) &&
	    (len != 13 || memcmp(text, "_thread.RLock", len) != 0))
		return 0;
	return names_id(fp->source.names, text, len);
}

static enum park_kind kind_of(const struct handler *h, const struct cursor *raw)
{
	uint64_t size = number(h->size, raw);

	if (size == 4)
		return PARK_WORLD;
	if (size == 1 && number(h->expected, raw) == LOCKED_AND_PARKED)
		return PARK_LOCK;
	return size == 8 ? PARK_LOCK : PARK_EVENT;
}

static bool gil_on(struct from_perf *fp, const struct handler *h, const struct sample *s,
                   struct event *ev)
{
	uint64_t on = number(h->on, &s->raw);

	/* Off by an option; on already. */
	if (on == 0 || on == INT_MAX)
		return false;
	from_perf_fill(ev, h->type, s);
	ev->comm.name = fp->module;
	return true;
}

bool from_perf_park_sample(struct from_perf *fp, const struct handler *h, const struct sample *s,
                           struct event *ev)
{
	size_t len = 0;
	const char *text;

	if (h->kind == HANDLE_GIL_ON)
		return gil_on(fp, h, s, ev);
	if (h->kind == HANDLE_GIL_MODULE) {
		text = h->field ? tracefmt_text(h->field, &s->raw, &len) : NULL;
		fp->module = text ? names_id(fp->source.names, text, len) : 0;
		return false;
	}
	from_perf_fill(ev, h->type, s);
	ev->park.address = number(h->field, &s->raw);
	if (h->type == EV_PARK) {
		ev->park.kind = kind_of(h, &s->raw);
		if (ev->park.kind == PARK_LOCK)
			ev->park.of = lock_of(fp, h, &s->raw, ev->park.address);
	} else if (h->type == EV_START_WORLD && h->frames.count) {
		ev->gil.frame = perf_frames_get(fp->frames, &h->frames, &s->raw);
	}
	return true;
}

/* threading.Condition.wait: its lock is taken by the waiter itself, and freed by who notifies. */
static bool waits_for_notice(const struct from_perf *fp, uint32_t frame)
{
	const struct stack_frame *f = frame ? stacks_get(fp->source.frames, frame) : NULL;
	const char *file;

	if (!f || strcmp(names_get(fp->source.names, f->name), "Condition.wait") != 0)
		return false;
	file = names_get(fp->source.names, f->module);
	return !*file || str_has_suffix(file, "/threading.py");
}

uint16_t from_perf_gil_flags(struct from_perf *fp, const struct handler *h,
                             const struct cursor *raw, uint32_t frame)
{
	uint16_t flags = 0;

	if (!h->on)
		return 0;
	if (!tracefmt_number(h->on, raw))
		flags |= EVF_GIL_OFF;
	if (waits_for_notice(fp, frame))
		flags |= EVF_NOTIFIED;
	return flags;
}
