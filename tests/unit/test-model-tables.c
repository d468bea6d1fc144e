/* SPDX-License-Identifier: MIT */
/*
 * The model by tables: events in, rows out, one file of tests/unit/model/ for each subject.
 *
 *	begin all_releases                     the options that are not those of begin() in model-events.h
 *	110 new_thread 8 7; 120 request 8      events: time and arguments as of the macros there; loses: from, to
 *	in_pid 20; on_cpu 1; of_gil 0x9000     of the next events
 *	# a request is a wait                  the rule, which is the name of the check below it
 *	gil 8: 110:N 120:W 1000                what the model answers
 *
 * Blank lines and other lines with # are for readers.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

#include "model-events.h"

#define WORDS 8

struct words {
	char *v[WORDS];
	size_t n;
};

struct member {
	const char *name;
	size_t offset, size;
};

#define MEMBER(type, of, name)                                                           \
	{                                                                                \
		name, offsetof(struct type, of), sizeof(((const struct type *)NULL)->of) \
	}
#define OPTION(name) MEMBER(model_options, name, #name)
static const struct member options[] = {
	OPTION(start_ns),     OPTION(end_ns),    OPTION(start_pid),   OPTION(start_tid),
	OPTION(before_known), OPTION(no_probes), OPTION(all_wakeups), OPTION(all_releases),
};

#define THREAD(name)         MEMBER(model_thread, name, #name)
#define IN_STATE(name, part) MEMBER(model_thread, part, name)
static const struct member thread_members[] = {
	THREAD(main),
	THREAD(holds),
	THREAD(waits),
	THREAD(free_waits),
	THREAD(contended_waits),
	THREAD(releases_probed),
	THREAD(releases_inferred),
	THREAD(longest_hold_ns),
	THREAD(longest_hold_at_ns),
	THREAD(longest_wait_ns),
	THREAD(unseen_runnable_ns),
	IN_STATE("free_wait_ns", gil_ns[GIL_FREE_WAIT]),
	IN_STATE("running_ns", cpu_ns[CPU_RUNNING]),
	IN_STATE("runnable_ns", cpu_ns[CPU_RUNNABLE]),
	IN_STATE("sleeping_ns", cpu_ns[CPU_SLEEPING]),
	IN_STATE("gil_sleep_ns", cpu_ns[CPU_GIL_SLEEP]),
	IN_STATE("cpu_unknown_ns", cpu_ns[CPU_UNKNOWN]),
};

#define OF_GIL(name) MEMBER(model_gil, name, #name)
static const struct member gil_members[] = {
	OF_GIL(pid), OF_GIL(address), OF_GIL(held_ns), OF_GIL(wanted_ns), OF_GIL(handover_ns),
};

static const struct {
	const char *word;
	uint64_t value;
} named[] = {
	{ "-", MODEL_NONE },
	{ "?", MODEL_UNKNOWN },
	{ "D", EV_STATE_UNINTERRUPTIBLE },
	{ "S", EV_STATE_INTERRUPTIBLE },
	{ "R", EV_STATE_RUNNING },
	{ "lock", PARK_LOCK },
	{ "preempt", EVF_PREEMPT },
	{ "recorded", EVF_RECORDED },
	{ "no_gil", EVF_NO_GIL },
	{ "gil_only", EVF_GIL_ONLY },
};

static const char *file;
static unsigned line_number;
static bool finished;

static void complain(const char *what, const char *word)
{
	ok(false, "%s:%u: %s: %s", file, line_number, what, word);
}

static struct words split(char *text, const char *delimiters)
{
	struct words ret = { .n = 0 };

	for (char *word; (word = strsep(&text, delimiters));)
		if (*word && ret.n < WORDS)
			ret.v[ret.n++] = word;
	return ret;
}

static uint64_t number(const struct words *w, size_t i)
{
	char *end = NULL;
	uint64_t ret = i < w->n ? strtoull(w->v[i], &end, 0) : 0;

	for (size_t k = 0; i < w->n && k < sizeof(named) / sizeof(*named); k++)
		if (!strcmp(named[k].word, w->v[i]))
			return named[k].value;
	if (!end || *end)
		complain("a number is missing", i < w->n ? w->v[i] : "at the end");
	return ret;
}

static uint32_t at(const struct words *w, size_t i)
{
	return (uint32_t)number(w, i);
}

static const struct member *member(const struct member *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	complain("there is no such number", name);
	return NULL;
}

#define FIND(list, name) member(list, sizeof(list) / sizeof(*(list)), name)

static uint64_t value(const void *of, const struct member *from)
{
	uint64_t ret = 0;

	if (of && from)
		memcpy(&ret, (const char *)of + from->offset, from->size);
	return ret;
}

/* KEY is KEY=1. */
static void start(struct words w)
{
	struct model_options o = {
		.start_ns = 100, .end_ns = 1000, .start_pid = 7, .start_tid = 7
	};

	for (size_t i = 1; i < w.n; i++) {
		char *text = w.v[i], *key = strsep(&text, "=");
		uint64_t set = text ? strtoull(text, NULL, 0) : 1;
		const struct member *to = FIND(options, key);

		if (to)
			memcpy((char *)&o + to->offset, &set, to->size);
	}
	begin_with(&o);
	finished = false;
}

static void happens(const struct words *w)
{
	uint64_t t = number(w, 0), second = number(w, w->n == 2 ? 0 : 2);
	const char *verb = w->n > 1 ? w->v[1] : "";
	uint32_t tid = (uint32_t)second;

#define IS(name) (!strcmp(verb, name))
	if (IS("request"))
		request(t, tid);
	else if (IS("acquire"))
		acquire(t, tid);
	else if (IS("release"))
		release(t, tid);
	else if (IS("released"))
		released(t, tid);
	else if (IS("save"))
		save(t, tid);
	else if (IS("run"))
		run(t, tid, (int32_t)at(w, 3));
	else if (IS("leaves"))
		leaves(t, tid);
	else if (IS("preempted"))
		preempted(t, tid);
	else if (IS("sched_out"))
		sched_out(t, tid, number(w, 3), at(w, 4));
	else if (IS("picks"))
		picks(t, (int32_t)second, at(w, 3), at(w, 4), at(w, 5), (uint16_t)number(w, 6));
	else if (IS("moves"))
		moves(t, tid, (int32_t)at(w, 3), (int32_t)at(w, 4));
	else if (IS("parks"))
		parks(t, tid, number(w, 3), at(w, 4));
	else if (IS("parked"))
		parked(t, tid);
	else if (IS("unparks"))
		unparks(t, tid, number(w, 3));
	else if (IS("nests"))
		nests(t, tid, number(w, 3), number(w, 4));
	else if (IS("wakes"))
		wakes(t, tid, at(w, 3));
	else if (IS("new_thread"))
		new_thread(t, tid, at(w, 3));
	else if (IS("new_process"))
		new_process(t, tid, at(w, 3));
	else if (IS("maps_python"))
		maps_python(t, tid, (uint16_t)number(w, 3));
	else if (IS("ends"))
		ends(t, tid);
	else if (IS("is_called") && w->n == 4)
		is_called(t, tid, w->v[3]);
	else if (IS("execs") && w->n == 4)
		execs(t, tid, w->v[3]);
	else if (IS("loses"))
		loses(t, second, (int32_t)at(w, 3), at(w, 4));
	else if (IS("loses_part"))
		loses_part(t, second, (uint16_t)number(w, 3));
	else
		complain("there is no such event", verb);
#undef IS
}

static void play(char *text)
{
	for (char *one; (one = strsep(&text, ";"));) {
		struct words w = split(one, " ");

		if (w.n == 2 && !strcmp(w.v[0], "of_gil"))
			gil_now = number(&w, 1);
		else if (w.n == 2 && !strcmp(w.v[0], "in_pid"))
			pid_now = at(&w, 1);
		else if (w.n == 2 && !strcmp(w.v[0], "on_cpu"))
			cpu_now = (int32_t)at(&w, 1);
		else
			happens(&w);
	}
}

static uint64_t caveats(const char *name)
{
	for (size_t i = 0; i < CAVEAT_CODES; i++)
		if (!strcmp(caveat_kinds[i].name, name))
			return m->caveats[i];
	complain("there is no such caveat", name);
	return 0;
}

/* How long a thread was runnable while a thread, or a program of this name, used the CPU. */
static uint64_t starved(uint32_t tid, uint32_t by, uint32_t called)
{
	uint32_t user = by < MODEL_UNKNOWN ? model_find_thread(m, by) : by;

	for (size_t i = 0; i < m->cpu_blame.n; i++)
		if (m->threads.v[m->cpu_blame.v[i].thread].tid == tid &&
		    m->cpu_blame.v[i].by == user && m->cpu_blame.v[i].name == called)
			return m->cpu_blame.v[i].runnable_ns;
	return 0;
}

static void add_part(void *data, const struct model_queued *part)
{
	str_addf(data, "%s%" PRIu64 "-%" PRIu64 " cpu %" PRId32 " %" PRId32 "/%" PRIu32,
	         ((struct str *)data)->len ? ", " : "", part->from_ns, part->to_ns, part->cpu,
	         part->by < MODEL_UNKNOWN ? (int32_t)m->threads.v[part->by].tid : -1, part->name);
}

/* The threads that took two locks in both orders, the first one first; "none". */
static void add_inverted(struct str *ret)
{
	for (size_t i = 0; i < m->orders.n; i++)
		if (model_order_is_inverted(m, i))
			str_addf(ret, "%s%" PRIu32 "/%" PRIu32, ret->len ? " " : "",
			         m->threads.v[m->orders.v[m->orders.v[i].reverse].thread].tid,
			         m->threads.v[m->orders.v[i].thread].tid);
	if (!ret->len)
		str_adds(ret, "none");
}

static void answer(struct str *ret, const struct words *w)
{
	const char *what = w->v[0];
	const struct model_thread *t = NULL;
	uint32_t first = 0;

	if (w->n > 1 && strcmp(what, "caveat") != 0)
		first = at(w, 1);
	t = thread(first);
#define IS(name, words) (!strcmp(what, name) && w->n == 1 + (words))
	if (IS("gil", 1))
		str_adds(ret, gil_lane(first));
	else if (IS("cpu", 1))
		str_adds(ret, cpu_lane(first));
	else if (IS("lane", 1) && first < m->threads.n)
		str_adds(ret, lane_text(&m->threads.v[first].gil, "?NHWSFLTX", true));
	else if (IS("owners", 1) && first < m->gils.n)
		str_adds(ret, owners(first));
	else if (IS("name", 1) && t)
		str_adds(ret, t->name);
	else if (IS("gils", 0))
		str_addf(ret, "%zu", m->gils.n);
	else if (IS("threads", 0))
		str_addf(ret, "%zu", m->threads.n);
	else if (IS("blames", 0))
		str_addf(ret, "%zu", m->blame.n);
	else if (IS("cpu_blames", 0))
		str_addf(ret, "%zu", m->cpu_blame.n);
	else if (IS("inverted", 0))
		add_inverted(ret);
	else if (IS("end", 0))
		str_addf(ret, "%" PRIu64, m->end_ns);
	else if (IS("ended", 1) && first < m->threads.n)
		str_addf(ret, "%" PRIu64, m->threads.v[first].end_ns);
	else if (IS("lost_from", 1) && first < m->lost.n)
		str_addf(ret, "%" PRIu64, m->lost.v[first].start_ns);
	else if (IS("caveat", 1))
		str_addf(ret, "%" PRIu64, caveats(w->v[1]));
	else if (IS("blame", 2))
		str_addf(ret, "%" PRIu64, blame(first, at(w, 2)));
	else if (IS("starved", 3))
		str_addf(ret, "%" PRIu64, starved(first, at(w, 2), at(w, 3)));
	else if (IS("queued", 2))
		model_queued_parts(m, model_find_thread(m, first), at(w, 2), add_part, ret);
	else if (IS("cpu_of", 2) && t && at(w, 2) < t->cpu.spans.n)
		str_addf(ret, "%" PRId32, t->cpu.spans.v[at(w, 2)].cpu.number);
	else if (IS("of_gil", 2) && first < m->gils.n && !strcmp(w->v[2], "address"))
		str_addf(ret, "0x%" PRIx64, m->gils.v[first].address);
	else if (IS("of_gil", 2) && first < m->gils.n)
		str_addf(ret, "%" PRIu64, value(&m->gils.v[first], FIND(gil_members, w->v[2])));
	else if (IS("thread", 2) && t && !strcmp(w->v[2], "wait_ns"))
		str_addf(ret, "%" PRIu64, model_thread_wait_ns(t));
	else if (IS("thread", 2) && t)
		str_addf(ret, "%" PRIu64, value(t, FIND(thread_members, w->v[2])));
	else
		complain("there is no such answer", what);
#undef IS
}

static void look(char *text, const char *want, const char *rule)
{
	CLEANUP(str_done) struct str got = { 0 };
	struct words w = split(text, " ");

	if (!finished)
		finish();
	finished = true;
	if (!rule)
		complain("a line with the rule is missing before", want);
	answer(&got, &w);
	if (!is_str(str_get(&got), want, "%s", rule ? rule : want))
		printf("# %s:%u\n", file, line_number);
}

static void run_table(char *text)
{
	const char *rule = NULL;

	line_number = 0;
	for (char *line; (line = strsep(&text, "\n"));) {
		char *colon = strstr(line, ": ");

		line_number++;
		if (!strncmp(line, "begin", 5))
			start(split(line, " "));
		else if (*line == '#')
			rule = line + 1 + strspn(line + 1, " ");
		else if (colon) {
			*colon = '\0';
			look(line, colon + 2, rule);
		} else if (*line) {
			play(line);
		}
		if (*line != '#')
			rule = NULL;
	}
}

int main(void)
{
	CLEANUP(free) char *folder = xasprintf("%s/tests/unit/model", top_srcdir());
	struct dirent **list;
	int n = scandir(folder, &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		CLEANUP(free) char *path = xasprintf("%s/%s", folder, list[i]->d_name);
		CLEANUP(free) char *text = NULL;
		struct error err = { .text = "" };

		file = list[i]->d_name;
		if (strstr(file, ".txt") &&
		    ok(!file_read(&text, NULL, path, 1 << 20, &err), "%s %s", file, err.text))
			run_table(text);
		free(list[i]);
	}
	if (ok(n > 0, "%s has tables", folder))
		free(list);
	model_free(m);
	names_free(names);
	return done_testing();
}
