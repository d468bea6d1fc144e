/* SPDX-License-Identifier: MIT */
/* There is one buffer per CPU, which all events of that CPU share. */
#include "system/perf_rings.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "system/perf_access.h"

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
	CLEANUP(free) char *path = xasprintf("/proc/%d/task", (int)pid);
	CLEANUP(closedir) DIR *dir = opendir(path);
	struct dirent *entry;
	int found = 0;

	if (!dir)
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	while ((entry = readdir(dir))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || idmap_get(&r->opened, (uint64_t)tid) != IDMAP_NONE)
			continue;
		if (open_thread(r, (pid_t)tid, ids, n, err) < 0)
			return -1;
		idmap_set(&r->opened, (uint64_t)tid, 0);
		found++;
	}
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

int perf_rings_open(struct perf_rings **ret, pid_t pid, const uint64_t *ids, size_t n,
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

void perf_rings_close(struct perf_rings *r)
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

/* ---- reading */

void perf_rings_wait(struct perf_rings *r, int fd, int timeout_ms)
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

void perf_rings_read(struct perf_rings *r, perf_ring_take *take_record, void *data)
{
	for (size_t i = 0; i < r->rings.n; i++)
		if (r->rings.v[i].page)
			read_ring(r, &r->rings.v[i], take_record, data);
}
