/* SPDX-License-Identifier: MIT */
/* The numbers of a thread, and the columns that show them. */
#include "report/threads.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/probe_cost.h"

enum number {
	NONE,
	LIFE,
	HOLD,
	WAIT,
	SWITCH_WAIT,
	FREE_WAIT,
	NO_GIL,
	UNKNOWN,
	PROBE_COST,
	CALLS_COST,
	SUSPENDED,
	HOLDS,
	WAITS,
	FREE_WAITS,
	LONGEST_HOLD,
	LONGEST_WAIT,
	LOCK_WAIT,
	LOCK_WAITS,
	LONGEST_LOCK_WAIT,
	SPINNING,
	SPINS,
	STOPPED,
	STOPPING,
	STOPS,
	WORLDS_STOPPED,
	LONGEST_STOP,
	LONGEST_STOPPING,
	STATE_RUNNING,
	STATE_RUNNABLE,
	STATE_SLEEPING,
	STATE_UNINTERRUPTIBLE,
	STATE_GIL_SLEEP,
	STATE_UNKNOWN,
	UNSEEN_RUNNABLE,
	FREE,
	NUMBERS,
};

/* When the document has a number. */
enum presence {
	ALWAYS,
	IF_LOCKS, /* waits for locks were recorded; else it is null */
	IF_STOPS, /* the interpreter can run without a GIL */
	IF_CALLS, /* the cost of recording a call is known */
	IF_ANY,   /* it is not 0 */
};

static uint64_t whole_ns(const struct model_thread *t)
{
	return t->end_ns - t->start_ns;
}

/* The document has them in this order. @sum: instead of a member at @offset */
static const struct {
	const char *key;
	size_t offset;
	uint64_t (*sum)(const struct model_thread *t);
	enum presence presence;
} numbers[NUMBERS] = {
#define AT(member) .offset = offsetof(struct model_thread, member)
	[LIFE] = { "total_ns", .sum = whole_ns },
	[HOLD] = { "hold_ns", AT(gil_ns[GIL_HOLD]) },
	[WAIT] = { "wait_ns", .sum = model_thread_wait_ns },
	[SWITCH_WAIT] = { "switch_wait_ns", AT(gil_ns[GIL_SWITCH_WAIT]) },
	[FREE_WAIT] = { "free_wait_ns", AT(gil_ns[GIL_FREE_WAIT]) },
	[NO_GIL] = { "no_gil_ns", .sum = model_thread_no_gil_ns },
	[UNKNOWN] = { "unknown_ns", AT(gil_ns[GIL_UNKNOWN]) },
	[PROBE_COST] = { "probe_cost_ns", AT(probe_cost_ns) },
	[CALLS_COST] = { "calls_cost_ns", AT(calls_cost_ns), .presence = IF_CALLS },
	[SUSPENDED] = { "suspended_ns", AT(suspended_ns), .presence = IF_ANY },
	[HOLDS] = { "holds", AT(holds) },
	[WAITS] = { "waits", AT(waits) },
	[FREE_WAITS] = { "free_waits", AT(free_waits) },
	[LONGEST_HOLD] = { "longest_hold_ns", AT(longest_hold_ns) },
	[LONGEST_WAIT] = { "longest_wait_ns", AT(longest_wait_ns) },
	[LOCK_WAIT] = { "lock_wait_ns", AT(gil_ns[GIL_LOCK_WAIT]), .presence = IF_LOCKS },
	[LOCK_WAITS] = { "lock_waits", AT(lock_waits), .presence = IF_LOCKS },
	[LONGEST_LOCK_WAIT] = { "longest_lock_wait_ns", AT(longest_lock_wait_ns),
	                        .presence = IF_LOCKS },
	[SPINNING] = { "spinning_ns", AT(gil_ns[GIL_SPINNING]), .presence = IF_STOPS },
	[SPINS] = { "spins", AT(spins), .presence = IF_STOPS },
	[STOPPED] = { "stopped_ns", AT(gil_ns[GIL_STOPPED]), .presence = IF_STOPS },
	[STOPPING] = { "stopping_ns", AT(gil_ns[GIL_STOPPING]), .presence = IF_STOPS },
	[STOPS] = { "stops", AT(stops), .presence = IF_STOPS },
	[WORLDS_STOPPED] = { "worlds_stopped", AT(worlds_stopped), .presence = IF_STOPS },
	[LONGEST_STOP] = { "longest_stop_ns", AT(longest_stop_ns), .presence = IF_STOPS },
	[LONGEST_STOPPING] = { "longest_stopping_ns", AT(longest_stopping_ns),
	                       .presence = IF_STOPS },
	[STATE_RUNNING] = { "running_ns", AT(cpu_ns[CPU_RUNNING]) },
	[STATE_RUNNABLE] = { "runnable_ns", AT(cpu_ns[CPU_RUNNABLE]) },
	[STATE_SLEEPING] = { "sleeping_ns", AT(cpu_ns[CPU_SLEEPING]) },
	[STATE_UNINTERRUPTIBLE] = { "uninterruptible_ns", AT(cpu_ns[CPU_UNINTERRUPTIBLE]) },
	[STATE_GIL_SLEEP] = { "gil_sleep_ns", AT(cpu_ns[CPU_GIL_SLEEP]) },
	[STATE_UNKNOWN] = { "unknown_ns", AT(cpu_ns[CPU_UNKNOWN]) },
	[UNSEEN_RUNNABLE] = { "unseen_runnable_ns", AT(unseen_runnable_ns) },
	[FREE] = { NULL, AT(gil_ns[GIL_NO]) },
};

static uint64_t value(enum number n, const struct model_thread *t)
{
	uint64_t ret;

	if (n == NONE)
		return 0;
	if (numbers[n].sum)
		return numbers[n].sum(t);
	memcpy(&ret, (const char *)t + numbers[n].offset, sizeof(ret));
	return ret;
}

/* What a percentage is a share of, or that the number is a time. */
enum share {
	OF_LIFE,  /* without the time in which the thread was stopped by a signal */
	OF_KNOWN, /* the known part of it */
	TIME,     /* no share: the longest of something */
};

enum shown {
	SHOWN,
	PAGE_WITH_ANY, /* on the page if any thread has some, on a terminal always */
	WITH_SHARE,    /* if a share of some thread is not printed as 0.0 % */
	WITH_PROBES,   /* if it is a caveat */
	WITH_CALLS,    /* if it would be a caveat if probes took it */
};

/**
 * In the order of the tables.
 * @minus: the part that is in another column, or counts for nothing
 * @heading: on a terminal; @head, @help: on the page. PHRASE_NONE: not there
 * @page_key: if it is not the number's (share/report/data.js)
 */
struct thread_column {
	enum thread_table table;
	enum number number, minus;
	enum phrase heading, head, help;
	enum share share;
	enum shown shown;
	const char *page_key;
};

/* clang-format off */
#define COLUMN(table_, number_, minus_, heading_, head_, help_, ...)                              \
	{                                                                                         \
		.table = THREADS_##table_, .number = number_, .minus = minus_,                    \
		.heading = PHRASE_##heading_, .head = PHRASE_##head_, .help = PHRASE_##help_,     \
		__VA_ARGS__                                                                       \
	}
static const struct thread_column all[] = {
	COLUMN(GIL, NO_GIL, LOCK_WAIT, h_no_gil, p_no_gil, p_no_gil_help),
	COLUMN(GIL, LOCK_WAIT, NONE, h_lock_wait, p_lock_wait, p_lock_wait_help, .shown = WITH_SHARE),
	COLUMN(GIL, HOLD, NONE, h_has_gil, p_has_gil, p_has_gil_help),
	COLUMN(GIL, WAIT, NONE, h_gil_wait, p_gil_wait, p_gil_wait_help),
	COLUMN(GIL, FREE_WAIT, NONE, h_free_wait, p_free_wait, p_free_wait_help, .shown = PAGE_WITH_ANY),
	COLUMN(GIL, UNKNOWN, SUSPENDED, h_unknown, p_unknown, p_unknown_help, .shown = PAGE_WITH_ANY),
	COLUMN(GIL, LONGEST_WAIT, NONE, h_longest_wait, p_longest_wait, NONE, .share = TIME),
	COLUMN(GIL, LONGEST_HOLD, NONE, h_longest_hold, p_longest_hold, NONE, .share = TIME),
	COLUMN(GIL, PROBE_COST, NONE, h_probes, p_probes, p_probes_help, .shown = WITH_PROBES),
	COLUMN(GIL, CALLS_COST, NONE, h_calls, p_calls, p_calls_help, .shown = WITH_CALLS),

	COLUMN(LOCKS, FREE, NONE, h_free, p_free, p_free_help, .share = OF_KNOWN, .page_key = "no_gil_ns"),
	COLUMN(LOCKS, LOCK_WAIT, NONE, h_lock_wait, NONE, NONE, .share = OF_KNOWN),
	COLUMN(LOCKS, SPINNING, NONE, h_spins, p_spins, p_spins_help, .share = OF_KNOWN, .page_key = "free_wait_ns"),
	COLUMN(LOCKS, STOPPED, NONE, h_stopped, NONE, NONE, .share = OF_KNOWN),
	COLUMN(LOCKS, STOPPING, NONE, h_stops, p_stops, p_stops_help, .share = OF_KNOWN, .page_key = "hold_ns"),
	COLUMN(LOCKS, WAIT, NONE, NONE, p_blocked, p_blocked_help),
	COLUMN(LOCKS, UNKNOWN, SUSPENDED, h_unknown, p_unknown, p_unknown_help, .shown = PAGE_WITH_ANY),
	COLUMN(LOCKS, LONGEST_LOCK_WAIT, NONE, h_longest_lock_wait, NONE, NONE, .share = TIME),
	COLUMN(LOCKS, LONGEST_STOP, NONE, h_longest_stop, NONE, NONE, .share = TIME),
	COLUMN(LOCKS, LONGEST_WAIT, NONE, NONE, p_longest_wait, NONE, .share = TIME),
	COLUMN(LOCKS, LONGEST_HOLD, NONE, NONE, p_longest_stop, NONE, .share = TIME),

	COLUMN(STATES, STATE_RUNNING, NONE, h_running, p_running, p_running_help),
	COLUMN(STATES, STATE_RUNNABLE, NONE, h_runnable, p_runnable, p_runnable_help),
	COLUMN(STATES, STATE_SLEEPING, NONE, h_asleep, p_asleep, p_asleep_help),
	COLUMN(STATES, STATE_UNINTERRUPTIBLE, NONE, h_uninterruptible, p_uninterruptible, p_uninterruptible_help),
	COLUMN(STATES, STATE_GIL_SLEEP, NONE, h_gil_sleep, p_gil_sleep, p_gil_sleep_help),
	COLUMN(STATES, STATE_UNKNOWN, SUSPENDED, h_unknown, p_unknown, p_state_unknown_help),
};
/* clang-format on */

#define COUNT (sizeof(all) / sizeof(*all))

enum phrase thread_column_heading(const struct thread_column *column)
{
	return column->heading;
}

bool thread_column_is_time(const struct thread_column *column)
{
	return column->share == TIME;
}

uint64_t thread_column_ns(const struct thread_column *column, const struct model_thread *t)
{
	return value(column->number, t) - value(column->minus, t);
}

double thread_column_percent(const struct thread_column *column, const struct model_thread *t)
{
	uint64_t of = column->share == OF_KNOWN ? whole_ns(t) - t->gil_ns[GIL_UNKNOWN]
	                                        : model_thread_life_ns(t);

	return facts_percent(thread_column_ns(column, t), of);
}

static bool any_has(const struct model *model, const struct thread_column *column, double percent)
{
	for (size_t i = 0; i < model->threads.n; i++)
		if (thread_column_percent(column, &model->threads.v[i]) >= percent)
			return true;
	return false;
}

static bool is_shown(const struct thread_column *column, const struct model *model, bool page)
{
	switch (column->shown) {
	case SHOWN:
		return true;
	case PAGE_WITH_ANY:
		for (size_t i = 0; page && i < model->threads.n; i++)
			if (value(column->number, &model->threads.v[i]))
				return true;
		return !page;
	case WITH_SHARE:
		return any_has(model, column, FACTS_LEAST_PERCENT);
	case WITH_PROBES:
		return model->caveats[CAVEAT_PROBE_COST];
	case WITH_CALLS:
		return any_has(model, column, PROBE_COST_NOTE_PERCENT);
	}
	return true;
}

size_t thread_columns(const struct thread_column *ret[THREAD_COLUMNS], enum thread_table table,
                      const struct model *model)
{
	size_t n = 0;

	for (size_t i = 0; i < COUNT; i++)
		if (all[i].table == table && all[i].heading != PHRASE_NONE &&
		    is_shown(&all[i], model, false)) {
			assert(n < THREAD_COLUMNS);
			ret[n++] = &all[i];
		}
	return n;
}

static bool is_present(enum number n, const struct recording_pass *pass,
                       const struct model_thread *t)
{
	switch (numbers[n].presence) {
	case ALWAYS:
		return true;
	case IF_LOCKS:
		return pass->locks_known;
	case IF_STOPS:
		return pass->free_threaded;
	case IF_CALLS:
		return pass->slices && pass->slices->call_cost_ps;
	case IF_ANY:
		return value(n, t);
	}
	return true;
}

void thread_json(struct jsonw *w, const struct recording_pass *pass, const struct model_thread *t)
{
	for (enum number n = NONE + 1; n < NUMBERS; n++) {
		if (n == STATE_RUNNING)
			jsonw_object(w, "states");
		if (numbers[n].key && is_present(n, pass, t))
			jsonw_u64(w, numbers[n].key, value(n, t));
		else if (numbers[n].presence == IF_LOCKS)
			jsonw_null(w, numbers[n].key);
		if (n == STATE_UNKNOWN)
			jsonw_end(w);
	}
}

void thread_longest_json(struct jsonw *w, const struct recording_pass *pass,
                         const struct model_thread *t)
{
	for (enum number n = NONE + 1; n < NUMBERS; n++) {
		CLEANUP(str_done) struct str key = { 0 };
		uint64_t at_ns;

		if (!numbers[n].key || !str_has_prefix(numbers[n].key, "longest_") ||
		    !is_present(n, pass, t))
			continue;
		str_addf(&key, "%.*s_at_ns", (int)(strlen(numbers[n].key) - strlen("_ns")),
		         numbers[n].key);
		/* The model has the two side by side, see struct model_thread. */
		memcpy(&at_ns, (const char *)t + numbers[n].offset + sizeof(at_ns), sizeof(at_ns));
		jsonw_u64(w, str_get(&key),
		          at_ns > pass->model->start_ns ? at_ns - pass->model->start_ns : 0);
	}
}

static void put_columns(struct jsonw *w, const char *key, enum thread_table table,
                        const struct model *model)
{
	jsonw_array(w, key);
	for (size_t i = 0; i < COUNT; i++) {
		const struct thread_column *column = &all[i];

		if (column->table != table || column->head == PHRASE_NONE ||
		    !is_shown(column, model, true))
			continue;
		jsonw_object(w, NULL);
		jsonw_string(w, "key",
		             column->page_key ? column->page_key : numbers[column->number].key);
		jsonw_string(w, "minus", numbers[column->minus].key);
		jsonw_bool(w, "longest", column->share == TIME);
		jsonw_string(w, "head", phrase(column->head));
		jsonw_string(w, "help", phrase(column->help));
		jsonw_end(w);
	}
	jsonw_end(w);
}

void thread_columns_json(struct jsonw *w, const struct model *model, bool locks)
{
	put_columns(w, "columns", locks ? THREADS_LOCKS : THREADS_GIL, model);
	put_columns(w, "state_columns", THREADS_STATES, model);
}
