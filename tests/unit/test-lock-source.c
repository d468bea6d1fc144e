/* SPDX-License-Identifier: MIT */
/* What the text of a program says about its locks. */
#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"
#include "analysis/locks.h"
#include "base/str.h"
#include "report/lock_source.h"
#include "trace/names.h"
#include "trace/source.h"
#include "trace/stacks.h"

#include "tap.h"

static const char text[] = "import threading\n"        /* 1 */
			   "lock = threading.Lock()\n" /* 2 */
			   "a, b = threading.Lock(), threading.RLock()\n"
			   "class Cache:\n" /* 4 */
			   "    def __init__(self):\n"
			   "        self._lock: Any = RLock()\n" /* 6 */
			   "        self.jobs = queue.Queue(4)\n"
			   "    def get(self):\n"
			   "        with self._lock:\n" /* 9 */
			   "# not of a block\n"
			   "            x = self.jobs.get()\n" /* 11 */
			   "            with self._lock, lock:\n"
			   "                pass\n"
			   "class Other(Cache):\n" /* 14 */
			   "    def get(self):\n"
			   "        self._lock.acquire()\n" /* 16 */
			   "        self.jobs = None\n"
			   "        self.jobs = 1\n"
			   "        self.jobs.put(self)\n" /* 19 */
			   "def work():\n"
			   "    with lock:\n" /* 21 */
			   "        time.sleep(1)\n"
			   "    with open('x') as f, b as c:\n" /* 23 */
			   "        f.get(lock.held)\n"
			   "    if not locks[i].acquire(timeout=1): return\n" /* 25 */
			   "    make().acquire()\n"
			   "    print(', '.join(names))\n" /* 27 */
			   "    with other.lock:\n"
			   "        pass";

/* "lock of class made:kind" */
static char *line(uint32_t number)
{
	static struct str out;
	struct file_lines lines = file_lines_of(text, sizeof(text) - 1);
	struct source_line s = { .line = number };

	str_done(&out);
	lock_source_find(&s, &lines, number);
	str_addf(&out, "%s of %s %u:%s", s.lock ? s.lock : "-", s.of ? s.of : "-", s.made,
	         s.kind ? s.kind : "-");
	free(s.lock);
	free(s.of);
	free(s.kind);
	vec_done(&lines.v);
	return (char *)(uintptr_t)str_get(&out);
}

static struct source source;

static uint32_t call(uint32_t parent, const char *name, const char *file, uint32_t line)
{
	struct stack_frame f = { .parent = parent,
		                 .name = names_id(source.names, name, strlen(name)),
		                 .module = names_id(source.names, file, strlen(file)),
		                 .line = line };

	return stacks_id(source.frames, &f);
}

/* "kind lock function called" */
static char *name(uint32_t frame)
{
	static char app[] = "app.py", lib[] = "/lib/threading.py", lock[] = "lock", jobs[] = "jobs";
	static char cond[] = "Condition", event[] = "Event", simple[] = "SimpleQueue";
	struct source_line lines[] = {
		{ .file = app, .line = 1, .text = (char[]){ "with lock:" }, .lock = lock },
		{ .file = app, .line = 2, .text = (char[]){ "print(jobs.get())" }, .lock = jobs },
		{ .file = app,
		  .line = 3,
		  .text = (char[]){ "jobs.get()" },
		  .lock = jobs,
		  .kind = simple },
		{ .file = app,
		  .line = 4,
		  .text = (char[]){ "log.info(jobs.get())" },
		  .lock = jobs },
		{ .file = lib, .line = 5, .text = (char[]){ "waiter.acquire()" }, .of = cond },
		{ .file = lib, .line = 6, .text = (char[]){ "self._cond.wait()" }, .of = event },
	};
	const struct sources sources = { lines, 6, 6 };
	static struct str out;
	const struct recording recording = { .sources = &sources };
	const struct recording_pass pass = { .source = &source };
	struct lock_name n = lock_name_of(&recording, &pass, frame);

	str_done(&out);
	str_addf(&out, "%d %s %s %s", n.kind, n.expression ? n.expression : "-",
	         n.in.name ? n.in.name : "-", n.called ? n.called : "-");
	return (char *)(uintptr_t)str_get(&out);
}

#define LIB "/lib/threading.py"

static void test_names(void)
{
	uint32_t run;

	source.names = names_new();
	source.frames = stacks_new(source.names);
	run = call(0, "Thread.run", LIB, 900);
	is_str(name(call(call(run, "f", "app.py", 1), "Condition.__enter__", LIB, 5)),
	       "3 lock f Condition.__enter__", "a condition of the program");
	is_str(name(call(run, "f", "app.py", 1)), "0 lock f -", "a lock in C");
	is_str(name(call(run, "f", "app.py", 2)), "0 - f -",
	       "a line that calls something else, too, may wait for that");
	is_str(name(call(run, "f", "app.py", 3)), "7 jobs f -", "a queue in C");
	is_str(name(call(call(run, "f", "app.py", 2), "get", "/lib/queue.py", 171)), "7 jobs f get",
	       "a queue in Python");
	is_str(name(call(call(call(run, "f", "app.py", 4), "handle", "/lib/logging/__init__.py", 7),
	                 "acquire", "/lib/logging/__init__.py", 8)),
	       "0 - f handle", "a line that writes to a log does not name the handler's lock");
	is_str(name(call(call(call(run, "f", "app.py", 1), "wait", LIB, 6), "wait", LIB, 5)),
	       "5 lock f wait", "older interpreters do not tell the class, but the text does");
	is_str(name(call(run, "Condition.wait", LIB, 5)), "3 - Condition.wait Condition.wait",
	       "no code of the program is known");
	stacks_free(source.frames);
	names_free(source.names);
}

int main(void)
{
	test_names();
	is_str(line(9), "self._lock of Cache 6:RLock", "an attribute is made in its class");
	is_str(line(11), "self.jobs of Cache 7:Queue", "what a queue is called");
	is_str(line(12), "- of Cache 0:-", "a line with two locks tells nothing");
	is_str(line(16), "self._lock of Other 0:-", "where a base class made it is not known");
	is_str(line(19), "self.jobs of Other 0:-", "nor is what is made twice");
	is_str(line(21), "lock of - 2:Lock", "a global name");
	is_str(line(22), "- of - 0:-", "a line without a lock");
	is_str(line(23), "b of - 3:-", "one of two different ones");
	is_str(line(24), "f of - 0:-", "a name that nothing is assigned to");
	is_str(line(25), "locks[i] of - 0:-", "a lock of a list");
	is_str(line(26), "- of - 0:-", "a lock without a name");
	is_str(line(27), "- of - 0:-", "a text that joins others");
	is_str(line(28), "other.lock of - 0:-", "an attribute of something else");
	is_str(line(29), "- of - 0:-", "the last line has no end");
	is_str(line(99), "- of - 0:-", "there is no such line");
	return done_testing();
}
