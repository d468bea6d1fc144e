/* SPDX-License-Identifier: MIT */
/* Find the command, run it, print its error, choose the exit status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"

const struct cmd *const cmd_table[] = {
	NULL,
};

int cmd_help(const struct cmd *cmd, const struct opt *opts)
{
	printf("Usage: giltracer %s%s%s\n%s\n\nOptions:\n", cmd->name, *cmd->name ? " " : "",
	       cmd->usage, cmd->summary);
	opts_help(opts, stdout);
	return 0;
}

static const struct cmd *cmd_find(const char *name)
{
	for (unsigned i = 0; cmd_table[i]; i++)
		if (!strcmp(cmd_table[i]->name, name))
			return cmd_table[i];
	return NULL;
}

/* A full disk must not look like success. */
static int check_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	log_error("standard output: cannot write: %s", strerror(errno));
	return EXIT_GILTRACER;
}

int main(int argc, char **argv)
{
	const struct cmd *cmd = argc > 1 ? cmd_find(argv[1]) : NULL;
	struct error err = { 0 };
	int skip = cmd ? 1 : 0;
	int status;

	if (!cmd)
		cmd = cmd_table[0];
	if (!cmd)
		return EXIT_GILTRACER;
	status = cmd->run(argc - skip, argv + skip, &err);
	if (status < 0) {
		log_error("%s%s%s", *cmd->name ? cmd->name : "", *cmd->name ? ": " : "", err.text);
		check_stdout();
		return status == -1 ? EXIT_GILTRACER : -status;
	}
	return check_stdout() ? EXIT_GILTRACER : status;
}
