/* SPDX-License-Identifier: MIT */
/* giltracer top: who holds the GIL of a running program, and who waits for it, second by second. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef HAVE_NCURSES
#include <curses.h>
#endif

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/opts.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cmd.h"
#include "live/keep.h"
#include "live/usage.h"
#include "python/python.h"
#include "record/execution.h"
#include "record/notes.h"
#include "record/observer.h"
#include "record/perf.h"
#include "record/record.h"
#include "report/session_report.h"
#include "session/temp_session.h"

#define SAMPLES_PER_SECOND 100
#define PERIOD_NS          (NS_PER_SECOND / SAMPLES_PER_SECOND)
#define FAILURES_MAX       SAMPLES_PER_SECOND /* in a row: the program has ended */
#define NAME_COLUMNS       24
#define LINE_THREADS       3 /* in a line of text */
#define FOR_COLUMNS        16

#define KEEP_SECONDS 60
#define KEEP_BYTES   (64u << 20)
#define REPORT       "giltracer.html" /* without --output */

enum order { BY_BOTH, BY_HAS, BY_WAITS, BY_NAME, ORDERS };

struct top {
	struct usage_source *source;
	struct observer *observer; /* NULL: the program is not made to count */
	struct usage usage;
	pid_t pid;
	bool json, screen, paused, quit;
	unsigned count; /* of intervals; 0: until the program ends */
	enum order order;
	bool filtering;
	char filter[64];
	char **command;     /* of the process */
	const char *probes; /* auto, preload or none */
	const char *output; /* file of the report; NULL: none at the end */
	unsigned keep_s;
	char message[640]; /* on the screen */
};

/* Marks estimates with "~". */
static const char *mark(const struct usage *usage)
{
	return usage->exact ? "" : "~";
}

static void add_function(struct str *out, const struct usage_thread *t)
{
	if (!t->function)
		return;
	utf8_add_safe(out, t->function, NAME_COLUMNS * 2);
	str_adds(out, " (");
	utf8_add_safe(out, str_base(t->file), NAME_COLUMNS * 2);
	str_addf(out, ":%" PRIu32 ")", t->line);
}

static void add_lock(struct str *out, const struct usage_thread *t)
{
	utf8_add_safe(out, t->lock, NAME_COLUMNS * 2);
	if (t->lock_tid)
		str_addf(out, ", held by %" PRIu32 "%s", t->lock_tid,
		         t->lock_inferred ? " (inferred)" : "");
	else
		str_adds(out, ", holder unknown");
}

static void add_holder(struct str *out, const struct usage_holder *holder)
{
	if (holder->kind == USAGE_GROUP)
		utf8_add_safe(out, holder->name, FOR_COLUMNS);
	else
		str_adds(out, holder->kind == USAGE_NOBODY ? "(GIL free)" : "(others)");
}

/* ---- without a terminal: a line per second */

/* Omits holders that round to 0 %. */
static void add_holders(struct str *out, const struct usage_thread *t)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->holders.n && t->holders.v[i].percent >= 0.5; i++) {
		str_adds(out, n++ ? " + " : " for ");
		add_holder(out, &t->holders.v[i]);
		str_addf(out, " %.0f%%", t->holders.v[i].percent);
	}
}

/* Whether threads hold a GIL: that of a free-threaded build may be off. */
static bool has_gil(const struct top *top)
{
	return top->usage.gils || top->usage.exact || !top->usage.samples;
}

static void add_running(struct str *out, const struct top *top)
{
	unsigned n = 0;

	for (size_t i = 0; i < top->usage.threads.n && n < LINE_THREADS; i++) {
		const struct usage_thread *t = &top->usage.threads.v[i];

		if (t->runs < 0.5)
			continue;
		str_addf(out, "%s", n++ ? ", " : "");
		utf8_add_safe(out, t->name, NAME_COLUMNS);
		str_addf(out, " %" PRIu32 " ~%.0f%% in ", t->tid, t->runs);
		add_function(out, t);
	}
	if (!n)
		str_adds(out, "nobody");
}

static void add_threads(struct str *out, const struct top *top, bool waits)
{
	unsigned n = 0;

	for (size_t i = 0; i < top->usage.threads.n && n < LINE_THREADS; i++) {
		const struct usage_thread *t = &top->usage.threads.v[i];

		if ((waits ? t->waits : t->has) < 0.5)
			continue;
		str_addf(out, "%s", n++ ? ", " : "");
		utf8_add_safe(out, t->name, NAME_COLUMNS);
		str_addf(out, " %" PRIu32 " %s%.0f%%", t->tid, mark(&top->usage),
		         waits ? t->waits : t->has);
		if (top->usage.gils > 1)
			str_addf(out, " of interpreter %" PRIu32, t->gil_of);
		if (waits && top->usage.exact)
			add_holders(out, t);
		else if (waits && t->for_tid)
			str_addf(out, " ~for %" PRIu32, t->for_tid);
		if (!waits && t->function) {
			str_adds(out, " in ");
			add_function(out, t);
		}
	}
	if (!n)
		str_adds(out, "nobody");
}

/* Those that waited for locks at the end of the second. */
static void add_locks(struct str *out, const struct top *top)
{
	unsigned n = 0;

	for (size_t i = 0; i < top->usage.threads.n && n < LINE_THREADS; i++) {
		const struct usage_thread *t = &top->usage.threads.v[i];

		if (!t->lock)
			continue;
		str_adds(out, n++ ? "; " : "; waits for locks: ");
		utf8_add_safe(out, t->name, NAME_COLUMNS);
		str_addf(out, " %" PRIu32 " for ", t->tid);
		add_lock(out, t);
	}
}

static void print_line(const struct top *top)
{
	CLEANUP(str_done) struct str line = { 0 };

	if (has_gil(top)) {
		str_adds(&line, "has the GIL: ");
		add_threads(&line, top, false);
		str_adds(&line, "; waits: ");
		add_threads(&line, top, true);
	} else {
		str_adds(&line, "the GIL is off; runs: ");
		add_running(&line, top);
	}
	add_locks(&line, top);
	if (!top->usage.exact)
		str_addf(&line, " (%u samples)", top->usage.samples);
	puts(str_get(&line));
}

static json_t *text_json(const char *text)
{
	CLEANUP(str_done) struct str safe = { 0 };

	if (!text)
		return json_null();
	utf8_add_safe(&safe, text, UINT32_MAX);
	return json_string(str_get(&safe));
}

/* Null if they are unknown. */
static json_t *holders_json(const struct usage_thread *t, bool exact)
{
	static const char *const kinds[] = {
		[USAGE_GROUP] = "group",
		[USAGE_NOBODY] = "nobody",
		[USAGE_OTHERS] = "others",
	};
	json_t *ret = exact ? json_array() : json_null();

	for (size_t i = 0; exact && i < t->holders.n; i++) {
		const struct usage_holder *h = &t->holders.v[i];

		json_array_append_new(
			ret, json_pack("{s:s, s:o, s:f}", "holder", kinds[h->kind], "threads",
		                       text_json(h->kind == USAGE_GROUP ? h->name : NULL),
		                       "percent", h->percent));
	}
	return ret;
}

/* The lock for which it waits; null: none, as far as known. */
static json_t *lock_json(const struct usage_thread *t)
{
	if (!t->lock)
		return json_null();
	return json_pack("{s:o, s:o, s:b}", "expression", text_json(t->lock), "holder_tid",
	                 t->lock_tid ? json_integer(t->lock_tid) : json_null(), "inferred",
	                 t->lock_inferred);
}

static json_t *thread_json(const struct usage_thread *t, bool exact)
{
	return json_pack("{s:I, s:o, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "tid",
	                 (json_int_t)t->tid, "name", text_json(t->name), "gil_of",
	                 (json_int_t)t->gil_of, "has_percent", t->has, "waits_percent", t->waits,
	                 "runnable_percent", t->runs, "asleep_percent", t->sleeps, "waits_for_tid",
	                 t->for_tid ? json_integer(t->for_tid) : json_null(), "waits_for",
	                 holders_json(t, exact), "function", text_json(t->function), "file",
	                 text_json(t->file), "line", t->line ? json_integer(t->line) : json_null(),
	                 "lock", lock_json(t));
}

static void print_json(const struct top *top)
{
	json_t *threads = json_array();
	json_auto_t *root = NULL;

	for (size_t i = 0; i < top->usage.threads.n; i++)
		json_array_append_new(threads,
		                      thread_json(&top->usage.threads.v[i], top->usage.exact));
	root = json_pack("{s:i, s:I, s:I, s:I, s:b, s:i, s:f, s:o}", "schema", 1, "pid",
	                 (json_int_t)top->pid, "time_ns", (json_int_t)top->usage.time_ns,
	                 "interval_ns", (json_int_t)top->usage.interval_ns, "exact",
	                 top->usage.exact, "samples", (int)top->usage.samples, "free_percent",
	                 top->usage.free, "threads", threads);
	json_dumpf(root, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	putchar('\n');
}

/* ---- a session of the samples that are kept */

/**
 * @command: what the process was started with, NULL-terminated; @python: its interpreter
 * All are borrowed.
 */
struct kept {
	pid_t pid;
	char *const *command;
	const struct python *python;
	struct keep *keep;
};

static char **copy_command(char *const *command)
{
	VEC(char *) args = { 0 };

	for (; *command; command++)
		*vec_push(&args) = xstrdup(*command);
	*vec_push(&args) = NULL;
	return args.v;
}

static void add_note(struct session *session, const struct kept *kept, uint64_t kept_ns)
{
	CLEANUP(free)
	char *text = xasprintf(keep_is_short(kept->keep) ? NOTE_KEPT_SHORT : NOTE_KEPT,
	                       (double)kept_ns / (double)NS_PER_SECOND);

	session_add_note(session, "kept", 1, text);
}

/* Write a session with all samples that are kept so far into the existing folder dir. */
static int kept_session(const struct kept *kept, const char *dir, struct error *err)
{
	CLEANUP(session_free) struct session *session = describe_session(kept->python);
	CLEANUP(free) char *path = xasprintf("%s/stacks.samples", dir);
	char name[] = "stacks.samples";
	struct session_pass pass = {
		.kind = PASS_STACKS,
		.samples = name,
		.start_ns = keep_start_ns(kept->keep),
		.stop_ns = clock_now_ns(),
		.pid = (uint32_t)kept->pid,
	};

	pass.wall_ns = pass.stop_ns - pass.start_ns;
	session->command = copy_command(kept->command);
	session->no_children = true;
	session->releases_known = true;
	session->python_trace = xstrdup(python_trace_names[PYTHON_TRACE_NONE]);
	session_add_pass(session, &pass);
	add_note(session, kept, pass.wall_ns);
	if (keep_write(kept->keep, path, pass.stop_ns, err) < 0)
		return -1;
	return session_write(session, dir, err);
}

/* ---- a report of the last seconds */

static int make_report(const struct top *top, const char *path, struct error *err)
{
	const struct kept kept = {
		.pid = top->pid,
		.command = top->command,
		.python = usage_python(top->source),
		.keep = usage_kept(top->source),
	};
	const struct report_outputs outputs = { .html = path };
	struct temp_session scratch = SCRATCH_NONE;
	struct error ignored;
	int ret;

	if (temp_session_make(&scratch, err) < 0)
		return -1;
	ret = kept_session(&kept, scratch.path, err);
	if (ret == 0)
		ret = report_session(scratch.path, &outputs, err);
	temp_session_remove(&scratch, &ignored);
	return ret;
}

/* Shows messages on the screen, which curses controls. */
static int report(struct top *top, struct error *err)
{
	const char *path = top->output ? top->output : REPORT;
	enum log_level level = log_get_level();
	int ret;

	if (top->screen)
		log_set_level(LOG_ERROR);
	ret = make_report(top, path, err);
	log_set_level(level);
	snprintf(top->message, sizeof(top->message), "%s%s",
	         ret < 0 ? "" : "report: ", ret < 0 ? err->text : path);
	return ret;
}

/* ---- with a terminal */

#ifdef HAVE_NCURSES
static enum order sort_order; /* global, because qsort has no argument for it */

static int compare(const void *a, const void *b)
{
	const struct usage_thread *x = a, *y = b;
	double by = sort_order == BY_HAS     ? y->has - x->has
	            : sort_order == BY_WAITS ? y->waits - x->waits
	                                     : y->has + y->waits - x->has - x->waits;

	if (sort_order == BY_NAME)
		return strcmp(x->name, y->name);
	by = by > 0 || by < 0 ? by : y->runs - x->runs;
	return by > 0 ? 1 : by < 0 ? -1 : (x->tid > y->tid) - (x->tid < y->tid);
}

static int columns_left(void)
{
	int x = getcurx(stdscr);

	return COLS > x ? COLS - x : 0;
}

/* What the thread waits for: exact times are for groups of threads, estimates for threads. */
static void draw_for(const struct top *top, const struct usage_thread *t)
{
	CLEANUP(str_done) struct str name = { 0 };

	if (top->usage.exact && t && t->holders.n) {
		add_holder(&name, &t->holders.v[0]);
		printw("%5.1f %-*s  ", t->holders.v[0].percent, FOR_COLUMNS, str_get(&name));
	} else if (top->usage.exact) {
		printw("%5s %-*s  ", t ? "" : "for%", FOR_COLUMNS, t ? "" : "mostly");
	} else if (t && t->for_tid) {
		printw("%9" PRIu32 "  ", t->for_tid);
	} else {
		printw("%9s  ", t ? "" : "~for tid");
	}
}

static void draw_head(const struct top *top)
{
	static const char *const orders[] = { "GIL", "has", "waits", "name" };

	mvprintw(0, 0, "giltracer top: process %d, %s%s", (int)top->pid,
	         top->usage.exact ? "exact times" : "estimated from samples",
	         top->paused ? ", paused" : "");
	if (has_gil(top))
		mvprintw(1, 0, "GIL free %s%.1f %%", mark(&top->usage), top->usage.free);
	else
		mvaddstr(1, 0, "the GIL is off");
	printw(", %u samples, sorted by %s", top->usage.samples, orders[top->order]);
	if (top->filtering || *top->filter)
		printw(", threads with '%s'%s", top->filter, top->filtering ? "_" : "");
	mvaddnstr(2, 0, top->message, COLS);
	attron(A_REVERSE);
	mvprintw(3, 0, "%8s %-*s %7s %7s %9s %8s ", "tid", NAME_COLUMNS, "thread",
	         top->usage.exact ? "has%" : "~has%", top->usage.exact ? "waits%" : "~waits%",
	         "~runs%", "~sleeps%");
	draw_for(top, NULL);
	printw("%-*s", columns_left(), "~running");
	attroff(A_REVERSE);
	mvprintw(LINES - 1, 0, "q quit  s sort  / filter  p pause  r report of the last %u s",
	         top->keep_s);
}

static void draw_thread(const struct top *top, const struct usage_thread *t, int y)
{
	CLEANUP(str_done) struct str name = { 0 }, function = { 0 };

	utf8_add_safe(&name, t->name, NAME_COLUMNS);
	if (top->usage.gils > 1)
		str_addf(&function, "[interpreter %" PRIu32 "] ", t->gil_of);
	if (t->lock) {
		str_adds(&function, "[waits for ");
		add_lock(&function, t);
		str_adds(&function, "] ");
	}
	add_function(&function, t);
	mvprintw(y, 0, "%8" PRIu32 " %-*s %7.1f %7.1f %9.1f %8.1f ", t->tid, NAME_COLUMNS,
	         str_get(&name), t->has, t->waits, t->runs, t->sleeps);
	draw_for(top, t);
	addnstr(str_get(&function), columns_left());
}

static void draw(struct top *top)
{
	int y = 4;

	erase();
	draw_head(top);
	sort_order = top->order;
	vec_sort(&top->usage.threads, compare);
	for (size_t i = 0; i < top->usage.threads.n && y < LINES - 2; i++)
		if (strcasestr(top->usage.threads.v[i].name, top->filter))
			draw_thread(top, &top->usage.threads.v[i], y++);
	refresh();
}

static void type_filter(struct top *top, int key)
{
	size_t len = strlen(top->filter);

	if (key == '\n' || key == KEY_ENTER || key == 27)
		top->filtering = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && len)
		top->filter[len - 1] = '\0';
	else if (key >= ' ' && key < 127 && len + 1 < sizeof(top->filter)) {
		top->filter[len] = (char)key;
		top->filter[len + 1] = '\0';
	}
}

static void read_keys(struct top *top)
{
	struct error ignored;
	int key;

	while ((key = getch()) != ERR) {
		if (top->filtering)
			type_filter(top, key);
		else if (key == 'q')
			top->quit = true;
		else if (key == 'p')
			top->paused = !top->paused;
		else if (key == 's')
			top->order = (top->order + 1) % ORDERS;
		else if (key == '/')
			top->filtering = true;
		else if (key == 'r')
			report(top, &ignored);
		draw(top);
	}
}

static void open_screen(struct top *top)
{
	top->screen = !top->json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && getenv("TERM");
	if (!top->screen)
		return;
	initscr();
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
}

static void close_screen(const struct top *top)
{
	if (top->screen)
		endwin();
}
#else
static void draw(struct top *top)
{
	print_line(top);
}

static void read_keys(struct top *top)
{
	(void)top;
}

static void open_screen(struct top *top)
{
	(void)top;
}

static void close_screen(const struct top *top)
{
	(void)top;
}
#endif

/* ---- the loop */

static volatile sig_atomic_t interrupted, asked;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static void ask(int signal)
{
	(void)signal;
	asked = 1;
}

static void wait_until(const struct top *top, uint64_t when_ns)
{
	struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t now = clock_now_ns();

	if (now < when_ns)
		poll(&keys, top->screen, (int)((when_ns - now) / NS_PER_MS) + 1);
}

/* Called once a second. */
static void show(struct top *top)
{
	struct usage latest = { 0 };

	if (top->observer)
		observer_look(top->observer);
	if (top->paused) {
		usage_end(top->source, &latest);
		usage_done(&latest);
		return;
	}
	usage_end(top->source, &top->usage);
	if (top->screen)
		draw(top);
	else if (top->json)
		print_json(top);
	else
		print_line(top);
	if (!top->screen)
		fflush(stdout);
}

static void count_missed(struct top *top, uint64_t since_ns, uint64_t now)
{
	if (usage_kept(top->source) && now - since_ns > 2 * PERIOD_NS)
		keep_missed(usage_kept(top->source), (now - since_ns) / PERIOD_NS - 1);
}

/* Makes a report if SIGUSR1 was received. */
static void report_asked(struct top *top)
{
	struct error err;

	if (!asked)
		return;
	asked = 0;
	if (report(top, &err) < 0 && !top->screen)
		log_error("%s", err.text);
}

static int watch(struct top *top, struct error *err)
{
	uint64_t next = clock_now_ns(), show_ns = next + NS_PER_SECOND, last = next;
	unsigned shown = 0, failures = 0;

	while (!top->quit && !interrupted && !ferror(stdout)) {
		uint64_t now = clock_now_ns();

		count_missed(top, last, now);
		last = now;
		if (usage_sample(top->source, err) == 0)
			failures = 0;
		else if (err->code != EAGAIN || ++failures == FAILURES_MAX)
			return (err->code == ESRCH || err->code == EAGAIN) && shown ? 0 : -1;
		now = clock_now_ns();
		if (now >= show_ns) {
			show(top);
			show_ns += NS_PER_SECOND;
			if (show_ns < now)
				show_ns = now + NS_PER_SECOND;
			if (++shown == top->count)
				return 0;
		}
		if (top->screen)
			read_keys(top);
		report_asked(top);
		/* The interval varies, so that samples do not coincide with a period of the
		 * program. */
		next = now + PERIOD_NS / 2 + (now / 1000 * 7919) % PERIOD_NS;
		wait_until(top, next);
	}
	return 0;
}

/* Keeps the data for a report if one can be requested. */
static void keep(struct top *top)
{
	const struct keep_plan plan = {
		.hz = SAMPLES_PER_SECOND,
		.seconds = top->keep_s,
		.max_bytes = KEEP_BYTES,
	};
	const struct sigaction now = { .sa_handler = ask };

	if (!top->screen && !top->output)
		return;
	usage_keep(top->source, &plan);
	sigaction(SIGUSR1, &now, NULL);
}

/* Times are exact if the program loads the library, which then counts them. */
static int open_source(struct top *top, struct error *err)
{
	struct error why;
	int failed = strcmp(top->probes, "none") != 0 &&
	             observer_open(&top->observer, top->pid, &why) < 0;

	if (usage_open(&top->source, top->pid, err) < 0)
		return -1;
	if (failed && !strcmp(top->probes, "preload")) {
		*err = why;
		return -1;
	}
	if (failed)
		log_info("estimates from samples instead of exact times: %s", why.text);
	return 0;
}

static int run(struct top *top, struct error *err)
{
	const struct sigaction end = { .sa_handler = interrupt };
	int ret;

	if (cmd_check_output(top->output, err) < 0 || open_source(top, err) < 0) {
		observer_close(top->observer);
		usage_close(top->source);
		return -1;
	}
	top->command = execution_command(top->pid);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	open_screen(top);
	keep(top);
	ret = watch(top, err);
	close_screen(top);
	top->screen = false;
	if (ret == 0 && top->output)
		ret = report(top, err);
	observer_close(top->observer);
	usage_close(top->source);
	usage_done(&top->usage);
	argv_free(top->command);
	return ret;
}

static int top_run(int argc, char **argv, struct error *err)
{
	struct top top = { .keep_s = KEEP_SECONDS, .probes = "auto" };
	bool help = false;
	unsigned pid = 0;
	const struct opt opts[] = {
		OPT_UINT('p', "pid", "PID", &pid, 1, INT32_MAX, "the process to watch"),
		OPT_FLAG(0, "json", &top.json, "print a JSON document per second"),
		OPT_UINT('n', "limit", "COUNT", &top.count, 1, INT32_MAX,
		         "end after COUNT seconds"),
		OPT_STR(0, "probes", "ENGINE", &top.probes,
		        "preload: the program loads the library, so that times are exact; none: "
		        "estimate them from samples; auto: exact if that is possible (auto)"),
		OPT_STR('o', "output", "FILE", &top.output,
		        "at the end, write a report of the last seconds"),
		OPT_UINT(0, "keep-last", "SECONDS", &top.keep_s, 1, 3600,
		         "how many seconds this report covers (60)"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int go_on = cmd_options(&cmd_top, opts, &help, argc, argv, err);

	if (go_on <= 0)
		return go_on;
	if (!pid)
		return error_set(err, EINVAL, "option -p PID is missing: the process to watch");
	if (strcmp(top.probes, "auto") != 0 && strcmp(top.probes, "preload") != 0 &&
	    strcmp(top.probes, "none") != 0)
		return error_set(err, EINVAL, "option --probes: '%s' is not auto, preload or none",
		                 top.probes);
	if (cmd_python(&pid, err) < 0)
		return -1;
	top.pid = (pid_t)pid;
	return run(&top, err);
}

const struct cmd cmd_top = {
	.name = "top",
	.usage = "-p PID [OPTION]...",
	.summary = "show which thread of a running program holds the GIL, and which wait",
	.run = top_run,
};
