/* SPDX-License-Identifier: MIT */
/* Completion for shells, made from the option tables: giltracer --completion SHELL. */
#ifndef GILTRACER_COMPLETION_H
#define GILTRACER_COMPLETION_H

#include "base/opts.h"
#include "cmd.h"

/* Print the script for bash, zsh or fish to stdout; another name is an error. */
int completion_print(const char *shell, struct error *err);

/* Whether --help of a command should pass its options to completion_add instead of printing
 * them. */
bool completion_wanted(void);
void completion_add(const struct cmd *cmd, const struct opt *opts);

#endif
