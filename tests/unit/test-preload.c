/* SPDX-License-Identifier: MIT */
/* Folders of the preload library, as it writes them and as nobody should. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "preload/format.h"
#include "python/python.h"
#include "record/library.h"
#include "trace/preload/from_preload.h"
#include "trace/names.h"
#include "trace/preload/log.h"

#include "tap.h"

static char dir[] = "/tmp/test-preload.XXXXXX";

/* Two stamps are a nanosecond, and time began at 1000. */
#define NS(stamp) (1000 + (stamp) / 2)

static void append(const char *name, const void *data, size_t size)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		exit(99);
	close(fd);
}

static void entry(const char *name, uint32_t type, uint64_t stamp, uint64_t number, uint64_t value)
{
	const struct preload_entry e = { sizeof(e), type, stamp, number, value };

	append(name, &e, sizeof(e));
}

static void begin_log(const char *name, uint32_t pid, uint64_t stamp)
{
	struct preload_entry e = { sizeof(e) + 16, PRELOAD_PROCESS, stamp, pid, PRELOAD_CLOCK_TSC };

	append(name, &e, sizeof(e));
	append(name, "/usr/bin/python\0", 16);
	entry(name, PRELOAD_PAIR, 100, 0, NS(100));
	entry(name, PRELOAD_PAIR, 1000000, 0, NS(1000000));
	entry(name, PRELOAD_GIL, stamp, 0, 0xabc0);
}

static void begin_stream(const char *name, uint32_t pid, uint64_t process)
{
	const struct preload_header h = {
		.magic = PRELOAD_MAGIC, .process = process, .pid = pid, .clock = PRELOAD_CLOCK_TSC
	};

	append(name, &h, sizeof(h));
}

static void record(const char *name, uint64_t number, unsigned type)
{
	const uint64_t word = number << PRELOAD_TYPE_BITS | type;

	append(name, &word, sizeof(word));
}

static void thread(const char *name, uint64_t stamp, uint32_t tid)
{
	record(name, tid, PRELOAD_OF_THREAD);
	record(name, stamp, PRELOAD_THREAD);
}

static void start_folder(void)
{
	struct error err;

	file_remove_tree(dir, &err);
	mkdir(dir, 0700);
}

static const char *const names[] = {
	[EV_REQUEST] = "request",   [EV_ACQUIRE] = "acquire", [EV_RELEASE] = "release",
	[EV_RELEASED] = "released", [EV_FORK] = "fork",       [EV_EXIT] = "exit",
	[EV_COMM] = "comm",         [EV_LOST] = "lost",       [EV_PARK] = "park",
	[EV_PARKED] = "parked",     [EV_UNPARK] = "unpark",   [EV_ASKED] = "asked"
};

/* All events, as "tid name@time ", and how many files are not whole. */
static char *events(void)
{
	static char text[4096];
	struct source *source;
	struct error err;
	struct event ev;
	size_t len = 0;

	text[0] = '\0';
	if (from_preload_open(&source, dir, NULL, NULL, &err) < 0) {
		snprintf(text, sizeof(text), "error: %s",
		         strrchr(err.text, '/') ? strrchr(err.text, '/') + 1 : err.text);
		return text;
	}
	while (source_next(source, &ev, &err) > 0 && len < sizeof(text) - 64) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%u %s@%" PRIu64 " ",
		                        ev.tid, names[ev.type], ev.time_ns);
		if (ev.type == EV_PARK || ev.type == EV_UNPARK)
			len += (size_t)snprintf(
				text + len, sizeof(text) - len, "%s%#" PRIx64 " ",
				ev.type == EV_PARK && ev.park.kind == PARK_EVENT ? "event " : "",
				ev.park.address);
		if (ev.type == EV_FORK && ev.pid == ev.fork.parent_pid && ev.fork.parent_tid)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "by %u ",
			                        ev.fork.parent_tid);
		if (ev.flags & EVF_MISSED)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "missed ");
		if (ev.flags & EVF_SIGNAL)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "signal ");
	}
	if (source->stats.unfinished)
		snprintf(text + len, sizeof(text) - len, "unfinished %" PRIu64,
		         source->stats.unfinished);
	source_close(source);
	return text;
}

static void test_turns(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	record("7.100.0.gil", 202, PRELOAD_ACQUIRE);
	record("7.100.0.gil", 300, PRELOAD_RELEASE);
	record("7.100.0.gil", 500, PRELOAD_SWITCHED);
	begin_stream("7.100.1.gil", 7, 100);
	thread("7.100.1.gil", 210, 8);
	record("7.100.1.gil", 220, PRELOAD_REQUEST);
	record("7.100.1.gil", 290, PRELOAD_ASKED);
	record("7.100.1.gil", 400, PRELOAD_ACQUIRE);
	record("7.100.1.gil", 600, PRELOAD_RELEASE);
	record("7.100.1.gil", 700, PRELOAD_EXIT);
	is_str(events(),
	       "7 comm@1100 7 request@1101 7 acquire@1101 8 fork@1105 8 request@1110 7 "
	       "release@1150 "
	       "8 acquire@1200 7 released@1250 8 release@1300 8 released@1300 8 exit@1350 ",
	       "the records of two threads as events in the order of time");
}

static void turn(const char *name, uint64_t release, uint64_t since)
{
	const uint64_t word = PRELOAD_TURN_WORD(release, since);

	append(name, &word, sizeof(word));
}

/* A release and an acquire in one record, whose upper bits of time are those of the record before it. */
static void test_packed_turns(void)
{
	const uint64_t round = UINT64_C(1) << (64 - PRELOAD_TURN_SHIFT);

	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	record("7.100.0.gil", 202, PRELOAD_ACQUIRE);
	turn("7.100.0.gil", 300, 40);
	turn("7.100.0.gil", 400, PRELOAD_TURN_MAX - 1);
	record("7.100.0.gil", round - 100, PRELOAD_RELEASE);
	record("7.100.0.gil", round - 50, PRELOAD_ACQUIRE);
	turn("7.100.0.gil", round + 20, 0);
	turn("7.100.0.gil", round + PRELOAD_TURN_NEAR, 2);
	record("7.100.0.gil", 5 * round + 10, PRELOAD_OF_TIME);
	turn("7.100.0.gil", 5 * round - 90, 10);
	is_str(events(),
	       "7 comm@1100 7 request@1101 7 acquire@1101 7 release@1150 7 released@1150 "
	       "7 request@1170 7 acquire@1170 7 release@1200 7 released@1200 "
	       "7 request@525487 7 acquire@525487 7 release@274877907894 7 released@274877907894 "
	       "7 request@274877907919 7 acquire@274877907919 "
	       "7 release@274877907954 7 released@274877907954 "
	       "7 request@274877907954 7 acquire@274877907954 "
	       "7 release@412316861416 7 released@412316861416 "
	       "7 request@412316861417 7 acquire@412316861417 "
	       "7 release@1374389535675 7 released@1374389535675 "
	       "7 request@1374389535680 7 acquire@1374389535680 ",
	       "releases and acquires in one record, also where the upper bits of their times "
	       "change");
}

static void lock(const char *name, uint64_t stamp, uint64_t address, unsigned event)
{
	record(name, address << PRELOAD_LOCK_BITS | event, PRELOAD_OF_LOCK);
	record(name, stamp, PRELOAD_LOCK);
}

static void test_locks(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	lock("7.100.0.gil", 300, 0x7fff12345678, PRELOAD_LOCK_WAITS);
	lock("7.100.0.gil", 420, 0x7fff12345678, PRELOAD_LOCK_GOT);
	lock("7.100.0.gil", 500, 0x10, PRELOAD_LOCK_IDLES);
	lock("7.100.0.gil", 600, 0x10, PRELOAD_LOCK_LEFT);
	record("7.100.0.gil", 620, PRELOAD_LOCK);
	lock("7.100.0.gil", 640, 0x10, 0);
	lock("7.100.0.gil", 700, 0x10, PRELOAD_LOCK_PARKS);
	lock("7.100.0.gil", 720, 0x10, PRELOAD_LOCK_MISSED);
	begin_stream("7.100.1.gil", 7, 100);
	thread("7.100.1.gil", 210, 8);
	lock("7.100.1.gil", 400, 0x7fff12345678, PRELOAD_LOCK_POSTS);
	lock("7.100.1.gil", 710, 0x10, PRELOAD_LOCK_SIGNALS);
	is_str(events(),
	       "7 comm@1100 8 fork@1105 7 park@1150 0x7fff12345678 8 unpark@1200 0x7fff12345678 "
	       "7 parked@1210 7 park@1250 event 0x10 7 parked@1300 7 park@1350 0x10 "
	       "8 unpark@1355 0x10 signal "
	       "7 parked@1360 missed ",
	       "waits for locks, what ends them, and waits for signals; nothing of unknown events");
}

/* The holder writes what it ran at the time of the request when it releases the GIL. */
static void test_asked(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	record("7.100.0.gil", 202, PRELOAD_ACQUIRE);
	record("7.100.0.gil", 290, PRELOAD_HELD);
	record("7.100.0.gil", 300, PRELOAD_RELEASE);
	begin_stream("7.100.1.gil", 7, 100);
	thread("7.100.1.gil", 210, 8);
	record("7.100.1.gil", 220, PRELOAD_REQUEST);
	record("7.100.1.gil", 290, PRELOAD_ASKED);
	record("7.100.1.gil", 400, PRELOAD_ACQUIRE);
	is_str(events(),
	       "7 comm@1100 7 request@1101 7 acquire@1101 8 fork@1105 8 request@1110 7 asked@1145 "
	       "7 release@1150 7 released@1150 8 acquire@1200 ",
	       "a release request is an event of the holder");
}

static void test_same_stamp(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	record("7.100.0.gil", 300, PRELOAD_ACQUIRE);
	begin_stream("7.100.1.gil", 7, 100);
	record("7.100.1.gil", 300, PRELOAD_RELEASE);
	is_str(events(), "7 release@1150 7 released@1150 7 request@1150 7 acquire@1150 ",
	       "at the same moment one thread releases before another one acquires");
}

static void test_children(void)
{
	const struct preload_entry forked = { sizeof(forked), PRELOAD_FORKED, 300, 0, 8 };

	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_log("9.300.log", 9, 300);
	append("9.300.log", &forked, sizeof(forked));
	begin_stream("9.300.0.gil", 9, 300);
	thread("9.300.0.gil", 310, 9);
	begin_log("10.400.log", 10, 400);
	begin_stream("10.400.0.gil", 10, 400);
	thread("10.400.0.gil", 410, 10);
	is_str(events(), "9 fork@1155 10 fork@1205 10 comm@1205 ",
	       "a fork is born; what was executed has a name of its own");
}

static void test_idle(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	begin_stream("7.100.1.gil", 7, 100);
	thread("7.100.1.gil", 210, 8);
	thread("7.100.1.gil", 220, 9);
	for (unsigned tid = 8; tid <= 10; tid++)
		entry("launcher.log", PRELOAD_IDLE, 0, tid, 7);
	is_str(events(), "7 comm@1100 10 fork@1100 8 fork@1105 9 fork@1110 ",
	       "a thread that was there before, and has no records, is there from the first one "
	       "on");
}

/* A thread that takes over the file of one that has ended has a creator of its own. */
static void test_creators(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	begin_stream("7.100.1.gil", 7, 100);
	record("7.100.1.gil", 8, PRELOAD_OF_THREAD);
	record("7.100.1.gil", 7, PRELOAD_OF_CREATOR);
	record("7.100.1.gil", 210, PRELOAD_THREAD);
	record("7.100.1.gil", 220, PRELOAD_EXIT);
	thread("7.100.1.gil", 230, 9);
	begin_stream("7.100.2.gil", 7, 100);
	record("7.100.2.gil", 10, PRELOAD_OF_THREAD);
	record("7.100.2.gil", 8, PRELOAD_OF_CREATOR);
	record("7.100.2.gil", 240, PRELOAD_THREAD);
	is_str(events(), "7 comm@1100 8 fork@1105 by 7 8 exit@1110 9 fork@1115 10 fork@1120 by 8 ",
	       "a thread is created by the thread that the library saw, or by an unknown one");
}

/* Hard links cost nothing on the disk. */
static void test_links(void)
{
	CLEANUP(free) char *log = xasprintf("%s/7.100.log", dir);
	CLEANUP(free) char *records = xasprintf("%s/7.100.0.gil", dir);
	CLEANUP(free) char *other = xasprintf("%s/9.99999.log", dir);
	struct preload_log read = { .stop_stamp = UINT64_MAX };
	struct error err;

	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	record("7.100.0.gil", 200, PRELOAD_ACQUIRE);
	for (int i = 0; i < 10; i++) {
		CLEANUP(free) char *second = xasprintf("%s/8.%d.log", dir, i);
		CLEANUP(free) char *third = xasprintf("%s/8.%d.0.gil", dir, i);

		if (link(log, second) < 0 || link(records, third) < 0)
			exit(99);
	}
	is_str(events(), "7 request@1100 7 acquire@1100 ",
	       "a file with several names is read once");
	for (int i = 0; i < 65535; i++)
		preload_log_parse(&read,
		                  &(struct preload_entry){ sizeof(struct preload_entry),
		                                           PRELOAD_PROCESS, (uint64_t)i + 1000, 7,
		                                           0 },
		                  sizeof(struct preload_entry));
	ok(preload_log_read(&read, log, &err) == 0, "as many processes as there are pids are read");
	begin_log("9.99999.log", 9, 99999);
	ok(preload_log_read(&read, other, &err) < 0 && strstr(err.text, "9.99999.log"), "%s",
	   err.text);
	preload_log_done(&read);
}

/* Each of these entries is 40 bytes. */
static void test_numbers(void)
{
	struct preload_log log = { .stop_stamp = UINT64_MAX };
	const struct preload_entry gil = { sizeof(gil), PRELOAD_GIL, 1, PRELOAD_GILS_MAX - 1,
		                           0xabc0 };
	struct preload_entry both[] = { { sizeof(gil), PRELOAD_PROCESS, 0, 7, 0 }, gil };
	size_t bytes = 0;

	for (unsigned i = 0; i < 1000; i++) {
		both[0].stamp = i + 1;
		preload_log_parse(&log, both, sizeof(both));
	}
	for (size_t i = 0; i < log.processes.n; i++)
		bytes += log.processes.v[i].gils.alloc * sizeof(*log.processes.v[i].gils.v);
	ok(log.processes.n == 1000 && bytes <= 1000 * sizeof(both) * 10,
	   "a GIL's number does not decide on memory: %zu bytes", bytes);
	is_u64(preload_log_gil(&log.processes.v[999], PRELOAD_GILS_MAX - 1), 0xabc0, "it is found");
	is_u64(preload_log_gil(&log.processes.v[999], 0), 0, "and others are unknown");
	preload_log_done(&log);
}

static void test_unwritten(void)
{
	const struct preload_header h = { .magic = PRELOAD_MAGIC,
		                          .process = 100,
		                          .pid = 7,
		                          .unwritten = 12,
		                          .unwritten_stamp = 400 };

	start_folder();
	begin_log("7.100.log", 7, 100);
	append("7.100.0.gil", &h, sizeof(h));
	record("7.100.0.gil", 200, PRELOAD_ACQUIRE);
	begin_stream("7.100.1.gil", 7, 100);
	record("7.100.1.gil", 800, PRELOAD_EXIT);
	is_str(events(), "7 request@1100 7 acquire@1100 7 exit@1400 0 lost@1400 ",
	       "what could not be written is lost");
}

static void test_killed(void)
{
	static const char zeros[4096];

	start_folder();
	begin_log("7.100.log", 7, 100);
	append("7.100.log", "\x40\0\0\0\1\0\0", 7);
	begin_stream("7.100.0.gil", 7, 100);
	record("7.100.0.gil", 200, PRELOAD_ACQUIRE);
	append("7.100.0.gil", zeros, sizeof(zeros));
	append("7.100.1.gil", zeros, 3);
	is_str(events(), "7 request@1100 7 acquire@1100 unfinished 1",
	       "a process that was killed leaves an entry cut, zeros behind its last record, and a "
	       "file without a header");
}

/* Process 7 forked process 9, both with a thread that goes on recording. */
static void start_family(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	record("7.100.0.gil", 900, PRELOAD_RELEASE);
	begin_log("9.300.log", 9, 300);
	begin_stream("9.300.0.gil", 9, 300);
	thread("9.300.0.gil", 310, 9);
	begin_stream("9.300.1.gil", 9, 300);
	thread("9.300.1.gil", 320, 10);
	record("9.300.1.gil", 400, PRELOAD_ACQUIRE);
}

#define FAMILY                                                                              \
	"7 comm@1100 9 fork@1155 9 comm@1155 10 fork@1160 10 request@1200 10 acquire@1200 " \
	"%s7 release@1450 7 released@1450 %s"

static void is_family(const char *before, const char *after, const char *name)
{
	CLEANUP(free) char *want = xasprintf(FAMILY, before, after);

	is_str(events(), want, "%s", name);
}

static void test_ends(void)
{
	start_family();
	is_family("", "", "a recorder that was killed says of nobody how long it lived");
	entry("9.300.log", PRELOAD_ENDED, 600, 0, 0);
	is_family("10 exit@1300 9 exit@1300 ", "", "a process ends with all its threads");
	entry("launcher.log", PRELOAD_STOP, 1000, 0, 0);
	is_family("10 exit@1300 9 exit@1300 ", "7 exit@1450 ",
	          "the program, of whose end nothing is known, with its last record");
	start_family();
	entry("launcher.log", PRELOAD_STOP, 1000, 0, 0);
	is_family("9 exit@1200 10 exit@1200 ", "7 exit@1450 ",
	          "a child that was killed ended with its last record");
	entry("launcher.log", PRELOAD_ALIVE, 0, 9, 0);
	is_family("", "7 exit@1450 ", "unless it lived on");
	entry("launcher.log", PRELOAD_ALIVE, 0, 7, 0);
	is_family("", "", "as the program does if a limit ended the recording");
	start_family();
	begin_log("9.800.log", 9, 800);
	entry("launcher.log", PRELOAD_STOP, 1000, 0, 0);
	is_family("", "7 exit@1450 ", "or became another program");
}

/* As they are while somebody still writes. */
static void test_unfinished(void)
{
	static const char zeros[4096];
	const uint64_t magic[8] = { PRELOAD_MAGIC };

	start_folder();
	begin_log("7.100.log", 7, 100);
	append("7.100.0.gil", zeros, sizeof(zeros));
	append("7.100.1.gil", magic, sizeof(magic));
	is_str(events(), "", "files whose header is not written yet have no records");
	begin_stream("9.300.0.gil", 9, 300);
	record("9.300.0.gil", 400, PRELOAD_ACQUIRE);
	is_str(events(), "unfinished 1", "a process without a log is counted, and not shown");
	entry("launcher.log", PRELOAD_STOP, 200, 0, 0);
	is_str(events(), "", "unless it came after the recording's end");
	entry("7.100.log", PRELOAD_GIL, 300, 1, 1);
	append("7.100.log", "\x28\0\0\0\1\0\0\0\x2c\1\0\0\0\0\0\0", 16);
	is_str(events(), "", "so does an entry that is cut");
}

static void test_foreign(void)
{
	static const char text[128] = "this is no recording";

	start_folder();
	begin_log("7.100.log", 7, 100);
	append("7.100.0.gil", text, sizeof(text));
	is_str(events(), "error: 7.100.0.gil: not a recording of giltracer's library",
	       "another file is refused by name");
	start_folder();
	begin_log("7.100.log", 7, 100);
	append("7.100.0.gil", "gltrgil1", 8);
	append("7.100.0.gil", text, sizeof(text));
	is_str(events(),
	       "error: 7.100.0.gil: GIL events in the format of another version of giltracer: "
	       "report "
	       "with the version that recorded them, or record again",
	       "a file of another version is told apart");
	start_folder();
	begin_stream("7.100.0.gil", 7, 100);
	start_folder();
	begin_log("7.100.log", 7, 100);
	entry("7.100.log", PRELOAD_GIL, 100, UINT64_C(1) << 40, 1);
	begin_stream("7.100.0.gil", 7, 100);
	record("7.100.0.gil", 0xffff, PRELOAD_OF_GIL);
	record("7.100.0.gil", 200, PRELOAD_ACQUIRE);
	record("7.100.0.gil", 210, 15);
	record("7.100.0.gil", 150, PRELOAD_RELEASE);
	is_str(events(), "7 request@1100 7 acquire@1100 7 release@1100 7 released@1100 ",
	       "numbers of GILs, types and times that make no sense do no harm");
}

/* Of the first release, in microseconds. */
static uint32_t overdue(void)
{
	struct source *source;
	struct error err;
	struct event ev;
	uint32_t ret = UINT32_MAX;

	if (from_preload_open(&source, dir, NULL, NULL, &err) < 0)
		return ret;
	while (ret == UINT32_MAX && source_next(source, &ev, &err) > 0)
		if (ev.type == EV_RELEASE)
			ret = ev.gil.overdue_us;
	source_close(source);
	return ret;
}

static void start_asked(uint64_t asked_stamp)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	record("7.100.0.gil", 200, PRELOAD_ACQUIRE);
	record("7.100.0.gil", asked_stamp, PRELOAD_HELD);
}

static void test_overdue(void)
{
	start_asked(10000);
	record("7.100.0.gil", 30000, PRELOAD_RELEASE);
	is_u64(overdue(), 10, "a release that was requested 10 us before");
	start_asked(10000);
	record("7.100.0.gil", 4000, PRELOAD_OF_DELAY);
	record("7.100.0.gil", 30000, PRELOAD_RELEASE);
	is_u64(overdue(), 6, "of which the thread had no CPU for 4 us");
	start_asked(10000);
	record("7.100.0.gil", 40000, PRELOAD_OF_DELAY);
	record("7.100.0.gil", 30000, PRELOAD_RELEASE);
	is_u64(overdue(), 0, "it had none all the while");
	start_asked(40000);
	record("7.100.0.gil", 30000, PRELOAD_RELEASE);
	is_u64(overdue(), 0, "a request after the release is none");
}

static uint64_t time_of(const struct preload_log *log, uint64_t stamp)
{
	size_t near = 0;

	return preload_log_time(log, stamp, &near);
}

static void test_clock(void)
{
	static const struct preload_entry pairs[] = {
		{ 32, PRELOAD_PAIR, 3000, 0, 4000 }, { 32, PRELOAD_PAIR, 1000, 0, 2000 },
		{ 32, PRELOAD_PAIR, 2000, 0, 2500 }, { 32, PRELOAD_PAIR, 2500, 0, 2400 },
		{ 32, PRELOAD_PAIR, 2000, 0, 9999 },
	};
	struct preload_log log = { 0 };

	preload_log_parse(&log, pairs, sizeof(pairs));
	preload_log_finish(&log);
	is_u64(log.pairs.n, 3, "a pair that goes back in time is dropped");
	is_u64(time_of(&log, 1500), 2250, "between two pairs time is linear");
	is_u64(time_of(&log, 2500), 3250, "the same between the next two");
	is_u64(time_of(&log, 4000), 5500, "behind the last pair it goes on as before");
	is_u64(time_of(&log, 800), 1900, "and so it does before the first one");
	preload_log_done(&log);
}

/* A flight recorder begins a new log when its tables are full. */
static void test_two_logs(void)
{
	start_folder();
	begin_log("7.100.old.log", 7, 100);
	begin_log("7.100.log", 7, 100);
	entry("7.100.log", PRELOAD_GIL, 100, 1, 0xabd0);
	begin_log("8.100.log", 8, 100); /* another process of the same stamp */
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	record("7.100.0.gil", 202, PRELOAD_ACQUIRE);
	begin_stream("8.100.0.gil", 8, 100);
	thread("8.100.0.gil", 210, 8);
	is_str(events(), "7 comm@1100 7 request@1101 7 acquire@1101 8 fork@1105 8 comm@1105 ",
	       "two logs of a process are of one process");
}

/* A thread that waits for long says what the holder does, which may never do so itself. */
static void test_holder(void)
{
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	record("7.100.0.gil", 202, PRELOAD_ACQUIRE);
	begin_stream("7.100.1.gil", 7, 100);
	thread("7.100.1.gil", 210, 8);
	record("7.100.1.gil", 220, PRELOAD_REQUEST);
	record("7.100.1.gil", 290, PRELOAD_ASKED);
	record("7.100.1.gil", 300, PRELOAD_HOLDER_ASKED); /* without the holder */
	record("7.100.1.gil", 7, PRELOAD_OF_HOLDER);
	record("7.100.1.gil", 0, PRELOAD_OF_FRAME);
	record("7.100.1.gil", 290, PRELOAD_HOLDER_ASKED);
	is_str(events(),
	       "7 comm@1100 7 request@1101 7 acquire@1101 8 fork@1105 8 request@1110 7 asked@1145 ",
	       "a release request is an event of the holder, whoever records it");
}

/* A flight recorder has dropped the first part of a file. */
static void test_dropped(void)
{
	const struct preload_header h = {
		.magic = PRELOAD_MAGIC,
		.process = 100,
		.pid = 7,
		.clock = PRELOAD_CLOCK_TSC,
		.first = 128,
		.dropped_stamp = 2000,
	};
	const char hole[64] = { 0 };
	uint64_t start_ns, end_ns;
	struct error err;

	start_folder();
	begin_log("7.100.log", 7, 100);
	append("7.100.0.gil", &h, sizeof(h));
	append("7.100.0.gil", hole, sizeof(hole));
	record("7.100.0.gil", 7, PRELOAD_OF_THREAD);
	record("7.100.0.gil", 0, PRELOAD_OF_GIL);
	record("7.100.0.gil", 0, PRELOAD_OF_FRAME);
	record("7.100.0.gil", 2000, PRELOAD_LOCK); /* its first half was dropped */
	record("7.100.0.gil", 2100, PRELOAD_RELEASE);
	/* The next part, of the same thread. */
	record("7.100.0.gil", 7, PRELOAD_OF_THREAD);
	record("7.100.0.gil", 0, PRELOAD_OF_GIL);
	record("7.100.0.gil", 2200, PRELOAD_REQUEST);
	begin_stream("7.100.1.gil", 7, 100);
	thread("7.100.1.gil", 1000, 8);
	record("7.100.1.gil", 1010, PRELOAD_REQUEST);
	record("7.100.1.gil", 2110, PRELOAD_ACQUIRE);
	is_str(events(),
	       "8 fork@1500 8 request@1505 7 comm@2050 7 release@2050 7 released@2050 8 "
	       "acquire@2055 "
	       "7 request@2100 ",
	       "a file without its first part begins with the thread that wrote the rest");
	ok(from_preload_window(&start_ns, &end_ns, dir, 50, 0, &err) == 0 && start_ns == 2050 &&
	           end_ns == 2100,
	   "the last part of it, up to the last event");
	ok(from_preload_window(&start_ns, &end_ns, dir, 700, 2150, &err) == 0 && start_ns == 2001 &&
	           end_ns == 2150,
	   "no longer than since the last record that was dropped");
	start_folder();
	begin_log("7.100.log", 7, 100);
	begin_stream("7.100.0.gil", 7, 100);
	thread("7.100.0.gil", 200, 7);
	ok(from_preload_window(&start_ns, &end_ns, dir, 700, 1600, &err) == 0 && start_ns == 0,
	   "everything, if it is younger than that");
}

/* The library has a layout for one free-threaded version. */
static void test_unknown_version(void)
{
	struct python python = {
		.command = (char[]){ "python3.14t" }, .major = 3, .minor = 14, .free_threaded = true
	};
	struct preloading preloading = { 0 };
	struct error err = { 0 };

	ok(preloading_check(&preloading, &python, &err) < 0 && err.code == ENOTSUP &&
	           strstr(err.text, "knows that of 3.13 only"),
	   "a version whose layout the library does not know is refused: %s", err.text);
}

int main(void)
{
	struct error err;

	if (!mkdtemp(dir))
		return 99;
	test_turns();
	test_packed_turns();
	test_locks();
	test_asked();
	test_same_stamp();
	test_children();
	test_idle();
	test_creators();
	test_links();
	test_dropped();
	test_two_logs();
	test_holder();
	test_unknown_version();
	test_numbers();
	test_unwritten();
	test_killed();
	test_ends();
	test_unfinished();
	test_foreign();
	test_overdue();
	test_clock();
	file_remove_tree(dir, &err);
	return done_testing();
}
