/* SPDX-License-Identifier: MIT */
/* Records of the preloaded library for which there is no memory: they are lost, and counted. */
#include "preload/calls.h"
#include "preload/internal.h"
#include "preload/locks.h"
#include "preload/nogil.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tap.h"

#define STAMP 1000

/* What the library has for them. */
struct process process = { .next_pair = UINT64_MAX };
__thread struct self self;
bool clock_is_tsc;

static char folder[] = "/tmp/test-no-memory.XXXXXX";
static unsigned unwritten;

uint64_t clock_ns(void)
{
	return STAMP;
}

void locks_end_spin(struct self *me)
{
	(void)me;
}

void nogil_thread_begins(void)
{
}

void process_file(char *ret, const char *suffix)
{
	snprintf(ret, sizeof(process.path), "%s/1%s", folder, suffix);
}

long process_open(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC, 0600);
}

bool process_may_use(size_t bytes, uint64_t stamp)
{
	(void)bytes;
	(void)stamp;
	return true;
}

bool process_may_extend(uint64_t size)
{
	(void)size;
	return true;
}

bool process_reserve(long fd, uint64_t at, size_t bytes)
{
	return fallocate((int)fd, 0, (off_t)at, (off_t)bytes) == 0;
}

void process_unwritten(uint64_t stamp)
{
	unwritten += stamp == STAMP;
}

void process_pair(void)
{
}

pid_t process_gettid(void)
{
	return 7;
}

/* Nothing can be mapped until it is set back. */
static struct rlimit no_more(void)
{
	struct rlimit old = { 0 }, none;

	getrlimit(RLIMIT_AS, &old);
	none = (struct rlimit){ .rlim_cur = 1, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_AS, &none);
	return old;
}

static unsigned count_lost(bool (*extend)(void *me), void *me)
{
	struct rlimit old = no_more();
	bool room;

	unwritten = 0;
	room = extend(me);
	setrlimit(RLIMIT_AS, &old);
	ok(!room, "there is no room for the record");
	return unwritten;
}

static bool extend_stream(void *me)
{
	return stream_extend(me, STAMP);
}

static bool extend_calls(void *me)
{
	return calls_extend(me, STAMP);
}

static void test_streams(void)
{
	static struct self first, second, third;

	is_u64(count_lost(extend_stream, &first), 1, "a stream for which there is no place");
	is_u64((uint64_t)first.tid, 7, "whose thread is known nevertheless");
	ok(stream_extend(&second, STAMP), "a stream");
	is_u64(count_lost(extend_stream, &third), 1, "one that cannot be mapped");
	is_u64((uint64_t)second.stream->header->unwritten, 0,
	       "which is not that of another thread");
}

static void test_calls(void)
{
	static struct calls_self first, second, third;

	calls_file_begin();
	is_u64(count_lost(extend_calls, &first), 1, "a file of calls for which there is no place");
	ok(calls_extend(&second, STAMP), "a file of calls");
	is_u64(count_lost(extend_calls, &third), 1, "one that cannot be mapped");
}

static void clean(void)
{
	for (unsigned i = 0; i < 4; i++) {
		char path[sizeof(process.path)];

		snprintf(path, sizeof(path), "%s/1.%u" PRELOAD_GIL_SUFFIX, folder, i);
		unlink(path);
		snprintf(path, sizeof(path), "%s/1.%u" PRELOAD_CALLS_SUFFIX, folder, i);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	process.on = true;
	pthread_key_create(&process.key, NULL);
	test_streams();
	test_calls();
	clean();
	return done_testing();
}
