/* SPDX-License-Identifier: MIT */
/*
 * The one-time setup of the system, as a list of steps. Each step can read the present state,
 * change it and change it back; the dry run, the real run and the undoing use the same list. The
 * previous state is written to disk before any change.
 */
#ifndef GILTRACER_SYSTEM_SETUP_H
#define GILTRACER_SYSTEM_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

/* The kernel.perf_event_mlock_kb that setup wants, per CPU and user: a ring of 16 MiB, with which
 * perf_limits_stack_size() does not truncate stacks, and its header. */
#define SETUP_MLOCK_KB 16896

struct setup_step;

/**
 * @name: in the state file
 * @current: the present value, in the form of step->value; NULL: it does not exist. The caller
 * frees it
 * @text: the command that sets step->target to value, for a person; value NULL: that removes it.
 * The caller frees it
 * @apply: set it to value; value NULL: remove it
 */
struct setup_kind {
	const char *name;
	char *(*current)(const struct setup_step *step);
	char *(*text)(const struct setup_step *step, const char *value);
	int (*apply)(const struct setup_step *step, const char *value, struct error *err);
};

/**
 * @kind: the kind of change
 * @target: what is changed: a sysctl, a folder, a file
 * @value: its new value
 * @old: its value before our first change; NULL: it did not exist
 */
struct setup_step {
	const struct setup_kind *kind;
	char *target;
	char *value;
	char *old;
};

/**
 * @path: the state file, /var/lib/giltracer/setup.json ($GILTRACER_STATEDIR replaces the folder)
 * @done: what setup changed; --undo changes it back in reverse order
 */
struct setup_state {
	char *path;
	VEC(struct setup_step) done;
};

struct setup_plan {
	VEC(struct setup_step) steps;
};

/* The steps that this host needs, in order, and those that an earlier setup made for the same
 * reason. persist: the settings survive a reboot, as they do if an earlier setup made them so. */
void setup_plan_init(struct setup_plan *ret, const struct setup_state *state, bool persist);
void setup_plan_done(struct setup_plan *plan);

/* Whether the step has nothing to do. */
bool setup_step_is_met(const struct setup_step *step);

/* The equivalent command, for a person to read; the caller frees it. */
char *setup_step_text(const struct setup_step *step);

/* Load the state, which lists what --undo has to do. A missing file is an empty state. */
int setup_state_load(struct setup_state *ret, struct error *err);
void setup_state_done(struct setup_state *state);

/* Do one step, after recording the old value in the state. */
int setup_apply(struct setup_state *state, const struct setup_step *step, struct error *err);

/* Whether an earlier setup, by another version, did something that this one does not do: that is
 * undone first. */
bool setup_is_superseded(const struct setup_step *done, const struct setup_plan *plan);

/* The command that undoes step i of the state, or why the step is left alone: a later change by
 * somebody else is not undone. The caller frees it. */
char *setup_undo_text(const struct setup_state *state, size_t i);

/* Undo step i, counted from 0, and remove it from the state. A step that cannot be undone stays. */
int setup_undo(struct setup_state *state, size_t i, struct error *err);

DEFINE_CLEANUP_IN(struct setup_plan, setup_plan_done);

DEFINE_CLEANUP_IN(struct setup_state, setup_state_done);

#endif
