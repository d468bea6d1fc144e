/* SPDX-License-Identifier: MIT */
/* giltracer setup: the one-time setup of the system, and its undoing; prints or executes the
 * steps. */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/opts.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cmd.h"
#include "system/host.h"
#include "system/setup.h"
#include "system/uprobes.h"

static void print_plan(const struct setup_plan *plan)
{
	for (size_t i = 0; i < plan->steps.n; i++) {
		const struct setup_step *step = &plan->steps.v[i];
		CLEANUP(free) char *text = setup_step_text(step);

		utf8_fprintf(stdout, "%s%s\n", setup_step_is_met(step) ? "# already: " : "", text);
	}
}

/* Undoes the steps of this run. */
static void roll_back(struct setup_state *state, size_t before)
{
	for (size_t i = state->done.n; i-- > before;) {
		struct error err;

		if (setup_undo(state, i, &err) < 0)
			log_warn("not rolled back: %s", err.text);
	}
}

static int apply_step(struct setup_state *state, const struct setup_step *step, struct error *err)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(free) char *was = NULL;

	if (setup_step_is_met(step))
		return 0;
	was = step->kind->current(step);
	text = setup_step_text(step);
	if (setup_apply(state, step, err) < 0)
		return error_prefix(err, "%s", text);
	utf8_fprintf(stdout, "%s%s%s%s\n", text, was && !strchr(was, '\n') ? "    # was " : "",
	             was && !strchr(was, '\n') ? was : "",
	             was && strchr(was, '\n') ? "    # replaced" : "");
	return 0;
}

/* Takes back what earlier versions permitted, such as a program with capabilities. */
static int undo_superseded(struct setup_state *state, const struct setup_plan *plan, bool dry_run,
                           struct error *err)
{
	for (size_t i = state->done.n; i-- > 0;) {
		CLEANUP(free) char *text = NULL;

		if (!setup_is_superseded(&state->done.v[i], plan))
			continue;
		text = setup_undo_text(state, i);
		if (!dry_run && setup_undo(state, i, err) < 0)
			return error_prefix(err, "%s", text);
		utf8_fprintf(stdout, "%s    # of an earlier setup\n", text);
	}
	return 0;
}

/* States what the setup permits, and to whom, before and after it is done. */
static void say_consequences(void)
{
	log_info("all users can record their own processes: GIL events by a preloaded library, "
	         "and when their threads run and which C functions they call by perf; other "
	         "users' processes, uprobes and the scheduler's events are for root only");
}

static int apply(struct setup_state *state, bool persist, struct error *err)
{
	CLEANUP(setup_plan_done) struct setup_plan before = { 0 };
	CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };
	size_t count;

	setup_plan_init(&before, state, persist);
	if (undo_superseded(state, &before, false, err) < 0)
		return -1;
	count = state->done.n;
	setup_plan_init(&plan, state, persist);
	for (size_t i = 0; i < plan.steps.n; i++)
		if (apply_step(state, &plan.steps.v[i], err) < 0) {
			roll_back(state, count);
			return -1;
		}
	say_consequences();
	if (state->done.n)
		log_info("giltracer setup --undo reverts this");
	else
		log_info("this system needed no change");
	return 0;
}

static void undo_strays(bool dry_run)
{
	size_t removed = 0;
	struct error err;

	if (dry_run)
		return;
	lease_drop_places(0);
	if (uprobes_remove_strays(&removed, &err) < 0 && err.code != ENOENT)
		log_warn("stray probes: %s", err.text);
	else if (removed)
		log_info("%zu groups of stray probes were removed", removed);
}

static int undo(bool dry_run, struct error *err)
{
	CLEANUP(setup_state_done) struct setup_state state = { 0 };
	unsigned failed = 0;

	if (setup_state_load(&state, err) < 0)
		return -1;
	undo_strays(dry_run);
	if (!state.done.n)
		log_info("there is nothing to undo");
	for (size_t i = state.done.n; i-- > 0;) {
		CLEANUP(free) char *text = setup_undo_text(&state, i);

		if (!dry_run && setup_undo(&state, i, err) < 0) {
			log_warn("%s: %s", text, err->text);
			failed++;
			continue;
		}
		utf8_fprintf(stdout, "%s\n", text);
	}
	return failed ? error_set(err, EIO, "%u of the steps could not be undone", failed) : 0;
}

static int set_up(bool persist, bool dry_run, struct error *err)
{
	CLEANUP(setup_state_done) struct setup_state state = { 0 };
	CLEANUP(setup_plan_done) struct setup_plan plan = { 0 };

	if (setup_state_load(&state, err) < 0)
		return -1;
	if (!dry_run)
		return apply(&state, persist, err);
	setup_plan_init(&plan, &state, persist);
	if (undo_superseded(&state, &plan, true, err) < 0)
		return -1;
	print_plan(&plan);
	say_consequences();
	return 0;
}

static int setup_run(int argc, char **argv, struct error *err)
{
	bool wants_undo = false, dry_run = false, persist = false, help = false;
	const struct opt opts[] = {
		OPT_FLAG(0, "persist", &persist, "keep the settings when the system restarts"),
		OPT_FLAG(0, "undo", &wants_undo, "restore what setup changed"),
		OPT_FLAG('n', "dry-run", &dry_run, "only print what would be done"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int status = cmd_options(&cmd_setup, opts, &help, argc, argv, err);

	if (status <= 0)
		return status;
	if (!dry_run && !host_capable(CAP_SYS_ADMIN))
		return error_set(err, EPERM, "this needs root: sudo giltracer setup%s",
		                 wants_undo ? " --undo" : "");
	return wants_undo ? undo(dry_run, err) : set_up(persist, dry_run, err);
}

const struct cmd cmd_setup = {
	.name = "setup",
	.usage = "[OPTION]...",
	.summary = "let ordinary users record their own programs; run once per system",
	.run = setup_run,
};
