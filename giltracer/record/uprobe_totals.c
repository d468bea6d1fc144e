/* SPDX-License-Identifier: MIT */
/* A thread empties the kernel's buffers. Events are sorted by time and used up to SETTLED_NS
 * before the present: until then, each CPU's buffer is complete. */
#include "record/uprobe_totals.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/vec.h"
#include "live/event_totals.h"
#include "live/snapshot.h"
#include "locate/process.h"
#include "system/uprobes.h"
#include "record/resolve.h"
#include "system/perf_rings.h"
#include "system/tracefs.h"

#define READ_MS 100

/* A record is in its buffer this long after its time. One that arrives later is treated as if it
 * happened when it was read. */
#define SETTLED_NS (2 * NS_PER_MS)

/**
 * @id: of the tracepoint; @gil: offset of the GIL's address in its data; 0: it has none
 */
struct probe_type {
	uint64_t id;
	enum event_type type;
	unsigned gil;
};

/**
 * @types: of the probes
 * @events: not used yet; @sorted: a buffer for sorting them
 * @start_ns: when all events were open; @reached_ns: up to when they have been used
 * @names: taken at the last reading of events, if @named
 * @lock: of everything that the thread and the readers share
 * @stop: an eventfd
 */
struct uprobe_totals {
	pid_t pid;
	struct probe_set *set;
	struct uprobes *uprobes;
	struct perf_rings *rings;
	struct event_totals *totals;
	struct target *target;
	struct snapshots *snapshots;
	struct snapshot names;
	bool named;
	VEC(struct probe_type) types;
	VEC(struct event) events;
	VEC(struct event) sorted;
	uint64_t start_ns, reached_ns, lost;
	pthread_mutex_t lock;
	pthread_t thread;
	bool threaded;
	int stop;
};

/* ---- names */

static void name_by_kernel(pid_t pid, uint32_t tid, char *ret)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/task/%u/comm", (int)pid, (unsigned)tid);
	CLEANUP(free) char *text = NULL;
	struct error ignored;

	memcpy(ret, "?", sizeof("?"));
	if (file_read(&text, NULL, path, 256, &ignored) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	snprintf(ret, TOTALS_NAME, "%.*s", TOTALS_NAME - 1, text);
}

/* The name is "?" if the thread has ended already. */
static bool find_name(void *data, uint32_t tid, char *ret)
{
	struct uprobe_totals *p = data;
	struct error ignored;

	memset(ret, 0, TOTALS_NAME);
	if (tid == (uint32_t)p->pid) {
		memcpy(ret, "MainThread", sizeof("MainThread"));
		return true;
	}
	if (!p->named && p->snapshots)
		p->named = snapshot_take(&p->names, p->snapshots, &ignored) == 0;
	for (size_t i = 0; p->named && i < p->names.threads.n; i++) {
		const struct snapshot_thread *t = &p->names.threads.v[i];

		if (t->tid != tid || !t->named)
			continue;
		snprintf(ret, TOTALS_NAME, "%.*s", TOTALS_NAME - 1, t->name);
		return true;
	}
	name_by_kernel(p->pid, tid, ret);
	return false;
}

static void forget_names(struct uprobe_totals *p)
{
	if (p->named)
		snapshot_done(&p->names);
	p->named = false;
}

/* ---- events */

static bool type_of(enum event_type *ret, const char *event)
{
	static const struct {
		const char *prefix;
		enum event_type type;
	} table[] = {
		{ "take_gil_ret", EV_ACQUIRE },  { "take_gil", EV_REQUEST },
		{ "drop_gil_ret", EV_RELEASED }, { "drop_gil", EV_RELEASE },
		{ "save_thread", EV_SAVE },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_has_prefix(event, table[i].prefix)) {
			*ret = table[i].type;
			return true;
		}
	return false;
}

static const struct probe_type *find_type(const struct uprobe_totals *p,
                                          const struct perf_ring_record *record)
{
	uint16_t id;

	if (record->raw_size < sizeof(id))
		return NULL;
	memcpy(&id, record->raw, sizeof(id));
	for (size_t i = 0; i < p->types.n; i++)
		if (p->types.v[i].id == id)
			return &p->types.v[i];
	return NULL;
}

static void take_sample(struct uprobe_totals *p, const struct perf_ring_record *record,
                        struct event *ev)
{
	const struct probe_type *type = find_type(p, record);

	if (!type)
		return;
	ev->type = (uint16_t)type->type;
	if (type->gil && type->gil + sizeof(ev->gil.address) <= record->raw_size)
		memcpy(&ev->gil.address, record->raw + type->gil, sizeof(ev->gil.address));
	*vec_push(&p->events) = *ev;
}

/* Ignores records from before all events were open, because they may be incomplete. */
static void take_record(void *data, const struct perf_ring_record *record)
{
	struct uprobe_totals *p = data;
	struct event ev = {
		.time_ns = record->time_ns, .pid = record->pid, .tid = record->tid, .cpu = -1
	};

	if (record->time_ns < p->start_ns)
		return;
	if (record->kind == PERF_RING_SAMPLE) {
		take_sample(p, record, &ev);
		return;
	}
	if (record->kind == PERF_RING_EXIT) {
		ev.type = EV_EXIT;
	} else if (record->kind == PERF_RING_EXEC) {
		ev.type = EV_COMM;
		ev.flags = EVF_EXEC;
	} else {
		ev.type = EV_LOST;
		ev.lost.since_ns = record->since_ns;
		p->lost += record->lost;
	}
	*vec_push(&p->events) = ev;
}

/* Merges pairs of sorted runs of the given width; stable. */
static void merge_runs(const struct event *from, struct event *to, size_t n, size_t width)
{
	for (size_t at = 0; at < n; at += 2 * width) {
		size_t a = at, mid = at + width < n ? at + width : n, b = mid;
		size_t end = mid + width < n ? mid + width : n;

		for (size_t i = at; i < end; i++)
			to[i] = a < mid && (b >= end || from[a].time_ns <= from[b].time_ns)
			                ? from[a++]
			                : from[b++];
	}
}

static void sort_events(struct uprobe_totals *p)
{
	size_t n = p->events.n;

	vec_reserve(&p->sorted, n);
	for (size_t width = 1; width < n; width *= 2) {
		struct event *v = p->events.v;
		size_t alloc = p->events.alloc;

		merge_runs(v, p->sorted.v, n, width);
		p->events.v = p->sorted.v;
		p->events.alloc = p->sorted.alloc;
		p->sorted.v = v;
		p->sorted.alloc = alloc;
	}
}

/* Uses events up to SETTLED_NS ago, and sets reached_ns to that time. The caller holds the lock. */
static void read_events(struct uprobe_totals *p)
{
	uint64_t until = clock_now_ns() - SETTLED_NS;
	size_t used = 0;

	perf_rings_read(p->rings, take_record, p);
	sort_events(p);
	while (used < p->events.n && p->events.v[used].time_ns <= until)
		event_totals_feed(p->totals, &p->events.v[used++]);
	p->events.n -= used;
	if (p->events.n)
		memmove(p->events.v, p->events.v + used, p->events.n * sizeof(*p->events.v));
	if (until > p->reached_ns)
		p->reached_ns = until;
	event_totals_reach(p->totals, p->reached_ns);
	forget_names(p);
}

static void *read_always(void *data)
{
	struct uprobe_totals *p = data;
	uint64_t count;

	while (read(p->stop, &count, sizeof(count)) < 0) {
		pthread_mutex_lock(&p->lock);
		read_events(p);
		pthread_mutex_unlock(&p->lock);
		perf_rings_wait(p->rings, p->stop, READ_MS);
	}
	return NULL;
}

/* ---- for readers */

static uint64_t begin(void *data)
{
	struct uprobe_totals *p = data;

	pthread_mutex_lock(&p->lock);
	read_events(p);
	return p->reached_ns;
}

static void end(void *data)
{
	struct uprobe_totals *p = data;

	pthread_mutex_unlock(&p->lock);
}

static uint64_t lost(void *data)
{
	const struct uprobe_totals *p = data;

	return p->lost;
}

/* The kernel refuses to remove a probe while it is open, so the buffers are closed first. */
static void uprobe_totals_close(void *data)
{
	struct uprobe_totals *p = data;
	uint64_t one = 1;

	if (p->threaded && write(p->stop, &one, sizeof(one)) > 0)
		pthread_join(p->thread, NULL);
	perf_rings_close(p->rings);
	uprobes_release(p->uprobes);
	event_totals_free(p->totals);
	forget_names(p);
	snapshots_free(p->snapshots);
	target_close(p->target);
	probe_set_free(p->set);
	vec_done(&p->types);
	vec_done(&p->events);
	vec_done(&p->sorted);
	pthread_mutex_destroy(&p->lock);
	if (p->stop >= 0)
		close(p->stop);
	free(p);
}

/* ---- opening */

static void cleanup_totals(struct uprobe_totals **p)
{
	if (*p)
		uprobe_totals_close(*p);
}

/* The offset of a field in the tracepoint's data; 0: it has none. */
static unsigned find_field(const char *format, const char *name)
{
	CLEANUP(free) char *field = xasprintf(" %s;", name);
	const char *at = strstr(format, field);

	at = at ? strstr(at, "offset:") : NULL;
	return at ? (unsigned)strtoul(at + strlen("offset:"), NULL, 10) : 0;
}

static int find_event(struct uprobe_totals *p, const char *root, const struct probe *probe,
                      struct error *err)
{
	CLEANUP(free)
	char *folder = xasprintf("%s/events/%s/%s", root, p->set->group, probe->event);
	CLEANUP(free) char *id_path = xasprintf("%s/id", folder);
	CLEANUP(free) char *format_path = xasprintf("%s/format", folder);
	CLEANUP(free) char *id = NULL;
	CLEANUP(free) char *format = NULL;
	struct probe_type type;

	if (!type_of(&type.type, probe->event))
		return 0;
	if (file_read(&id, NULL, id_path, 64, err) < 0 ||
	    file_read(&format, NULL, format_path, 65536, err) < 0)
		return -1;
	type.id = strtoull(id, NULL, 10);
	type.gil = find_field(format, "gil");
	*vec_push(&p->types) = type;
	return 0;
}

static int open_rings(struct uprobe_totals *p, struct error *err)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(free) uint64_t *ids = xcalloc(p->set->probes.n, sizeof(*ids));

	if (tracefs_find(&root, err) < 0)
		return -1;
	for (size_t i = 0; i < p->set->probes.n; i++)
		if (find_event(p, root, &p->set->probes.v[i], err) < 0)
			return -1;
	for (size_t i = 0; i < p->types.n; i++)
		ids[i] = p->types.v[i].id;
	if (probe_verify_file(p->set, err) < 0 ||
	    perf_rings_open(&p->rings, p->pid, ids, p->types.n, err) < 0)
		return -1;
	return probe_verify_process(p->pid, p->set, err);
}

/* Finds where the GIL is taken and released; fails unless all places are known. */
static int find_probes(struct uprobe_totals *p, struct error *err)
{
	struct process_python process;
	int ret;

	if (process_python_find(&process, p->pid, err) < 0)
		return -1;
	if (process.python->free_threaded)
		ret = error_set(err, ENOTSUP,
		                "process %d runs a free-threaded Python, whose GIL has no metrics",
		                (int)p->pid);
	else
		ret = resolve_probes(&p->set, process.python, 0, err);
	process_python_done(&process);
	if (ret == 0 && !p->set->releases_known)
		return error_set(err, ENOTSUP,
		                 "process %d: some of the places where its Python releases the GIL "
		                 "are unknown: start it with giltracer --metrics",
		                 (int)p->pid);
	return ret;
}

static int start(struct uprobe_totals *p, struct error *err)
{
	struct error ignored;

	if (target_open(&p->target, p->pid, &ignored) == 0)
		p->snapshots = snapshots_new(p->target);
	p->start_ns = p->reached_ns = clock_now_ns();
	if (event_totals_new(&p->totals, p->pid, p->start_ns, find_name, p, err) < 0)
		return -1;
	p->threaded = thread_start(&p->thread, read_always, p) == 0;
	return p->threaded ? 0 : error_set(err, EAGAIN, "there can be no more threads");
}

int uprobe_totals_open(struct totals **ret, pid_t pid, struct error *err)
{
	__attribute__((cleanup(cleanup_totals))) struct uprobe_totals *p = xcalloc(1, sizeof(*p));
	struct totals_writer writer = {
		.begin = begin, .end = end, .lost = lost, .close = uprobe_totals_close
	};
	const void *page;
	size_t size;

	p->pid = pid;
	pthread_mutex_init(&p->lock, NULL);
	p->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->stop < 0)
		return error_errno(err, "eventfd");
	if (find_probes(p, err) < 0 || uprobes_prepare(p->set, &p->uprobes, err) < 0 ||
	    open_rings(p, err) < 0 || start(p, err) < 0)
		return -1;
	writer.data = p;
	page = event_totals_page(p->totals, &size);
	totals_open_writer(ret, page, size, &writer);
	p = NULL;
	return 0;
}
