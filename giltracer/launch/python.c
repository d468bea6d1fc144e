/* SPDX-License-Identifier: MIT */
/* Asks the interpreter who it is, then looks for the GIL in the files it has mapped. */
#include "python.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/symbols.h"

#define MARK           "giltracer-answer:"
#define MARK_VIZTRACER "giltracer-viztracer:"
#define ANSWER_MAX     (1u << 20)
#define TIMEOUT_MS     30000

/* Exported by every CPython, stripped or not, from the file that also has the GIL. */
#define LANDMARK "PyEval_SaveThread"

/* Runs on any Python since 2.6, so that another one can be refused by its name. */
static const char ask_identity[] =
	"import sys\n"
	"sys.path[:] = [p for p in sys.path if p]\n"
	"import json, os, platform\n"
	"try:\n"
	" from sysconfig import get_config_var as var\n"
	"except ImportError:\n"
	" var = lambda name: None\n"
	"try:\n"
	" maps = [l.rstrip('\\n').split(None, 5) for l in open('/proc/self/maps')]\n"
	"except Exception:\n"
	" maps = []\n"
	"files = []\n"
	"for m in maps:\n"
	" if len(m) == 6 and 'x' in m[1] and m[5].startswith('/') and m[5] not in files:\n"
	"  files.append(m[5])\n"
	"os.write(1, ('" MARK "' + json.dumps({\n"
	" 'executable': sys.executable or '',\n"
	" 'image': os.readlink('/proc/self/exe'),\n"
	" 'files': files,\n"
	" 'implementation': platform.python_implementation(),\n"
	" 'version': list(sys.version_info[:3]),\n"
	" 'free_threaded': bool(var('Py_GIL_DISABLED')),\n"
	" 'debug': hasattr(sys, 'gettotalrefcount')}) + '\\n').encode())\n"
	/* In the same process, since the command may be a script that takes its time. */
	"if sys.executable:\n"
	" os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])\n";

/* Its version; else whether pip would refuse to install it here (PEP 668). */
static const char ask_viztracer[] =
	"import os, sys\n"
	"sys.path[:] = [p for p in sys.path if p]\n"
	"try:\n"
	" import viztracer\n"
	" answer = '\"' + viztracer.__version__ + '\"'\n"
	"except Exception:\n"
	" mark = os.path.join(os.path.dirname(os.__file__), 'EXTERNALLY-MANAGED')\n"
	" managed = sys.prefix == sys.base_prefix and os.path.exists(mark)\n"
	" answer = 'true' if managed else 'false'\n"
	"print('" MARK_VIZTRACER "' + answer)\n";

static char *find_in_path(const char *name)
{
	const char *path = getenv("PATH");
	CLEANUP(free) char *copy = xstrdup(path ? path : "/usr/bin:/bin");
	char *rest = copy, *dir;
	struct stat st;

	while ((dir = strsep(&rest, ":"))) {
		CLEANUP(free) char *full = xasprintf("%s/%s", *dir ? dir : ".", name);

		if (access(full, X_OK) == 0 && stat(full, &st) == 0 && S_ISREG(st.st_mode))
			return take(full);
	}
	return NULL;
}

static char *find_default(void)
{
	const char *venv = getenv("VIRTUAL_ENV");
	char *found;

	if (venv && *venv) {
		CLEANUP(free) char *path = xasprintf("%s/bin/python", venv);

		if (access(path, X_OK) == 0)
			return take(path);
	}
	found = find_in_path("python3");
	return found ? found : find_in_path("python");
}

/* Absolute, but with links as they are: a virtual environment is a link. */
static char *make_absolute(char *path)
{
	CLEANUP(free) char *relative = path;
	char cwd[PATH_MAX];

	if (*path == '/' || !getcwd(cwd, sizeof(cwd)))
		return take(relative);
	return xasprintf("%s/%s", cwd, path);
}

/* As errno has it, and why if nobody would guess it. */
static void cannot_execute(const char *path, struct error *err)
{
	int code = errno;
	struct statvfs fs;

	if (code == EACCES && statvfs(path, &fs) == 0 && fs.f_flag & ST_NOEXEC)
		error_set(err, code,
		          "%s: its file system is mounted noexec: nothing can be "
		          "executed there, by giltracer or without it",
		          path);
	else
		error_set(err, code, "%s: %s", path, strerror(code));
}

int python_command(char **ret, const char *wanted, struct error *err)
{
	struct stat st;
	char *path;

	if (!wanted)
		path = find_default();
	else if (strchr(wanted, '/'))
		path = xstrdup(wanted);
	else
		path = find_in_path(wanted);
	if (!path)
		return error_set(err, ENOENT, "%s: not found in PATH",
		                 wanted ? wanted : "python3, python");
	if (stat(path, &st) < 0 || access(path, X_OK) < 0) {
		cannot_execute(path, err);
		free(path);
		return -1;
	}
	if (S_ISDIR(st.st_mode)) {
		error_set(err, EACCES, "%s: is a directory", path);
		free(path);
		return -1;
	}
	*ret = make_absolute(path);
	return 0;
}

/* `sudo giltracer setup --python ~/venv/bin/python` must not run a user's files as root. */
static bool become_caller(void)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (geteuid() != 0 || !uid || !gid)
		return true;
	return setgroups(0, NULL) == 0 && setgid((gid_t)strtoul(gid, NULL, 10)) == 0 &&
	       setuid((uid_t)strtoul(uid, NULL, 10)) == 0;
}

/* In the child, between fork and exec. */
static void __attribute__((noreturn)) exec_python(const char *command, char **argv, int out)
{
	int null = open("/dev/null", O_RDWR);

	if (become_caller() && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execv(command, argv);
	_exit(errno == EACCES || errno == ENOEXEC ? 126 : 127);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Until end of file, ANSWER_MAX bytes or the time is up. */
static int read_answer(struct str *ret, int fd, const char *command, struct error *err)
{
	int64_t deadline = now_ms() + TIMEOUT_MS;
	char buf[4096];

	for (;;) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - now_ms();
		ssize_t n;

		if (left <= 0)
			return error_set(err, ETIMEDOUT, "%s: no answer in %u s", command,
			                 TIMEOUT_MS / 1000);
		if (poll(&pfd, 1, (int)left) <= 0)
			continue;
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		str_addn(ret, buf, (size_t)n);
		if (ret->len > ANSWER_MAX)
			return error_set(err, EFBIG, "%s: endless answer", command);
	}
}

/* argv[0] must stay the command's path: it is how a virtual environment knows itself. */
static int run_python(struct str *ret, int *ret_status, const char *command, const char *flags,
                      const char *program, const char *arg, struct error *err)
{
	const char *const argv[] = { command, flags, "-c", program, arg, NULL };
	int fds[2], failed;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		exec_python(command, (char **)(uintptr_t)argv, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return error_errno(err, "cannot start %s", command);
	}
	failed = read_answer(ret, fds[0], command, err);
	close(fds[0]);
	if (failed)
		kill(pid, SIGKILL);
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	return failed;
}

/* The JSON behind the last mark: a wrapper may print something of its own first. */
static json_t *parse_answer(const struct str *text, const char *mark)
{
	const char *at = NULL, *next = str_get(text);

	while ((next = strstr(next, mark))) {
		next += strlen(mark);
		at = next;
	}
	return at ? json_loads(at, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, NULL) : NULL;
}

static int no_answer(const char *command, int status, struct error *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126)
		return error_set(err, EACCES, "%s: cannot be executed", command);
	if (WIFSIGNALED(status))
		return error_set(err, ENOTSUP, "%s: died of signal %d when asked its version",
		                 command, WTERMSIG(status));
	return error_set(err, ENOTSUP, "%s: is not a Python interpreter", command);
}

static int ask(json_t **ret, struct python *py, struct error *err)
{
	CLEANUP(str_done) struct str text = { 0 };
	json_auto_t *viztracer = NULL;
	int status = 0, failed;

	/* -E -s -S: nothing of the environment or of site-packages can get in the way. -I would
	 * say the same, but Python 2 does not know it. */
	failed = run_python(&text, &status, py->command, "-EsS", ask_identity, ask_viztracer, err);
	*ret = parse_answer(&text, MARK);
	if (!json_is_object(*ret)) {
		json_decref(*ret);
		return failed ? -1 : no_answer(py->command, status, err);
	}
	viztracer = parse_answer(&text, MARK_VIZTRACER);
	if (json_is_string(viztracer))
		py->viztracer = xstrdup(json_string_value(viztracer));
	py->managed = json_is_true(viztracer);
	return 0;
}

static char *json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return xstrdup(text ? text : "");
}

static unsigned json_number(const json_t *array, size_t i)
{
	return (unsigned)json_integer_value(json_array_get(array, i));
}

static void read_identity(struct python *py, const json_t *answer)
{
	const json_t *version = json_object_get(answer, "version");

	py->executable = json_text(answer, "executable");
	py->image = json_text(answer, "image");
	py->implementation = json_text(answer, "implementation");
	py->major = json_number(version, 0);
	py->minor = json_number(version, 1);
	py->micro = json_number(version, 2);
	py->version = xasprintf("%u.%u.%u", py->major, py->minor, py->micro);
	py->free_threaded = json_is_true(json_object_get(answer, "free_threaded"));
	py->debug = json_is_true(json_object_get(answer, "debug"));
}

static int check_identity(const struct python *py, struct error *err)
{
	if (strcmp(py->implementation, "CPython") != 0)
		return error_set(err, ENOTSUP,
		                 "%s is %s %s: only CPython has the GIL that giltracer records",
		                 py->command, py->implementation, py->version);
	if (py->major != 3 || py->minor < 6)
		return error_set(err, ENOTSUP,
		                 "%s is Python %s: giltracer needs CPython 3.6 or newer",
		                 py->command, py->version);
	return 0;
}

static int find_library(struct python *py, const json_t *files, struct error *err)
{
	json_t *file;
	size_t i;

	json_array_foreach(files, i, file)
	{
		const char *path = json_string_value(file);
		CLEANUP(symbols_free) struct symbols *symbols = NULL;
		struct error ignored;

		if (!path || symbols_open_bare(&symbols, path, &ignored) < 0)
			continue;
		if (symbols_defines(symbols, LANDMARK)) {
			py->library = xstrdup(path);
			return 0;
		}
	}
	if (str_has_suffix(py->image, " (deleted)"))
		return error_set(err, ENOTSUP,
		                 "%s: %s: a file that is in memory only, or was replaced since "
		                 "it was started, cannot be probed: start it from its file, or "
		                 "use --no-gil-detect",
		                 py->command, py->image);
	return error_set(err, ENOTSUP,
	                 "%s: neither %s nor a library it loads exports " LANDMARK
	                 ", so its GIL cannot be found",
	                 py->command, py->image);
}

int python_find(struct python **ret, const char *wanted, struct error *err)
{
	CLEANUP(python_free) struct python *py = xcalloc(1, sizeof(*py));
	json_auto_t *answer = NULL;

	if (python_command(&py->command, wanted, err) < 0)
		return -1;
	if (ask(&answer, py, err) < 0)
		return -1;
	read_identity(py, answer);
	if (check_identity(py, err) < 0)
		return -1;
	if (find_library(py, json_object_get(answer, "files"), err) < 0)
		return -1;
	*ret = take(py);
	return 0;
}

char *python_viztracer_advice(const struct python *python)
{
	if (python->minor < 10)
		return xstrdup("it needs Python 3.10 or newer");
	if (python->managed)
		return xasprintf("%s -m venv venv && venv/bin/pip install viztracer, and then "
		                 "--python venv/bin/python",
		                 python->command);
	return xasprintf("%s -m pip install viztracer", python->command);
}

void python_free(struct python *python)
{
	if (!python)
		return;
	free(python->command);
	free(python->executable);
	free(python->image);
	free(python->library);
	free(python->implementation);
	free(python->version);
	free(python->viztracer);
	free(python);
}
