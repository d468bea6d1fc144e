/* SPDX-License-Identifier: MIT */
/* Finds the command, runs it, prints its error and chooses the exit status. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opts.h"
#include "cmd.h"
#include "completion.h"
#include "live/family.h"

/* The default command has the empty name. */
/* clang-format off */
const struct cmd *const cmd_table[] = {
	&cmd_check,
	&cmd_diff,
	&cmd_dump,
	&cmd_export,
	&cmd_metrics,
	&cmd_probes,
	&cmd_record,
	&cmd_report,
	&cmd_run,
	&cmd_setup,
	&cmd_snapshot,
	&cmd_stacks,
	&cmd_top,
	NULL,
};
/* clang-format on */

const struct cmd *cmd_find(const char *name)
{
	for (unsigned i = 0; cmd_table[i]; i++)
		if (!strcmp(cmd_table[i]->name, name))
			return cmd_table[i];
	return NULL;
}

bool cmd_exists(const char *word)
{
	return cmd_find(word) != NULL;
}

static void print_commands(void)
{
	printf("\nCommands:\n");
	for (unsigned i = 0; cmd_table[i]; i++)
		if (*cmd_table[i]->name)
			printf("  %-25s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
	printf("\n'giltracer COMMAND --help' lists the options of a command; "
	       "giltracer(1) is the manual.\nIf a script shares a command's name, "
	       "write ./setup\n");
}

int cmd_help(const struct cmd *cmd, const struct opt *opts)
{
	const char *space = *cmd->name ? " " : "";

	if (completion_wanted()) {
		completion_add(cmd, opts);
		return 0;
	}
	printf("Usage: giltracer%s%s %s\n%c%s.\n\nOptions:\n", space, cmd->name, cmd->usage,
	       toupper((unsigned char)*cmd->summary), cmd->summary + 1);
	opts_help(opts, stdout);
	if (!*cmd->name)
		print_commands();
	if (cmd->help_end)
		cmd->help_end();
	return 0;
}

int cmd_options(const struct cmd *cmd, const struct opt *opts, const bool *help, int argc,
                char **argv, struct error *err)
{
	int next = opts_parse(opts, argc, argv, err);

	if (next < 0)
		return -1;
	if (*help)
		return cmd_help(cmd, opts);
	if (next < argc)
		return error_set(err, EINVAL, "unexpected argument '%s'", argv[next]);
	return 1;
}

/* Uses the same steps as writing the report does. */
int cmd_python(unsigned *pid, struct error *err)
{
	pid_t found;

	if (family_python(&found, (pid_t)*pid, err) < 0)
		return -1;
	if (found != (pid_t)*pid)
		log_info(FAMILY_TAKEN, *pid, (int)found);
	*pid = (unsigned)found;
	return 0;
}

int cmd_check_output(const char *path, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	struct stat st;
	int in_place;

	if (!path || !strcmp(path, "-"))
		return 0;
	if (!*path)
		return error_set(err, EINVAL, "the report needs a file name");
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, EISDIR, "%s: is a folder; name a file for the report", path);
	in_place = filewriter_check(path, err);
	return in_place ? (in_place < 0 ? -1 : 0) : filewriter_open(&w, path, err);
}

int cmd_options_and_folder(const struct opt *opts, int argc, char **argv, const char **ret,
                           struct error *err)
{
	bool any = false;

	for (int at = 0; at < argc;) {
		int next = opts_parse(opts, argc - at, argv + at, err);

		if (next < 0)
			return -1;
		at += next;
		if (at >= argc)
			break;
		if (any)
			return error_set(err, EINVAL, "'%s': only one session folder is expected",
			                 argv[at]);
		any = true;
		*ret = argv[at];
	}
	return 0;
}

/* A full disk must not look like success. */
static int check_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	log_error("standard output: cannot write: %s", strerror(errno));
	return EXIT_GILTRACER;
}

static int run(const struct cmd *cmd, int argc, char **argv)
{
	struct error err = { 0 };
	int status = cmd->run(argc, argv, &err);

	if (status >= 0)
		return status;
	log_error("%s%s%s", cmd->name, *cmd->name ? ": " : "", err.text);
	return status == -1 ? EXIT_GILTRACER : -status;
}

static int complete(const char *shell)
{
	struct error err;

	if (completion_print(shell, &err) == 0)
		return 0;
	log_error("%s", err.text);
	return EXIT_GILTRACER;
}

/*
 * If a standard descriptor is closed, a file of ours would get its number, and printed text would
 * go into it. So closed ones are opened in the direction that is never used, where a write still
 * fails. The program does not inherit them: to it, they are closed.
 */
static void take_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

static void ignore(int signal)
{
	(void)signal;
}

/* At the limit of ulimit -f, a write must fail like any other, so that no partial file remains.
 * A handler is used because the programs that we start would inherit SIG_IGN. */
static void survive_file_limit(void)
{
	if (signal(SIGXFSZ, ignore) == SIG_IGN)
		signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
	const struct cmd *cmd = argc > 1 ? cmd_find(argv[1]) : NULL;
	int status, failed;

	take_standard_fds();
	survive_file_limit();
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		puts(PACKAGE_STRING);
		return check_stdout();
	}
	if (argc > 1 && !strcmp(argv[1], "--completion"))
		status = complete(argc > 2 ? argv[2] : NULL);
	else if (cmd)
		status = run(cmd, argc - 1, argv + 1);
	else if ((cmd = cmd_find("")))
		status = run(cmd, argc, argv);
	else
		status = EXIT_GILTRACER;
	failed = check_stdout();
	return failed ? failed : status;
}
