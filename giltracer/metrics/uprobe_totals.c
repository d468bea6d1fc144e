/* SPDX-License-Identifier: MIT */
#include "metrics/uprobe_totals.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/idmap.h"
#include "base/procfs.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/vec.h"
#include "live/event_totals.h"
#include "live/snapshot.h"
#include "python/probes.h"
#include "system/perf_access.h"
#include "system/tracefs.h"
#include "system/uprobes.h"

/* ---- the kernel's ring buffers */

struct perf_rings;

enum perf_ring_kind {
	PERF_RING_SAMPLE,
	PERF_RING_EXIT, /* the thread ends */
	PERF_RING_EXEC, /* the process runs another program */
	PERF_RING_LOST, /* records of one CPU, between since_ns and time_ns */
};

/**
 * @time_ns: CLOCK_MONOTONIC
 * @raw: data of a sample in the tracepoint's format, which begins with its id of 2 bytes; borrowed
 */
struct perf_ring_record {
	enum perf_ring_kind kind;
	uint32_t pid, tid;
	uint64_t time_ns, since_ns, lost;
	const uint8_t *raw;
	size_t raw_size;
};

typedef void perf_ring_take(void *data, const struct perf_ring_record *record);

#define RING_BYTES (1u << 20) /* a power of two */

/* The size of a record has 16 bits. */
#define RECORD_MAX (1u << 16)

/* The beginning of a sample's body and the end of any other record: PERF_SAMPLE_TID and
 * PERF_SAMPLE_TIME. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/**
 * @fd: the event that owns the buffer; @cpu: -1: the CPU is offline
 * @last_ns: time of the last record
 */
struct ring {
	int fd, cpu;
	struct perf_event_mmap_page *page;
	uint64_t last_ns;
};

/**
 * @opened: the threads whose events are open
 * @record: a copy of a record that wraps around the end of its buffer
 */
struct perf_rings {
	VEC(struct ring) rings;
	VEC(int) fds;
	struct idmap opened;
	uint8_t record[RECORD_MAX];
};

/* ---- opening */

/* Threads that a thread creates inherit its events; child processes do not. */
static struct perf_event_attr attr_of(uint64_t id)
{
	struct perf_event_attr attr = perf_attr_tracepoint(id);

	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
	attr.disabled = 0;
	attr.inherit = 1;
	attr.inherit_thread = 1;
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.watermark = 1;
	attr.wakeup_watermark = RING_BYTES / 4;
	return attr;
}

/* The event that owns the buffer, and records which threads end. */
static struct perf_event_attr attr_of_owner(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_DUMMY);

	attr.type = PERF_TYPE_SOFTWARE;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr.sample_period = 0;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	attr.task = 1;
	attr.comm = 1;
	attr.comm_exec = 1;
	return attr;
}

/* Opens an event of a thread on a CPU, with its records in that CPU's buffer if there is one.
 * -1: see errno. */
static int open_event(struct perf_rings *r, struct perf_event_attr *attr, pid_t tid,
                      const struct ring *ring)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, ring->cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -1;
	*vec_push(&r->fds) = fd;
	return ring->fd >= 0 ? ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) : fd;
}

static int open_owner(struct perf_rings *r, pid_t tid, struct ring *ring)
{
	struct perf_event_attr attr = attr_of_owner();
	int fd = open_event(r, &attr, tid, ring);
	void *page;

	if (fd < 0 || ring->fd >= 0)
		return fd;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE) + RING_BYTES, PROT_READ | PROT_WRITE,
	            MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -1;
	ring->fd = fd;
	ring->page = page;
	return 0;
}

static int open_on_cpu(struct perf_rings *r, pid_t tid, struct ring *ring, const uint64_t *ids,
                       size_t n)
{
	if (open_owner(r, tid, ring) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct perf_event_attr attr = attr_of(ids[i]);

		if (open_event(r, &attr, tid, ring) < 0)
			return -1;
	}
	return 0;
}

/* Skips a thread that has ended meanwhile, and a CPU that is offline. */
static int open_thread(struct perf_rings *r, pid_t tid, const uint64_t *ids, size_t n,
                       struct error *err)
{
	for (size_t i = 0; i < r->rings.n; i++) {
		if (open_on_cpu(r, tid, &r->rings.v[i], ids, n) == 0 ||
		    (errno == ENODEV && r->rings.v[i].fd < 0))
			continue;
		if (errno == ESRCH)
			return 0;
		return error_errno(err, "events of thread %d on CPU %d", (int)tid,
		                   r->rings.v[i].cpu);
	}
	return 0;
}

/* *ret: the number of threads that were not open yet. */
static int open_new(struct perf_rings *r, pid_t pid, const uint64_t *ids, size_t n,
                    struct error *err)
{
	struct procfs_threads threads = { 0 };
	int found = 0;

	if (!procfs_threads(&threads, pid))
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	for (size_t i = 0; i < threads.v.n && found >= 0; i++) {
		pid_t tid = threads.v.v[i];

		if (idmap_get(&r->opened, (uint64_t)tid) != IDMAP_NONE)
			continue;
		if (open_thread(r, tid, ids, n, err) < 0) {
			found = -1;
		} else {
			idmap_set(&r->opened, (uint64_t)tid, 0);
			found++;
		}
	}
	vec_done(&threads.v);
	return found;
}

/* Each thread needs a few descriptors per CPU. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void perf_rings_close(struct perf_rings *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->rings.n; i++)
		if (r->rings.v[i].page)
			munmap(r->rings.v[i].page, (size_t)sysconf(_SC_PAGESIZE) + RING_BYTES);
	for (size_t i = 0; i < r->fds.n; i++)
		close(r->fds.v[i]);
	vec_done(&r->rings);
	vec_done(&r->fds);
	idmap_done(&r->opened);
	free(r);
}

DEFINE_CLEANUP(struct perf_rings *, perf_rings_close);

/*
 * Open the n tracepoints with these ids in all present and future threads of the process, but not
 * in its child processes. Records of a thread that begins during the call may appear twice, and
 * some of them may be missing. Errors: ESRCH: the process has ended; those of perf_event_open(2).
 */
static int perf_rings_open(struct perf_rings **ret, pid_t pid, const uint64_t *ids, size_t n,
                           struct error *err)
{
	CLEANUP(perf_rings_close) struct perf_rings *r = xcalloc(1, sizeof(*r));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int found;

	raise_limit();
	for (int i = 0; i < cpus; i++)
		*vec_push(&r->rings) = (struct ring){ .fd = -1, .cpu = i };
	while ((found = open_new(r, pid, ids, n, err)) > 0)
		continue;
	if (found < 0)
		return -1;
	*ret = take(r);
	return 0;
}

/* ---- reading */

/* Wait until records can be read or fd is readable, at most timeout_ms. */
static void perf_rings_wait(struct perf_rings *r, int fd, int timeout_ms)
{
	CLEANUP(free) struct pollfd *fds = xcalloc(r->rings.n + 1, sizeof(*fds));

	for (size_t i = 0; i < r->rings.n; i++)
		fds[i] = (struct pollfd){ .fd = r->rings.v[i].fd, .events = POLLIN };
	fds[r->rings.n] = (struct pollfd){ .fd = fd, .events = POLLIN };
	poll(fds, r->rings.n + 1, timeout_ms);
}

/* Decodes the body of a record, which has size bytes. False: the record is of no interest. */
static bool decode(struct perf_ring_record *ret, uint32_t type, uint32_t misc, const uint8_t *body,
                   size_t size, uint64_t last_ns)
{
	struct sample_id id;
	uint32_t raw_size;

	if (size < sizeof(id))
		return false;
	memcpy(&id, type == PERF_RECORD_SAMPLE ? body : body + size - sizeof(id), sizeof(id));
	*ret = (struct perf_ring_record){ .pid = id.pid, .tid = id.tid, .time_ns = id.time_ns };
	if (type == PERF_RECORD_SAMPLE && size >= sizeof(id) + sizeof(raw_size)) {
		memcpy(&raw_size, body + sizeof(id), sizeof(raw_size));
		ret->kind = PERF_RING_SAMPLE;
		ret->raw = body + sizeof(id) + sizeof(raw_size);
		ret->raw_size = size - sizeof(id) - sizeof(raw_size);
		if (raw_size < ret->raw_size)
			ret->raw_size = raw_size;
		return true;
	}
	if (type == PERF_RECORD_LOST && size >= 16 + sizeof(id)) {
		memcpy(&ret->lost, body + 8, sizeof(ret->lost));
		ret->kind = PERF_RING_LOST;
		ret->since_ns = last_ns;
		return true;
	}
	if (type == PERF_RECORD_EXIT && size >= 24 + sizeof(id)) {
		memcpy(&ret->pid, body, sizeof(ret->pid));
		memcpy(&ret->tid, body + 8, sizeof(ret->tid));
		ret->kind = PERF_RING_EXIT;
		return true;
	}
	ret->kind = PERF_RING_EXEC;
	return type == PERF_RECORD_COMM && misc & PERF_RECORD_MISC_COMM_EXEC;
}

/* The record at that position; a copy if it wraps around the end of the buffer. */
static const uint8_t *record_at(struct perf_rings *r, const uint8_t *data, uint64_t at, size_t size)
{
	size_t offset = at & (RING_BYTES - 1), first = RING_BYTES - offset;

	if (size <= first)
		return data + offset;
	memcpy(r->record, data + offset, first);
	memcpy(r->record + first, data, size - first);
	return r->record;
}

static void read_ring(struct perf_rings *r, struct ring *ring, perf_ring_take *take_record,
                      void *data)
{
	const uint8_t *bytes = (const uint8_t *)ring->page + sysconf(_SC_PAGESIZE);
	uint64_t tail = ring->page->data_tail;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);

	while (head - tail >= sizeof(struct perf_event_header)) {
		const struct perf_event_header *at =
			(const void *)(bytes + (tail & (RING_BYTES - 1)));
		struct perf_event_header header = *at;
		struct perf_ring_record record = { .time_ns = 0 };
		const uint8_t *body;

		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		body = record_at(r, bytes, tail, header.size) + sizeof(header);
		if (decode(&record, header.type, header.misc, body, header.size - sizeof(header),
		           ring->last_ns))
			take_record(data, &record);
		if (record.time_ns > ring->last_ns)
			ring->last_ns = record.time_ns;
		tail += header.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

/* Pass on all records, one CPU after the other; those of one CPU are in the order of time. */
static void perf_rings_read(struct perf_rings *r, perf_ring_take *take_record, void *data)
{
	for (size_t i = 0; i < r->rings.n; i++)
		if (r->rings.v[i].page)
			read_ring(r, &r->rings.v[i], take_record, data);
}

/* ---- totals */

/* A thread empties the kernel's buffers. Events are sorted by time and used up to SETTLED_NS
 * before the present: until then, each CPU's buffer is complete. */

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
	CLEANUP(free) char *text = procfs_comm(pid, (pid_t)tid);

	snprintf(ret, TOTALS_NAME, "%.*s", TOTALS_NAME - 1, text ? text : "?");
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

int uprobe_totals_open(struct totals **ret, pid_t pid, struct probe_set *set, struct error *err)
{
	__attribute__((cleanup(cleanup_totals))) struct uprobe_totals *p = xcalloc(1, sizeof(*p));
	struct totals_writer writer = {
		.begin = begin, .end = end, .lost = lost, .close = uprobe_totals_close
	};
	const void *page;
	size_t size;

	p->pid = pid;
	p->set = set;
	pthread_mutex_init(&p->lock, NULL);
	p->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->stop < 0)
		return error_errno(err, "eventfd");
	if (uprobes_prepare(p->set, &p->uprobes, err) < 0 || open_rings(p, err) < 0 ||
	    start(p, err) < 0)
		return -1;
	writer.data = p;
	page = event_totals_page(p->totals, &size);
	totals_open_writer(ret, page, size, &writer);
	p = NULL;
	return 0;
}
