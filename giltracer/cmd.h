/* SPDX-License-Identifier: MIT */
/*
 * The table of commands. A new command is one file, one table line, one Makefile line. main.c
 * contains the table and the functions that all commands need, so it and the commands call each
 * other.
 */
#ifndef GILTRACER_CMD_H
#define GILTRACER_CMD_H

#include <stdbool.h>

#include "base/error.h"

/**
 * @name: the word that selects it
 * @usage: the text after "giltracer NAME" on the usage line
 * @summary: one line for `giltracer --help`
 * @run: argv[0] is the command's name (for the default command, "giltracer"); handles --help itself
 * by cmd_help(). Returns the exit status (0 to 255), or a negative value with err set: main exits
 * with -EXIT_CANNOT_RUN and -EXIT_NOT_FOUND as given, and with EXIT_GILTRACER for -1.
 * @help_end: prints text after the options in --help; NULL: none
 */
struct cmd {
	const char *name;
	const char *usage;
	const char *summary;
	int (*run)(int argc, char **argv, struct error *err);
	void (*help_end)(void);
};

extern const struct cmd cmd_run;
extern const struct cmd cmd_record;
extern const struct cmd cmd_report;
extern const struct cmd cmd_setup;
extern const struct cmd cmd_check;
extern const struct cmd cmd_metrics;
extern const struct cmd cmd_probes;
extern const struct cmd cmd_dump;
extern const struct cmd cmd_diff;
extern const struct cmd cmd_export;
extern const struct cmd cmd_snapshot;
extern const struct cmd cmd_stacks;
extern const struct cmd cmd_top;

struct opt;

/* Print usage, summary and the options of cmd to stdout. Returns 0, the exit status. */
int cmd_help(const struct cmd *cmd, const struct opt *opts);

/* Parse the options of a command that takes no arguments; help is the value of its --help.
 * Returns 1, 0 if help was requested and printed, or a negative value with err set. */
int cmd_options(const struct cmd *cmd, const struct opt *opts, const bool *help, int argc,
                char **argv, struct error *err);

/* Parse the options of a command that takes a session folder, which may be anywhere among them.
 * *ret is unchanged if there is none. */
int cmd_options_and_folder(const struct opt *opts, int argc, char **argv, const char **ret,
                           struct error *err);

/* Check that a report can be written to path, before anything is recorded. NULL and "-" are
 * always accepted. */
int cmd_check_output(const char *path, struct error *err);

/* If process *pid is not a CPython, but the wrapper of one, take that and say so. */
int cmd_python(unsigned *pid, struct error *err);

/* The table, NULL-terminated; the first one is the default. */
extern const struct cmd *const cmd_table[];

/* Find a command by name; NULL: none. */
const struct cmd *cmd_find(const char *name);
bool cmd_exists(const char *name);

#endif
