/* SPDX-License-Identifier: MIT */
/* Reads the first line of a script. */
#include "python/shebang.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#define BLANKS  " \t"
#define HEAD    4096
#define LETTERS "bBdEIOPqsSuvR"

/* Installers write this if the kernel would not accept the path: see pip's distlib. */
#define EXEC "'''exec' "

static char *file_head(const char *script)
{
	char *text = xcalloc(1, HEAD + 1);
	CLEANUP(close) int fd = -1;
	struct stat st;

	/* Data read from a pipe, such as <(…) of a shell, would be missing for the interpreter; and
	 * a FIFO's writer waits for one reader, not for two. */
	if (stat(script, &st) < 0 || !S_ISREG(st.st_mode))
		return text;
	fd = open(script, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, HEAD) < 0)
		*text = '\0';
	return text;
}

static bool names_python(const char *path)
{
	const char *name = str_base(path);

	return str_has_prefix(name, "python") || str_has_prefix(name, "pypy");
}

static void add_option(struct shebang *ret, const char *word)
{
	if (word[0] == '-' && word[1] && strspn(word + 1, LETTERS) == strlen(word + 1))
		*vec_push(&ret->options) = xstrdup(word);
	else
		ret->left_out = true;
}

/* The kernel passes everything after env as one word; -S splits it into words. */
static void skip_env(char **line)
{
	char *rest = *line;
	const char *word = strsep(&rest, BLANKS);

	if (strcmp(str_base(word), "env") != 0 || !rest) {
		/* Undo strsep, because the command is not env. */
		if (rest)
			rest[-1] = ' ';
		return;
	}
	rest += strspn(rest, BLANKS);
	if (str_has_prefix(rest, "-S"))
		rest += strlen("-S");
	*line = rest + strspn(rest, BLANKS);
}

static void read_words(struct shebang *ret, char *line)
{
	const char *word;

	skip_env(&line);
	word = strsep(&line, BLANKS);
	if (!names_python(word))
		return;
	ret->python = xstrdup(word);
	while ((word = strsep(&line, BLANKS)))
		if (*word)
			add_option(ret, word);
}

/* PYTHON may be in quotes; "$0" "$@" follows. */
static void read_exec(struct shebang *ret, char *line)
{
	char *end;

	line += strlen(EXEC);
	if (*line == '"')
		end = strchr(++line, '"');
	else
		end = strchr(line, ' ');
	if (!end)
		return;
	*end = '\0';
	if (names_python(line))
		ret->python = xstrdup(line);
}

void shebang_read(struct shebang *ret, const char *script)
{
	CLEANUP(free) char *text = file_head(script);
	char *rest = text, *first = strsep(&rest, "\n"), *second = strsep(&rest, "\n");
	size_t len;

	*ret = (struct shebang){ 0 };
	if (!str_has_prefix(first, "#!"))
		return;
	first += strlen("#!");
	first += strspn(first, BLANKS);
	for (len = strlen(first); len && strchr(BLANKS "\r", first[len - 1]); len--)
		first[len - 1] = '\0';
	if (!*first)
		return;
	ret->line = xstrdup(first);
	if (second && str_has_prefix(second, EXEC))
		read_exec(ret, second);
	else
		read_words(ret, first);
}

void shebang_done(struct shebang *shebang)
{
	for (size_t i = 0; i < shebang->options.n; i++)
		free(shebang->options.v[i]);
	vec_done(&shebang->options);
	free(shebang->line);
	free(shebang->python);
	*shebang = (struct shebang){ 0 };
}
