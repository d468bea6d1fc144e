/* SPDX-License-Identifier: MIT */
/* Prints completions for shells. Each command has its option table on its stack, so it is called
 * with --help, and cmd_help() passes the table to the shell's writer. */
#include "completion.h"

#include <errno.h>
#include <string.h>

/**
 * The parts of a shell's script.
 * @begin, @end: around everything; @command_begin, @command_end: around the options of a command;
 * NULL: none
 */
struct shell {
	const char *name;
	void (*begin)(void);
	void (*command_begin)(const struct cmd *cmd);
	void (*option)(const struct cmd *cmd, const struct opt *opt);
	void (*command_end)(const struct cmd *cmd);
	void (*end)(void);
};

static const struct shell *wanted;

enum value { VALUE_NONE, VALUE_CHOICE, VALUE_FILE, VALUE_OTHER };

static enum value value_of(const struct opt *opt)
{
	if (opt->type == OPT_TYPE_FLAG)
		return VALUE_NONE;
	if (opt->type == OPT_TYPE_CHOICE)
		return VALUE_CHOICE;
	if (!strcmp(opt->arg, "FILE") || !strcmp(opt->arg, "DIR") || !strcmp(opt->arg, "PATH"))
		return VALUE_FILE;
	return VALUE_OTHER;
}

static void put_choices(const struct opt *opt)
{
	for (unsigned i = 0; opt->choices[i]; i++)
		printf("%s%s", i ? " " : "", opt->choices[i]);
}

static void put_commands(void)
{
	for (unsigned i = 0; cmd_table[i]; i++)
		if (*cmd_table[i]->name)
			printf(" %s", cmd_table[i]->name);
}

/* Prints text inside single quotes, with a backslash before each special character. */
static void put_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			printf("'\\''");
		else
			printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

/* bash: a line per option, "COMMAND:OPTION VALUES", where - stands for no value and @ for a file
 * name. */
static void bash_begin(void)
{
	printf("# SPDX-License-Identifier: MIT\n# giltracer(1) completion for "
	       "bash\n_giltracer_commands='");
	put_commands();
	printf(" '\n_giltracer_options='\n");
}

static void bash_line(const struct cmd *cmd, const struct opt *opt, bool letter)
{
	enum value value = value_of(opt);

	if (letter)
		printf("%s:-%c ", cmd->name, opt->letter);
	else
		printf("%s:--%s ", cmd->name, opt->name);
	if (value == VALUE_CHOICE)
		put_choices(opt);
	else
		putchar(value == VALUE_NONE ? '-' : value == VALUE_FILE ? '@' : '?');
	putchar('\n');
}

static void bash_option(const struct cmd *cmd, const struct opt *opt)
{
	if (opt->letter)
		bash_line(cmd, opt, true);
	if (opt->name)
		bash_line(cmd, opt, false);
}

static void bash_end(void)
{
	printf("%s",
	       "'\n"
	       "\n"
	       "# _giltracer_value COMMAND OPTION: what it may be; nothing and failure if unknown\n"
	       "_giltracer_value() {\n"
	       "\tlocal line\n"
	       "\twhile IFS= read -r line; do\n"
	       "\t\t[[ $line == \"$1:$2 \"* ]] && echo \"${line#* }\" && return\n"
	       "\tdone <<<\"$_giltracer_options\"\n"
	       "\treturn 1\n"
	       "}\n"
	       "\n"
	       "_giltracer() {\n"
	       "\tlocal current=${COMP_WORDS[COMP_CWORD]} command= at=1 value word line words=\n"
	       "\tCOMPREPLY=()\n"
	       "\tif ((COMP_CWORD > 1)) && [[ $_giltracer_commands == *\" ${COMP_WORDS[1]} \"* ]]; "
	       "then\n"
	       "\t\tcommand=${COMP_WORDS[1]} at=2\n"
	       "\tfi\n"
	       "\twhile ((at < COMP_CWORD)); do\n"
	       "\t\tword=${COMP_WORDS[at++]}\n"
	       "\t\tif [[ $word != -* ]]; then # the program, whose arguments are its own\n"
	       "\t\t\t[[ $command == '' || $command == record ]] && return\n"
	       "\t\t\tcontinue\n"
	       "\t\tfi\n"
	       "\t\tvalue=$(_giltracer_value \"$command\" \"$word\") || continue\n"
	       "\t\t[[ $value == - ]] && continue\n"
	       "\t\t[[ ${COMP_WORDS[at]} == = ]] && ((at++))\n"
	       "\t\tif ((at >= COMP_CWORD)); then\n"
	       "\t\t\t[[ $current == = ]] && current=\n"
	       "\t\t\t[[ $value == [@?] ]] || COMPREPLY=($(compgen -W \"$value\" -- "
	       "\"$current\"))\n"
	       "\t\t\treturn\n"
	       "\t\tfi\n"
	       "\t\t((at++))\n"
	       "\t\t[[ $word == -[cm] || $word == --module || $word == --command ]] && return\n"
	       "\tdone\n"
	       "\tif [[ $current == -* ]]; then\n"
	       "\t\twhile IFS= read -r line; do\n"
	       "\t\t\t[[ $line == \"$command:\"* ]] && line=${line%% *} && words+=\" ${line#*:}\"\n"
	       "\t\tdone <<<\"$_giltracer_options\"\n"
	       "\telif ((COMP_CWORD == 1)); then\n"
	       "\t\twords=$_giltracer_commands\n"
	       "\tfi\n"
	       "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
	       "}\n"
	       "complete -o bashdefault -o default -F _giltracer giltracer\n");
}

/* zsh: _arguments for each command. */
static void zsh_begin(void)
{
	printf("%s", "#compdef giltracer\n"
	             "# SPDX-License-Identifier: MIT\n# giltracer(1) completion for zsh\n"
	             "_giltracer() {\n"
	             "\tlocal -a commands\n"
	             "\tcommands=(\n");
	for (unsigned i = 0; cmd_table[i]; i++) {
		if (!*cmd_table[i]->name)
			continue;
		printf("\t\t'%s:", cmd_table[i]->name);
		put_quoted(cmd_table[i]->summary, ":");
		printf("'\n");
	}
	printf("%s", "\t)\n"
	             "\tif ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
	             "\t\t_describe command commands\n"
	             "\t\t_files\n"
	             "\t\treturn\n"
	             "\tfi\n"
	             "\tcase $words[2] in\n");
}

static void zsh_command_begin(const struct cmd *cmd)
{
	if (*cmd->name)
		printf("\t%s)\n\t\tshift words\n\t\t((CURRENT--))\n", cmd->name);
	else
		printf("\t*)\n");
	printf("\t\t_arguments -s -S");
}

static void zsh_spec(const struct opt *opt)
{
	bool again = opt->type == OPT_TYPE_LIST;
	enum value value = value_of(opt);

	if (opt->letter && opt->name)
		printf(" \\\n\t\t\t'%s'{-%c%s,--%s%s}'[", again ? "*" : "", opt->letter,
		       value ? "+" : "", opt->name, value ? "=" : "");
	else if (opt->name)
		printf(" \\\n\t\t\t'%s--%s%s[", again ? "*" : "", opt->name, value ? "=" : "");
	else
		printf(" \\\n\t\t\t'%s-%c%s[", again ? "*" : "", opt->letter, value ? "+" : "");
	put_quoted(opt->help, "[]:\\");
}

static void zsh_option(const struct cmd *cmd, const struct opt *opt)
{
	enum value value = value_of(opt);

	(void)cmd;
	zsh_spec(opt);
	putchar(']');
	if (value != VALUE_NONE) {
		putchar(':');
		put_quoted(opt->arg, ":\\");
		putchar(':');
	}
	if (value == VALUE_CHOICE) {
		putchar('(');
		put_choices(opt);
		putchar(')');
	} else if (value == VALUE_FILE) {
		printf("_files");
	} else if (value == VALUE_OTHER) {
		putchar(' ');
	}
	putchar('\'');
}

/* The operand after the options is a program with its arguments, or a folder. */
static void zsh_command_end(const struct cmd *cmd)
{
	bool program = !*cmd->name || !strcmp(cmd->name, "record");

	printf(" \\\n\t\t\t%s\n\t\t;;\n",
	       program ? "'1:script:_files' '*:: :_normal'" : "'*:file:_files'");
}

static void zsh_end(void)
{
	printf("\tesac\n}\n_giltracer \"$@\"\n");
}

/* fish: a line per option; commands are completed as the first word. */
static void fish_begin(void)
{
	printf("# SPDX-License-Identifier: MIT\n# giltracer(1) completion for fish\n"
	       "function __giltracer_command\n"
	       "\tset -l words (commandline -opc)\n"
	       "\tif test (count $words) -gt 1; and contains -- $words[2]");
	put_commands();
	printf("%s", "\n\t\techo $words[2]\n\telse\n\t\techo run\n\tend\nend\n");
	for (unsigned i = 0; cmd_table[i]; i++) {
		if (!*cmd_table[i]->name)
			continue;
		printf("complete -c giltracer -n 'test (count (commandline -opc)) -eq 1' -a %s -d "
		       "'",
		       cmd_table[i]->name);
		put_quoted(cmd_table[i]->summary, "");
		printf("'\n");
	}
}

static void fish_option(const struct cmd *cmd, const struct opt *opt)
{
	enum value value = value_of(opt);

	printf("complete -c giltracer -n 'test (__giltracer_command) = %s'",
	       *cmd->name ? cmd->name : "run");
	if (opt->letter)
		printf(" -s %c", opt->letter);
	if (opt->name)
		printf(" -l %s", opt->name);
	if (value == VALUE_CHOICE) {
		printf(" -x -a '");
		put_choices(opt);
		putchar('\'');
	} else if (value != VALUE_NONE) {
		printf(value == VALUE_FILE ? " -r -F" : " -x");
	}
	printf(" -d '");
	put_quoted(opt->help, "\\");
	printf("'\n");
}

static const struct shell shells[] = {
	{ "bash", bash_begin, NULL, bash_option, NULL, bash_end },
	{ "zsh", zsh_begin, zsh_command_begin, zsh_option, zsh_command_end, zsh_end },
	{ "fish", fish_begin, NULL, fish_option, NULL, NULL },
};

bool completion_wanted(void)
{
	return wanted != NULL;
}

void completion_add(const struct cmd *cmd, const struct opt *opts)
{
	if (wanted->command_begin)
		wanted->command_begin(cmd);
	for (; opts->type != OPT_TYPE_END; opts++)
		if (opts->help)
			wanted->option(cmd, opts);
	if (wanted->command_end)
		wanted->command_end(cmd);
}

static int add_command(const struct cmd *cmd, struct error *err)
{
	char name[32], help[] = "--help";
	char *argv[] = { name, help, NULL };

	snprintf(name, sizeof(name), "%s", cmd->name);
	return cmd->run(2, argv, err);
}

/* The default command is last, because the shells' scripts treat it as "everything else". */
int completion_print(const char *shell, struct error *err)
{
	for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++)
		if (shell && !strcmp(shells[i].name, shell))
			wanted = &shells[i];
	if (!wanted)
		return error_set(err, EINVAL,
		                 "option --completion: '%s' is not one of bash, zsh, fish",
		                 shell ? shell : "");
	wanted->begin();
	for (unsigned i = 0; cmd_table[i]; i++)
		if (*cmd_table[i]->name && add_command(cmd_table[i], err) < 0)
			return -1;
	if (add_command(cmd_find(""), err) < 0)
		return -1;
	if (wanted->end)
		wanted->end();
	return 0;
}
