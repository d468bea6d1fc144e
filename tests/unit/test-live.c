/* SPDX-License-Identifier: MIT */
/* Live reading of memory that no interpreter has made: this process pretends to be one. The work is
 * bounded, and what is found is right or refused. */
#include "live/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#include "tap.h"

#define PLACE  1024 /* room for each object */
#define FRAMES 20000

enum { ROOT, INTERPRETER, CODE_TYPE, CODE, NAME, THREADS };

/* The memory: objects of PLACE bytes, one after the other. */
static uint8_t *memory;
static struct target *target;

static uint64_t place(size_t i)
{
	return (uint64_t)(uintptr_t)memory + i * PLACE;
}

static void put(size_t i, size_t at, uint64_t value)
{
	memcpy(memory + i * PLACE + at, &value, sizeof(value));
}

static uint32_t member(enum python_memory_key key)
{
	return target->def->layout.memory[key];
}

static uint32_t frame(enum python_frame_key key)
{
	return target->def->layout.frame[key];
}

/* Opens memory of count places as that of an interpreter; ends the test if that is impossible. */
static void start(const char *version, size_t count)
{
	CLEANUP(free) char *path = xasprintf("%s/probes/%s.yaml", top_srcdir(), version);
	struct probedef *def;
	struct error err;

	memory = xcalloc(count, PLACE);
	if (probedef_load(&def, path, &err) < 0 ||
	    target_open_at(&target, getpid(), def, place(ROOT), place(CODE_TYPE), &err) < 0) {
		ok(false, "%s", err.text);
		exit(done_testing());
	}
	put(ROOT, member(MEMORY_INTERPRETERS), place(INTERPRETER));
	put(CODE, frame(FRAME_TYPE), place(CODE_TYPE));
	put(CODE, frame(FRAME_NAME), place(NAME));
	put(CODE, member(MEMORY_FILE), place(NAME));
	put(NAME, member(MEMORY_LENGTH), 4);
	put(NAME, frame(FRAME_STATE), 0x60);
	memcpy(memory + NAME * PLACE + frame(FRAME_TEXT), "work", 4);
}

static void end(void)
{
	target_close(target);
	free(memory);
}

/* States i to i + count of the interpreter; each leads to the next one. first: the innermost frame of
 * all of them; 0: none. */
static void put_threads(size_t i, size_t count, uint64_t first)
{
	put(INTERPRETER, member(MEMORY_THREADS), place(i));
	for (size_t j = 0; j < count; j++) {
		put(i + j, member(MEMORY_NEXT_THREAD), j + 1 < count ? place(i + j + 1) : 0);
		put(i + j, member(MEMORY_THREAD_ID), 1000 + j);
		put(i + j, frame(FRAME_CURRENT), first);
	}
}

/* Frame i, called by previous. From 3.11 on, something in between points to the innermost. */
static void put_frame(size_t i, uint64_t previous)
{
	put(i, frame(FRAME_PREVIOUS), previous);
	put(i, frame(FRAME_CODE), place(CODE));
}

/* What FRAME_CURRENT of a thread has to be for the innermost frame i. */
static uint64_t current(size_t i)
{
	if (frame(FRAME_CURRENT2) == PYTHON_NO_OFFSET)
		return place(i);
	put(NAME, PLACE - 8, place(i));
	return place(NAME) + PLACE - 8 - frame(FRAME_CURRENT2);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Takes one snapshot. Returns its number of frames, or -1 if it was refused. */
static long look(char *why, size_t size)
{
	CLEANUP(snapshots_free) struct snapshots *s = snapshots_new(target);
	struct snapshot snapshot;
	struct error err;
	long frames = 0;

	if (snapshot_take(&snapshot, s, &err) < 0) {
		snprintf(why, size, "%s", err.text);
		snapshot_done(&snapshot);
		return -1;
	}
	*why = '\0';
	for (size_t i = 0; i < snapshot.threads.n; i++)
		frames += (long)snapshot.threads.v[i].frames.n;
	snapshot_done(&snapshot);
	return frames;
}

static void test_valid(const char *version)
{
	char why[512];

	start(version, THREADS + 16);
	put_frame(THREADS + 10, place(THREADS + 11));
	put_frame(THREADS + 11, place(THREADS + 12));
	put_frame(THREADS + 12, 0);
	put_threads(THREADS, 3, current(THREADS + 10));
	is_u64((uint64_t)look(why, sizeof(why)), 9, "%s: three threads with three frames each %s",
	       version, why);
	end();
}

/* Deeper than Python permits unless it is told to. */
static void test_deep(const char *version)
{
	size_t depth = 3 * FRAMES;
	char why[512];

	start(version, THREADS + 1 + depth);
	put_threads(THREADS, 1, current(THREADS + 1));
	for (size_t i = 0; i < depth; i++)
		put_frame(THREADS + 1 + i, i + 1 < depth ? place(THREADS + 2 + i) : 0);
	is_u64((uint64_t)look(why, sizeof(why)), depth, "%s: a deep stack is read to its end %s",
	       version, why);
	end();
}

static void test_cycles(const char *version)
{
	char why[512];

	start(version, THREADS + 16);
	put_frame(THREADS + 10, place(THREADS + 11));
	put_frame(THREADS + 11, place(THREADS + 12));
	put_frame(THREADS + 12, place(THREADS + 11));
	put_threads(THREADS, 3, current(THREADS + 10));
	is_u64((uint64_t)look(why, sizeof(why)), 0, "%s: a frame is its own caller: no stack",
	       version);
	put_threads(THREADS, 3, 0);
	put(THREADS + 2, member(MEMORY_NEXT_THREAD), place(THREADS));
	ok(look(why, sizeof(why)) < 0, "%s: the last state leads to the first: %s", version, why);
	put_threads(THREADS, 3, 0);
	put(INTERPRETER, member(MEMORY_NEXT_INTERPRETER), place(INTERPRETER));
	ok(look(why, sizeof(why)) < 0, "%s: an interpreter leads to itself: %s", version, why);
	end();
}

/* Many states for few threads, and many states with one long stack. */
static void test_many(const char *version)
{
	size_t states = 50000;
	double before;
	char why[512];

	start(version, THREADS + states + FRAMES);
	put_threads(THREADS, states, 0);
	before = cpu_seconds();
	ok(look(why, sizeof(why)) < 0, "%s: %zu states of one thread: %s", version, states, why);
	ok(cpu_seconds() - before < 2, "  in %.2f s", cpu_seconds() - before);

	for (size_t i = 0; i < FRAMES; i++)
		put_frame(THREADS + states + i,
		          i + 1 < FRAMES ? place(THREADS + states + i + 1) : 0);
	put_threads(THREADS, 900, current(THREADS + states));
	before = cpu_seconds();
	ok(look(why, sizeof(why)) < 0 && strstr(why, "Python frames"), "%s: 18 million frames: %s",
	   version, why);
	ok(cpu_seconds() - before < 10, "  in %.2f s", cpu_seconds() - before);
	end();
}

/* In 3.15, a thread that waits for the GIL says so, although it does not sleep. Returns how many threads
 * have each relation to the GIL, as "holds waits none". */
static char *relations(bool says)
{
	CLEANUP(snapshots_free) struct snapshots *s = NULL;
	unsigned count[GIL_NOT_KNOWN + 1] = { 0 };
	const size_t lock = THREADS + 3, frames = THREADS + 4, requests = PLACE / 4;
	struct snapshot snapshot;
	struct error err;

	start("3.15", THREADS + 5);
	target->def->layout.memory[MEMORY_REQUESTS_GIL] = says ? requests : PYTHON_NO_OFFSET;
	put(INTERPRETER, member(MEMORY_GIL), place(lock));
	put(lock, member(MEMORY_HOLDER), place(THREADS));
	put(lock, member(MEMORY_LOCKED), 1);
	put_frame(frames, 0);
	put_threads(THREADS, 3, current(frames));
	put(THREADS + 1, requests, 1);
	s = snapshots_new(target);
	if (snapshot_take(&snapshot, s, &err) == 0)
		for (size_t i = 0; i < snapshot.threads.n; i++)
			count[snapshot.threads.v[i].gil]++;
	snapshot_done(&snapshot);
	end();
	return xasprintf("%u %u %u", count[GIL_HOLDS], count[GIL_WAITS], count[GIL_NONE]);
}

static void test_request(void)
{
	CLEANUP(free) char *says = relations(true);
	CLEANUP(free) char *sleeps = relations(false);

	is_str(says, "1 1 1", "the holder, one that requests the GIL, and one that does neither");
	is_str(sleeps, "1 0 2", "without the request, one that does not sleep does not wait");
}

/* Offsets that an interpreter publishes are used only if its memory is as they say. Returns the error for
 * an interpreter with two threads, of which the second one has this interpreter; "": none. */
static char *published(const char *code_name, uint64_t owner)
{
	CLEANUP(free) char *path = xasprintf("%s/probes/3.15.yaml", top_srcdir());
	const size_t of = 16, name = NAME * PLACE + PLACE / 2;
	struct error err = { 0 };
	struct probedef *def;

	memory = xcalloc(THREADS + 2, PLACE);
	if (probedef_load(&def, path, &err) < 0)
		return xstrdup(err.text);
	def->is_published = true;
	def->layout.memory[MEMORY_INTERPRETER] = (uint32_t)of;
	/* Nearer than they are, so that they are within a place. */
	def->layout.memory[MEMORY_THREADS] = 64;
	put(ROOT, def->layout.memory[MEMORY_INTERPRETERS], place(INTERPRETER));
	put(INTERPRETER, 64, place(THREADS));
	put(CODE_TYPE, def->layout.type.name, (uint64_t)(uintptr_t)memory + name);
	memcpy(memory + name, code_name, strlen(code_name) + 1);
	put(THREADS, def->layout.memory[MEMORY_NEXT_THREAD], place(THREADS + 1));
	put(THREADS, of, place(INTERPRETER));
	put(THREADS + 1, of, owner ? owner : place(INTERPRETER));
	if (target_open_at(&target, getpid(), def, place(ROOT), place(CODE_TYPE), &err) == 0)
		target_close(target);
	free(memory);
	return xstrdup(err.text);
}

static void test_published(void)
{
	CLEANUP(free) char *good = published("code", 0);
	CLEANUP(free) char *type = published("dict", 0);
	CLEANUP(free) char *thread = published("code", 64);

	is_str(good, "", "published offsets that lead to an interpreter and its threads are used");
	ok(strstr(type, "its types are not"), "those that do not lead to a type are refused: %s",
	   type);
	ok(strstr(thread, "are not those of its memory"), "nor those that do not lead back: %s",
	   thread);
}

int main(void)
{
	static const char *const versions[] = { "3.8", "3.11", "3.13" };
	struct rusage usage;

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		test_valid(versions[i]);
		test_deep(versions[i]);
		test_cycles(versions[i]);
		test_many(versions[i]);
	}
	test_request();
	test_published();
	getrusage(RUSAGE_SELF, &usage);
	ok(usage.ru_maxrss < 400 << 10, "in %ld KB", usage.ru_maxrss);
	return done_testing();
}
