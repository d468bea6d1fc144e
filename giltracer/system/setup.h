/* SPDX-License-Identifier: MIT */
/*
 * The one-time setup of the system, as a table of steps. Each step can read the present state,
 * change it and change it back; the dry run, the real run and the undoing use the same table. The
 * previous state is written to disk before any change.
 */
#ifndef GILTRACER_SYSTEM_SETUP_H
#define GILTRACER_SYSTEM_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"

struct probe_set;
struct setup_kind;

/**
 * @kind: the kind of change
 * @target: what is changed: a sysctl, a folder, a file, a group
 * @value: its new value
 * @old: its value before our first change; NULL: it did not exist
 * @set: for probes only; borrowed
 */
struct setup_step {
	const struct setup_kind *kind;
	char *target;
	char *value;
	char *old;
	const struct probe_set *set;
};

/**
 * @path: the state file, /var/lib/giltracer/setup.json ($GILTRACER_STATEDIR replaces the folder)
 * @done: what setup changed; --undo changes it back in reverse order
 */
struct setup_state {
	char *path;
	VEC(struct setup_step) done;
};

/**
 * @group: its members may record
 * @user: to be added to the group; NULL for none
 * @everybody: all users may record everything
 * @persist: survive a reboot
 * @self, @boot: for @persist: our own path, and the file that setup --boot reads
 */
struct setup_options {
	const char *group;
	const char *user;
	bool everybody, persist;
	const char *self, *boot;
};

/* The path of the file that setup --boot reads; the caller frees it. */
char *setup_boot_path(void);

struct setup_plan {
	VEC(struct setup_step) steps;
};

/* The steps for these options and the probes of these interpreters, in order. */
void setup_plan_init(struct setup_plan *ret, const struct setup_options *options,
                     const struct probe_set *const *sets, size_t set_count);
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

/* Whether an earlier setup, by another version or with other options, did something that this
 * one does not do: that is undone first. */
bool setup_is_superseded(const struct setup_step *done, const struct setup_plan *plan);

/* Whether an earlier setup survives a reboot. */
bool setup_is_persistent(const struct setup_state *state);

/* The command that undoes step i of the state, or why the step is left alone: a later change by
 * somebody else is not undone. The caller frees it. */
char *setup_undo_text(const struct setup_state *state, size_t i);

/* Undo step i, counted from 0, and remove it from the state. A step that cannot be undone stays. */
int setup_undo(struct setup_state *state, size_t i, struct error *err);

static inline void cleanup_setup_plan_done(struct setup_plan *plan)
{
	setup_plan_done(plan);
}

static inline void cleanup_setup_state_done(struct setup_state *state)
{
	setup_state_done(state);
}

#endif
