/* SPDX-License-Identifier: MIT */
/* The verdict's rules, each with a model made for it, and what the findings say of it. */
#include "analysis/functions.h"
#include "analysis/pystack.h"
#include "report-fixture.h"
#include "report/findings.h"
#include "report/words.h"

#include "tap.h"

/* A verdict in words, with the parts that it consists of, and the findings, each in a line. */
struct words {
	enum verdict_kind kind;
	struct str headline, context, findings, advice, quality_text;
	enum verdict_quality quality;
};

/* Makes a GIL that is wanted while any thread waits; lanes consist of whole ms. */
static void want_gil(struct fixture *f)
{
	struct model *m = &f->model;
	uint64_t ns = 0;

	for (uint64_t t = m->start_ns; t < m->end_ns; t += FIXTURE_MS) {
		bool wanted = false;

		for (size_t i = 0; i < m->threads.n; i++) {
			const struct lane *lane = &m->threads.v[i].gil;

			wanted |= t < lane->end_ns &&
			          lane->spans.v[lane_at(lane, t)].state == GIL_WAIT;
		}
		ns += wanted * FIXTURE_MS;
	}
	if (!m->gils.n)
		*vec_push(&m->gils) = (struct model_gil){ .pid = 1 };
	m->gils.v[0].wanted_ns = ns;
}

static void words_init(struct words *ret, struct fixture *f)
{
	struct analysis *a;
	const struct verdict *v;

	want_gil(f);
	a = analysis_new(&f->report);
	v = &a->verdict;

	*ret = (struct words){
		.kind = v->kind,
		.quality = v->quality,
	};
	verdict_add_text(&ret->headline, a, &v->headline);
	verdict_add_text(&ret->context, a, &v->context);
	for (size_t i = 0; i < a->findings.v.n; i++) {
		const struct finding *finding = &a->findings.v.v[i];

		finding_add_title(&ret->findings, a, finding);
		str_adds(&ret->findings, ": ");
		finding_add_text(&ret->findings, a, finding);
		str_addc(&ret->findings, ' ');
		finding_add_remedy(&ret->findings, a, finding);
		str_addc(&ret->findings, '\n');
	}
	verdict_add_text(&ret->advice, a, &v->advice);
	verdict_add_text(&ret->quality_text, a, &v->quality_why);
	analysis_free(a);
}

static void words_done(struct words *w)
{
	str_done(&w->headline);
	str_done(&w->context);
	str_done(&w->findings);
	str_done(&w->advice);
	str_done(&w->quality_text);
}

static void is_kind(struct fixture *f, const char *want, const char *headline, const char *name)
{
	struct words v;

	words_init(&v, f);
	is_str(verdict_kind_name(v.kind), want, "%s: %s", name, want);
	if (!ok(strstr(str_get(&v.headline), headline) != NULL, "%s: says '%s'", name, headline))
		printf("# %s\n", str_get(&v.headline));
	words_done(&v);
}

static void has_advice(struct fixture *f, const char *want, const char *name)
{
	struct words v;

	words_init(&v, f);
	is_str(str_get(&v.advice), want, "%s: the advice", name);
	words_done(&v);
}

/* Checks that the context of f's verdict contains this text. */
static void adds(struct fixture *f, const char *want)
{
	struct words v;

	words_init(&v, f);
	if (!ok(strstr(str_get(&v.context), want) != NULL, "the context: %s", want))
		printf("# %s\n", str_get(&v.context));
	words_done(&v);
}

/* Checks that the findings contain this text. */
static void finds(struct fixture *f, const char *want)
{
	struct words v;

	words_init(&v, f);
	if (!ok(strstr(str_get(&v.findings), want) != NULL, "a finding: %s", want))
		printf("# %s\n", str_get(&v.findings));
	words_done(&v);
}

/* Threads that each spend these percentages of their life: hold, wait, running and asleep without
 * the GIL, and runnable; they add up to 100. */
struct life {
	unsigned hold, wait, native, asleep, runnable;
};

static void live(struct fixture *f, const struct life *lives, unsigned count, uint64_t dur_ms)
{
	fixture_init(f, dur_ms);
	for (unsigned i = 0; i < count; i++) {
		uint32_t t = fixture_thread(f, 1, 1 + i, "worker");
		uint64_t one = dur_ms / 100;

		fixture_gil(f, t, GIL_HOLD, lives[i].hold * one);
		fixture_gil(f, t, GIL_WAIT, lives[i].wait * one);
		fixture_gil(f, t, GIL_NO,
		            (lives[i].native + lives[i].asleep + lives[i].runnable) * one);
		fixture_cpu(f, t, CPU_RUNNING, lives[i].hold * one);
		fixture_cpu(f, t, CPU_GIL_SLEEP, lives[i].wait * one);
		fixture_cpu(f, t, CPU_RUNNING, lives[i].native * one);
		fixture_cpu(f, t, CPU_SLEEPING, lives[i].asleep * one);
		fixture_cpu(f, t, CPU_RUNNABLE, lives[i].runnable * one);
	}
}

static void one_kind(const struct life *lives, unsigned count, const char *want,
                     const char *headline, const char *name)
{
	struct fixture f;

	live(&f, lives, count, 1000);
	is_kind(&f, want, headline, name);
	fixture_done(&f);
}

/* The verdict is that threads sleep; whether it mentions the waiting for the GIL. */
static void nearly_gil(const struct life *lives, bool want)
{
	struct fixture f;
	struct words v;

	live(&f, lives, 2, 1000);
	words_init(&v, &f);
	is_str(verdict_kind_name(v.kind), "io-bound", "sleeps, and %u %% waiting", lives[0].wait);
	ok((strstr(str_get(&v.context), "The waiting for the GIL, 9.0 %, is just below") != NULL) ==
	           want,
	   "in addition: '%s'", str_get(&v.context));
	words_done(&v);
	fixture_done(&f);
}

static void test_kinds(void)
{
	static const struct life spinners[] = { { 50, 50, 0, 0, 0 }, { 50, 50, 0, 0, 0 } };
	static const struct life some[] = { { 60, 8, 0, 32, 0 }, { 30, 10, 0, 60, 0 } };
	static const struct life native[] = { { 1, 0, 95, 4, 0 }, { 2, 0, 90, 8, 0 } };
	static const struct life io[] = { { 1, 0, 2, 97, 0 }, { 2, 1, 2, 95, 0 } };
	static const struct life starved[] = { { 1, 0, 40, 0, 59 }, { 2, 0, 40, 0, 58 } };
	static const struct life single[] = { { 95, 0, 2, 3, 0 }, { 0, 0, 0, 100, 0 } };
	static const struct life one_uses_it[] = { { 55, 0, 0, 45, 0 }, { 0, 0, 50, 50, 0 } };
	static const struct life apart[] = { { 45, 0, 0, 55, 0 }, { 45, 0, 45, 10, 0 } };
	static const struct life nearly[] = { { 10, 9, 0, 81, 0 }, { 10, 0, 0, 90, 0 } };
	static const struct life less[] = { { 10, 7, 0, 83, 0 }, { 10, 0, 0, 90, 0 } };
	static const struct life many[] = { { 10, 6, 0, 84, 0 },
		                            { 16, 6, 0, 78, 0 },
		                            { 22, 6, 0, 72, 0 } };

	one_kind(spinners, 2, "gil-bound", "spent 50.0 % of its time waiting", "two spinners");
	one_kind(some, 2, "gil-some", "slows this program", "a little");
	one_kind(many, 3, "gil-some",
	         "held it for 480.0 ms in all, and waited for it for 180.0 ms (27.3 % of the sum).",
	         "none alone, but together");
	one_kind(native, 2, "native", "98.4 % of its threads' CPU time", "zlib");
	one_kind(io, 2, "io-bound", "asleep for 96.0 % of their lives", "sockets");
	nearly_gil(nearly, true);
	nearly_gil(less, false);
	one_kind(starved, 2, "cpu-starved", "runnable but had no CPU 58.5 %", "too few CPUs");
	one_kind(single, 2, "single-threaded", "one thread does all the work", "one thread");
	one_kind(one_uses_it, 2, "single-threaded", "only one thread took it",
	         "one thread, while another one works without the GIL");
	one_kind(apart, 2, "gil-none", "waited for it during 0.0 % of the recording",
	         "threads that do not meet");
}

/* Two workers share the GIL, and count threads wait for it for 4 of 1000 ms, all at once. */
static void with_idle_threads(const struct life *workers, unsigned count, const char *want,
                              const char *headline)
{
	struct fixture f;
	char name[64];

	live(&f, workers, 2, 1000);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t t = fixture_thread(&f, 1, 10 + i, "conn-1");

		fixture_gil(&f, t, GIL_NO, 980);
		fixture_gil(&f, t, GIL_WAIT, 4);
		fixture_gil(&f, t, GIL_NO, 16);
		fixture_cpu(&f, t, CPU_SLEEPING, 1000);
	}
	snprintf(name, sizeof(name), "with %u idle threads", count);
	is_kind(&f, want, headline, name);
	fixture_done(&f);
}

/* Threads that hardly use the GIL do not change the verdict, however many they are. */
static void test_idle_threads(void)
{
	static const struct life apart[] = { { 25, 1, 0, 74, 0 }, { 1, 1, 0, 98, 0 } };
	static const struct life busy[] = { { 50, 50, 0, 0, 0 }, { 50, 50, 0, 0, 0 } };
	static const unsigned counts[] = { 0, 5, 200 };

	for (unsigned i = 0; i < 3; i++) {
		with_idle_threads(apart, counts[i], "io-bound", "The GIL does not limit");
		with_idle_threads(busy, counts[i], "gil-bound", "worker");
	}
}

/* Most of the waiting is at the end of 200 threads; 3 ms of waiting are not worth a word. */
static void test_burst(void)
{
	struct fixture f;
	struct words v;

	for (unsigned ms = 3; ms <= 40; ms += 37) {
		fixture_init(&f, 4000);
		for (uint32_t i = 0; i < 200; i++) {
			uint32_t t = fixture_thread(&f, 1, 2 + i, "conn-1");

			fixture_gil(&f, t, GIL_NO, 3200);
			fixture_gil(&f, t, GIL_WAIT, ms);
			fixture_gil(&f, t, GIL_HOLD, 1);
			fixture_cpu(&f, t, CPU_SLEEPING, 3200);
			fixture_cpu(&f, t, CPU_GIL_SLEEP, ms);
			fixture_cpu(&f, t, CPU_RUNNING, 1);
			f.model.threads.v[t].end_ns = fixture_time(3201 + ms);
		}
		words_init(&v, &f);
		is_str(verdict_kind_name(v.kind), "io-bound", "a burst of %u ms: io-bound", ms);
		ok((strstr(str_get(&v.context), "100.0 % of the waiting for the GIL was within "
		                                "40.0 ms, at 3.200 s, when "
		                                "200 threads ended.") != NULL) == (ms == 40),
		   "a burst of %u ms: %s", ms, str_get(&v.context));
		words_done(&v);
		fixture_done(&f);
	}
}

/* The verdict is unknown if the use of the GIL is, whatever the CPUs did meanwhile. */
static void test_lost(void)
{
	static const struct life io[] = { { 4, 0, 6, 90, 0 }, { 4, 0, 6, 90, 0 } };
	static const struct life starved[] = { { 4, 0, 16, 20, 60 }, { 4, 0, 16, 20, 60 } };
	struct fixture f;
	struct words v;

	for (unsigned i = 0; i < 2; i++) {
		live(&f, i ? starved : io, 2, 1000);
		for (uint32_t t = 0; t < 2; t++) {
			f.model.threads.v[t].gil_ns[GIL_NO] -= 900 * FIXTURE_MS;
			f.model.threads.v[t].gil_ns[GIL_UNKNOWN] += 900 * FIXTURE_MS;
		}
		words_init(&v, &f);
		is_str(verdict_kind_name(v.kind), i ? "cpu-starved" : "gil-unknown",
		       "90 %% of the GIL's time is unknown");
		if (!ok(!strstr(str_get(&v.headline), "not the GIL") &&
		                !strstr(str_get(&v.headline), "does not limit"),
		        "unknown time is no acquittal"))
			printf("# %s\n", str_get(&v.headline));
		ok(!strstr(str_get(&v.context), "for the GIL"), "its sleeps may be for the GIL");
		words_done(&v);
		fixture_done(&f);
	}
	live(&f, io, 2, 1000);
	f.model.threads.v[1].pid = 2;
	f.model.threads.v[1].gil_ns[GIL_UNKNOWN] = 1000 * FIXTURE_MS;
	f.model.threads.v[1].gil_ns[GIL_NO] = f.model.threads.v[1].gil_ns[GIL_HOLD] = 0;
	is_kind(&f, "gil-unknown", "was not recorded for 50.0 % of their time",
	        "a process of which nothing is known");
	f.model.threads.v[1].pid = 1;
	is_kind(&f, "native", "does not limit", "a thread of a C library");
	fixture_done(&f);
}

/* Of two causes the costlier one is the headline, and the other one is a finding. */
static void test_two_causes(void)
{
	static const struct life line[] = { { 10, 30, 0, 0, 60 }, { 10, 30, 0, 0, 60 } };
	static const struct life lock[] = { { 10, 60, 0, 0, 30 }, { 10, 60, 0, 0, 30 } };
	static const struct life some[] = { { 1, 0, 40, 0, 59 }, { 2, 0, 40, 0, 58 } };
	struct fixture f;
	struct words v;

	live(&f, line, 2, 1000);
	fixture_blame(&f, 0, 1, 300, 20, 100);
	fixture_blame(&f, 1, 0, 300, 20, 200);
	is_kind(&f, "cpu-starved", "The CPUs limit this program: ", "CPUs and the GIL");
	finds(&f, "Thread worker (2) holds the GIL: 50.0 % of all waiting for the GIL (300.0 ms)");
	fixture_done(&f);
	live(&f, lock, 2, 1000);
	is_kind(&f, "gil-bound", "The GIL limits", "the GIL and CPUs");
	finds(&f, "Threads were runnable but had no CPU 75.0 % of the time they wanted one.");
	fixture_done(&f);
	live(&f, some, 2, 1000);
	words_init(&v, &f);
	is_str(verdict_kind_name(v.kind), "cpu-starved", "CPUs alone");
	ok(!strstr(str_get(&v.findings), "GIL"), "no finding is about the GIL");
	words_done(&v);
	fixture_done(&f);
}

/* The control group's limit is the cause, whatever else used the CPUs meanwhile. */
static void test_quota(void)
{
	static const struct life line[] = { { 1, 0, 40, 0, 59 }, { 2, 0, 40, 0, 58 } };
	static const struct life io[] = { { 1, 0, 2, 97, 0 }, { 1, 0, 2, 97, 0 } };
	struct names *names = names_new();
	struct fixture f;
	struct words v;

	live(&f, line, 2, 1000);
	f.source.cpu_names = names;
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 0, MODEL_NONE,
		                                                  names_id(names, "cc1", 3), 300 };
	f.pass.quota = (struct cpu_quota){ 25000, 100000, 124, 12 };
	adds(&f, "cc1");
	f.pass.quota.throttled = 104;
	words_init(&v, &f);
	is_str(str_get(&v.context), "", "no other program is the cause");
	is_str(str_get(&v.findings),
	       "The CPU limit of its control group: Threads were runnable but had no CPU 58.5 % of "
	       "the time they wanted one. Its control group may use 0.25 CPUs, and was throttled "
	       "in "
	       "104 of 124 periods. Raise the CPU limit of its control group (docker --cpus, "
	       "Kubernetes limits.cpu), or use fewer threads.\n",
	       "the limit is");
	words_done(&v);
	fixture_done(&f);
	names_free(names);

	live(&f, io, 2, 1000);
	f.pass.quota = (struct cpu_quota){ 150000, 100000, 124, 104 };
	finds(&f, "may use 1.50 CPUs, and was throttled in 104 of 124 periods. Raise the CPU");
	f.pass.quota.period_us = 0;
	words_init(&v, &f);
	ok(!strstr(str_get(&v.findings), "control group"), "a limit without a period is none");
	words_done(&v);
	fixture_done(&f);
}

/* Too few CPUs: the remedy depends on which programs had them; waiting for the GIL has its own finding. */
static void test_starved(void)
{
	static const struct life line[] = { { 10, 30, 0, 0, 60 }, { 10, 30, 0, 0, 60 } };
	struct names *names = names_new();
	uint32_t other = names_id(names, "cc1", 3);
	struct fixture f;

	live(&f, line, 2, 1000);
	f.source.cpu_names = names;
	fixture_blame(&f, 0, 1, 290, 20, 100);
	fixture_blame(&f, 0, MODEL_NONE, 10, 1, 100);
	fixture_blame(&f, 1, 0, 300, 20, 200);
	finds(&f, "Thread worker (2) holds the GIL: 48.3 % of all waiting for the GIL (290.0 ms)");
	finds(&f, "Give it more CPUs, run fewer other programs, or use fewer threads.");
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 0, 1, 0, 700 };
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 1, MODEL_NONE, other, 300 };
	*vec_push(&f.model.cpu_blame) = (struct model_cpu_blame){ 1, MODEL_UNKNOWN, 0, 5000 };
	finds(&f, "Give it more CPUs, or use fewer threads");
	f.model.cpu_blame.v[0].runnable_ns = 100;
	finds(&f, "Run fewer other programs, or give it more CPUs");
	f.model.cpu_blame.v[0].runnable_ns = 300;
	finds(&f, "Give it more CPUs, run fewer other programs, or use fewer threads.");
	fixture_done(&f);
	names_free(names);
}

/* A thread in state D waits for a disk, for instance. */
static void test_disk(void)
{
	static const struct life io[] = { { 1, 0, 2, 97, 0 }, { 1, 0, 2, 97, 0 } };
	struct fixture f;
	struct words v;
	uint64_t *ns;

	live(&f, io, 2, 1000);
	adds(&f, "0.0 % runnable, 97.0 % asleep, and 0.0 % asleep for the GIL.");
	ns = f.model.threads.v[0].cpu_ns;
	ns[CPU_SLEEPING] -= 960 * FIXTURE_MS;
	ns[CPU_UNINTERRUPTIBLE] += 960 * FIXTURE_MS;
	is_kind(&f, "io-bound", "asleep for 97.0 % of their lives.", "half of it");
	adds(&f, "49.0 % asleep, 48.0 % in uninterruptible sleep, and 0.0 % asleep for the GIL.");
	ns = f.model.threads.v[1].cpu_ns;
	ns[CPU_SLEEPING] -= 50 * FIXTURE_MS;
	ns[CPU_UNINTERRUPTIBLE] += 50 * FIXTURE_MS;
	is_kind(&f, "io-bound", "mostly in uninterruptible sleep, as for a disk.", "a disk");
	has_advice(&f, "With --state-detect, the report shows where they sleep.", "threads asleep");
	f.report.gil_detect = false;
	words_init(&v, &f);
	is_str(verdict_kind_name(v.kind), "io-bound", "stacks alone are enough for io-bound");
	is_str(str_get(&v.advice), "", "there is no advice to record stacks again");
	words_done(&v);
	fixture_done(&f);
}

/* Without a GIL: whether locks of the interpreter are acquitted, and that there are too few CPUs. */
static void test_locks(void)
{
	static const struct life line[] = { { 0, 0, 15, 5, 80 }, { 0, 0, 15, 5, 80 } };
	struct fixture f;
	struct words v;

	live(&f, line, 2, 1000);
	f.report.python.free_threaded = f.pass.free_threaded = true;
	f.model.gil_events = 0;
	f.model.park_events = 10;
	*vec_push(&f.model.locks) = (struct model_lock){ .of = "list" };
	f.model.threads.v[0].gil_ns[GIL_LOCK_WAIT] = 9 * FIXTURE_MS;
	adds(&f, "Locks and stops of the interpreter itself did not block them");
	finds(&f, "Threads were runnable but had no CPU 84.2 %");
	f.model.threads.v[0].gil_ns[GIL_SPINNING] = FIXTURE_MS;
	words_init(&v, &f);
	is_str(str_get(&v.context), "", "1 %% of a thread's time is no acquittal");
	words_done(&v);
	fixture_done(&f);
}

/* Three threads of a pool hold the GIL while the main thread and each other wait. */
static void test_group(void)
{
	static const char *const names[] = { "MainThread", "pool-0_1", "pool-0_2", "pool-0_13" };
	struct fixture f;

	fixture_init(&f, 1000);
	for (uint32_t i = 0; i < 4; i++) {
		fixture_thread(&f, 1, 1 + i, names[i]);
		fixture_gil(&f, i, GIL_WAIT, 500);
		fixture_gil(&f, i, GIL_HOLD, 500);
		fixture_cpu(&f, i, CPU_RUNNING, 1000);
		fixture_blame(&f, (i + 1) % 4, i, 25, i == 3 ? 20 : 5 + i, 100 * i);
	}
	finds(&f, "The 3 threads pool-*_* hold the GIL: 75.0 % of all waiting for the GIL");
	fixture_done(&f);
}

static uint32_t called_by(struct fixture *f, uint32_t caller, const char *name, const char *file,
                          unsigned line)
{
	struct stack_frame frame = { .parent = caller, .line = line, .flags = STACK_PYTHON };

	if (!f->source.frames)
		f->source.frames = stacks_new(f->source.names);
	frame.name = names_id(f->source.names, name, strlen(name));
	frame.module = names_id(f->source.names, file, strlen(file));
	return stacks_id(f->source.frames, &frame);
}

static uint32_t python_frame(struct fixture *f, const char *name, const char *file, unsigned line)
{
	return called_by(f, 0, name, file, line);
}

static uint64_t gain_of(const struct recording_pass *pass, const struct hog *hog)
{
	uint64_t ns = 0;

	return functions_gain(pass, hog, &ns) == GAIN_KNOWN ? ns : UINT64_MAX;
}

/* Two threads of a pool run the same call; each causes a part of the others' waiting. */
static void test_call(void)
{
	struct stack_frame gc = { 0 };
	struct hogs hogs = { 0 };
	struct fixture f;
	struct words v;
	uint32_t parse;

	fixture_init(&f, 1000);
	parse = python_frame(&f, "parse", "/srv/app/parse.py", 7);
	f.pass.hogs = &hogs;
	for (uint32_t i = 0; i < 3; i++) {
		fixture_thread(&f, 1, 2 + i, "pool");
		fixture_gil(&f, i, GIL_WAIT, i == 2 ? 900 : 500);
		fixture_gil(&f, i, GIL_HOLD, i == 2 ? 100 : 500);
		fixture_cpu(&f, i, CPU_RUNNING, 1000);
		fixture_blame(&f, 2, i, i == 2 ? 0 : 400, i == 2 ? 0 : 50, 100);
		if (i < 2)
			*vec_push(&hogs.v) = (struct hog){
				.thread = i,
				.frame = parse,
				.overdue_holds = 10,
				.overdue_ns = 400 * FIXTURE_MS,
				.overdue_wait_ns = 300 * FIXTURE_MS,
				.overdue_longest_ns = (40 + i) * FIXTURE_MS,
				.wait_ns = 400 * FIXTURE_MS,
			};
	}
	finds(&f,
	      "parse (parse.py:7) keeps the GIL: Run by 2 threads: 75.0 % of all waiting for the "
	      "GIL (600.0 ms) passed while it kept the GIL after a release request, for up to "
	      "41.0 ms at a time. Let that call");
	f.model.threads.v[1].cpu.spans.v[0].state = CPU_RUNNABLE;
	hogs.v.v[1].overdue_longest_at_ns = fixture_time(500);
	finds(&f, "41.0 ms at a time. For 41.0 ms of the longest hold, the thread was runnable "
	          "without a CPU.");
	f.model.threads.v[1].cpu.spans.v[0].state = CPU_RUNNING;
	gc.name = names_id(f.source.names, "gc_collect_main", strlen("gc_collect_main"));
	hogs.v.v[0].native = hogs.v.v[1].native = stacks_id(f.source.stacks, &gc);
	finds(&f, "gc.freeze()");
	ok(gain_of(&f.pass, &hogs.v.v[0]) == UINT64_MAX, "which cannot release the GIL");
	gc.name = names_id(f.source.names, "list_dealloc", strlen("list_dealloc"));
	hogs.v.v[0].native = hogs.v.v[1].native = stacks_id(f.source.stacks, &gc);
	finds(&f, "free less at a time");
	ok(gain_of(&f.pass, &hogs.v.v[0]) == UINT64_MAX, "which cannot release the GIL either");
	hogs.v.v[0].native = hogs.v.v[1].native = 0;
	hogs.v.v[0].frame = hogs.v.v[1].frame = called_by(
		&f, called_by(&f, parse, "loads", "/usr/lib/python3.11/json/__init__.py", 346),
		"raw_decode", "/usr/lib/python3.11/json/decoder.py", 353);
	finds(&f, "parse (parse.py:7) keeps the GIL: raw_decode (decoder.py:353), called by parse "
	          "(parse.py:7), run by 2 threads: 75.0 %");
	hogs.v.v[0].frame = hogs.v.v[1].frame = python_frame(&f, "_call_with_frames_removed",
	                                                     "<frozen importlib._bootstrap>", 9);
	finds(&f, "before the threads start");
	hogs.v.v[1].frame = python_frame(&f, "load", "/srv/app/load.py", 9);
	hogs.v.v[0].frame = python_frame(&f, "dump", "/srv/app/dump.py", 9);
	finds(&f, "dump (dump.py:9) keeps the GIL: Run by pool (2): 37.5 % of");
	for (uint32_t i = 0; i < 2; i++) {
		hogs.v.v[i].frame = python_frame(&f, "Thread.start",
		                                 "/usr/lib/python3.11/threading.py", 964);
		hogs.v.v[i].asleep_ns = 399 * FIXTURE_MS;
	}
	finds(&f, "Thread.start (threading.py:964) keeps the GIL (slow only under perf)");
	finds(&f, "Record again when nothing else traces on this host.");
	hogs.v.v[0].gain_ns = hogs.v.v[1].gain_ns = 7;
	ok(functions_gain(&f.pass, &hogs.v.v[0], &(uint64_t){ 0 }) == NO_GAIN_SLOW_START,
	   "a slow start has no gain");
	f.source.by_perf = false;
	is_u64(gain_of(&f.pass, &hogs.v.v[0]), 14,
	       "a start that perf did not slow down has a gain");
	f.source.by_perf = true;
	hogs.v.v[0].asleep_ns = hogs.v.v[1].asleep_ns = hogs.v.v[0].overdue_ns / 5;
	ok(functions_gain(&f.pass, &hogs.v.v[0], &(uint64_t){ 0 }) == NO_GAIN_SLOW_START,
	   "nor has one that slept for a fifth of the time");
	hogs.v.v[0].asleep_ns = hogs.v.v[1].asleep_ns = 0;
	is_u64(gain_of(&f.pass, &hogs.v.v[0]), 14, "a start that was slow on a CPU has a gain");
	hogs.v.v[0].asleep_ns = hogs.v.v[1].asleep_ns = 399 * FIXTURE_MS;
	hogs.v.v[0].frame = python_frame(&f, "dump", "/srv/app/dump.py", 9);
	hogs.v.v[1].overdue_wait_ns = 400 * FIXTURE_MS;
	words_init(&v, &f);
	ok(!strncmp(str_get(&v.findings), "dump (dump.py:9) keeps the GIL: Run by pool (2): 37.5 %",
	            54),
	   "what tracing caused comes last: %s", str_get(&v.findings));
	words_done(&v);
	vec_done(&hogs.v);
	fixture_done(&f);
}

static void test_edges(void)
{
	static const struct life spinners[] = { { 50, 50, 0, 0, 0 }, { 50, 50, 0, 0, 0 } };
	struct words v;
	struct fixture f;

	live(&f, spinners, 2, 1000);
	f.report.python.free_threaded = true;
	is_kind(&f, "gil-bound", "spent 50.0 %", "a free-threaded interpreter with its GIL on");
	f.model.gil_events = 0;
	is_kind(&f, "free-threaded", "has no GIL", "a free-threaded interpreter without a GIL");
	f.report.python.free_threaded = false;
	is_kind(&f, "nothing", "Nothing was recorded", "no events");
	fixture_done(&f);

	live(&f, spinners, 2, 1000);
	f.report.gil_detect = false;
	f.model.gil_events = 0;
	is_kind(&f, "gil-bound", "spent 50.0 % of its time waiting", "sleeps for the GIL only");
	f.model.caveats[CAVEAT_NO_TRACEPOINTS] = 1;
	is_kind(&f, "gil-unknown", "on a CPU for 50.0 % of their lives",
	        "neither probes nor stacks");
	fixture_done(&f);

	live(&f, spinners, 1, 1000);
	f.model.threads.v[0].gil_ns[GIL_FREE_WAIT] = f.model.threads.v[0].gil_ns[GIL_WAIT];
	f.model.threads.v[0].gil_ns[GIL_WAIT] = 0;
	is_kind(&f, "single-threaded", "one thread does all the work",
	        "taking a free GIL is not waiting");
	fixture_done(&f);

	fixture_init(&f, 9);
	fixture_thread(&f, 1, 1, "x");
	fixture_gil(&f, 0, GIL_HOLD, 9);
	fixture_cpu(&f, 0, CPU_RUNNING, 9);
	is_kind(&f, "too-short", "only 9.0 ms", "9 ms");
	fixture_done(&f);

	fixture_init(&f, 1000);
	f.model.gil_events = 0;
	fixture_thread(&f, 1, 1, "x");
	fixture_gil(&f, 0, GIL_NO, 1000);
	fixture_cpu(&f, 0, CPU_SLEEPING, 1000);
	f.pass.attached = true;
	has_advice(&f, "giltracer stacks -p PID prints what its threads run or wait for.",
	           "a running program without GIL events");
	f.model.threads.v[0].held = true;
	is_kind(&f, "held", "in 1.00 s: thread x held it throughout",
	        "a thread that computes alone");
	has_advice(&f, "giltracer stacks -p PID prints what its threads run or wait for.",
	           "a thread that computes alone");
	f.model.threads.v[0].held = false;
	f.model.idle = true;
	is_kind(&f, "idle", "in 1.00 s: the program was idle", "a program whose threads sleep");
	f.model.suspended_ns = 1000 * FIXTURE_MS;
	is_kind(&f, "idle", "in 1.00 s: the program was stopped", "a program that is stopped");
	has_advice(&f, "giltracer stacks -p PID prints what its threads run or wait for.",
	           "a program that is stopped");
	fixture_done(&f);

	fixture_init(&f, 0);
	is_kind(&f, "nothing", "Nothing was recorded", "an empty model");
	has_advice(&f, "With --trace-imports, the program is traced from its first line on.",
	           "a program that giltracer started");
	f.model.caveats[CAVEAT_TRUNCATED] = 1;
	words_init(&v, &f);
	is_str(str_get(&v.advice), "The recording is truncated: record again.",
	       "a truncated recording has its advice");
	words_done(&v);
	fixture_done(&f);
}

/* A thread that waits 600 of 1000 ms, and others of one name that live for no + wait ms each. */
static void accept_and_pool(struct fixture *f, unsigned count, uint64_t no, uint64_t wait)
{
	static char names[20][32];

	fixture_init(f, 1000);
	fixture_thread(f, 1, 1, "accept");
	fixture_gil(f, 0, GIL_HOLD, 400);
	fixture_gil(f, 0, GIL_WAIT, 600);
	for (uint32_t i = 1; i <= count; i++) {
		snprintf(names[i - 1], sizeof(names[0]), "Thread-%u (request)", i);
		fixture_thread(f, 1, 1 + i, names[i - 1]);
		fixture_gil(f, i, GIL_NO, no);
		fixture_gil(f, i, GIL_WAIT, wait);
		f->model.threads.v[i].end_ns = f->model.threads.v[i].gil.end_ns;
	}
}

static void test_group_of_victims(void)
{
	struct fixture f;

	accept_and_pool(&f, 20, 44, 56);
	is_kind(&f, "gil-bound",
	        "the 20 threads Thread-* (request) spent 56.0 % of their time waiting for it "
	        "(1.12 s in all).",
	        "a group that waited more than any thread");
	fixture_done(&f);
	accept_and_pool(&f, 4, 750, 250);
	is_kind(&f, "gil-bound", "thread accept", "a group that waited less than 30 % of its life");
	fixture_done(&f);
	accept_and_pool(&f, 3, 44, 560);
	is_kind(&f, "gil-bound", "thread accept", "three threads, which are not a group");
	fixture_done(&f);
}

/* Without uprobes, the verdict uses sleeps inside take_gil. */
static void test_no_gil_detect(void)
{
	struct fixture f;
	struct words v;

	fixture_init(&f, 1000);
	f.model.gil_events = 0;
	f.report.gil_detect = false;
	f.pass.kind = PASS_STACKS;
	for (uint32_t t = 0; t < 2; t++) {
		fixture_thread(&f, 1, 1 + t, "x");
		fixture_gil(&f, t, GIL_UNKNOWN, 1000);
		fixture_cpu(&f, t, CPU_RUNNING, 500);
		fixture_cpu(&f, t, CPU_GIL_SLEEP, 500);
	}
	is_kind(&f, "gil-bound", "spent 50.0 % of its time waiting", "stacks only");
	words_init(&v, &f);
	is_str(verdict_quality_name(v.quality), "good",
	       "missing GIL events do not lower the quality if they were not asked for");
	words_done(&v);
	fixture_done(&f);
}

static void test_blame(void)
{
	struct fixture f;
	struct words v;

	fixture_hog(&f);
	finds(&f, "Thread hog holds the GIL: 94.0 % of all waiting for the GIL (79.0 ms) passed "
	          "while it "
	          "was held there, for up to 40.0 ms at a time. Only one");
	words_init(&v, &f);
	ok(!strpbrk(str_get(&v.headline), "\x1b\xff"), "names in the verdict are made safe");
	words_done(&v);
	f.model.blame.v[0].wait_ns = 4 * FIXTURE_MS;
	f.model.blame.v[1].wait_ns = 10 * FIXTURE_MS;
	finds(&f, "Hand-offs of the GIL: 55.6 % of all waiting for the GIL passed while it was "
	          "free and the "
	          "next thread was waking up.");
	f.model.blame.v[1].no_cpu_ns = 10 * FIXTURE_MS;
	words_init(&v, &f);
	ok(strstr(str_get(&v.findings),
	          "Hand-offs of the GIL to threads without a CPU: 55.6 % of all waiting passed "
	          "while the "
	          "GIL was free and the next thread had no CPU. Give it more CPUs, run fewer other "
	          "programs, or use fewer threads.\n") != NULL,
	   "a lack of CPUs has its remedy: %s", str_get(&v.findings));
	ok(!strstr(str_get(&v.findings), "larger pieces"), "and not that of short holds");
	words_done(&v);
	fixture_done(&f);
}

/* A program that has processes is not told to use them. */
static void test_processes(void)
{
	struct fixture f;
	struct model_gil *gil;

	fixture_hog(&f);
	finds(&f, "ProcessPoolExecutor");
	gil = vec_push(&f.model.gils);
	*gil = (struct model_gil){ .pid = 200 };
	finds(&f, "ProcessPoolExecutor");
	gil->held_ns = 1;
	finds(&f, "use fewer threads in each process, more processes");
	fixture_done(&f);
}

/* Two threads wait from 10 to 50 ms, then none; the hog runs two functions meanwhile. */
static void test_function(void)
{
	struct fixture f;
	struct model_gil *gil;

	fixture_hog(&f);
	gil = &f.model.gils.v[0];
	*vec_push(&gil->owners) = (struct gil_owner){ fixture_time(0), 0, 1 };
	*vec_push(&gil->owners) = (struct gil_owner){ fixture_time(10), 1, 2 };
	*vec_push(&gil->owners) = (struct gil_owner){ fixture_time(50), 1, 0 };
	fixture_slices(&f, 1);
	f.slices.threads[0].pid = 100;
	f.slices.threads[0].tid = 101;
	fixture_slice(&f, 0, "run (/srv/app/hog.py:7)", 0, 5, 90);
	fixture_slice(&f, 0, "parse (/srv/app/parse.py:3)", 1, 10, 30);
	fixture_slice(&f, 0, "write (/srv/app/write.py:9)", 1, 50, 40);
	finds(&f, "parse (parse.py:3) runs while others wait for the GIL: In parse (parse.py:3) "
	          "called by "
	          "run (hog.py:7): 71.4 % of all waiting for the GIL (60.0 ms)");
	vec_done(&gil->owners);
	fixture_done(&f);
}

static void test_charge(void)
{
	struct fixture f;
	struct pystack py;
	struct stretches none = { 0 }, list;
	struct pystack_functions top;

	fixture_hog(&f);
	fixture_slices(&f, 1);
	fixture_slice(&f, 0, "a", 0, 20, 20);
	fixture_slice(&f, 0, "b", 1, 25, 30); /* ends after its caller */
	fixture_slice(&f, 0, "a", 0, 60, 100);
	list = stretches_of_lane(&f.model.threads.v[1].gil, 1u << GIL_HOLD);
	pystack_init(&py, &f.slices);
	pystack_charge(&py, &f.slices.threads[0], &list);
	is_u64(py.ns.v[0], 15 * FIXTURE_MS,
	       "time before and between the calls is charged to no call");
	is_u64(py.ns.v[1], 40 * FIXTURE_MS, "the outer call itself is charged, both times");
	is_u64(py.ns.v[2], 25 * FIXTURE_MS, "the inner call is charged while the GIL was held");
	top = pystack_functions(&py);
	is_u64(top.all_ns, 80 * FIXTURE_MS, "no time is charged twice or lost");
	is_str(names_get(f.slices.names, top.v[0].name), "a", "the heaviest function is found");
	vec_done(&top);
	pystack_charge(&py, NULL, &list);
	is_u64(py.ns.v[0], 95 * FIXTURE_MS, "a thread without calls is charged to no call");
	pystack_charge(&py, &f.slices.threads[0], &none);
	is_u64(py.ns.v[0], 95 * FIXTURE_MS, "without stretches nothing is charged");
	pystack_done(&py);
	vec_done(&list);
	fixture_done(&f);
}

static void test_quality(void)
{
	static const struct life io[] = { { 1, 0, 2, 97, 0 }, { 1, 0, 2, 97, 0 } };
	struct fixture f;
	struct words v;

	fixture_hog(&f);
	words_init(&v, &f);
	is_str(verdict_quality_name(v.quality), "fair", "5 ms unknown of 300: the quality is fair");
	ok(strstr(str_get(&v.quality_text), "1.7 % of the threads' time is unknown") != NULL,
	   "the unknown share is reported");
	ok(strstr(str_get(&v.quality_text), "inferred") == NULL,
	   "a flaw that does not exist is not reported");
	words_done(&v);
	f.model.caveats[CAVEAT_TRUNCATED] = 1;
	words_init(&v, &f);
	is_str(verdict_quality_name(v.quality), "poor",
	       "a truncated recording: the quality is poor");
	words_done(&v);
	fixture_done(&f);

	live(&f, io, 2, 1000);
	words_init(&v, &f);
	is_str(str_get(&v.quality_text), "See the notes on the recording.",
	       "a recording with a note is not called complete");
	words_done(&v);
	f.pass.slices_note = NULL;
	words_init(&v, &f);
	is_str(str_get(&v.quality_text), "Complete: nothing was lost or had to be inferred.",
	       "one without notes is");
	words_done(&v);
	f.model.caveats[CAVEAT_OPEN_HOLD] = 1;
	words_init(&v, &f);
	is_str(str_get(&v.quality_text), "See the notes on the recording.",
	       "one with a caveat is not");
	words_done(&v);
	fixture_done(&f);
}

int main(void)
{
	test_kinds();
	test_idle_threads();
	test_burst();
	test_lost();
	test_two_causes();
	test_quota();
	test_starved();
	test_disk();
	test_locks();
	test_group();
	test_call();
	test_edges();
	test_group_of_victims();
	test_no_gil_detect();
	test_blame();
	test_processes();
	test_function();
	test_charge();
	test_quality();
	return done_testing();
}
