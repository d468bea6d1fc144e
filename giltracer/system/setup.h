/* SPDX-License-Identifier: MIT */
/*
 * The one-time system set-up as a table of steps. Each step knows what is there now, how to change
 * it and how to change it back; a dry run, the real run and the undoing walk the same table. What
 * was found before is on disk before anything is changed.
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
 * @kind: what sort of change
 * @target: what is changed: a sysctl, a folder, a file, a group
 * @value: what it is to be
 * @old: what it was before we first changed it, NULL: nothing
 * @set: probes only; borrowed
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
 * @done: what setup changed and --undo has to change back, the other way round
 */
struct setup_state {
	char *path;
	VEC(struct setup_step) done;
};

/**
 * @group: whose members may record
 * @user: to be made a member of it, NULL for none
 * @everybody: and everybody may record everything
 * @persist: survive a reboot
 * @self, @boot: for that, our own path, and the text that setup --boot reads
 */
struct setup_options {
	const char *group;
	const char *user;
	bool everybody, persist;
	const char *self, *boot;
};

/* Of the text that setup --boot reads; caller frees. */
char *setup_boot_path(void);

struct setup_plan {
	VEC(struct setup_step) steps;
};

/* What to do for these options and the probes of these interpreters, in order. */
void setup_plan_init(struct setup_plan *ret, const struct setup_options *options,
                     const struct probe_set *const *sets, size_t set_count);
void setup_plan_done(struct setup_plan *plan);

/* Whether the step has nothing to do. */
bool setup_step_is_met(const struct setup_step *step);

/* The command that does it, for a person; caller frees. */
char *setup_step_text(const struct setup_step *step);

/* What --undo has to do. A missing file is an empty state. */
int setup_state_load(struct setup_state *ret, struct error *err);
void setup_state_done(struct setup_state *state);

/* Do one step, its old value recorded in the state first. */
int setup_apply(struct setup_state *state, const struct setup_step *step, struct error *err);

/* Whether an earlier set-up, by another version or with other options, did what this one does not:
 * that is undone first. */
bool setup_is_superseded(const struct setup_step *done, const struct setup_plan *plan);

/* Whether an earlier set-up survives a reboot. */
bool setup_is_persistent(const struct setup_state *state);

/* The command that undoes step i of the state, or why it is left alone: another's later choice is
 * not ours to undo. Caller frees. */
char *setup_undo_text(const struct setup_state *state, size_t i);

/* Undo step i, counted from 0, and take it out of the state. What cannot be undone stays. */
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
